CREATE VIEW stage_summary AS
WITH whole AS (
    SELECT
        run_id,
        sum(duration_s) AS ttft_sum_s
    FROM request_stage
    WHERE stage NOT IN ('client_wait', 'decode')
        AND request_id IN (SELECT request.request_id FROM request WHERE request.ttft_s IS NOT NULL OR request.client_ttft_s IS NOT NULL)
    GROUP BY run_id
)

SELECT
    stage.run_id,
    stage.stage,
    stage.stage_index,
    quantile_cont(stage.duration_s, 0.5) AS p50_s,
    quantile_cont(stage.duration_s, 0.9) AS p90_s,
    quantile_cont(stage.duration_s, 0.99) AS p99_s,
    max(stage.duration_s) AS max_s,
    CASE
        WHEN stage.stage NOT IN ('client_wait', 'decode')
            THEN sum(stage.duration_s) FILTER (WHERE r.ttft_s IS NOT NULL OR r.client_ttft_s IS NOT NULL) / any_value(whole.ttft_sum_s)
    END AS share_of_ttft_ratio,
    count(stage.duration_s) AS observed_count,
    count(*) AS request_count
FROM request_stage AS stage
INNER JOIN request AS r ON stage.run_id = r.run_id AND stage.request_id = r.request_id
LEFT JOIN whole ON stage.run_id = whole.run_id
GROUP BY stage.run_id, stage.stage, stage.stage_index;

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
