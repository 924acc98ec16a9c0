/*
title = "Requests wait although seats, KV cache and prefill are free"
belief = "A queue means that the server is full."
cause = "waiting-unexplained"
severity = "info"
needs = ["engine_sample"]
missing = ["engine stats lines with running and waiting counts (do not run with --disable-log-stats)"]
message = "In {measured_unexplained_ratio} of the {measured_queue_samples_count} samples in which requests waited, at most {measured_running_count} ran, the KV cache was at most {kv_text} full and {prompt_text}: these files do not say what {measured_waiting_count} request(s) waited for.{transfer_text}"
verdict = "Requests wait although seats, KV cache and prefill are free: {first_step}."

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
neither full seats, nor a full cache, nor prompt tokens in the line itself or in the lines beside it
(prompts are counted in lumps when they are done), or that the scheduler itself holds them back (Deferred).

## What to do
Collect what names it: request lines, adapter names, newer versions' deferred counts.

## Known limits
A prompt that is prefilled for longer than two stats intervals looks the same until it is done.  Where half of what prompts asked
for or more came from a cache outside, prompt tokens do not count: they are the rest of prompts that another engine prefilled.
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
        generation_tps IS NOT NULL AND running_count > 0
        AND (waits_for = 'deferred' OR (waits_for = 'unknown' AND (near_prompt_tps = 0 OR has_remote_kv))) AS is_unexplained
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
        bool_or(has_remote_kv AND is_unexplained) AS has_remote_kv,
        bool_or(waits_for = 'deferred' AND is_unexplained) AS is_deferred,
        min(sample_ts) FILTER (WHERE is_unexplained) AS from_ts,
        max(sample_ts) FILTER (WHERE is_unexplained) AS to_ts,
        arg_min({'source_id': source_id, 'line_no': line_no}, _ranked(line_no, source_id, line_no), 5) FILTER (WHERE is_unexplained)
            AS evidence
    FROM named
    GROUP BY run_id
),

transfer AS (
    SELECT
        run_id,
        avg(measured) FILTER (WHERE name = 'KV Transfer metrics: Avg xfer time (ms)') / 1000 AS transfer_s,
        avg(measured) FILTER (WHERE name = 'KV Transfer metrics: Throughput (MB/s)') * 1e6 AS transfer_bps
    FROM metric_sample
    WHERE name LIKE 'KV Transfer metrics: %'
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
    counted.running_count AS measured_running_count,
    CASE
        WHEN counted.is_deferred THEN 'the scheduler held them back (Deferred)'
        WHEN counted.has_remote_kv THEN 'prompts came computed from another engine'
        ELSE 'no prompt was being computed'
    END AS prompt_text,
    CASE
        WHEN transfer.transfer_s > 0
            THEN format(
                    ' KV transfers took {:.2f} s each{}.',
                    transfer.transfer_s,
                    coalesce(format(' ({:.1f} GB/s)', transfer.transfer_bps / 1e9), '')
                )
        ELSE ''
    END AS transfer_text,
    CASE
        WHEN counted.is_deferred
            THEN 'the scheduler holds them back; look at LoRA slots (--max-loras), grammars that are compiled, and KV transfer'
        WHEN counted.has_remote_kv
            THEN 'they most likely wait for KV blocks of the engine that prefills; '
                || 'look at KV transfer (its transport, RDMA or NVLink) and at that engine''s own queue'
        ELSE 'look at what else holds a request back (LoRA slots with --max-loras, grammars, remote KV), '
            || 'and log requests with --enable-log-requests'
    END AS first_step
FROM every_run
LEFT JOIN counted ON every_run.run_id = counted.run_id
LEFT JOIN transfer ON every_run.run_id = transfer.run_id
