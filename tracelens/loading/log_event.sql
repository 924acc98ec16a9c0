-- The physical lines of one record become one row: a traceback is printed line by line, each with the same process,
-- level, second and origin (vLLM's NewLineFormatter), or with no header at all and right below each other.
-- Warnings stay apart, since several of one second are several warnings, and so do the sentences of a host.
WITH written AS (
    SELECT NULL::BIGINT AS repeat_count
    WHERE FALSE
    UNION ALL BY NAME
    SELECT *
    FROM part
),

keyed AS (
    SELECT
        *,
        CASE
            WHEN level IS NULL THEN 'bare'
            WHEN process IN ('kernel', 'systemd', 'shell', 'Slurm', 'kubelet') THEN NULL
            WHEN level IN ('ERROR', 'CRITICAL') THEN concat_ws('|', process, level, event_ts, origin)
        END AS record_key,
        CASE WHEN level IS NULL THEN 'bare' ELSE coalesce(process, '') END AS writer
    FROM written
),

marked AS (
    SELECT
        *,
        CASE
            WHEN record_key IS NULL THEN 1
            WHEN (lag(record_key) OVER writing IS DISTINCT FROM record_key) THEN 1
            WHEN (level IS NULL OR origin IS NULL) AND line_no > lag(line_no) OVER writing + 1 THEN 1
            ELSE 0
        END AS begins
    FROM keyed
    WINDOW writing AS (PARTITION BY writer ORDER BY line_no)
),

numbered AS (
    SELECT
        *,
        sum(begins) OVER (PARTITION BY writer ORDER BY line_no) AS record_no
    FROM marked
)

SELECT
    min(line_no) AS line_no,
    max(line_no) AS last_line_no,
    min(event_ts) AS event_ts,
    min(error_s) AS error_s,
    min(level) AS level,
    coalesce(
        min(kind) FILTER (WHERE kind NOT IN ('error', 'warning', 'traceback', 'notice')),
        min(kind) FILTER (WHERE kind = 'traceback'),
        min(kind)
    ) AS kind,
    min(process) AS process,
    min(origin) AS origin,
    max(repeat_count) AS repeat_count,
    left(string_agg(message, chr(10) ORDER BY line_no), 8192) AS message
FROM numbered
GROUP BY writer, record_no
