/*
Where the time goes in a middling and in a slow request: the mean of each stage over the requests around the median (45th to
55th percentile) and over those at or above a quantile, by one measure. The stages of a slice add up to its mean_s.
excess_ratio is the stage's part of what the slow ones take longer. by is ttft or e2e, as in slowest; provenance is that
of most requests of the slice.
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

bounded AS (
    SELECT
        run_id,
        -- Values that occur, so that the middle of few requests is not empty.
        quantile_disc(measure_s, [0.45, 0.55]) || [quantile_cont(measure_s, $quantile)] AS bounds_s,
        count(measure_s) AS run_count
    FROM measured
    GROUP BY run_id
),

sliced AS (
    SELECT
        measured.run_id,
        measured.request_id,
        measured.measure_s,
        bounded.run_count,
        CASE WHEN measured.measure_s >= bounded.bounds_s[3] THEN 'slowest' ELSE 'median' END AS slice,
        bounded.bounds_s[3] AS threshold_s
    FROM measured
    INNER JOIN bounded ON measured.run_id = bounded.run_id
    WHERE
        measured.measure_s >= bounded.bounds_s[3]
        OR measured.measure_s BETWEEN bounded.bounds_s[1] AND bounded.bounds_s[2]
),

summed AS (
    SELECT
        sliced.run_id,
        sliced.slice,
        stage.stage,
        stage.stage_index,
        sum(stage.duration_s) / count(*) AS mean_s,
        count(stage.duration_s) AS known_count,
        count(*) AS slice_count,
        mode(stage.provenance) AS provenance,
        avg(sliced.measure_s) AS slice_mean_s,
        any_value(sliced.threshold_s) AS threshold_s
    FROM request_stage AS stage
    INNER JOIN sliced ON stage.run_id = sliced.run_id AND stage.request_id = sliced.request_id
    WHERE stage.stage <> 'client_wait' AND ($by = 'e2e' OR stage.stage <> 'decode')
    GROUP BY sliced.run_id, sliced.slice, stage.stage, stage.stage_index
)

SELECT
    slow.run_id,
    slow.slice,
    slow.stage,
    slow.mean_s,
    slow.mean_s / nullif(slow.slice_mean_s, 0) AS share_ratio,
    (slow.mean_s - coalesce(middling.mean_s, 0)) / nullif(slow.slice_mean_s - middling.slice_mean_s, 0) AS excess_ratio,
    slow.provenance,
    slow.known_count,
    slow.slice_count,
    slow.slice_mean_s,
    slow.threshold_s
FROM summed AS slow
LEFT JOIN summed AS middling
    ON slow.run_id = middling.run_id AND slow.stage = middling.stage AND slow.slice = 'slowest' AND middling.slice = 'median'
ORDER BY slow.run_id ASC, slow.slice ASC, CASE slow.stage WHEN 'unaccounted' THEN 3.5 ELSE slow.stage_index END ASC
