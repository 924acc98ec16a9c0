CREATE VIEW metric_latency_window AS
SELECT
    run_id,
    source_id,
    line_no,
    metric,
    minute_ts AS window_ts,
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
    is_reset
FROM _metric_latency
WHERE minute_ts IS NOT NULL;

COMMENT ON VIEW metric_latency_window IS 'One row per source of scrapes, time that vLLM keeps a histogram of, and minute: as metric_latency, for one minute.';
COMMENT ON COLUMN metric_latency_window.run_id IS 'Run.';
COMMENT ON COLUMN metric_latency_window.source_id IS 'Source of the scrapes.';
COMMENT ON COLUMN metric_latency_window.line_no IS 'First line that states it.';
COMMENT ON COLUMN metric_latency_window.metric IS 'What is timed, as in metric_name: queue_s, prefill_s, decode_s, inference_s, ttft_s, itl_s (gap between outputs), tpot_s (mean gap of a request), e2e_s.';
COMMENT ON COLUMN metric_latency_window.window_ts IS 'Beginning of the minute, UTC. A pair of scrapes belongs to the minute in which it ends.';
COMMENT ON COLUMN metric_latency_window.from_ts IS 'First scrape, UTC; NULL where the file has no time, or only one scrape.';
COMMENT ON COLUMN metric_latency_window.to_ts IS 'Last scrape, UTC.';
COMMENT ON COLUMN metric_latency_window.observed_count IS 'Observations: requests, for itl_s gaps. Aborted requests are missing in queue, prefill, decode and end-to-end time.';
COMMENT ON COLUMN metric_latency_window.mean_s IS 'Sum over count, seconds: exact where the counters ran through. NULL without observations.';
COMMENT ON COLUMN metric_latency_window.mean_error_s IS '0 where the counters ran through; NULL where a restart lost what was observed between two scrapes.';
COMMENT ON COLUMN metric_latency_window.p50_low_s IS 'Lower edge of the bucket in which the 50th percentile lies, seconds.';
COMMENT ON COLUMN metric_latency_window.p50_high_s IS 'Its upper edge; NULL where the last bucket has none. The percentile lies between the two, nobody knows where.';
COMMENT ON COLUMN metric_latency_window.p90_low_s IS 'Lower edge of the bucket in which the 90th percentile lies, seconds.';
COMMENT ON COLUMN metric_latency_window.p90_high_s IS 'Its upper edge; NULL where the last bucket has none. The percentile lies between the two, nobody knows where.';
COMMENT ON COLUMN metric_latency_window.p99_low_s IS 'Lower edge of the bucket in which the 99th percentile lies, seconds.';
COMMENT ON COLUMN metric_latency_window.p99_high_s IS 'Its upper edge; NULL where the last bucket has none. The percentile lies between the two, nobody knows where.';
COMMENT ON COLUMN metric_latency_window.is_reset IS 'Whether the server began anew in between.';
