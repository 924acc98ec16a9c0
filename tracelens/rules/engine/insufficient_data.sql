/*
title = "A few stats lines of a server that keeps up: not enough for a verdict"
belief = "One number in the log (a hit rate, a usage) proves what is wrong."
cause = "insufficient-data"
severity = "info"
needs = []
missing = ["times of single requests: --otlp-traces-endpoint, --enable-per-request-metrics (0.32 and later), or a client file with a stamp per chunk", "a longer log (30 stats lines or more)"]
message = "{said}."
verdict = "These files do not decide it ({form}): collect times of single requests before anything is changed."

[params]
max_sample_count = 30
max_moment_count = 2
min_prompt_ratio = 0.5
---
## What people assume
A number that looks low is the fault.
## What the data shows
Stats lines say how many run and wait, not how long a request took; a window over the last 1000 requests says nothing of this one.
## How it is detected
There is no request, client or GPU row, no histogram of TTFT over `max_sample_count` requests and no warning; fewer than `max_sample_count` stats lines; nothing waits in any of them, prompts are
computed in at least `min_prompt_ratio` of them, and tokens flow.  Or at most `max_moment_count` stats lines: a moment, whatever waits in it.
Or no state of the engine at all: nothing, or only what counts a whole run (a summary of a benchmark, counters).
## What to do
Collect what is named under missing, then ask again.
## Known limits
Other rules may still find something in the same lines: then this one is no objection.
*/
WITH sampled AS (
    SELECT
        run_id,
        count(*) AS sample_count,
        max(waiting_count) AS waiting_count,
        count(*) FILTER (WHERE prompt_tps > 0) / count(*) AS prompt_ratio,
        max(running_count) AS running_count,
        max(generation_tps) AS generation_tps,
        max(kv_cache_usage_ratio) AS kv_ratio,
        min(sample_ts) AS from_ts,
        max(sample_ts) AS to_ts,
        arg_min({'source_id': source_id, 'line_no': line_no}, _ranked(line_no, source_id, line_no), 2) AS evidence
    FROM engine_state
    GROUP BY run_id
),

known AS (
    SELECT run_id FROM request
    UNION
    SELECT run_id FROM gpu_sample
    UNION
    SELECT run_id FROM engine_step
    UNION
    SELECT run_id FROM log_event WHERE kind IN ('error', 'traceback', 'dead', 'stall', 'oom', 'compile', 'preemption', 'notice', 'gpu')
    UNION
    SELECT run_id FROM run_setting WHERE key IN ('cpu_quota_cores', 'cgroup_throttled_count')
    UNION
    SELECT run_id FROM metric_latency WHERE metric = 'ttft_s' AND observed_count >= $max_sample_count AND from_ts IS NOT NULL
),

summed AS (
    SELECT run_id FROM client_summary
    UNION
    SELECT run_id FROM metric_sample
),

judged AS (
    SELECT
        runs.run_id,
        sampled.sample_count,
        known.run_id IS NOT NULL AS is_known,
        coalesce(
            sampled.sample_count < $max_sample_count AND sampled.waiting_count = 0 AND sampled.prompt_ratio >= $min_prompt_ratio
            AND sampled.generation_tps > 0 AND sampled.kv_ratio < _full_kv_ratio(),
            FALSE
        ) AS is_thin,
        coalesce(sampled.sample_count <= $max_moment_count AND sampled.running_count + sampled.waiting_count > 0, FALSE) AS is_moment,
        summed.run_id IS NOT NULL AS is_summed,
        sampled.running_count,
        sampled.waiting_count,
        sampled.from_ts,
        sampled.to_ts,
        coalesce(sampled.evidence, []) AS evidence
    FROM (SELECT DISTINCT run_id FROM source) AS runs
    LEFT JOIN sampled ON runs.run_id = sampled.run_id
    LEFT JOIN known ON runs.run_id = known.run_id
    LEFT JOIN summed ON runs.run_id = summed.run_id
)

SELECT
    run_id,
    '' AS subject,
    CASE
        WHEN NOT is_known AND (is_thin OR is_moment OR sample_count IS NULL) THEN 'fired'
        WHEN is_known OR sample_count >= $max_sample_count THEN 'clear'
        ELSE 'not_evaluated'
    END AS outcome,
    'medium' AS confidence,
    0.0 AS weight,
    from_ts,
    to_ts,
    evidence,
    CASE
        WHEN sample_count IS NULL AND is_summed
            THEN 'totals and means of a whole run, no time of any single request and no state of the engine'
        WHEN sample_count IS NULL THEN 'nothing in them was measured'
        WHEN NOT is_thin
            THEN format(
                    '{} show{} a moment with {} running and {} waiting, not how long it lasted',
                    CASE WHEN sample_count = 1 THEN 'one stats line' ELSE sample_count || ' stats lines' END,
                    CASE WHEN sample_count = 1 THEN 's' ELSE '' END,
                    running_count,
                    waiting_count
                )
        ELSE sample_count || ' stats lines without a waiting request, and no time of any single request'
    END AS form,
    upper(form[1]) || form[2:] AS said,
    sample_count AS measured_sample_count,
    $max_sample_count AS threshold_sample_count
FROM judged
