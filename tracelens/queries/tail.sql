/*
What the slowest requests spend their time on: the mean of each stage over the requests at or above a quantile of one
measure, beside the median of the whole run. excess_ratio is the stage's part of what the slow ones take longer.
by is ttft or e2e, as in slowest.
[params]
by = "ttft"
quantile = 0.99
run = ""
*/
WITH measured AS (
    SELECT
        run_id,
        request_id,
        CASE $by
            WHEN 'ttft' THEN coalesce(client_ttft_s, ttft_s)
            WHEN 'e2e' THEN coalesce(client_e2e_s, e2e_s)
            ELSE error('by is ttft or e2e')
        END AS measure_s
    FROM request
    WHERE $run IN ('', run_id)
),

judged AS (
    SELECT
        *,
        quantile_cont(measure_s, $quantile) OVER (PARTITION BY run_id) AS threshold_s
    FROM measured
    WHERE measure_s IS NOT NULL
),

summed AS (
    SELECT
        stage.run_id,
        stage.stage,
        stage.stage_index,
        any_value(judged.threshold_s) AS threshold_s,
        count(*) FILTER (WHERE judged.measure_s >= judged.threshold_s) AS tail_count,
        count(stage.duration_s) FILTER (WHERE judged.measure_s >= judged.threshold_s) AS known_count,
        avg(stage.duration_s) FILTER (WHERE judged.measure_s >= judged.threshold_s) AS tail_mean_s,
        sum(stage.duration_s) FILTER (WHERE judged.measure_s >= judged.threshold_s) AS tail_sum_s,
        quantile_cont(stage.duration_s, 0.5) AS median_s
    FROM request_stage AS stage
    INNER JOIN judged ON stage.run_id = judged.run_id AND stage.request_id = judged.request_id
    WHERE stage.stage <> 'client_wait' AND ($by = 'e2e' OR stage.stage <> 'decode')
    GROUP BY stage.run_id, stage.stage, stage.stage_index
)

SELECT
    run_id,
    stage,
    stage_index,
    tail_mean_s,
    tail_sum_s / nullif(sum(tail_sum_s) OVER (PARTITION BY run_id), 0) AS share_ratio,
    median_s,
    (tail_mean_s - median_s) / nullif(sum(tail_mean_s - median_s) OVER (PARTITION BY run_id), 0) AS excess_ratio,
    known_count,
    tail_count,
    threshold_s
FROM summed
ORDER BY run_id ASC, tail_sum_s DESC NULLS LAST, stage_index ASC
