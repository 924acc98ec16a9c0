/*
title = "The engine process died"
belief = "Clients get 500, so the API server or the clients are at fault."
cause = "engine-dead"
severity = "critical"
needs = []
missing = ["the server's log up to its end, stderr included"]
message = "{lead}: {reason}.{aftermath}"
verdict = "{lead} ({reason}): {first_step}."

[params]
max_stop_lines_count = 25
max_cause_s = 60.0
min_refused_count = 5

[[remedy]]
kind = "config"
text = "Read the first error of a worker before the line that the engine died; let the orchestrator restart the server at once, since it does not come back by itself."
moves = "time to recover"
next_limit = "the error itself"
---
## What people assume
The API server answers 500, so it is broken, or the clients send something wrong.
## What the data shows
The engine's own process or loop ended with an error; whatever the API server does after that fails.
## How it is detected
A line that says so (EngineCore encountered a fatal error, EngineDeadError, AsyncEngineDeadError, Engine background task failed,
a shard or scheduler that crashed), without a stop that was ordered in the `max_stop_lines_count` lines before it: a server that is stopped
by a signal writes the same traceback.  The reason is the first error in the `max_cause_s` before it.  A worker that hit an
exception, with no token and no answer after it, is the same: the engine gives up when a worker fails in a step (medium
confidence, since its own line is not there).  PyTorch's watchdog that takes the process down after a failed collective is a death
as well.  Where no error is left and no sign that the engine ever worked (a token, a running request, a 2xx), but
`min_refused_count` POSTs or more and each was answered with 5xx, the finding is a warning with low confidence.
## What to do
Fix the first error; a restart brings the service back.
## Known limits
A process that is killed from outside (out of memory on the host, kill -9) writes nothing: its log just ends.  A server that
fails each request by itself (a chat template, a tool parser) answers 5xx too: the traceback before the first one tells.
*/
WITH living AS (
    -- Until where a source shows that its engine serves.
    SELECT
        run_id,
        source_id,
        max(line_no) AS line_no
    FROM (
        SELECT
            run_id,
            source_id,
            line_no
        FROM engine_sample
        WHERE prompt_tps > 0 OR generation_tps > 0
        UNION ALL
        SELECT
            run_id,
            source_id,
            line_no
        FROM access_line
        WHERE method = 'POST' AND status BETWEEN 200 AND 299
    )
    GROUP BY run_id, source_id
),

died AS (
    SELECT
        death.run_id,
        death.source_id,
        death.line_no,
        death.event_ts,
        death.message,
        CASE WHEN death.kind = 'dead' THEN 'high' ELSE 'medium' END AS confidence
    FROM log_event AS death
    LEFT JOIN living ON death.source_id = living.source_id
    WHERE
        (
            death.kind = 'dead'
            OR (death.kind = 'error' AND death.message LIKE 'WorkerProc hit an exception%' AND death.line_no > coalesce(living.line_no, 0))
        )
        AND NOT EXISTS (
            SELECT 1
            FROM log_event AS ordered
            WHERE
                ordered.source_id = death.source_id
                AND ordered.line_no BETWEEN death.line_no - $max_stop_lines_count AND death.line_no
                AND (ordered.kind = 'stop' OR ordered.message LIKE '%KeyboardInterrupt%')
        )
),

first_death AS (
    SELECT *
    FROM died
    QUALIFY row_number() OVER (PARTITION BY run_id ORDER BY confidence, event_ts NULLS LAST, source_id, line_no) = 1
),

trouble AS (
    SELECT
        first_death.run_id,
        first_death.source_id,
        e.line_no,
        trim(coalesce(
            nullif(regexp_extract(e.message, '(?:^|\n)\s*((?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception)\b[^\n]*)', 1), ''),
            -- A traceback that was pasted onto one line.
            nullif(
                regexp_extract(
                    e.message, 'aceback \(most recent call last\).*?((?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception): [^\n]*)', 1
                ),
                ''
            ),
            split_part(e.message, chr(10), 1)
        )) AS said,
        e.message LIKE '%Error: %' OR e.message LIKE '%Exception: %' AS names_error
    FROM first_death
    INNER JOIN log_event AS e
        ON
            first_death.source_id = e.source_id
            AND e.line_no BETWEEN first_death.line_no - 200 AND first_death.line_no
            AND e.kind IN ('error', 'traceback', 'oom', 'stall', 'dead', 'gpu')
            AND coalesce(e.event_ts >= first_death.event_ts - to_microseconds(($max_cause_s * 1e6)::BIGINT), TRUE)
),

