/*
Each stage over a whole run: quantiles, its part of all time to first token, and in how many requests it is known.
[params]
run = ""
*/
SELECT
    run_id,
    stage,
    p50_s,
    p90_s,
    p99_s,
    max_s,
    share_of_ttft_ratio,
    observed_count,
    request_count
FROM stage_summary
WHERE ($run = '' OR run_id = $run)
ORDER BY run_id ASC, _stage_place(stage, stage_index) ASC
