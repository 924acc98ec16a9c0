/*
The run second by second: engine, arrivals, completions, GPU. A NULL is a second in which no source says it.
[params]
run = ""
*/
SELECT
    run_id,
    window_ts,
    running_count,
    waiting_count,
    kv_cache_usage_ratio,
    arrival_count,
    completion_count,
    prompt_tps,
    generation_tps,
    sm_ratio,
    dram_active_ratio,
    power_w
FROM time_window
WHERE ($run = '' OR run_id = $run)
ORDER BY run_id ASC, window_ts ASC
