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

counted AS (
    SELECT
        me.run_id,
        me.input_tokens,
        count(*) FILTER (WHERE r.input_tokens BETWEEN 0.8 * me.input_tokens AND 1.25 * me.input_tokens AND r.request_id <> $request)
            AS alike_count
    FROM me
    INNER JOIN request AS r ON me.run_id = r.run_id
    GROUP BY me.run_id, me.input_tokens
),

chosen AS (
    SELECT
        t.run_id,
        t.client_wait_s,
        t.network_in_s,
        t.tokenize_s,
        t.step_wait_s,
        t.left_s,
        t.queue_s,
        t.prefill_s,
        t.stream_out_s,
        t.decode_stage_s,
        coalesce(t.client_ttft_s, t.ttft_s) AS first_s,
        coalesce(t.client_e2e_s, t.e2e_s) AS whole_e2e_s,
        t.request_id = $request AS is_me,
        counted.alike_count,
        counted.input_tokens AS my_tokens
    FROM _request_timing AS t
    INNER JOIN counted ON t.run_id = counted.run_id
    WHERE
        counted.alike_count < 10 OR t.request_id = $request
        OR t.input_tokens BETWEEN 0.8 * counted.input_tokens AND 1.25 * counted.input_tokens
),

compared AS (
    SELECT
        run_id,
        peer_count,
        basis,
        unnest(pieces) AS piece
    FROM (
        SELECT
            run_id,
            count(*) FILTER (WHERE NOT is_me) AS peer_count,
            CASE
                WHEN any_value(alike_count) >= 10
                    THEN format('requests of {:.0f} to {:.0f} tokens in', 0.8 * any_value(my_tokens), 1.25 * any_value(my_tokens))
                ELSE 'all requests of the run'
            END AS basis,
            [
                {
                    'stage': 'client_wait', 'place': 0.0, 'own_s': max(client_wait_s) FILTER (WHERE is_me),
                    'median_s': quantile_cont(client_wait_s, 0.5) FILTER (WHERE NOT is_me),
                    'known_count': count(client_wait_s) FILTER (WHERE NOT is_me)
                },
                {
                    'stage': 'network_in', 'place': 1.0, 'own_s': max(network_in_s) FILTER (WHERE is_me),
                    'median_s': quantile_cont(network_in_s, 0.5) FILTER (WHERE NOT is_me),
                    'known_count': count(network_in_s) FILTER (WHERE NOT is_me)
                },
                {
                    'stage': 'tokenize', 'place': 2.0, 'own_s': max(tokenize_s) FILTER (WHERE is_me),
                    'median_s': quantile_cont(tokenize_s, 0.5) FILTER (WHERE NOT is_me),
                    'known_count': count(tokenize_s) FILTER (WHERE NOT is_me)
                },
                {
                    'stage': 'step_wait', 'place': 3.0, 'own_s': max(step_wait_s) FILTER (WHERE is_me),
                    'median_s': quantile_cont(step_wait_s, 0.5) FILTER (WHERE NOT is_me),
                    'known_count': count(step_wait_s) FILTER (WHERE NOT is_me)
                },
                {
                    'stage': 'unaccounted', 'place': 3.5, 'own_s': max(left_s) FILTER (WHERE is_me),
                    'median_s': quantile_cont(left_s, 0.5) FILTER (WHERE NOT is_me), 'known_count': count(left_s) FILTER (WHERE NOT is_me)
                },
                {
                    'stage': 'queue', 'place': 4.0, 'own_s': max(queue_s) FILTER (WHERE is_me),
                    'median_s': quantile_cont(queue_s, 0.5) FILTER (WHERE NOT is_me), 'known_count': count(queue_s) FILTER (WHERE NOT is_me)
                },
                {
                    'stage': 'prefill', 'place': 6.0, 'own_s': max(prefill_s) FILTER (WHERE is_me),
                    'median_s': quantile_cont(prefill_s, 0.5) FILTER (WHERE NOT is_me),
                    'known_count': count(prefill_s) FILTER (WHERE NOT is_me)
                },
                {
                    'stage': 'stream_out', 'place': 8.0, 'own_s': max(stream_out_s) FILTER (WHERE is_me),
                    'median_s': quantile_cont(stream_out_s, 0.5) FILTER (WHERE NOT is_me),
                    'known_count': count(stream_out_s) FILTER (WHERE NOT is_me)
                },
                {
                    'stage': 'ttft', 'place': 8.5, 'own_s': max(first_s) FILTER (WHERE is_me),
                    'median_s': quantile_cont(first_s, 0.5) FILTER (WHERE NOT is_me), 'known_count': count(first_s) FILTER (WHERE NOT is_me)
                },
                {
                    'stage': 'decode', 'place': 9.0, 'own_s': max(decode_stage_s) FILTER (WHERE is_me),
                    'median_s': quantile_cont(decode_stage_s, 0.5) FILTER (WHERE NOT is_me),
                    'known_count': count(decode_stage_s) FILTER (WHERE NOT is_me)
                },
                {
                    'stage': 'e2e', 'place': 10.0, 'own_s': max(whole_e2e_s) FILTER (WHERE is_me),
                    'median_s': quantile_cont(whole_e2e_s, 0.5) FILTER (WHERE NOT is_me),
                    'known_count': count(whole_e2e_s) FILTER (WHERE NOT is_me)
                }
            ] AS pieces
        FROM chosen
        GROUP BY run_id
    )
)

SELECT
    run_id,
    piece.stage AS stage,
    piece.own_s AS own_s,
    piece.median_s AS median_s,
    piece.own_s - coalesce(piece.median_s, 0) AS excess_s,
    CASE WHEN piece.median_s >= 1e-6 THEN piece.own_s / piece.median_s END AS times_median,
    piece.known_count AS known_count,
    peer_count,
    basis
FROM compared
ORDER BY run_id ASC, piece.place ASC
