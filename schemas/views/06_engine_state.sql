CREATE VIEW engine_state AS
WITH scraped AS (
    SELECT DISTINCT source_id
    FROM metric_sample
    WHERE scrape_index IS NOT NULL
),

stated AS (
    -- When a server log states the engine's state, with a minute on either side.
    SELECT
        engine_sample.run_id,
        min(engine_sample.sample_ts) - INTERVAL 1 MINUTE AS from_ts,
        max(engine_sample.sample_ts) + INTERVAL 1 MINUTE AS to_ts
    FROM engine_sample
    ANTI JOIN scraped ON engine_sample.source_id = scraped.source_id
    WHERE engine_sample.sample_ts IS NOT NULL AND engine_sample.running_count IS NOT NULL
    GROUP BY engine_sample.run_id
    HAVING count(*) >= 3
),

paced AS (
    -- Scrapes can be a second apart.  Of ten seconds the last one counts, as of the stats lines that vLLM writes every ten: a
    -- count of samples then means the same, whichever they are.
    SELECT
        engine_sample.* REPLACE (
            CASE
                WHEN scraped.source_id IS NULL OR engine_sample.sample_ts IS NULL THEN engine_sample.preemption_count
                ELSE sum(engine_sample.preemption_count) OVER ten_seconds
            END::BIGINT AS preemption_count
        ),
        scraped.source_id IS NOT NULL AS is_scrape,
        scraped.source_id IS NULL
        OR engine_sample.sample_ts IS NULL
        OR engine_sample.line_no = max(engine_sample.line_no) OVER ten_seconds AS is_last
    FROM engine_sample
    LEFT JOIN scraped ON engine_sample.source_id = scraped.source_id
    WINDOW ten_seconds AS (
        PARTITION BY
            engine_sample.source_id, engine_sample.engine_index, time_bucket(INTERVAL 10 SECONDS, engine_sample.sample_ts)
    )
),

judged AS (
    SELECT
        paced.*,
        coalesce(paced.sample_ts BETWEEN stated.from_ts AND stated.to_ts, FALSE) AS is_stated
    FROM paced
    LEFT JOIN stated ON paced.run_id = stated.run_id
),

line AS (
    -- Stats lines have no count of preemptions; each takes those of the scrapes since the line before it, the last one also
    -- those after it.
    SELECT
        run_id,
        source_id,
        line_no,
        engine_index,
        coalesce(lag(sample_ts) OVER engine, sample_ts - INTERVAL 1 MINUTE) AS after_ts,
        CASE WHEN lead(sample_ts) OVER engine IS NULL THEN sample_ts + INTERVAL 1 MINUTE ELSE sample_ts END AS until_ts
    FROM judged
    WHERE NOT is_scrape AND is_stated
    WINDOW engine AS (PARTITION BY source_id, engine_index ORDER BY sample_ts, line_no)
),

counted AS (
    SELECT
        line.source_id,
        line.line_no,
        line.engine_index,
        sum(scrape.preemption_count)::BIGINT AS preemption_count
    FROM line
    INNER JOIN judged AS scrape
        ON
            line.run_id = scrape.run_id
            AND coalesce(line.engine_index, 0) = coalesce(scrape.engine_index, 0)
            AND line.after_ts < scrape.sample_ts
            AND line.until_ts >= scrape.sample_ts
    WHERE scrape.is_scrape AND scrape.is_last AND scrape.is_stated
    GROUP BY line.source_id, line.line_no, line.engine_index
)

SELECT
    judged.* EXCLUDE (is_scrape, is_last, is_stated)
    REPLACE (coalesce(judged.preemption_count, counted.preemption_count) AS preemption_count)
FROM judged
LEFT JOIN counted
    ON
        judged.source_id = counted.source_id
        AND judged.line_no = counted.line_no
        AND judged.engine_index IS NOT DISTINCT FROM counted.engine_index
WHERE NOT judged.is_scrape OR (judged.is_last AND NOT judged.is_stated);

COMMENT ON VIEW engine_state IS 'One row per row of engine_sample that conclusions are drawn from: every stats line, and of scrapes the last one in ten seconds. Where a server log''s stats lines (three or more) and scrapes state the same time of a run, the stats lines: nothing is counted twice. Their count of preemptions, which no stats line has, is then that of the scrapes.';
COMMENT ON COLUMN engine_state.run_id IS 'As in engine_sample.';
COMMENT ON COLUMN engine_state.source_id IS 'As in engine_sample.';
COMMENT ON COLUMN engine_state.line_no IS 'As in engine_sample.';
COMMENT ON COLUMN engine_state.sample_ts IS 'As in engine_sample.';
COMMENT ON COLUMN engine_state.error_s IS 'As in engine_sample.';
COMMENT ON COLUMN engine_state.engine_index IS 'As in engine_sample.';
COMMENT ON COLUMN engine_state.engine_count IS 'As in engine_sample.';
COMMENT ON COLUMN engine_state.process IS 'As in engine_sample.';
COMMENT ON COLUMN engine_state.level IS 'As in engine_sample.';
COMMENT ON COLUMN engine_state.prompt_tps IS 'As in engine_sample.';
COMMENT ON COLUMN engine_state.generation_tps IS 'As in engine_sample.';
COMMENT ON COLUMN engine_state.running_count IS 'As in engine_sample.';
COMMENT ON COLUMN engine_state.waiting_count IS 'As in engine_sample.';
COMMENT ON COLUMN engine_state.deferred_count IS 'As in engine_sample.';
COMMENT ON COLUMN engine_state.swapped_count IS 'As in engine_sample.';
COMMENT ON COLUMN engine_state.preemption_count IS 'As in engine_sample; of scrapes all of the ten seconds. Of a stats line, which states none, what the scrapes of the same engine counted since the line before it; NULL where nothing was scraped.';
COMMENT ON COLUMN engine_state.kv_cache_usage_ratio IS 'As in engine_sample.';
COMMENT ON COLUMN engine_state.cpu_kv_cache_usage_ratio IS 'As in engine_sample.';
COMMENT ON COLUMN engine_state.prefix_cache_hit_ratio IS 'As in engine_sample.';
COMMENT ON COLUMN engine_state.external_prefix_cache_hit_ratio IS 'As in engine_sample.';
COMMENT ON COLUMN engine_state.mm_cache_hit_ratio IS 'As in engine_sample.';
COMMENT ON COLUMN engine_state.other IS 'As in engine_sample.';
