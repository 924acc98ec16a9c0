CREATE VIEW _histogram_growth AS
WITH grown AS (
    SELECT
        *,
        -- A file of one scrape has only what was counted since the server's start.
        count(increase) OVER (PARTITION BY source_id, name, labels) = 0 AS is_alone
    FROM _metric_step
    WHERE part IN ('bucket', 'sum', 'count') AND ends_with(metric, '_s')
)

SELECT
    run_id,
    source_id,
    metric,
    part,
    CASE
        WHEN part = 'bucket'
            THEN coalesce(try_cast(regexp_extract(labels, '"le":"([^"]*)"', 1) AS DOUBLE), 'Infinity'::DOUBLE)
    END AS upper_s,
    regexp_replace(labels, '"le":"[^"]*",?', '') AS series,
    line_no,
    from_ts,
    sample_ts AS to_ts,
    date_trunc('minute', sample_ts) AS window_ts,
    coalesce(increase, measured) AS increase,
    is_reset,
    CASE
        WHEN contains(labels, '"over":') THEN 'over the phase that the load generator names'
        WHEN is_alone THEN 'since the server started'
        ELSE 'between the first and the last scrape'
    END AS basis
FROM grown
WHERE increase IS NOT NULL OR is_alone;

COMMENT ON VIEW _histogram_growth IS 'One row per part of a histogram of times and pair of scrapes: what it grew by, its bucket''s upper edge and its minute.';

-- From the growth of buckets, sum and count to counts, means and the bucket that each percentile lies in.
CREATE MACRO _bucket_low(edges, low_count) AS
coalesce(list_max([e.upper_s FOR e IN edges IF e.grown < low_count]), 0.0);

CREATE MACRO _bucket_high(edges, low_count) AS
nullif(list_min([e.upper_s FOR e IN edges IF e.grown >= low_count]), 'Infinity'::DOUBLE);

CREATE VIEW _metric_latency AS
WITH growth AS (
    SELECT
        *,
        NULL::TIMESTAMP AS minute_ts
    FROM _histogram_growth
    UNION ALL
    SELECT
        *,
        window_ts AS minute_ts
    FROM _histogram_growth
    WHERE window_ts IS NOT NULL AND from_ts IS NOT NULL
),

edge AS (
    SELECT
        run_id,
        source_id,
        metric,
        minute_ts,
        upper_s,
        sum(increase) AS grown,
        count(DISTINCT series) AS series_count
    FROM growth
    WHERE part = 'bucket'
    GROUP BY ALL
),

bucketed AS (
    -- Series of one metric with other edges than the rest (several servers) cannot be added at those edges.
    SELECT
        run_id,
        source_id,
        metric,
        minute_ts,
        list({'upper_s': upper_s, 'grown': grown} ORDER BY upper_s) AS edges,
        max(grown) AS bucket_count
    FROM (
        SELECT *
        FROM edge
        QUALIFY series_count = max(series_count) OVER (PARTITION BY source_id, metric, minute_ts)
    )
    GROUP BY ALL
),

totalled AS (
    SELECT
        run_id,
        source_id,
        metric,
        minute_ts,
        min(from_ts) AS from_ts,
        max(to_ts) AS to_ts,
        min(line_no) AS line_no,
        sum(increase) FILTER (WHERE part = 'count') AS observed,
        sum(increase) FILTER (WHERE part = 'sum') AS total_s,
        bool_or(is_reset) AS is_reset,
        max(basis) AS basis
    FROM growth
    GROUP BY ALL
)

