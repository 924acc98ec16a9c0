/*
title = "First requests pay for kernel compilation"
belief = "The server is slow; look, the first answers take half a minute."
cause = "jit-warmup"
severity = "info"
needs = ["log_event"]
missing = ["the server's log with warnings, from the start on (vLLM 0.21 and later say when a kernel is compiled during inference)"]
message = "{measured_kernel_count} kernels were compiled or tuned while requests ran, over {measured_compile_s}{repeated}."
verdict = "The first requests paid for {measured_kernel_count} kernel compilations{repeated}: send warm-up requests of every shape after the start and leave them out of measurements."

[[remedy]]
kind = "config"
text = "Send warm-up requests that cover the shapes of the traffic before the server takes load, and keep the compile cache on a disk that survives restarts (VLLM_CACHE_ROOT, TRITON_CACHE_DIR)."
moves = "TTFT of the first requests"
next_limit = "steady state"
---
## What people assume
The first measurement is the server's speed.
## What the data shows
Kernels were compiled or tuned while a request waited; the same request again is fast.
## How it is detected
A line, or several, that say that a compilation or a tuning happened during inference.  Compilation at start-up does not count.
Where a client sent the same request again, both times are told.
## What to do
Warm up before measuring, and before a server joins the load balancer.
## Known limits
Versions before 0.21 write no such lines.  The time is from the first to the last line, not the sum of the compilations.
*/
WITH compiled AS (
    SELECT
        run_id,
        count(*) FILTER (WHERE kind = 'compile' AND message LIKE '%during inference%') AS kernel_count,
        min(event_ts) FILTER (WHERE kind = 'compile' AND message LIKE '%during inference%') AS from_ts,
        max(event_ts) FILTER (WHERE kind = 'compile' AND message LIKE '%during inference%') AS to_ts,
        coalesce(
            list({'source_id': source_id, 'line_no': line_no} ORDER BY line_no) FILTER (
                WHERE kind = 'compile' AND message LIKE '%during inference%'
            ),
            []
        )[:5] AS evidence
    FROM log_event
    GROUP BY run_id
),

warmed AS (
    SELECT run_id
    FROM compiled
    WHERE kernel_count > 0
),

-- The first request against the later ones of the same lengths.
alike AS (
    SELECT
        run_id,
        coalesce(client_e2e_s, e2e_s) AS e2e_s,
        row_number() OVER same AS place
    FROM request
    WHERE
        coalesce(client_e2e_s, e2e_s) IS NOT NULL AND input_tokens IS NOT NULL
        AND run_id IN (SELECT warmed.run_id FROM warmed)
    WINDOW same AS (PARTITION BY run_id, input_tokens, output_tokens ORDER BY arrival_ts NULLS LAST, client_line_no)
),

again AS (
    SELECT
        run_id,
        max(e2e_s) FILTER (WHERE place = 1) AS first_s,
        median(e2e_s) FILTER (WHERE place > 1) AS later_s
    FROM alike
    GROUP BY run_id
),

told AS (
    SELECT run_id FROM engine_state
    UNION
    SELECT run_id FROM request
),

versioned AS (
    SELECT run_id
    FROM run_setting
    WHERE key = 'vllm_version' AND try_cast(regexp_extract(value, '^0\.(\d+)', 1) AS INTEGER) >= 21
)

SELECT
    compiled.run_id,
    '' AS subject,
    CASE
        WHEN compiled.kernel_count > 0 THEN 'fired'
        WHEN versioned.run_id IS NOT NULL AND told.run_id IS NOT NULL THEN 'clear'
        ELSE 'not_evaluated'
    END AS outcome,
    CASE WHEN compiled.kernel_count >= 3 OR again.later_s IS NOT NULL THEN 'high' ELSE 'medium' END AS confidence,
    CASE
        WHEN compiled.kernel_count = 0 THEN 0.0
        WHEN again.first_s > again.later_s THEN 1 - again.later_s / again.first_s
        ELSE 0.5
    END AS weight,
    compiled.from_ts,
    compiled.to_ts,
    compiled.evidence,
    CASE
        WHEN again.first_s > again.later_s
            THEN '; the first request took ' || round(again.first_s, 1) || ' s, the same again ' || round(again.later_s, 1) || ' s'
        ELSE ''
    END AS repeated,
    compiled.kernel_count AS measured_kernel_count,
    epoch(compiled.to_ts - compiled.from_ts) AS measured_compile_s
FROM compiled
LEFT JOIN again ON compiled.run_id = again.run_id
LEFT JOIN versioned ON compiled.run_id = versioned.run_id
LEFT JOIN told ON compiled.run_id = told.run_id
