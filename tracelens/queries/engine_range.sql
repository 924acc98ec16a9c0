/*
Lowest and highest of the engine's stats around one request, over the same lines as engine_around.
[params]
request = ""
run = ""
before = 10.0
after = 10.0
*/
WITH me AS (
    SELECT *
    FROM _request_window($request, $run)
)

SELECT
    me.run_id,
    count(*) AS sample_count,
    min(sample.running_count) AS running_low_count,
    max(sample.running_count) AS running_high_count,
    min(sample.waiting_count) AS waiting_low_count,
    max(sample.waiting_count) AS waiting_high_count,
    min(sample.kv_cache_usage_ratio) AS kv_cache_usage_low_ratio,
    max(sample.kv_cache_usage_ratio) AS kv_cache_usage_high_ratio,
    min(sample.prompt_tps) AS prompt_low_tps,
    max(sample.prompt_tps) AS prompt_high_tps,
    min(sample.generation_tps) AS generation_low_tps,
    max(sample.generation_tps) AS generation_high_tps,
    sum(sample.preemption_count) AS preemption_count,
    any_value(me.clock_error_s) AS clock_error_s,
    any_value(me.clock_basis) AS clock_basis
FROM engine_sample AS sample
INNER JOIN me
    ON
        sample.run_id = me.run_id
        AND sample.sample_ts + to_microseconds((coalesce(sample.error_s, 0) * 1e6)::BIGINT)
        >= me.from_ts - to_microseconds(($before * 1e6)::BIGINT)
        AND sample.sample_ts <= me.to_ts + to_microseconds(($after * 1e6)::BIGINT)
GROUP BY me.run_id
ORDER BY me.run_id
