-- The process that takes requests in, renders and tokenizes them and sends their answers: it runs Python, so one core is all it can use.
CREATE VIEW _front_end_cpu AS
WITH scraped AS (
    SELECT
        run_id,
        source_id,
        line_no,
        sample_ts,
        measured - lag(measured) OVER in_order AS spent_s,
        epoch(sample_ts - lag(sample_ts) OVER in_order) AS taken_s
    FROM metric_sample
    WHERE name = 'process_cpu_seconds_total'
    WINDOW in_order AS (PARTITION BY run_id, source_id, labels ORDER BY sample_ts, line_no)
)

SELECT
    run_id,
    source_id,
    line_no,
    sample_ts,
    cpu_cores
FROM host_process_sample
WHERE
    cpu_cores IS NOT NULL
    AND regexp_matches(
        process, '^(?:vllm|vllm-serve|VLLM::APIServer.*|vllm\.entrypoints\..*|api_server(?:\.py)?|sglang\.launch_server|launch_server\.py)$'
    )
UNION ALL
SELECT
    run_id,
    source_id,
    line_no,
    sample_ts,
    spent_s / taken_s AS cpu_cores
FROM scraped
WHERE taken_s > 0 AND spent_s >= 0;
COMMENT ON VIEW _front_end_cpu IS 'One row per sample of the process that serves HTTP: CPU cores that it used, from logs of the host''s processes and from scrapes.';
