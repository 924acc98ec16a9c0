/*
title = "Grammar work holds requests back"
belief = "Requests wait, so the engine is out of capacity."
cause = "structured-output-stall"
severity = "critical"
needs = []
missing = ["which requests ask for structured output (--enable-log-requests)", "stats lines of vLLM 0.20 or later, which say Deferred", "stderr of the server (progress bars and errors of the grammar back end)"]
message = "{form}."
verdict = "Structured output is what requests wait for ({form}): compile or cache the grammars beforehand, or change the back end; more seats or cache would not help."

[params]
min_compile_s = 10.0
min_deferred_ratio = 0.5
min_deferred_samples_count = 2
min_times_ratio = 10.0
min_wait_s = 1.0

[[remedy]]
kind = "config"
text = "Simplify the schema (bounded repetitions, fewer alternatives), reuse the same schema text so that the compiled grammar is cached, and send one warm-up request per schema after the start."
moves = "queue of requests with a grammar"
next_limit = "grammar matching per token"

[[remedy]]
kind = "config"
text = "Change the grammar back end (--structured-outputs-config.backend, before 0.12 --guided-decoding-backend): xgrammar compiles much faster than outlines."
moves = "compile time"
next_limit = "schema features that the back end lacks"
---
## What people assume
Waiting requests mean too few seats or too little cache.
## What the data shows
Requests with a grammar wait for its compilation, or fail in its matcher, while seats and cache are free.
## How it is detected
One of three signs.  A compilation of a finite state machine that took `min_compile_s` or longer, by its progress bar.  Stats lines in which
at least `min_deferred_ratio` of the waiting requests are deferred, at least `min_deferred_samples_count` of them, with KV cache below 0.9
and lines of the grammar back end in the same log.  Requests that name a grammar and wait `min_times_ratio` times as long as those
without one, and at least `min_wait_s`.
## What to do
Make grammars cheap and known beforehand.
## Known limits
Deferred counts other reasons too (adapters, remote KV): without a line of the grammar back end this rule does not fire on it.
*/
WITH grammar_line AS (
    SELECT
        run_id,
        source_id,
        line_no,
        event_ts,
        message,
        -- [15:10<00:00, 17.39it/s]: the time that has passed, minutes and seconds, hours before them where there are any.
        CASE
            WHEN message LIKE 'Compiling FSM%'
                THEN
                    3600 * coalesce(try_cast(regexp_extract(message, '\[(\d+):\d+:\d+<', 1) AS DOUBLE), 0)
                    + 60 * try_cast(regexp_extract(message, '(\d+):\d+<', 1) AS DOUBLE)
                    + try_cast(regexp_extract(message, ':(\d+)<', 1) AS DOUBLE)
        END AS compile_s
    FROM log_event
    WHERE
        kind IN ('error', 'warning', 'notice', 'traceback')
        AND (
            message LIKE '%FSM%' OR message ILIKE '%grammar%' OR message ILIKE '%guided decoding%' OR message ILIKE '%structured output%'
            OR message ILIKE '%xgrammar%'
        )
),

said AS (
    SELECT
        run_id,
        max(compile_s) AS compile_s,
        count(*) AS grammar_line_count,
        min(event_ts) AS from_ts,
        max(event_ts) AS to_ts,
        list({'source_id': source_id, 'line_no': line_no} ORDER BY compile_s DESC NULLS LAST, line_no ASC)[:3] AS evidence
    FROM grammar_line
    GROUP BY run_id
),

sampled AS (
    SELECT
        run_id,
        count(*) FILTER (
            WHERE waiting_count > 0 AND deferred_count >= $min_deferred_ratio * waiting_count AND kv_cache_usage_ratio < _full_kv_ratio()
        )
            AS deferred_samples_count,
        count(deferred_count) AS told_count,
        max(deferred_count) AS deferred_count,
        arg_min({'source_id': source_id, 'line_no': line_no}, _ranked(line_no, source_id, line_no), 2)
        FILTER (WHERE deferred_count > 0) AS evidence
    FROM engine_state
    GROUP BY run_id
),