SELECT
    totalled.* EXCLUDE (observed, total_s),
    coalesce(totalled.observed, bucketed.bucket_count)::BIGINT AS observed_count,
    CASE WHEN totalled.observed > 0 THEN totalled.total_s / totalled.observed END AS mean_s,
    CASE WHEN totalled.observed > 0 AND totalled.total_s IS NOT NULL AND NOT totalled.is_reset THEN 0.0::DOUBLE END AS mean_error_s,
    CASE WHEN bucketed.bucket_count > 0 THEN _bucket_low(bucketed.edges, ceil(0.5 * bucketed.bucket_count)) END AS p50_low_s,
    CASE WHEN bucketed.bucket_count > 0 THEN _bucket_high(bucketed.edges, ceil(0.5 * bucketed.bucket_count)) END AS p50_high_s,
    CASE WHEN bucketed.bucket_count > 0 THEN _bucket_low(bucketed.edges, ceil(0.9 * bucketed.bucket_count)) END AS p90_low_s,
    CASE WHEN bucketed.bucket_count > 0 THEN _bucket_high(bucketed.edges, ceil(0.9 * bucketed.bucket_count)) END AS p90_high_s,
    CASE WHEN bucketed.bucket_count > 0 THEN _bucket_low(bucketed.edges, ceil(0.99 * bucketed.bucket_count)) END AS p99_low_s,
    CASE WHEN bucketed.bucket_count > 0 THEN _bucket_high(bucketed.edges, ceil(0.99 * bucketed.bucket_count)) END AS p99_high_s
FROM totalled
LEFT JOIN bucketed
    ON
        totalled.run_id = bucketed.run_id
        AND totalled.source_id = bucketed.source_id
        AND totalled.metric = bucketed.metric
        AND totalled.minute_ts IS NOT DISTINCT FROM bucketed.minute_ts;

COMMENT ON VIEW _metric_latency IS 'One row per source, time that vLLM keeps a histogram of, and minute (NULL: the whole file), with the buckets that its percentiles lie in.';

CREATE VIEW metric_latency AS
SELECT
    run_id,
    source_id,
    line_no,
    metric,
    from_ts,
    to_ts,
    observed_count,
    mean_s,
    mean_error_s,
    p50_low_s,
    p50_high_s,
    p90_low_s,
    p90_high_s,
    p99_low_s,
    p99_high_s,
    is_reset,
    basis
FROM _metric_latency
WHERE minute_ts IS NULL;

COMMENT ON VIEW metric_latency IS 'One row per source of scrapes and time that vLLM keeps a histogram of: its mean, and the bucket in which each percentile lies, over the whole file. All engines added.';
COMMENT ON COLUMN metric_latency.run_id IS 'Run.';
COMMENT ON COLUMN metric_latency.source_id IS 'Source of the scrapes.';
COMMENT ON COLUMN metric_latency.line_no IS 'First line that states it.';
COMMENT ON COLUMN metric_latency.metric IS 'What is timed, as in metric_name: queue_s, prefill_s, decode_s, inference_s, ttft_s, itl_s (gap between outputs), tpot_s (mean gap of a request), e2e_s.';
COMMENT ON COLUMN metric_latency.from_ts IS 'First scrape, UTC; NULL where the file has no time, or only one scrape.';
COMMENT ON COLUMN metric_latency.to_ts IS 'Last scrape, UTC.';
COMMENT ON COLUMN metric_latency.observed_count IS 'Observations: requests, for itl_s gaps. Aborted requests are missing in queue, prefill, decode and end-to-end time.';
COMMENT ON COLUMN metric_latency.mean_s IS 'Sum over count, seconds: exact where the counters ran through. NULL without observations.';
COMMENT ON COLUMN metric_latency.mean_error_s IS '0 where the counters ran through; NULL where a restart lost what was observed between two scrapes.';
COMMENT ON COLUMN metric_latency.p50_low_s IS 'Lower edge of the bucket in which the 50th percentile lies, seconds.';
COMMENT ON COLUMN metric_latency.p50_high_s IS 'Its upper edge; NULL where the last bucket has none. The percentile lies between the two, nobody knows where.';
COMMENT ON COLUMN metric_latency.p90_low_s IS 'Lower edge of the bucket in which the 90th percentile lies, seconds.';
COMMENT ON COLUMN metric_latency.p90_high_s IS 'Its upper edge; NULL where the last bucket has none. The percentile lies between the two, nobody knows where.';
COMMENT ON COLUMN metric_latency.p99_low_s IS 'Lower edge of the bucket in which the 99th percentile lies, seconds.';
COMMENT ON COLUMN metric_latency.p99_high_s IS 'Its upper edge; NULL where the last bucket has none. The percentile lies between the two, nobody knows where.';
COMMENT ON COLUMN metric_latency.is_reset IS 'Whether the server began anew in between.';
COMMENT ON COLUMN metric_latency.basis IS 'Between the first and the last scrape; since the server started, where there is only one; or over the phase that a load generator names.';
