/*
Each GPU of a run while kernels ran on it: utilisation beside what really worked, power, tensor cores, memory. misleading names
the pairs that contradict each other: a utilisation of 80 % or more only says that some kernel ran, not that the GPU was full.
[params]
run = ""
*/
SELECT
    run_id,
    gpu,
    gpu_name,
    sample_count,
    busy_count,
    busy_count / nullif(util_count, 0) AS busy_ratio,
    util_p50_ratio,
    busy_util_p50_ratio,
    busy_power_p50_w,
    power_limit_w,
    busy_power_p50_ratio,
    busy_tensor_p50_ratio,
    busy_dram_p50_ratio,
    busy_mem_p50_ratio,
    busy_clock_p95_mhz,
    clock_max_mhz,
    busy_clock_p95_mhz / nullif(clock_max_mhz, 0) AS busy_clock_ratio,
    busy_temp_max_c,
    concat_ws(
        '; ',
        CASE WHEN busy_util_p50_ratio >= 0.8 AND busy_power_p50_ratio < 0.5 THEN 'utilisation is high, power is less than half' END,
        CASE WHEN busy_util_p50_ratio >= 0.8 AND busy_tensor_p50_ratio < 0.2 THEN 'utilisation is high, tensor cores are idle' END,
        CASE WHEN busy_dram_p50_ratio >= 0.6 AND busy_tensor_p50_ratio < 0.2 THEN 'memory is the limit, not arithmetic' END,
        CASE
            WHEN
                busy_util_p50_ratio >= 0.8 AND busy_dram_p50_ratio < 0.2 AND busy_tensor_p50_ratio < 0.2
                THEN 'neither memory nor arithmetic works'
        END
    ) AS misleading
FROM gpu_load
WHERE ($run = '' OR run_id = $run)
ORDER BY run_id ASC, gpu ASC
