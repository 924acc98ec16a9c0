/*
The median of each stage over the requests of a similar prompt: from 0.8 to 1.25 times its input tokens, or all of the run
where fewer than 10 are that long or where its tokens are not known; basis says which. own_s is the request's own length,
excess_s what it takes longer than the median, times_median how many times as long.
[params]
request = ""
run = ""
*/
WITH me AS (
    SELECT
        run_id,
        input_tokens
    FROM request
    WHERE request_id = $request AND $run IN ('', run_id)
),

timed AS (
    SELECT
        timing.*,
        coalesce(timing.input_tokens BETWEEN 0.8 * me.input_tokens AND 1.25 * me.input_tokens, FALSE) AS is_alike,
        me.input_tokens AS my_tokens
    FROM _request_timing AS timing
    INNER JOIN me ON timing.run_id = me.run_id
),

chosen AS (
    SELECT
        *,
        count(*) FILTER (WHERE is_alike AND request_id <> $request) OVER (PARTITION BY run_id) AS alike_count
    FROM timed
    QUALIFY
        is_alike OR request_id = $request
        OR count(*) FILTER (WHERE is_alike AND request_id <> $request) OVER (PARTITION BY run_id) < 10
),

listed AS (
    SELECT
        run_id,
        alike_count,
        my_tokens,
        request_id = $request AS is_me,
        unnest([
            {'stage': 'client_wait', 'place': 0.0, 'length_s': client_wait_s},
            {'stage': 'network_in', 'place': 1.0, 'length_s': network_in_s},
            {'stage': 'tokenize', 'place': 2.0, 'length_s': tokenize_s},
            {'stage': 'step_wait', 'place': 3.0, 'length_s': step_wait_s},
            {'stage': 'unaccounted', 'place': 3.5, 'length_s': left_s},
            {'stage': 'queue', 'place': 4.0, 'length_s': queue_s},
            {'stage': 'prefill', 'place': 6.0, 'length_s': prefill_s},
            {'stage': 'stream_out', 'place': 8.0, 'length_s': stream_out_s},
            {'stage': 'ttft', 'place': 8.5, 'length_s': coalesce(client_ttft_s, ttft_s)},
            {'stage': 'decode', 'place': 9.0, 'length_s': decode_stage_s},
            {'stage': 'e2e', 'place': 10.0, 'length_s': coalesce(client_e2e_s, e2e_s)}
        ]) AS piece
    FROM chosen
),

compared AS (
    SELECT
        run_id,
        piece.stage AS stage,
        piece.place AS place,
        max(piece.length_s) FILTER (WHERE is_me) AS own_s,
        quantile_cont(piece.length_s, 0.5) FILTER (WHERE NOT is_me) AS median_s,
        count(piece.length_s) FILTER (WHERE NOT is_me) AS known_count,
        count(*) FILTER (WHERE NOT is_me) AS peer_count,
        CASE
            WHEN any_value(alike_count) >= 10
                THEN format('requests of {:.0f} to {:.0f} tokens in', 0.8 * any_value(my_tokens), 1.25 * any_value(my_tokens))
            ELSE 'all requests of the run'
        END AS basis
    FROM listed
    GROUP BY run_id, piece.stage, piece.place
)

SELECT
    run_id,
    stage,
    own_s,
    median_s,
    own_s - coalesce(median_s, 0) AS excess_s,
    CASE WHEN median_s >= 1e-6 THEN own_s / median_s END AS times_median,
    known_count,
    peer_count,
    basis
FROM compared
ORDER BY run_id ASC, place ASC
