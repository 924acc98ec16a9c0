CREATE VIEW time_window AS
WITH engine AS (
    -- Several engines of one second add up; several lines of one engine in one second: the last.
    SELECT
        run_id,
        window_ts,
        sum(running_count) AS running_count,
        sum(waiting_count) AS waiting_count,
        sum(prompt_tps) AS prompt_tps,
        sum(generation_tps) AS generation_tps,
        max(kv_cache_usage_ratio) AS kv_cache_usage_ratio
    FROM (
        SELECT
            *,
            date_trunc('second', sample_ts) AS window_ts
        FROM engine_sample
        WHERE sample_ts IS NOT NULL
        QUALIFY row_number() OVER (
            PARTITION BY run_id, source_id, engine_index, date_trunc('second', sample_ts) ORDER BY line_no DESC
        ) = 1
    )
    GROUP BY run_id, window_ts
),

arrival AS (
    SELECT
        run_id,
        date_trunc('second', arrival_ts) AS window_ts,
        count(*) AS arrival_count
    FROM request
    WHERE arrival_ts IS NOT NULL
    GROUP BY ALL
),

completion AS (
    SELECT
        run_id,
        date_trunc('second', coalesce(
            CASE WHEN e2e_error_s = 0 AND e2e_s IS NOT NULL THEN arrival_ts + to_microseconds((e2e_s * 1e6)::BIGINT) END,
            client_sent_ts + to_microseconds((client_e2e_s * 1e6)::BIGINT),
            arrival_ts + to_microseconds((e2e_s * 1e6)::BIGINT)
        )) AS window_ts,
        count(*) AS completion_count
    FROM request
    WHERE end_status = 'ok'
    GROUP BY ALL
    HAVING window_ts IS NOT NULL
),

gpu AS (
    SELECT
        run_id,
        date_trunc('second', sample_ts) AS window_ts,
        avg(sm_ratio) AS sm_ratio,
        avg(dram_active_ratio) AS dram_active_ratio,
        avg(power_w) AS power_w
    FROM gpu_sample
    WHERE sample_ts IS NOT NULL
    GROUP BY ALL
),

second AS (
    SELECT run_id, window_ts FROM engine
    UNION
    SELECT run_id, window_ts FROM arrival
    UNION
    SELECT run_id, window_ts FROM completion
    UNION
    SELECT run_id, window_ts FROM gpu
)

SELECT
    second.run_id,
    second.window_ts,
    engine.running_count::BIGINT AS running_count,
    engine.waiting_count::BIGINT AS waiting_count,
    engine.kv_cache_usage_ratio,
    arrival.arrival_count,
    completion.completion_count,
    engine.prompt_tps,
    engine.generation_tps,
    gpu.sm_ratio,
    gpu.dram_active_ratio,
    gpu.power_w
FROM second
LEFT JOIN engine ON second.run_id = engine.run_id AND second.window_ts = engine.window_ts
LEFT JOIN arrival ON second.run_id = arrival.run_id AND second.window_ts = arrival.window_ts
LEFT JOIN completion ON second.run_id = completion.run_id AND second.window_ts = completion.window_ts
LEFT JOIN gpu ON second.run_id = gpu.run_id AND second.window_ts = gpu.window_ts;

COMMENT ON VIEW time_window IS 'One row per run and second in which any source says something; a value that no source has in that second is NULL.';
COMMENT ON COLUMN time_window.run_id IS 'Run.';
COMMENT ON COLUMN time_window.window_ts IS 'Beginning of the second, UTC.';
COMMENT ON COLUMN time_window.running_count IS 'Requests running, all engines added, as the stats line of that second has it.';
COMMENT ON COLUMN time_window.waiting_count IS 'Requests waiting, all engines added.';
COMMENT ON COLUMN time_window.kv_cache_usage_ratio IS 'KV-cache usage of the fullest engine, 0 to 1.';
COMMENT ON COLUMN time_window.arrival_count IS 'Requests that arrived in the second.';
COMMENT ON COLUMN time_window.completion_count IS 'Requests that ended well in the second.';
COMMENT ON COLUMN time_window.prompt_tps IS 'Prompt tokens per second, mean of the interval that the stats line ends.';
COMMENT ON COLUMN time_window.generation_tps IS 'Generated tokens per second, mean of that interval.';
COMMENT ON COLUMN time_window.sm_ratio IS 'GPU utilisation, mean over GPUs, 0 to 1.';
COMMENT ON COLUMN time_window.dram_active_ratio IS 'DRAM activity, mean over GPUs, 0 to 1.';
COMMENT ON COLUMN time_window.power_w IS 'Power, mean over GPUs, watts.';
