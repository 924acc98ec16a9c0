CREATE VIEW stage_summary AS
WITH placed AS (
    SELECT
        *,
        list_position([
            'client_wait', 'network_in', 'tokenize', 'step_wait', 'queue', 'kv_alloc', 'prefill', 'sample', 'stream_out', 'decode',
            'unaccounted'
        ], measure) - 1 AS stage_index
    FROM _run_measure
)

SELECT
    run_id,
    measure AS stage,
    stage_index,
    p50_s,
    p90_s,
    p99_s,
    max_s,
    CASE WHEN stage NOT IN ('client_wait', 'decode') THEN in_ttft_s END
    / nullif(sum(in_ttft_s) FILTER (WHERE stage NOT IN ('client_wait', 'decode')) OVER (PARTITION BY run_id), 0) AS share_of_ttft_ratio,
    known_count AS observed_count,
    request_count
FROM placed
WHERE stage_index IS NOT NULL;

COMMENT ON VIEW stage_summary IS 'One row per run and stage: its quantiles over the requests in which it is known.';
COMMENT ON COLUMN stage_summary.run_id IS 'Run.';
COMMENT ON COLUMN stage_summary.stage IS 'Stage.';
COMMENT ON COLUMN stage_summary.stage_index IS 'Its place in the order of stages.';
COMMENT ON COLUMN stage_summary.p50_s IS 'Median, seconds, over observed_count requests.';
COMMENT ON COLUMN stage_summary.p90_s IS '90th percentile, seconds.';
COMMENT ON COLUMN stage_summary.p99_s IS '99th percentile, seconds.';
COMMENT ON COLUMN stage_summary.max_s IS 'Longest, seconds.';
COMMENT ON COLUMN stage_summary.share_of_ttft_ratio IS 'Its part of all time to first token of the run, 0 to 1; NULL outside TTFT. A mean hides the tail: look at the slow requests too.';
COMMENT ON COLUMN stage_summary.observed_count IS 'Requests in which its duration is known.';
COMMENT ON COLUMN stage_summary.request_count IS 'Requests of the run.';
