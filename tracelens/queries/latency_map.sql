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
WITH summed AS (
    SELECT
        *,
        sum_s / slice_count AS mean_s
    FROM _latency_slices($by, $quantile)
    WHERE ($run = '' OR run_id = $run)
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
ORDER BY slow.run_id ASC, slow.slice ASC, slow.place ASC