reason AS (
    SELECT
        run_id,
        rtrim(left(coalesce(min_by(said, line_no) FILTER (WHERE names_error), min_by(said, line_no)), 160), '. ') AS reason,
        arg_min({'source_id': source_id, 'line_no': line_no}, _ranked(line_no, source_id, line_no), 4) AS evidence
    FROM trouble
    GROUP BY run_id
),

failed AS (
    SELECT
        first_death.run_id,
        count(a.line_no) AS failed_count
    FROM first_death
    LEFT JOIN access_line AS a ON first_death.source_id = a.source_id AND first_death.line_no < a.line_no AND a.status >= 500
    GROUP BY first_death.run_id
),

-- Errors of the engine's own processes, or many failed POSTs, after which nothing shows that it goes on: then a missing line proves nothing.
erred AS (
    SELECT trouble_line.run_id
    FROM (
        SELECT
            run_id,
            source_id,
            line_no,
            TRUE AS is_told
        FROM log_event
        WHERE kind IN ('error', 'oom') AND regexp_matches(coalesce(process, ''), '^(EngineCore|Worker)')
        UNION ALL
        SELECT
            run_id,
            source_id,
            line_no,
            FALSE AS is_told
        FROM access_line
        WHERE method = 'POST' AND status >= 500
    ) AS trouble_line
    LEFT JOIN living ON trouble_line.source_id = living.source_id
    WHERE trouble_line.line_no > coalesce(living.line_no, 0)
    GROUP BY trouble_line.run_id
    HAVING bool_or(is_told) OR count(*) >= $min_refused_count
),

refused AS (
    SELECT
        a.run_id,
        count(*) AS failed_count,
        any_value(a.status) AS status,
        arg_min({'source_id': a.source_id, 'line_no': a.line_no}, _ranked(a.line_no, a.source_id, a.line_no), 4) AS evidence
    FROM access_line AS a
    ANTI JOIN first_death ON a.run_id = first_death.run_id
    WHERE
        a.method = 'POST'
        AND a.run_id NOT IN (SELECT living.run_id FROM living)
        AND a.run_id NOT IN (SELECT engine_sample.run_id FROM engine_sample WHERE engine_sample.running_count > 0)
        AND a.run_id NOT IN (SELECT log_event.run_id FROM log_event WHERE log_event.kind IN ('error', 'traceback', 'dead', 'stop'))
    GROUP BY a.run_id
    HAVING count(*) >= $min_refused_count AND min(a.status) >= 500
)

SELECT
    runs.run_id,
    '' AS subject,
    CASE
        WHEN first_death.run_id IS NOT NULL OR refused.run_id IS NOT NULL THEN 'fired'
        WHEN runs.has_log AND erred.run_id IS NULL THEN 'clear'
        ELSE 'not_evaluated'
    END AS outcome,
    CASE WHEN refused.run_id IS NOT NULL THEN 'low' ELSE coalesce(first_death.confidence, 'medium') END AS confidence,
    CASE WHEN refused.run_id IS NOT NULL THEN 'warning' END AS severity,
    CASE WHEN coalesce(first_death.run_id, refused.run_id) IS NOT NULL THEN 0.95 ELSE 0.0 END AS weight,
    first_death.event_ts AS from_ts,
    runs.last_ts AS to_ts,
    coalesce(reason.evidence, refused.evidence, []) AS evidence,
    coalesce(reason.reason, format('each of the {} POSTs was answered with {}', refused.failed_count, refused.status), '') AS reason,
    CASE
        WHEN refused.run_id IS NOT NULL THEN 'The server answers, and the engine behind it does not'
        WHEN first_death.confidence = 'medium' THEN 'A worker of the engine failed, and nothing was served after it'
        ELSE 'The engine process died'
    END AS lead,
    CASE
        WHEN refused.run_id IS NOT NULL THEN 'look for the first error in the log before these lines'
        ELSE 'the first error before it is the cause, every 5xx after it is a consequence'
    END AS first_step,
    CASE WHEN failed.failed_count > 0 THEN format(' Answers with 5xx after it: {}.', failed.failed_count) ELSE '' END
        AS aftermath,
    coalesce(failed.failed_count, refused.failed_count) AS measured_failed_count
FROM (
    SELECT
        run_id,
        bool_or(format IN ('vllm_log', 'tgi_log', 'sglang_log')) AS has_log,
        max(last_ts) FILTER (WHERE side = 'server') AS last_ts
    FROM source
    GROUP BY run_id
) AS runs
LEFT JOIN first_death ON runs.run_id = first_death.run_id
LEFT JOIN reason ON runs.run_id = reason.run_id
LEFT JOIN failed ON runs.run_id = failed.run_id
LEFT JOIN refused ON runs.run_id = refused.run_id
LEFT JOIN erred ON runs.run_id = erred.run_id
