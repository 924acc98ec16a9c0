/*
title = "A request waits for ever while nothing runs"
belief = "The engine hangs; restart the server."
cause = "request-never-schedulable"
severity = "critical"
needs = ["engine_sample"]
missing = ["engine stats lines with running and waiting counts (do not run with --disable-log-stats)"]
message = "Nothing runs, the KV cache is empty, and {measured_waiting_count} request(s) wait in {measured_samples_count} stats lines in a row{span_text}."
verdict = "The engine is idle and empty while {measured_waiting_count} request(s) wait: the first one can never be scheduled (larger than the KV cache or a length limit); reject it by --max-model-len, or give the KV cache more blocks."

[params]
min_samples_count = 3
empty_kv_ratio = 0.01

[[remedy]]
kind = "config"
text = "Lower --max-model-len to what the KV cache holds, so that such a prompt is refused at once with an error."
moves = "stuck requests"
next_limit = "longest prompt served"

[[remedy]]
kind = "config"
text = "Give the KV cache more blocks: higher --gpu-memory-utilization, a smaller KV data type, tensor parallelism."
moves = "longest prompt served"
next_limit = "memory of the GPU"
---
## What people assume
The server got stuck.

## What the data shows
A hung engine has running requests. Here nothing runs and no KV block is in use, so nothing stands in the way of the
waiting request but its own size (or a resource that never comes).

## How it is detected
`min_samples_count` stats lines in a row with running 0, waiting at least 1, no tokens and KV usage below
`empty_kv_ratio`, to the end of the run or for that long; requests that the engine itself counts as deferred (grammar,
LoRA, remote KV) do not count, nor does a run with a KV connector: there it is the connector that does not bring the blocks
(engine.hung).

## What to do
Compare the longest prompt with the KV cache's size in tokens (the start of the log states it).

## Known limits
The lines do not hold the prompt's length. A LoRA adapter or a grammar that never loads looks alike in versions that do
not count deferred requests.
*/
WITH sample AS (
    SELECT
        *,
        running_count = 0
        AND coalesce(swapped_count, 0) = 0
        AND external_prefix_cache_hit_ratio IS NULL
        AND waiting_count > 0
        AND waiting_count > coalesce(deferred_count, 0)
        AND coalesce(kv_cache_usage_ratio, 0) < $empty_kv_ratio
        AND coalesce(prompt_tps, 0) = 0
        AND coalesce(generation_tps, 0) = 0 AS is_stuck
    FROM (
        SELECT
            b.*,
            s.swapped_count,
            s.external_prefix_cache_hit_ratio
        FROM binding_limit AS b
        LEFT JOIN engine_state AS s
            ON b.source_id = s.source_id AND b.line_no = s.line_no AND b.engine_index IS NOT DISTINCT FROM s.engine_index
    )
    WHERE running_count IS NOT NULL AND waiting_count IS NOT NULL
),

numbered AS (
    SELECT
        *,
        sum(CASE WHEN is_stuck THEN 0 ELSE 1 END)
            OVER (PARTITION BY source_id, engine_index ORDER BY line_no ROWS UNBOUNDED PRECEDING) AS stretch
    FROM sample
),

stretched AS (
    SELECT
        run_id,
        source_id,
        engine_index,
        stretch,
        count(*) AS stuck_count,
        max(waiting_count) AS waiting_count,
        min(sample_ts) AS from_ts,
        max(sample_ts) AS to_ts,
        arg_min({'source_id': source_id, 'line_no': line_no}, _ranked(line_no, source_id, line_no), 5) AS evidence
    FROM numbered
    WHERE is_stuck
    GROUP BY run_id, source_id, engine_index, stretch
),

longest AS (
    SELECT *
    FROM stretched
    QUALIFY row_number() OVER (PARTITION BY run_id ORDER BY stuck_count DESC, source_id ASC, engine_index ASC, stretch ASC) = 1
),

every_run AS (
    SELECT
        run_id,
        count(*) AS sample_count
    FROM sample
    GROUP BY run_id
)

SELECT
    every_run.run_id,
    '' AS subject,
    CASE
        WHEN longest.stuck_count >= $min_samples_count THEN 'fired'
        WHEN every_run.sample_count < $min_samples_count THEN 'not_evaluated'
        ELSE 'clear'
    END AS outcome,
    CASE WHEN longest.stuck_count >= 2 * $min_samples_count THEN 'medium' ELSE 'low' END AS confidence,
    least(1.0, 0.9 * coalesce(longest.stuck_count, 0) / every_run.sample_count + 0.1) AS weight,
    longest.from_ts,
    longest.to_ts,
    coalesce(longest.evidence, []) AS evidence,
    CASE WHEN every_run.sample_count < $min_samples_count THEN ['more engine stats lines (do not run with --disable-log-stats)'] END
        AS missing,
    coalesce(format(', {:.0f} s', epoch(longest.to_ts - longest.from_ts)), '') AS span_text,
    longest.waiting_count AS measured_waiting_count,
    coalesce(longest.stuck_count, 0) AS measured_samples_count,
    $min_samples_count AS threshold_samples_count,
    $empty_kv_ratio AS threshold_kv_ratio
FROM every_run
LEFT JOIN longest ON every_run.run_id = longest.run_id
