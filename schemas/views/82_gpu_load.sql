CREATE VIEW gpu_load AS
WITH reading AS (
    -- A reading counts as busy where kernels ran in 0.8 of the time.  A driver that has just started can read 1.0 with
    -- nothing in memory: less than 100 MiB is no model.
    SELECT
        *,
        coalesce(host || ' ', '') || coalesce('GPU ' || gpu_index, gpu_uuid, 'GPU') AS gpu,
        coalesce(sm_ratio, gr_active_ratio) AS util_ratio,
        coalesce(sm_ratio, gr_active_ratio) >= 0.8 AND coalesce(memory_used_bytes, 1e12) >= 100 * 1024 * 1024 AS is_busy
    FROM gpu_sample
)

SELECT
    run_id,
    gpu,
    any_value(gpu_name) AS gpu_name,
    min(sample_ts) AS first_ts,
    max(sample_ts) AS last_ts,
    count(*) AS sample_count,
    count(util_ratio) AS util_count,
    count(*) FILTER (WHERE is_busy) AS busy_count,
    quantile_cont(util_ratio, 0.5) FILTER (WHERE util_ratio >= 0.1) AS util_p50_ratio,
    quantile_cont(util_ratio, 0.5) FILTER (WHERE is_busy) AS busy_util_p50_ratio,
    quantile_cont(mem_ratio, 0.5) FILTER (WHERE is_busy) AS busy_mem_p50_ratio,
    quantile_cont(dram_active_ratio, 0.5) FILTER (WHERE is_busy) AS busy_dram_p50_ratio,
    quantile_cont(tensor_active_ratio, 0.5) FILTER (WHERE is_busy) AS busy_tensor_p50_ratio,
    quantile_cont(power_w, 0.5) FILTER (WHERE is_busy) AS busy_power_p50_w,
    max(power_limit_w) AS power_limit_w,
    quantile_cont(power_w, 0.5) FILTER (WHERE is_busy) / max(power_limit_w) AS busy_power_p50_ratio,
    quantile_cont(sm_clock_mhz, 0.95) FILTER (WHERE is_busy) AS busy_clock_p95_mhz,
    max(sm_clock_max_mhz) AS clock_max_mhz,
    max(temp_c) FILTER (WHERE is_busy) AS busy_temp_max_c,
    arg_min({'source_id': source_id, 'line_no': line_no}, (coalesce(1 - is_busy::INTEGER, 2), source_id, line_no), 5) AS evidence
FROM reading
GROUP BY run_id, gpu;

COMMENT ON VIEW gpu_load IS 'One row per run and GPU: what it did while kernels ran. Works without stamps. Busy readings are those with a utilisation of 0.8 or more.';
COMMENT ON COLUMN gpu_load.run_id IS 'Run.';
COMMENT ON COLUMN gpu_load.gpu IS 'The GPU: host, where known, and index, else UUID.';
COMMENT ON COLUMN gpu_load.gpu_name IS 'Product name.';
COMMENT ON COLUMN gpu_load.first_ts IS 'First reading, UTC; NULL where the file has no time.';
COMMENT ON COLUMN gpu_load.last_ts IS 'Last reading, UTC.';
COMMENT ON COLUMN gpu_load.sample_count IS 'Readings.';
COMMENT ON COLUMN gpu_load.util_count IS 'Readings that state a utilisation; none under MIG.';
COMMENT ON COLUMN gpu_load.busy_count IS 'Busy readings.';
COMMENT ON COLUMN gpu_load.util_p50_ratio IS 'Median utilisation over the readings in which anything ran (0.1 and more), 0 to 1.';
COMMENT ON COLUMN gpu_load.busy_util_p50_ratio IS 'Median utilisation over busy readings.';
COMMENT ON COLUMN gpu_load.busy_mem_p50_ratio IS 'Median share of time in which memory was touched, over busy readings. Not a share of bandwidth.';
COMMENT ON COLUMN gpu_load.busy_dram_p50_ratio IS 'Median DRAM activity over busy readings, 0 to 1; about 0.8 is the top in practice.';
COMMENT ON COLUMN gpu_load.busy_tensor_p50_ratio IS 'Median tensor-pipe activity over busy readings, 0 to 1.';
COMMENT ON COLUMN gpu_load.busy_power_p50_w IS 'Median power over busy readings, watts.';
COMMENT ON COLUMN gpu_load.power_limit_w IS 'Power limit in force, watts, where a file states it.';
COMMENT ON COLUMN gpu_load.busy_power_p50_ratio IS 'Median power over busy readings as a share of the limit.';
COMMENT ON COLUMN gpu_load.busy_clock_p95_mhz IS '95th percentile of the SM clock over busy readings: the clock that this file shows it can hold, MHz.';
COMMENT ON COLUMN gpu_load.clock_max_mhz IS 'Highest SM clock that the card allows, where a file states it, MHz.';
COMMENT ON COLUMN gpu_load.busy_temp_max_c IS 'Highest temperature of busy readings, Celsius.';
COMMENT ON COLUMN gpu_load.evidence IS 'Source and line of up to five readings, busy ones first.';
