/*
Each GPU while it was busy: utilisation beside what says whether that was work (power, memory traffic, tensor cores, clock).
told is 'spinning' where it is busy at 0.4 of its power limit or less, 'memory' where memory traffic is at its top, else ''.
[params]
run = ""
*/
SELECT
    run_id,
    gpu,
    gpu_name,
    sample_count,
    busy_count,
    util_p50_ratio,
    busy_util_p50_ratio,
    busy_power_p50_w,
    power_limit_w,
    busy_power_p50_ratio,
    busy_dram_p50_ratio,
    busy_tensor_p50_ratio,
    busy_clock_p95_mhz,
    clock_max_mhz,
    busy_temp_max_c,
    CASE
        WHEN busy_util_p50_ratio >= 0.9 AND busy_power_p50_ratio <= 0.4 THEN 'spinning'
        WHEN busy_dram_p50_ratio >= 0.7 THEN 'memory'
        ELSE ''
    END AS told
FROM gpu_load
WHERE $run IN ('', run_id)
ORDER BY run_id ASC, gpu ASC
