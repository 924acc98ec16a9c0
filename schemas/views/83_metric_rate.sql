CREATE VIEW _metric_step AS
WITH counter AS (
    SELECT
        m.*,
        spelling.metric,
        CASE WHEN spelling.kind = 'counter' THEN 'value' ELSE coalesce(spelling.part, 'value') END AS part,
        -- A renamed metric under both its names counts once.
        spelling.rank > min(spelling.rank) OVER (PARTITION BY m.source_id, spelling.metric) AS is_old_name
    FROM metric_sample AS m
    LEFT JOIN metric_spelling AS spelling ON m.name = spelling.name
    WHERE
        m.measured IS NOT NULL
        AND m.scrape_index IS NOT NULL
        AND CASE
            WHEN spelling.name IS NOT NULL THEN spelling.kind <> 'gauge' AND spelling.part <> 'created'
            ELSE regexp_matches(m.name, '_(total|bucket|count|sum)$')
        END
),

scrape AS (
    SELECT
        source_id,
        scrape_index,
        min(line_no) AS line_no,
        min(sample_ts) AS sample_ts
    FROM metric_sample
    WHERE scrape_index IS NOT NULL
    GROUP BY source_id, scrape_index
),

seen AS (
    SELECT
        counter.*,
        lag(line_no) OVER series AS from_line_no,
        lag(sample_ts) OVER series AS from_ts,
        lag(scrape_index) OVER series AS from_scrape_index,
        lag(measured) OVER series AS earlier,
        measured < lag(measured) OVER series AS is_lower,
        concat_ws(' ', labels ->> 'instance', labels ->> 'engine') AS place
    FROM counter
    WHERE NOT coalesce(is_old_name, FALSE)
    WINDOW series AS (PARTITION BY source_id, name, labels ORDER BY scrape_index, line_no)
),

step AS (
    -- A series of vLLM that a scrape has not and the next one has began at 0 in between (V0 writes one when it first counts).
    SELECT
        seen.* REPLACE (
            coalesce(seen.from_line_no, scrape.line_no) AS from_line_no,
            coalesce(seen.from_ts, scrape.sample_ts) AS from_ts,
            coalesce(seen.from_scrape_index, scrape.scrape_index) AS from_scrape_index,
            CASE WHEN seen.earlier IS NULL AND scrape.source_id IS NOT NULL THEN 0.0 ELSE seen.earlier END AS earlier
        )
    FROM seen
    LEFT JOIN scrape
        ON
            seen.earlier IS NULL
            AND seen.metric IS NOT NULL
            AND seen.source_id = scrape.source_id
            AND seen.scrape_index = scrape.scrape_index + 1
),

fresh AS (
    -- Where one counter of an engine drops, the server began anew, and its other counters with it.
    SELECT DISTINCT
        source_id,
        place,
        scrape_index
    FROM step
    WHERE is_lower
)

SELECT
    step.* EXCLUDE (is_lower, is_old_name, place),
    step.earlier IS NOT NULL AND fresh.source_id IS NOT NULL AS is_reset,
    CASE
        WHEN step.earlier IS NULL THEN NULL
        WHEN fresh.source_id IS NOT NULL THEN step.measured
        ELSE step.measured - step.earlier
    END AS increase
FROM step
LEFT JOIN fresh
    ON step.source_id = fresh.source_id AND step.place = fresh.place AND step.scrape_index = fresh.scrape_index;

COMMENT ON VIEW _metric_step IS 'One row per value of a counter or of a histogram''s part, with the value before it in the series and what it grew by.';

CREATE VIEW metric_rate AS
SELECT
    run_id,
    source_id,
    line_no,
    from_line_no,
    name,
    labels,
    metric,
    from_ts,
    sample_ts AS to_ts,
    from_scrape_index,
    scrape_index AS to_scrape_index,
    increase,
    is_reset,
    increase / nullif(epoch(sample_ts - from_ts), 0) AS rate_per_s
FROM _metric_step
WHERE earlier IS NOT NULL;

COMMENT ON VIEW metric_rate IS 'One row per series of a counter (or of a histogram''s parts) and pair of scrapes: what it grew by. Gauges are not in it.';
COMMENT ON COLUMN metric_rate.run_id IS 'Run.';
COMMENT ON COLUMN metric_rate.source_id IS 'Source of the scrapes.';
COMMENT ON COLUMN metric_rate.line_no IS 'Line of the later value.';
COMMENT ON COLUMN metric_rate.from_line_no IS 'Line of the earlier value.';
COMMENT ON COLUMN metric_rate.name IS 'Name as scraped.';
COMMENT ON COLUMN metric_rate.labels IS 'Labels as a JSON object.';
COMMENT ON COLUMN metric_rate.metric IS 'What it measures, as in metric_name; NULL for metrics that are not vLLM''s. Of an old and a new name in one file the new one is here.';
COMMENT ON COLUMN metric_rate.from_ts IS 'Time of the earlier scrape, UTC; NULL where the file has none.';
COMMENT ON COLUMN metric_rate.to_ts IS 'Time of the later scrape, UTC.';
COMMENT ON COLUMN metric_rate.from_scrape_index IS 'Number of the earlier scrape.';
COMMENT ON COLUMN metric_rate.to_scrape_index IS 'Number of the later scrape.';
COMMENT ON COLUMN metric_rate.increase IS 'What it grew by. After a restart: the new value, the least that it can be, since what came between the earlier scrape and the end is lost.';
COMMENT ON COLUMN metric_rate.is_reset IS 'Whether the server began anew between the two: this counter or another one of the same engine dropped.';
COMMENT ON COLUMN metric_rate.rate_per_s IS 'Increase per second; NULL without times.';
