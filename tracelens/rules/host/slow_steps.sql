/*
title = "Every token takes long although hardly anything runs"
belief = "Tokens come slowly, so the server is overloaded; add seats, cache or cards."
cause = "host-overhead-bound"
severity = "warning"
needs = []
missing = ["scrapes with vllm:inter_token_latency_seconds, num_requests_running and kv_cache_usage_perc under load, or at least 3 stats lines of a few requests that only decode", "the GPU beside it: nvidia-smi dmon -s pucvmet -o DT"]
message = "A token takes {gap_text} while {measured_running_count} requests run (median), nothing waits and the KV cache is at most {measured_kv_ratio} full: the time per step does not come from the load."
verdict = "Each step takes {gap_text} with only {measured_running_count} requests running and the KV cache {measured_kv_ratio} full: look at the host's work per step (CUDA graphs, asynchronous scheduling, CPU) before seats, cache or cards."

[params]
min_gap_s = 0.05
min_stats_gap_s = 0.5
max_running_count = 8
max_kv_ratio = 0.1
max_waiting_ratio = 0.1
min_samples_count = 3
min_gap_count = 100

[[remedy]]
kind = "config"
text = "Leave CUDA graphs on (no --enforce-eager), use asynchronous scheduling, keep sampling options that run on the CPU out of the requests, and give the server's processes CPU cores of their own."
moves = "time per output token"
next_limit = "memory bandwidth"

[[remedy]]
kind = "config"
text = "Record the GPU for a minute (nvidia-smi dmon -s pucvmet -o DT): a low sm column proves the host; a high one at low clocks or low power is a slow GPU."
moves = "what is known"
---
## What people assume
Slow tokens mean a full server.

## What the data shows
A step costs what its batch and its context cost, and beyond that a fixed part: launching kernels, scheduling, sampling, sending. With a handful of requests and an almost empty cache the first part is small, so what is left is fixed.

## How it is detected
Requests run, at most `max_running_count` of them (median of the busy samples), requests wait in at most `max_waiting_ratio` of the samples, KV usage never exceeds `max_kv_ratio`, and the gap between a request's tokens is at least `min_gap_s`: the lower edge of the bucket in which the median lies, so that the bucket's width and single long prefills cannot make it. Where only stats lines are there, the gap is Running over generated tokens per second in the lines that count no prompt (median of at least `min_samples_count`), and only `min_stats_gap_s` or more is told, for information: no model on a GPU takes that long for a step of a few requests. Reading the weights of a model that fills a GPU takes 20 to 45 ms.

## What to do
Make steps cheaper for the host; look at the GPU to be sure.

## Known limits
A GPU in a hidden slow state, weights offloaded to host memory and inference on a CPU look alike in scrapes: confidence is low, and where the GPU was recorded host.overhead and the GPU rules decide. Speculative decoding gives several tokens per gap.
*/
WITH state AS (
    SELECT
        run_id,
        count(*) AS sample_count,
        count(*) FILTER (WHERE running_count > 0) AS busy_count,
        median(running_count) FILTER (WHERE running_count > 0) AS running_count,
        count(*) FILTER (WHERE waiting_count > 0) / nullif(count(waiting_count), 0) AS waiting_ratio,
        max(kv_cache_usage_ratio) AS kv_ratio,
        min(sample_ts) AS from_ts,
        max(sample_ts) AS to_ts,
        list({'source_id': source_id, 'line_no': line_no} ORDER BY source_id, line_no) FILTER (WHERE running_count > 0)[:3] AS evidence
    FROM engine_state
    WHERE running_count IS NOT NULL
    GROUP BY run_id
),

gap AS (
    SELECT
        run_id,
        min(p50_low_s) AS low_s,
        max(p50_high_s) AS high_s,
        sum(observed_count) AS gap_count
    FROM metric_latency
    WHERE metric = 'itl_s' AND p50_low_s IS NOT NULL
    GROUP BY run_id
),

-- What the stats lines of a few decoding requests come to.
decoding AS (
    SELECT
        run_id,
        median(running_count / generation_tps) AS low_s,
        count(*) AS sample_count
    FROM engine_state
    WHERE running_count BETWEEN 1 AND $max_running_count AND generation_tps > 0 AND prompt_tps = 0
    GROUP BY run_id
),

elsewhere AS (
    SELECT run_id FROM gpu_sample
    UNION
    SELECT run_id FROM run_setting WHERE key = 'platform' AND lower(value) = 'cpu'
),

judged AS (
    SELECT
        runs.run_id,
        state.* EXCLUDE (run_id),
        coalesce(gap.low_s, decoding.low_s) AS low_s,
        gap.high_s,
        gap.gap_count,
        gap.run_id IS NULL AND coalesce(decoding.sample_count, 0) >= $min_samples_count AS is_from_stats,
        elsewhere.run_id IS NOT NULL AS is_elsewhere
    FROM (SELECT DISTINCT run_id FROM source) AS runs
    LEFT JOIN state ON runs.run_id = state.run_id
    LEFT JOIN gap ON runs.run_id = gap.run_id
    LEFT JOIN decoding ON runs.run_id = decoding.run_id
    LEFT JOIN elsewhere ON runs.run_id = elsewhere.run_id
)

SELECT
    run_id,
    '' AS subject,
    CASE
        WHEN low_s < $min_gap_s AND (gap_count >= $min_gap_count OR is_from_stats) THEN 'clear'
        WHEN running_count > $max_running_count OR waiting_ratio > $max_waiting_ratio OR kv_ratio > $max_kv_ratio THEN 'clear'
        WHEN is_elsewhere THEN 'not_evaluated'
        WHEN low_s IS NULL OR low_s < CASE WHEN is_from_stats THEN $min_stats_gap_s ELSE $min_gap_s END THEN 'not_evaluated'
        WHEN NOT is_from_stats AND coalesce(gap_count, 0) < $min_gap_count THEN 'not_evaluated'
        WHEN coalesce(busy_count, 0) < $min_samples_count OR kv_ratio IS NULL OR waiting_ratio IS NULL THEN 'not_evaluated'
        ELSE 'fired'
    END AS outcome,
    'low' AS confidence,
    CASE WHEN is_from_stats THEN 'info' END AS severity,
    CASE WHEN low_s >= $min_gap_s THEN 0.5 ELSE 0.0 END AS weight,
    from_ts,
    to_ts,
    coalesce(evidence, []) AS evidence,
    CASE WHEN is_elsewhere THEN ['nothing: a GPU log, or a CPU for a device, says more than scrapes'] END AS missing,
    CASE
        WHEN is_from_stats THEN format('about {:.1f} s', low_s)
        WHEN high_s IS NULL THEN format('{:.0f} ms or more', 1000 * low_s)
        ELSE format('{:.0f} to {:.0f} ms', 1000 * low_s, 1000 * high_s)
    END AS gap_text,
    low_s AS measured_gap_s,
    CASE WHEN is_from_stats THEN $min_stats_gap_s ELSE $min_gap_s END AS threshold_gap_s,
    round(running_count)::BIGINT AS measured_running_count,
    $max_running_count AS threshold_running_count,
    kv_ratio AS measured_kv_ratio,
    $max_kv_ratio AS threshold_kv_ratio
FROM judged
