/*
Mean and highest of each GPU from the arrival of one request to its end, with some seconds more on either side. Both are laid
on the server's clock first; clock_basis says how, or why that is not possible.
[params]
request = ""
run = ""
before = 1.0
after = 1.0
*/
WITH me AS (
    SELECT *
    FROM _request_window($request, $run)
),

-- Outside of these no sample of any GPU log can be within: what lies there is not read.
bound AS (
    SELECT
        min(_later(me.from_ts, -$before - greatest(clock.offset_s, 0) - 1)) AS low_ts,
        max(_later(me.to_ts, $after - least(clock.offset_s, 0) + 1)) AS high_ts
    FROM me
    LEFT JOIN _gpu_clock AS clock ON me.run_id = clock.run_id
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
    max(sample.memory_used_bytes) AS memory_used_max_bytes,
    any_value(me.clock_error_s) + coalesce(max(clock.error_s), 0) AS clock_error_s,
    any_value(me.clock_basis) || '; ' || any_value(clock.clock_basis) AS clock_basis
FROM gpu_sample AS sample
LEFT JOIN _gpu_clock AS clock ON sample.source_id = clock.source_id
INNER JOIN me
    ON
        sample.run_id = me.run_id
        AND _later(sample.sample_ts, coalesce(clock.offset_s, 0)) BETWEEN _later(me.from_ts, -$before) AND _later(me.to_ts, $after)
WHERE sample.sample_ts >= (SELECT low_ts FROM bound) -- noqa: RF02
    AND sample.sample_ts <= (SELECT high_ts FROM bound) -- noqa: RF02
GROUP BY sample.run_id, sample.host, sample.gpu_index
ORDER BY sample.run_id ASC, sample.host ASC, sample.gpu_index ASC
