/*
title = "Requests wait although seats, KV cache and prefill are free"
belief = "A queue means that the server is full."
cause = "waiting-unexplained"
severity = "info"
needs = ["engine_sample"]
missing = ["engine stats lines with running and waiting counts (do not run with --disable-log-stats)"]
message = "In {measured_unexplained_ratio} of the {measured_queue_samples_count} samples in which requests waited, at most {measured_running_count} ran, the KV cache was at most {kv_text} full and no prompt was being computed: these files do not say what {measured_waiting_count} request(s) waited for."
verdict = "Requests wait although seats, KV cache and prefill are free: look at what else holds a request back (LoRA slots with --max-loras, grammars, remote KV), and log requests with --enable-log-requests."

[params]
min_unexplained_ratio = 0.5
min_samples_count = 3

[[remedy]]
kind = "config"
text = "With --enable-lora compare the adapters asked for with --max-loras; look for grammar compilation and KV transfer; run with --enable-log-requests."
moves = "queue"
next_limit = "seats"
---
## What people assume
Waiting requests mean a full server.

## What the data shows
Decoding goes on, seats and KV blocks are free, no prompt is computed, and requests wait all the same.

## How it is detected
Of the samples in which requests wait while tokens flow, `min_unexplained_ratio` (at least `min_samples_count`) show
neither full seats, nor a full cache, nor deferral, nor prompt tokens in the line itself or in the lines beside it
(prompts are counted in lumps when they are done).

## What to do
Collect what names it: request lines, adapter names, newer versions' deferred counts.

## Known limits
A prompt that is prefilled for longer than two stats intervals looks the same until it is done.
*/
WITH sample AS (
    SELECT
        *,
        greatest(
            coalesce(lag(prompt_tps) OVER line, 0), coalesce(prompt_tps, 0), coalesce(lead(prompt_tps) OVER line, 0)
        ) AS near_prompt_tps
    FROM binding_limit
    WINDOW line AS (PARTITION BY source_id, engine_index ORDER BY line_no)
),

named AS (
    SELECT
        *,
        waits_for = 'unknown' AND near_prompt_tps = 0 AND generation_tps IS NOT NULL AND running_count > 0 AS is_unexplained
    FROM sample
    WHERE waiting_count > 0 AND waits_for <> 'stalled'
),

counted AS (
    SELECT
        run_id,
        count(*) AS queue_count,
        count(*) FILTER (WHERE is_unexplained) AS unexplained_count,
        max(waiting_count) FILTER (WHERE is_unexplained) AS waiting_count,
        max(running_count) FILTER (WHERE is_unexplained) AS running_count,
        max(kv_cache_usage_ratio) FILTER (WHERE is_unexplained) AS kv_ratio,
        bool_and(seat_count IS NOT NULL) AS has_seats,
        min(sample_ts) FILTER (WHERE is_unexplained) AS from_ts,
        max(sample_ts) FILTER (WHERE is_unexplained) AS to_ts,
        arg_min({'source_id': source_id, 'line_no': line_no}, _ranked(line_no, source_id, line_no), 5) FILTER (WHERE is_unexplained)
            AS evidence
    FROM named
    GROUP BY run_id
),

every_run AS (
    SELECT
        run_id,
        count(*) FILTER (WHERE running_count IS NOT NULL AND waiting_count IS NOT NULL) AS sample_count
    FROM binding_limit
    GROUP BY run_id
)

SELECT
    every_run.run_id,
    '' AS subject,
    CASE
        WHEN
            counted.unexplained_count >= $min_samples_count
            AND counted.unexplained_count / counted.queue_count >= $min_unexplained_ratio
            THEN 'fired'
        WHEN every_run.sample_count < $min_samples_count THEN 'not_evaluated'
        ELSE 'clear'
    END AS outcome,
    CASE WHEN counted.unexplained_count >= 5 AND counted.has_seats THEN 'medium' ELSE 'low' END AS confidence,
    coalesce(counted.unexplained_count / every_run.sample_count, 0) AS weight,
    counted.from_ts,
    counted.to_ts,
    coalesce(counted.evidence, []) AS evidence,
    coalesce(format('{:.0f} %', 100 * counted.kv_ratio), 'an unknown level') AS kv_text,
    coalesce(counted.queue_count, 0) AS measured_queue_samples_count,
    counted.unexplained_count / counted.queue_count AS measured_unexplained_ratio,
    $min_unexplained_ratio AS threshold_unexplained_ratio,
    counted.waiting_count AS measured_waiting_count,
    counted.running_count AS measured_running_count
FROM every_run
LEFT JOIN counted ON every_run.run_id = counted.run_id
