/*
What the slowest requests spend their time on: the mean of each stage over the requests at or above a quantile of one
measure, beside the median of the whole run. excess_ratio is the stage's part of what the slow ones take longer.
by is ttft or e2e, as in slowest.
[params]
by = "ttft"
quantile = 0.99
run = ""
*/
WITH usual AS (
    SELECT
        run_id,
        unnest([
            {'stage': 'network_in', 'median_s': quantile_cont(network_in_s, 0.5)},
            {'stage': 'tokenize', 'median_s': quantile_cont(tokenize_s, 0.5)},
            {'stage': 'step_wait', 'median_s': quantile_cont(step_wait_s, 0.5)},
            {'stage': 'unaccounted', 'median_s': quantile_cont(left_s, 0.5)},
            {'stage': 'queue', 'median_s': quantile_cont(queue_s, 0.5)},
            {'stage': 'prefill', 'median_s': quantile_cont(prefill_s, 0.5)},
            {'stage': 'stream_out', 'median_s': quantile_cont(stream_out_s, 0.5)},
            {'stage': 'decode', 'median_s': quantile_cont(decode_stage_s, 0.5)}
        ]) AS one
    FROM _request_timing
    WHERE CASE $by WHEN 'ttft' THEN coalesce(client_ttft_s, ttft_s) ELSE coalesce(client_e2e_s, e2e_s) END IS NOT NULL
    GROUP BY run_id
),

staged AS (
    SELECT
        slice.run_id,
        slice.stage,
        slice.sum_s,
        slice.sum_s / nullif(slice.known_count, 0) AS mean_s,
        usual.one.median_s AS median_s,
        slice.known_count,
        slice.slice_count,
        slice.threshold_s
    FROM _latency_slices($by, $quantile) AS slice
    LEFT JOIN usual ON slice.run_id = usual.run_id AND slice.stage = usual.one.stage
    WHERE ($run = '' OR slice.run_id = $run) AND slice.slice = 'slowest'
)

SELECT
    staged.run_id,
    staged.stage,
    summary.stage_index,
    staged.mean_s AS tail_mean_s,
    staged.sum_s / nullif(sum(staged.sum_s) OVER (PARTITION BY staged.run_id), 0) AS share_ratio,
    staged.median_s,
    (staged.mean_s - staged.median_s) / nullif(sum(staged.mean_s - staged.median_s) OVER (PARTITION BY staged.run_id), 0) AS excess_ratio,
    staged.known_count,
    staged.slice_count AS tail_count,
    staged.threshold_s
FROM staged
INNER JOIN stage_summary AS summary ON staged.run_id = summary.run_id AND staged.stage = summary.stage
ORDER BY staged.run_id ASC, staged.sum_s DESC NULLS LAST, summary.stage_index ASC
