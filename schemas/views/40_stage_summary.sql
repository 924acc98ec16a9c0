CREATE VIEW stage_summary AS
WITH listed AS (
    -- The durations of request_stage without what explains them: this is asked of every request of a case.
    SELECT
        run_id,
        frame IN ('client', 'server') AS has_ttft,
        unnest([
            {'stage': 'client_wait', 'stage_index': 0, 'duration_s': client_wait_s},
            {'stage': 'network_in', 'stage_index': 1, 'duration_s': network_in_s},
            {'stage': 'tokenize', 'stage_index': 2, 'duration_s': tokenize_s},
            {'stage': 'step_wait', 'stage_index': 3, 'duration_s': step_wait_s},
            {'stage': 'queue', 'stage_index': 4, 'duration_s': queue_s},
            {'stage': 'kv_alloc', 'stage_index': 5, 'duration_s': NULL},
            {'stage': 'prefill', 'stage_index': 6, 'duration_s': prefill_s},
            {'stage': 'sample', 'stage_index': 7, 'duration_s': NULL},
            {'stage': 'stream_out', 'stage_index': 8, 'duration_s': stream_out_s},
            {'stage': 'decode', 'stage_index': 9, 'duration_s': decode_stage_s},
            {'stage': 'unaccounted', 'stage_index': 10, 'duration_s': left_s}
        ]) AS piece
    FROM _request_timing
),

summed AS (
    SELECT
        run_id,
        piece.stage AS stage,
        piece.stage_index AS stage_index,
        quantile_cont(piece.duration_s, [0.5, 0.9, 0.99]) AS quantiles_s,
        max(piece.duration_s) AS max_s,
        CASE WHEN piece.stage NOT IN ('client_wait', 'decode') THEN sum(piece.duration_s) FILTER (WHERE has_ttft) END AS in_ttft_s,
        count(piece.duration_s) AS observed_count,
        count(*) AS request_count
    FROM listed
    GROUP BY run_id, piece.stage, piece.stage_index
)

SELECT
    run_id,
    stage,
    stage_index,
    quantiles_s[1] AS p50_s,
    quantiles_s[2] AS p90_s,
    quantiles_s[3] AS p99_s,
    max_s,
    in_ttft_s / nullif(sum(in_ttft_s) OVER (PARTITION BY run_id), 0) AS share_of_ttft_ratio,
    observed_count,
    request_count
FROM summed;

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
