/*
Mean and highest of each GPU from the arrival of one request to its end, with some seconds more on either side.
[params]
request = ""
run = ""
before = 1.0
after = 1.0
*/
WITH me AS (
    SELECT
        run_id,
        arrival_ts - to_microseconds(($before * 1e6)::BIGINT) AS from_ts,
        arrival_ts + to_microseconds(((coalesce(e2e_s, client_e2e_s, client_ttft_s, ttft_s, 0) + $after) * 1e6)::BIGINT) AS to_ts
    FROM request
    WHERE request_id = $request AND $run IN ('', run_id)
)

SELECT
    sample.run_id,
    sample.host,
    sample.gpu_index,
    any_value(sample.gpu_name) AS gpu_name,
    count(*) AS sample_count,
    avg(sample.sm_ratio) AS sm_mean_ratio,
    max(sample.sm_ratio) AS sm_max_ratio,
    avg(sample.dram_active_ratio) AS dram_active_mean_ratio,
    max(sample.dram_active_ratio) AS dram_active_max_ratio,
    avg(sample.mem_ratio) AS mem_mean_ratio,
    max(sample.mem_ratio) AS mem_max_ratio,
    avg(sample.power_w) AS power_mean_w,
    max(sample.power_w) AS power_max_w,
    any_value(sample.power_limit_w) AS power_limit_w,
    max(sample.temp_c) AS temp_max_c,
    min(sample.sm_clock_mhz) AS sm_clock_low_mhz,
    max(sample.memory_used_bytes) AS memory_used_max_bytes
FROM gpu_sample AS sample
INNER JOIN me ON sample.run_id = me.run_id AND sample.sample_ts BETWEEN me.from_ts AND me.to_ts
GROUP BY sample.run_id, sample.host, sample.gpu_index
ORDER BY sample.run_id ASC, sample.host ASC, sample.gpu_index ASC
