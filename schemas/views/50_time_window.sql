CREATE VIEW time_window AS
WITH scraped AS (
    SELECT DISTINCT source_id
    FROM metric_sample
    WHERE scrape_index IS NOT NULL
),

engine AS (
    -- Several engines of one second add up; several lines of one engine in one second: the last.  Of a second that a
    -- scrape and a stats line state, the scrape counts: they are the same engines.
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
            engine_sample.*,
            date_trunc('second', engine_sample.sample_ts) AS window_ts
        FROM engine_sample
        LEFT JOIN scraped ON engine_sample.source_id = scraped.source_id
        WHERE engine_sample.sample_ts IS NOT NULL
        QUALIFY
            row_number() OVER (
                PARTITION BY engine_sample.source_id, engine_sample.engine_index, window_ts
                ORDER BY engine_sample.line_no DESC
            ) = 1
            AND (scraped.source_id IS NOT NULL)
            = bool_or(scraped.source_id IS NOT NULL) OVER (PARTITION BY engine_sample.run_id, window_ts)
    )
    GROUP BY run_id, window_ts
),

passed AS (
    SELECT
        run_id,
        arrival_ts,
        CASE
            WHEN end_status = 'ok' THEN coalesce(
                    CASE WHEN e2e_error_s = 0 THEN _later(arrival_ts, e2e_s) END,
                    _later(client_sent_ts, client_e2e_s),
                    _later(arrival_ts, e2e_s)
                )
        END AS completion_ts
    FROM request
),

flow AS (
    -- Arrivals and completions in one pass over the requests.
    SELECT
        run_id,
        date_trunc('second', moment.at_ts) AS window_ts,
        nullif(count(*) FILTER (WHERE moment.is_arrival), 0) AS arrival_count,
        nullif(count(*) FILTER (WHERE NOT moment.is_arrival), 0) AS completion_count
    FROM (
        SELECT
            run_id,
            unnest([{'at_ts': arrival_ts, 'is_arrival': TRUE}, {'at_ts': completion_ts, 'is_arrival': FALSE}]) AS moment
        FROM passed
    )
    WHERE moment.at_ts IS NOT NULL
    GROUP BY ALL
),

gpu AS (
    -- On the server's clock, as far as that is known.
    SELECT
        sample.run_id,
        date_trunc('second', _later(sample.sample_ts, coalesce(clock.offset_s, 0))) AS window_ts,
        avg(sample.sm_ratio) AS sm_ratio,
        avg(sample.dram_active_ratio) AS dram_active_ratio,
        avg(sample.power_w) AS power_w
    FROM gpu_sample AS sample
    LEFT JOIN _gpu_clock AS clock ON sample.source_id = clock.source_id
    WHERE sample.sample_ts IS NOT NULL
    GROUP BY ALL
),

second AS (
    SELECT
        run_id,
        window_ts
    FROM engine
    UNION
    SELECT
        run_id,
        window_ts
    FROM flow
    UNION
    SELECT
        run_id,
        window_ts
    FROM gpu
)

SELECT
    second.run_id,
    second.window_ts,
    engine.running_count::BIGINT AS running_count,
    engine.waiting_count::BIGINT AS waiting_count,
    engine.kv_cache_usage_ratio,
    flow.arrival_count,
    flow.completion_count,
    engine.prompt_tps,
    engine.generation_tps,
    gpu.sm_ratio,
    gpu.dram_active_ratio,
    gpu.power_w
FROM second
LEFT JOIN engine ON second.run_id = engine.run_id AND second.window_ts = engine.window_ts
LEFT JOIN flow ON second.run_id = flow.run_id AND second.window_ts = flow.window_ts
LEFT JOIN gpu ON second.run_id = gpu.run_id AND second.window_ts = gpu.window_ts;

COMMENT ON VIEW time_window IS 'One row per run and second in which any source says something; a value that no source has in that second is NULL.';
COMMENT ON COLUMN time_window.run_id IS 'Run.';
COMMENT ON COLUMN time_window.window_ts IS 'Beginning of the second, UTC.';
COMMENT ON COLUMN time_window.running_count IS 'Requests running, all engines added, as the scrape or the stats line of that second has it.';
COMMENT ON COLUMN time_window.waiting_count IS 'Requests waiting, all engines added.';
COMMENT ON COLUMN time_window.kv_cache_usage_ratio IS 'KV-cache usage of the fullest engine, 0 to 1.';
COMMENT ON COLUMN time_window.arrival_count IS 'Requests that arrived in the second.';
COMMENT ON COLUMN time_window.completion_count IS 'Requests that ended well in the second.';
COMMENT ON COLUMN time_window.prompt_tps IS 'Prompt tokens per second, mean of the interval that the sample ends.';
COMMENT ON COLUMN time_window.generation_tps IS 'Generated tokens per second, mean of that interval.';
COMMENT ON COLUMN time_window.sm_ratio IS 'GPU utilisation, mean over GPUs, 0 to 1.';
COMMENT ON COLUMN time_window.dram_active_ratio IS 'DRAM activity, mean over GPUs, 0 to 1.';
COMMENT ON COLUMN time_window.power_w IS 'Power, mean over GPUs, watts.';
