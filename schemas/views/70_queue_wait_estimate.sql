CREATE VIEW queue_wait_estimate AS
WITH sample AS (
    SELECT
        run_id,
        source_id,
        sample_ts AS to_ts,
        line_no,
        sum(waiting_count) AS waiting_count,
        lag(sample_ts) OVER stats AS from_ts,
        lag(line_no) OVER stats AS from_line,
        lag(sum(waiting_count)) OVER stats AS earlier_waiting_count
    FROM (
        SELECT
            run_id,
            source_id,
            sample_ts,
            max(line_no) OVER (PARTITION BY source_id, sample_ts) AS line_no,
            waiting_count
        FROM engine_sample
        WHERE sample_ts IS NOT NULL
            AND waiting_count IS NOT NULL
            -- Scrapes hold the queue time itself, see metric_latency.
            AND source_id NOT IN (SELECT scraped.source_id FROM metric_sample AS scraped WHERE scraped.scrape_index IS NOT NULL)
    )
    GROUP BY run_id, source_id, sample_ts, line_no
    -- Records can be glued together on one line.
    WINDOW stats AS (PARTITION BY source_id ORDER BY line_no, sample_ts)
),

started AS (
    -- What went through in the interval: requests received, else API calls answered.
    SELECT
        sample.source_id,
        sample.line_no,
        count(*) FILTER (WHERE passed.kind = 'received') AS received_count,
        count(*) FILTER (WHERE passed.kind = 'answered') AS answered_count
    FROM (
        SELECT
            source_id,
            line_no,
            'received' AS kind
        FROM request_event
        WHERE event = 'received'
        UNION ALL
        SELECT
            source_id,
            line_no,
            'answered' AS kind
        FROM access_line
        WHERE method = 'POST' AND status = 200
    ) AS passed
    ASOF INNER JOIN sample
        ON passed.source_id = sample.source_id AND passed.line_no <= sample.line_no
    GROUP BY sample.source_id, sample.line_no
),

interval_of AS (
    SELECT
        sample.*,
        epoch(sample.to_ts - sample.from_ts) AS length_s,
        (sample.waiting_count + sample.earlier_waiting_count) / 2.0 AS mean_waiting_count,
        coalesce(nullif(started.received_count, 0), started.answered_count) AS passed_count,
        CASE
            WHEN started.received_count > 0 THEN 'requests received'
            WHEN started.answered_count > 0 THEN 'API calls answered'
        END AS rate_basis
    FROM sample
    LEFT JOIN started ON sample.source_id = started.source_id AND sample.line_no = started.line_no
    WHERE sample.from_ts IS NOT NULL AND sample.to_ts > sample.from_ts
)

SELECT
    run_id,
    source_id,
    from_ts,
    to_ts,
    mean_waiting_count,
    passed_count / length_s AS throughput_rps,
    CASE
        WHEN mean_waiting_count = 0 THEN 0.0
        WHEN passed_count > 0 THEN mean_waiting_count / (passed_count / length_s)
    END AS queue_wait_s,
    CASE
        WHEN mean_waiting_count = 0 OR passed_count > 0 THEN 'derived'
        ELSE 'unknown'
    END::provenance AS provenance,
    CASE
        WHEN mean_waiting_count = 0 THEN 'nothing waited at either end of the interval'
        WHEN passed_count > 0 THEN 'Little''s law: mean waiting over the rate of ' || rate_basis
        ELSE 'requests waited, but nothing shows how many went through (--enable-log-requests, or access lines)'
    END AS basis
FROM interval_of;

COMMENT ON VIEW queue_wait_estimate IS 'One row per interval between two stats lines: the mean wait in the queue by Little''s law, for logs without spans. An estimate over a window, never a request''s own.';
COMMENT ON COLUMN queue_wait_estimate.run_id IS 'Run.';
COMMENT ON COLUMN queue_wait_estimate.source_id IS 'Server log.';
COMMENT ON COLUMN queue_wait_estimate.from_ts IS 'Stats line before, UTC.';
COMMENT ON COLUMN queue_wait_estimate.to_ts IS 'Stats line at the end, UTC.';
COMMENT ON COLUMN queue_wait_estimate.mean_waiting_count IS 'Mean of waiting at both ends, all engines added.';
COMMENT ON COLUMN queue_wait_estimate.throughput_rps IS 'Requests per second that went through.';
COMMENT ON COLUMN queue_wait_estimate.queue_wait_s IS 'Mean wait, seconds; NULL where nothing shows the rate.';
COMMENT ON COLUMN queue_wait_estimate.provenance IS 'derived or unknown.';
COMMENT ON COLUMN queue_wait_estimate.basis IS 'How.';
