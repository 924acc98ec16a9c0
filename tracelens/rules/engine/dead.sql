/*
title = "The engine failed or did not start"
belief = "Clients get 500, so the API server or the clients are at fault."
cause = "engine-dead"
severity = "critical"
needs = []
missing = ["the server's log up to its end, stderr included"]
message = "{lead}: {reason}.{aftermath}"
verdict = "{lead} ({reason}): {first_step}."

[params]
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
The engine's own process or loop ended with an error; whatever the API server does after that fails.  Or the error is all that is
known: nothing was served after it, and no line says whether the process lived on.
## How it is detected
A line that says so (EngineCore encountered a fatal error, EngineDeadError, AsyncEngineDeadError, Engine background task failed,
a shard or scheduler that crashed, a signal), without a stop that was ordered in the 25 lines before it: a server that is stopped
by a signal writes the same traceback.  The reason is the first error in the minute before it.  Or an error of the engine with no
token and no answer after it, up to the next start: of CUDA, memory or a collective, a traceback of one of its processes,
or one that ended the server's own process (medium confidence, since no line says that the engine is gone).  An error of a single
request (too long, a template, a schema) is none.  Before anything was served, the finding is that the engine did not start.
Where no error is left and no sign that the engine ever worked (a token, a running request, a 2xx), but
`min_refused_count` POSTs or more and each was answered with 5xx, the finding is a warning with low confidence.
## What to do
Fix the first error; a restart brings the service back.
## Known limits
A process that is killed from outside (out of memory on the host, kill -9) writes nothing itself: the kernel's log, the journal or
a shell beside it says so, else its log just ends.  A server that
fails each request by itself (a chat template, a tool parser) answers 5xx too: the traceback before the first one tells.
A piece of a log that ends at the error shows nothing after it, whatever came.
*/
WITH failed AS (
    SELECT
        f.run_id,
        count(a.line_no) AS failed_count
    FROM _engine_failure AS f
    LEFT JOIN access_line AS a ON f.source_id = a.source_id AND f.line_no < a.line_no AND a.status >= 500
    GROUP BY f.run_id
),

-- Until where a source shows that its engine serves.
living AS (
    SELECT
        run_id,
        source_id,
        max(line_no) AS line_no
    FROM _serving_line
    GROUP BY run_id, source_id
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
    ANTI JOIN _engine_failure AS f ON a.run_id = f.run_id
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
        WHEN f.run_id IS NOT NULL OR refused.run_id IS NOT NULL THEN 'fired'
        WHEN runs.has_log AND erred.run_id IS NULL THEN 'clear'
        ELSE 'not_evaluated'
    END AS outcome,
    CASE WHEN refused.run_id IS NOT NULL THEN 'low' WHEN f.is_stated THEN 'high' ELSE 'medium' END AS confidence,
    CASE WHEN refused.run_id IS NOT NULL THEN 'warning' END AS severity,
    CASE WHEN coalesce(f.run_id, refused.run_id) IS NOT NULL THEN 0.95 ELSE 0.0 END AS weight,
    f.event_ts AS from_ts,
    runs.last_ts AS to_ts,
    coalesce(f.evidence, refused.evidence, []) AS evidence,
    coalesce(f.reason, format('each of the {} POSTs was answered with {}', refused.failed_count, refused.status), '') AS reason,
    CASE
        WHEN refused.run_id IS NOT NULL THEN 'The server answers, and the engine behind it does not'
        WHEN f.is_start THEN 'The engine did not start'
        WHEN f.is_stated THEN 'The engine process died'
        ELSE 'The engine failed, and nothing was served after it'
    END AS lead,
    CASE
        WHEN refused.run_id IS NOT NULL THEN 'look for the first error in the log before these lines'
        WHEN
            regexp_matches(f.reason, '[Oo]ut of memory: Killed process|[Oo][Oo][Mm].?[Kk]ill|Out Of Memory') OR _is_of_host_memory(f.reason)
            THEN 'the host or its cgroup ran out of memory: raise its limit, or lower --swap-space, --cpu-offload-gb or the processes'
        WHEN f.reason LIKE '%failed liveness probe%' OR f.reason LIKE '%failed startup probe%'
            THEN 'a probe ended it: more time for the start (startupProbe) and for an answer under load (timeoutSeconds), unless it hung'
        WHEN f.reason LIKE '%Bus error%'
            THEN 'mostly the shared memory is too small: --shm-size or --ipc=host for the container'
        WHEN regexp_matches(f.reason, '\b[Kk]illed\b|status=9/KILL|exit(?:ed with)? code 137')
            THEN 'it was ended from outside: look in the kernel log (journalctl -k) for the out-of-memory killer'
        WHEN f.is_stated AND NOT f.is_start THEN 'the first error before it is the cause, every 5xx after it is a consequence'
        WHEN f.is_start THEN 'this first error is the cause, what stands below it follows from it'
        ELSE 'this error is the cause; whether the process lived on is not in the log'
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
LEFT JOIN _engine_failure AS f ON runs.run_id = f.run_id
LEFT JOIN failed ON runs.run_id = failed.run_id
LEFT JOIN refused ON runs.run_id = refused.run_id
LEFT JOIN erred ON runs.run_id = erred.run_id