request_with_grammar AS (
    SELECT
        run_id,
        queue_s,
        json_extract_string(other, '$.grammar') IS NOT NULL AS has_grammar,
        source_id,
        line_no,
        arrival_ts
    FROM server_request
    WHERE other LIKE '%"grammar"%' AND queue_s IS NOT NULL
),

compared AS (
    SELECT
        run_id,
        median(queue_s) FILTER (WHERE has_grammar) AS with_queue_s,
        coalesce(median(queue_s) FILTER (WHERE NOT has_grammar), 0) AS without_queue_s,
        count(*) FILTER (WHERE has_grammar) AS with_count,
        count(*) FILTER (WHERE NOT has_grammar) AS without_count,
        min(arrival_ts) AS from_ts,
        max(arrival_ts) AS to_ts,
        arg_max({'source_id': source_id, 'line_no': line_no}, _ranked(queue_s, source_id, line_no), 3) FILTER (WHERE has_grammar)
            AS evidence
    FROM request_with_grammar
    GROUP BY run_id
),

judged AS (
    SELECT
        runs.run_id,
        said.compile_s,
        sampled.deferred_count,
        compared.with_queue_s,
        coalesce(said.compile_s >= $min_compile_s, FALSE) AS compiles,
        coalesce(sampled.deferred_samples_count >= $min_deferred_samples_count AND said.grammar_line_count > 0, FALSE) AS defers,
        coalesce(
            compared.without_count > 0 AND compared.with_queue_s >= $min_wait_s
            AND compared.with_queue_s >= $min_times_ratio * compared.without_queue_s,
            FALSE
        ) AS waits,
        coalesce(sampled.told_count > 0, FALSE) OR (compared.with_count > 0 AND compared.without_count > 0) AS can_tell,
        coalesce(sampled.deferred_samples_count > 0, FALSE) AS is_deferred,
        coalesce(compared.from_ts, said.from_ts) AS from_ts,
        coalesce(compared.to_ts, said.to_ts) AS to_ts,
        list_concat(coalesce(said.evidence, []), coalesce(sampled.evidence, []), coalesce(compared.evidence, [])) AS evidence,
        said.grammar_line_count,
        compared.without_queue_s,
        compared.with_count
    FROM (SELECT DISTINCT run_id FROM source) AS runs
    LEFT JOIN said ON runs.run_id = said.run_id
    LEFT JOIN sampled ON runs.run_id = sampled.run_id
    LEFT JOIN compared ON runs.run_id = compared.run_id
)

SELECT
    run_id,
    '' AS subject,
    CASE
        WHEN compiles OR defers OR waits THEN 'fired'
        WHEN can_tell AND NOT is_deferred THEN 'clear'
        ELSE 'not_evaluated'
    END AS outcome,
    CASE WHEN compiles THEN 'high' WHEN defers THEN 'medium' WHEN waits AND with_count >= 30 THEN 'high' ELSE 'medium' END AS confidence,
    CASE WHEN compiles THEN 0.9 WHEN waits THEN 0.96 WHEN defers THEN 0.8 ELSE 0.0 END AS weight,
    from_ts,
    to_ts,
    evidence[:5] AS evidence,
    CASE
        WHEN compiles THEN 'a state machine was compiled for ' || round(compile_s)::INTEGER || ' s before its request reached the engine'
        WHEN
            waits
            THEN 'requests with a grammar waited '
                || round(with_queue_s, 1)
                || ' s (median), those without one '
                || round(without_queue_s, 3)
                || ' s'
        WHEN
            defers
            THEN 'up to '
                || deferred_count
                || ' waiting requests were deferred, not short of capacity, with '
                || grammar_line_count
                || ' lines of the grammar back end'
        WHEN is_deferred THEN 'requests were deferred, and no line says what for'
        ELSE 'nothing was deferred'
    END AS form,
    compile_s AS measured_compile_s,
    deferred_count AS measured_deferred_count,
    with_queue_s AS measured_queue_s,
    $min_compile_s AS threshold_compile_s
FROM judged
