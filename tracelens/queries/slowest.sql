/*
The worst requests by one measure, and where their time went.
by is ttft (the client's where it is known, else the server's), e2e, tpot, queue or prefill; requests in which it is not
known are not in the list (latency_percentiles counts them). A stage that is NULL is not known, or inside another one.
[params]
by = "ttft"
top = 10
run = ""
*/
WITH measured AS NOT MATERIALIZED (
    SELECT
        *,
        _measure_s($by, coalesce(client_ttft_s, ttft_s), coalesce(client_e2e_s, e2e_s), tpot_s, queue_s, prefill_s) AS measure_s
    FROM _request_timing
    WHERE ($run = '' OR run_id = $run)
),

worst AS MATERIALIZED (
    SELECT *
    FROM measured
    WHERE measure_s IS NOT NULL
    ORDER BY measure_s DESC, id_hash ASC, run_id ASC
    LIMIT $top
),

-- From the columns that request_stage is made of: that view would list every request of the run first.
staged AS (
    SELECT
        run_id,
        request_id,
        max(piece.duration_s) FILTER (WHERE piece.stage = 'network_in') AS network_in_s,
        max(piece.duration_s) FILTER (WHERE piece.stage = 'tokenize') AS tokenize_s,
        max(piece.duration_s) FILTER (WHERE piece.stage = 'step_wait') AS step_wait_s,
        max(piece.duration_s) FILTER (WHERE piece.stage = 'queue') AS queue_s,
        max(piece.duration_s) FILTER (WHERE piece.stage = 'prefill') AS prefill_s,
        max(piece.duration_s) FILTER (WHERE piece.stage = 'stream_out') AS stream_out_s,
        max(piece.duration_s) FILTER (WHERE piece.stage = 'unaccounted') AS unaccounted_s,
        max(piece.duration_s) FILTER (WHERE piece.stage = 'decode') AS decode_s,
        arg_max(piece.stage, piece.duration_s) FILTER (WHERE piece.stage <> 'decode' OR $by IN ('e2e', 'tpot')) AS largest_stage,
        max(piece.duration_s) FILTER (WHERE piece.stage <> 'decode' OR $by IN ('e2e', 'tpot'))
        / nullif(sum(piece.duration_s) FILTER (WHERE piece.stage <> 'decode' OR $by IN ('e2e', 'tpot')), 0) AS largest_stage_ratio
    FROM (
        SELECT
            run_id,
            request_id,
            unnest([
                {'stage': 'network_in', 'duration_s': network_in_s},
                {'stage': 'tokenize', 'duration_s': tokenize_s},
                {'stage': 'step_wait', 'duration_s': step_wait_s},
                {'stage': 'queue', 'duration_s': queue_s},
                {'stage': 'prefill', 'duration_s': prefill_s},
                {'stage': 'stream_out', 'duration_s': stream_out_s},
                {'stage': 'decode', 'duration_s': decode_stage_s},
                {'stage': 'unaccounted', 'duration_s': left_s}
            ]) AS piece
        FROM worst
    )
    GROUP BY run_id, request_id
)

SELECT
    worst.run_id,
    worst.request_id,
    worst.status,
    worst.arrival_ts,
    $by AS measure,
    worst.measure_s,
    worst.client_ttft_s,
    worst.ttft_s,
    staged.network_in_s,
    staged.tokenize_s,
    staged.step_wait_s,
    coalesce(staged.queue_s, worst.queue_s) AS queue_s,
    coalesce(staged.prefill_s, worst.prefill_s) AS prefill_s,
    staged.stream_out_s,
    staged.unaccounted_s,
    staged.decode_s,
    staged.largest_stage,
    staged.largest_stage_ratio,
    worst.tpot_s,
    coalesce(worst.client_e2e_s, worst.e2e_s) AS e2e_s,
    worst.input_tokens,
    worst.cached_input_tokens,
    worst.output_tokens
FROM worst
LEFT JOIN staged ON worst.run_id = staged.run_id AND worst.request_id = staged.request_id
ORDER BY worst.measure_s DESC, worst.id_hash ASC, worst.run_id ASC
