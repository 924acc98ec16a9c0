/*
The worst requests by one measure, and where their time went.
by is ttft (the client's where it is known, else the server's), e2e, tpot, queue or prefill; requests in which it is not
known are not in the list (latency_percentiles counts them). A stage that is NULL is not known, or inside another one.
[params]
by = "ttft"
top = 10
run = ""
*/
WITH measured AS (
    SELECT
        *,
        CASE $by
            WHEN 'ttft' THEN coalesce(client_ttft_s, ttft_s)
            WHEN 'e2e' THEN coalesce(client_e2e_s, e2e_s)
            WHEN 'tpot' THEN tpot_s
            WHEN 'queue' THEN queue_s
            WHEN 'prefill' THEN prefill_s
            ELSE error('by is ttft, e2e, tpot, queue or prefill')
        END AS measure_s
    FROM request
    WHERE $run IN ('', run_id)
),

worst AS (
    SELECT *
    FROM measured
    WHERE measure_s IS NOT NULL
    ORDER BY measure_s DESC, run_id ASC, request_id ASC
    LIMIT $top
),

staged AS (
    SELECT
        stage.run_id,
        stage.request_id,
        max(stage.duration_s) FILTER (WHERE stage.stage = 'network_in') AS network_in_s,
        max(stage.duration_s) FILTER (WHERE stage.stage = 'tokenize') AS tokenize_s,
        max(stage.duration_s) FILTER (WHERE stage.stage = 'step_wait') AS step_wait_s,
        max(stage.duration_s) FILTER (WHERE stage.stage = 'queue') AS queue_s,
        max(stage.duration_s) FILTER (WHERE stage.stage = 'prefill') AS prefill_s,
        max(stage.duration_s) FILTER (WHERE stage.stage = 'stream_out') AS stream_out_s,
        max(stage.duration_s) FILTER (WHERE stage.stage = 'unaccounted') AS unaccounted_s,
        max(stage.duration_s) FILTER (WHERE stage.stage = 'decode') AS decode_s,
        arg_max(stage.stage, stage.duration_s) FILTER (WHERE stage.stage <> 'decode' OR $by IN ('e2e', 'tpot')) AS largest_stage,
        max(stage.duration_s) FILTER (WHERE stage.stage <> 'decode' OR $by IN ('e2e', 'tpot'))
        / nullif(sum(stage.duration_s) FILTER (WHERE stage.stage <> 'decode' OR $by IN ('e2e', 'tpot')), 0) AS largest_stage_ratio
    FROM request_stage AS stage
    INNER JOIN worst ON stage.run_id = worst.run_id AND stage.request_id = worst.request_id
    WHERE stage.stage <> 'client_wait'
    GROUP BY stage.run_id, stage.request_id
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
ORDER BY worst.measure_s DESC, worst.run_id ASC, worst.request_id ASC
