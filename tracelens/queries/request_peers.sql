/*
The median of each stage over the requests of a similar prompt: from 0.8 to 1.25 times its input tokens, or all of the run
where fewer than 10 are that long or where its tokens are not known; basis says which. A request that got a first token is
compared with others that got one. own_s is the request's own length, excess_s what it takes longer than the median,
times_median how many times as long; mean_input_tokens and mean_output_tokens are the means of the others.
[params]
request = ""
run = ""
*/
WITH me AS MATERIALIZED (
    SELECT
        *,
        coalesce(client_ttft_s, ttft_s) AS whole_ttft_s,
        coalesce(client_e2e_s, e2e_s) AS whole_e2e_s,
        ceil(0.8 * input_tokens)::BIGINT AS low_tokens,
        floor(1.25 * input_tokens)::BIGINT AS high_tokens
    FROM _request_called($request, $run)
),

alike AS (
    SELECT
        me.run_id,
        count(*) AS alike_count
    FROM me
    INNER JOIN _request_timing AS t ON me.run_id = t.run_id AND t.input_tokens BETWEEN me.low_tokens AND me.high_tokens
    WHERE me.whole_ttft_s IS NULL OR coalesce(t.client_ttft_s, t.ttft_s) IS NOT NULL
    GROUP BY me.run_id
),

-- The tokens that the peers have: any, where too few others are that long.
range_of AS MATERIALIZED (
    SELECT
        me.run_id,
        me.request_no,
        me.input_tokens,
        me.whole_ttft_s IS NOT NULL AS has_ttft,
        CASE WHEN alike.alike_count > 10 THEN me.low_tokens END AS low_tokens,
        CASE WHEN alike.alike_count > 10 THEN me.high_tokens END AS high_tokens
    FROM me
    LEFT JOIN alike ON me.run_id = alike.run_id
),

peer AS (
    SELECT
        t.*,
        coalesce(t.client_ttft_s, t.ttft_s) AS whole_ttft_s,
        coalesce(t.client_e2e_s, t.e2e_s) AS whole_e2e_s
    FROM _request_timing AS t
    INNER JOIN range_of ON t.run_id = range_of.run_id AND t.request_no <> range_of.request_no
    WHERE
        (range_of.low_tokens IS NULL OR t.input_tokens BETWEEN range_of.low_tokens AND range_of.high_tokens)
        AND (NOT range_of.has_ttft OR coalesce(t.client_ttft_s, t.ttft_s) IS NOT NULL)
),

usual AS (
    SELECT
        run_id,
        count(*) AS peer_count,
        avg(input_tokens) AS mean_input_tokens,
        avg(output_tokens) AS mean_output_tokens,
        unnest([
            {'stage': 'client_wait', 'median_s': quantile_cont(client_wait_s, 0.5), 'known_count': count(client_wait_s)},
            {'stage': 'network_in', 'median_s': quantile_cont(network_in_s, 0.5), 'known_count': count(network_in_s)},
            {'stage': 'tokenize', 'median_s': quantile_cont(tokenize_s, 0.5), 'known_count': count(tokenize_s)},
            {'stage': 'step_wait', 'median_s': quantile_cont(step_wait_s, 0.5), 'known_count': count(step_wait_s)},
            {'stage': 'unaccounted', 'median_s': quantile_cont(left_s, 0.5), 'known_count': count(left_s)},
            {'stage': 'queue', 'median_s': quantile_cont(queue_s, 0.5), 'known_count': count(queue_s)},
            {'stage': 'prefill', 'median_s': quantile_cont(prefill_s, 0.5), 'known_count': count(prefill_s)},
            {'stage': 'stream_out', 'median_s': quantile_cont(stream_out_s, 0.5), 'known_count': count(stream_out_s)},
            {'stage': 'ttft', 'median_s': quantile_cont(whole_ttft_s, 0.5), 'known_count': count(whole_ttft_s)},
            {'stage': 'decode', 'median_s': quantile_cont(decode_stage_s, 0.5), 'known_count': count(decode_stage_s)},
            {'stage': 'e2e', 'median_s': quantile_cont(whole_e2e_s, 0.5), 'known_count': count(whole_e2e_s)}
        ]) AS one
    FROM peer
    GROUP BY run_id
),

own AS (
    SELECT
        run_id,
        unnest([
            {'stage': 'client_wait', 'place': 0.0, 'own_s': client_wait_s},
            {'stage': 'network_in', 'place': 1.0, 'own_s': network_in_s},
            {'stage': 'tokenize', 'place': 2.0, 'own_s': tokenize_s},
            {'stage': 'step_wait', 'place': 3.0, 'own_s': step_wait_s},
            {'stage': 'unaccounted', 'place': 3.5, 'own_s': left_s},
            {'stage': 'queue', 'place': 4.0, 'own_s': queue_s},
            {'stage': 'prefill', 'place': 6.0, 'own_s': prefill_s},
            {'stage': 'stream_out', 'place': 8.0, 'own_s': stream_out_s},
            {'stage': 'ttft', 'place': 8.5, 'own_s': whole_ttft_s},
            {'stage': 'decode', 'place': 9.0, 'own_s': decode_stage_s},
            {'stage': 'e2e', 'place': 10.0, 'own_s': whole_e2e_s}
        ]) AS one
    FROM me
)

SELECT
    own.run_id,
    own.one.stage AS stage,
    own.one.own_s AS own_s,
    usual.one.median_s AS median_s,
    own.one.own_s - coalesce(usual.one.median_s, 0) AS excess_s,
    CASE WHEN usual.one.median_s >= 1e-6 THEN own.one.own_s / usual.one.median_s END AS times_median,
    coalesce(usual.one.known_count, 0) AS known_count,
    coalesce(usual.peer_count, 0) AS peer_count,
    usual.mean_input_tokens,
    usual.mean_output_tokens,
    CASE
        WHEN range_of.low_tokens IS NULL AND range_of.has_ttft THEN 'all requests of the run with a first token'
        WHEN range_of.low_tokens IS NULL THEN 'all requests of the run'
        ELSE format('requests of {:.0f} to {:.0f} tokens in', 0.8 * range_of.input_tokens, 1.25 * range_of.input_tokens)
    END AS basis
FROM own
INNER JOIN range_of ON own.run_id = range_of.run_id
LEFT JOIN usual ON own.run_id = usual.run_id AND own.one.stage = usual.one.stage
ORDER BY own.run_id ASC, own.one.place ASC
