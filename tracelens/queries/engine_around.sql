/*
The engine's stats lines from some seconds before one request arrived until some seconds after it ended.
A stamp is the beginning of an interval of error_s, so a line counts where that interval touches the window. A request that only
the client saw is laid on the server's clock first; clock_basis says how, or that its offset is not known.
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
    sample.run_id,
    sample.sample_ts,
    CASE
        WHEN sample.sample_ts + to_microseconds((coalesce(sample.error_s, 0) * 1e6)::BIGINT) < me.from_ts THEN 'before'
        WHEN sample.sample_ts > me.to_ts THEN 'after'
        ELSE 'during'
    END AS phase,
    sample.engine_index,
    sample.running_count,
    sample.waiting_count,
    sample.kv_cache_usage_ratio,
    sample.prompt_tps,
    sample.generation_tps,
    sample.preemption_count,
    sample.prefix_cache_hit_ratio,
    source.path,
    sample.line_no,
    me.clock_error_s,
    me.clock_basis
FROM engine_sample AS sample
INNER JOIN me
    ON
        sample.run_id = me.run_id
        AND sample.sample_ts + to_microseconds((coalesce(sample.error_s, 0) * 1e6)::BIGINT)
        >= me.from_ts - to_microseconds(($before * 1e6)::BIGINT)
        AND sample.sample_ts <= me.to_ts + to_microseconds(($after * 1e6)::BIGINT)
INNER JOIN source ON sample.source_id = source.source_id
ORDER BY sample.run_id ASC, sample.sample_ts ASC, sample.engine_index ASC, sample.line_no ASC
