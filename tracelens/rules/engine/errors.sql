/*
title = "Errors stand in the log, and nothing says what they did"
belief = "There is a traceback, so that is the cause (or: it still answers, so errors do not matter)."
cause = "server-errors"
severity = "info"
needs = ["log_event"]
missing = ["the server's log from some minutes before the first error up to its end"]
message = "The log holds {error_text}, the first: {first_error}. Not one is known to have refused a request or stopped the engine."
verdict = "No measure shows a fault, but the log holds {error_text} (the first: {first_error}): read that before anything is changed."

[[remedy]]
kind = "config"
text = "Read the first error with the lines around it, and ask again with the log that goes on behind it."
moves = "what is known of the errors"
next_limit = "the error itself"
---
## What people assume
A traceback is the cause of whatever is slow, or it is noise.
## What the data shows
Errors that no request was refused by, and of which no line says that the engine ended.
## How it is detected
A line of level ERROR or CRITICAL or a traceback, which is not about a single request (too long, a template, a schema, a client that
left) or a KV transfer (engine.kv_transfer), and not part of what engine.dead has found.
## What to do
Read them.  What they did to latency is not in them.
## Known limits
Words decide what is about a request: an error in the words of a plugin counts as one that is not.
*/
WITH error AS (
    SELECT
        e.run_id,
        e.source_id,
        e.line_no,
        e.event_ts,
        coalesce(
            nullif(regexp_extract(e.message, '(?:^|\n)\s*((?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception): [^\n]*)', 1), ''),
            split_part(trim(e.message), chr(10), 1)
        ) AS said
    FROM log_event AS e
    INNER JOIN source ON e.source_id = source.source_id AND source.side = 'server'
    ANTI JOIN _engine_failure AS f ON e.run_id = f.run_id
    WHERE
        e.kind IN ('error', 'oom', 'traceback', 'dead') AND coalesce(e.level, 'ERROR') IN ('ERROR', 'CRITICAL')
        AND (_is_fatal(e.message) OR NOT (_is_of_request(e.message) OR _is_of_kv_transfer(e.message)))
        -- What a server writes that is being stopped.
        AND NOT EXISTS (
            SELECT 1
            FROM log_event AS ordered
            WHERE ordered.source_id = e.source_id AND ordered.kind = 'stop' AND ordered.line_no < e.line_no
        )
),

counted AS (
    SELECT
        run_id,
        count(*) AS error_count,
        min(event_ts) AS from_ts,
        max(event_ts) AS to_ts,
        left(min_by(said, _line_key(source_id, line_no)), 160) AS first_error,
        arg_min({'source_id': source_id, 'line_no': line_no}, _ranked(line_no, source_id, line_no), 4) AS evidence
    FROM error
    GROUP BY run_id
)

SELECT
    runs.run_id,
    '' AS subject,
    CASE
        WHEN counted.run_id IS NOT NULL THEN 'fired'
        WHEN runs.has_log THEN 'clear'
        ELSE 'not_evaluated'
    END AS outcome,
    'low' AS confidence,
    0.0 AS weight,
    counted.from_ts,
    counted.to_ts,
    coalesce(counted.evidence, []) AS evidence,
    CASE WHEN counted.error_count > 1 THEN format('{} errors', counted.error_count) ELSE 'an error' END AS error_text,
    coalesce(counted.first_error, '') AS first_error,
    coalesce(counted.error_count, 0) AS measured_error_count
FROM (
    SELECT
        run_id,
        bool_or(format IN ('vllm_log', 'tgi_log', 'sglang_log')) AS has_log
    FROM source
    GROUP BY run_id
) AS runs
LEFT JOIN counted ON runs.run_id = counted.run_id
