/*
title = "The KV cache is full while requests wait or are preempted"
belief = "The queue grows, so the GPU is too slow; raise the concurrency or add seats."
cause = "kv-cache-pressure"
severity = "critical"
needs = []
missing = ["engine stats lines with KV cache usage (do not run with --disable-log-stats)"]
message = "{kv_text}{queue_text}; {preemption_text}; {trend_text}."
verdict = "{lead} KV cache {full_text}{waiting_text}{preempted_text}; free KV blocks first (--gpu-memory-utilization, shorter --max-model-len or max_tokens, fp8 KV), more seats would make it worse."

[params]
min_kv_samples_ratio = 0.25
min_samples_count = 2
full_kv_ratio = 0.9

[[remedy]]
kind = "config"
text = "Give the KV cache more room: higher --gpu-memory-utilization, --kv-cache-dtype fp8, lower --max-model-len."
moves = "queue, preemptions"
next_limit = "memory of the GPU"

[[remedy]]
kind = "config"
text = "Admit less: lower --max-num-seqs, or cap max_tokens and prompt lengths, so that what runs can finish without being preempted."
moves = "preemptions, TPOT"
next_limit = "queue in front of the server"

[[remedy]]
kind = "hardware"
text = "Tensor parallelism or a GPU with more memory adds KV blocks."
moves = "queue"
next_limit = "interconnect"
---
## What people assume
A queue means too little speed or too few seats.

## What the data shows
Running requests hold KV blocks until they end. When no block is left, new ones wait and running ones are preempted, which
throws their work away: running falls while waiting grows.

## How it is detected
KV usage of `full_kv_ratio` or more, or preemptions, **together with** waiting requests, in `min_kv_samples_ratio` of the
samples in which requests wait while tokens flow (at least `min_samples_count`), or preemptions in any source beside a
cache that was that full or a queue: a request is preempted only where no block is left, whatever the gauge said a moment
before or after. Where nothing states the usage, `min_samples_count` preemptions that the log or the requests' records tell of
speak alone. A high usage alone is good use. Samples of a frozen engine are left out.

## What to do
Free blocks, or admit less. Adding seats makes more preemptions.

## Known limits
One prompt larger than what is free waits at a usage below `full_kv_ratio`. Versions differ in whether blocks of finished
requests that the prefix cache keeps count as used.
*/
WITH stated AS (
    SELECT
        source_id,
        line_no,
        sample_ts,
        engine_index,
        max(swapped_count) AS swapped_count
    FROM engine_state
    GROUP BY source_id, line_no, sample_ts, engine_index
),

sample AS (
    SELECT
        limited.*,
        coalesce(stated.swapped_count, 0) AS swapped_count,
        coalesce(limited.preemption_count, 0) + coalesce(stated.swapped_count, 0) AS evicted_count,
        limited.waiting_count > 0 AND limited.waits_for <> 'stalled' AS has_queue,
        limited.kv_cache_usage_ratio >= $full_kv_ratio AS is_full
    FROM binding_limit AS limited
    LEFT JOIN stated
        ON
            limited.source_id = stated.source_id
            AND limited.line_no = stated.line_no
            AND limited.engine_index IS NOT DISTINCT FROM stated.engine_index
            AND limited.sample_ts IS NOT DISTINCT FROM stated.sample_ts
),

marked AS (
    SELECT
        *,
        has_queue AND (is_full OR evicted_count > 0) AND coalesce(deferred_count, 0) < waiting_count AS is_kv
    FROM sample
),

counted AS (
    SELECT
        run_id,
        count(kv_cache_usage_ratio) AS known_count,
        count(preemption_count) AS told_count,
        count(*) FILTER (WHERE waits_for = 'stalled') AS stalled_count,
        count(*) FILTER (WHERE has_queue) AS queue_count,
        count(*) FILTER (WHERE is_kv) AS kv_count,
        -- Preemptions are of an interval; how many are swapped out is a gauge.
        coalesce(sum(preemption_count), 0) + max(swapped_count) AS evicted_count,
        max(kv_cache_usage_ratio) FILTER (WHERE waits_for <> 'stalled') AS kv_ratio,
        max(waiting_count) FILTER (WHERE is_kv) AS waiting_count,
        avg(waiting_count) FILTER (WHERE is_kv) AS waiting_mean,
        avg(running_count) FILTER (WHERE is_kv) AS running_mean,
        count(DISTINCT concat(source_id, ':', engine_index)) FILTER (WHERE is_kv) AS engine_count,
        arg_min(running_count, line_no) FILTER (WHERE is_kv) AS first_running_count,
        arg_max(running_count, line_no) FILTER (WHERE is_kv) AS last_running_count,
        arg_min(waiting_count, line_no) FILTER (WHERE is_kv) AS first_waiting_count,
        arg_max(waiting_count, line_no) FILTER (WHERE is_kv) AS last_waiting_count,
        min(sample_ts) FILTER (WHERE is_kv) AS from_ts,
        max(sample_ts) FILTER (WHERE is_kv) AS to_ts,
        min({'source_id': source_id, 'line_no': line_no}, 5) FILTER (WHERE is_kv) AS evidence
    FROM marked
    GROUP BY run_id
),

preempted AS (
    SELECT
        run_id,
        sum(request_count) AS request_count,
        greatest(count(said), coalesce(max(total), 0)) AS line_count,
        arg_min({'source_id': source_id, 'line_no': said}, said, 5) FILTER (WHERE said IS NOT NULL) AS evidence
    FROM (
        SELECT
            run_id,
            preemption_count AS request_count,
            NULL AS source_id,
            NULL AS said,
            NULL AS total
        FROM request
        UNION ALL
        SELECT
            run_id,
            NULL AS request_count,
            source_id,
            line_no AS said,
            -- V0 writes one line in fifty.
            try_cast(regexp_extract(message, 'total_num_cumulative_preemption=(\d+)', 1) AS BIGINT) AS total
        FROM log_event
        WHERE kind = 'preemption'
    )
    GROUP BY run_id
),

ttft AS (
    SELECT
        run_id,
        sum(least(queue_s, coalesce(client_ttft_s, ttft_s))) / sum(coalesce(client_ttft_s, ttft_s)) AS queue_ratio,
        quantile_cont(coalesce(client_ttft_s, ttft_s), 0.99) AS p99_s
    FROM request
    WHERE queue_s >= 0 AND coalesce(client_ttft_s, ttft_s) > 0
    GROUP BY run_id
    HAVING count(*) >= 5
),

judged AS (
    SELECT
        counted.* REPLACE (
            coalesce(counted.run_id, preempted.run_id) AS run_id,
            coalesce(counted.known_count, 0) AS known_count,
            coalesce(counted.evidence, preempted.evidence) AS evidence
        ),
        greatest(coalesce(counted.evicted_count, 0), coalesce(preempted.request_count, 0), coalesce(preempted.line_count, 0))
            AS preemption_count,
        preempted.request_count,
        coalesce(preempted.line_count, 0) AS line_count,
        counted.kv_count / nullif(counted.queue_count, 0) AS kv_samples_ratio,
        counted.waiting_mean / (counted.waiting_mean + counted.running_mean) AS queue_ratio,
        ttft.queue_ratio AS ttft_queue_ratio,
        ttft.p99_s
    FROM counted
    FULL JOIN preempted ON counted.run_id = preempted.run_id
    LEFT JOIN ttft ON counted.run_id = ttft.run_id
),

said AS (
    SELECT
        *,
        CASE
            WHEN
                kv_count >= $min_samples_count AND kv_samples_ratio >= $min_kv_samples_ratio
                THEN 'fired'
            WHEN preemption_count > 0 AND (kv_ratio >= $full_kv_ratio OR queue_count > 0) THEN 'fired'
            WHEN preemption_count >= $min_samples_count AND known_count = 0 THEN 'fired'
            WHEN known_count < $min_samples_count OR (queue_count = 0 AND stalled_count > 0) THEN 'not_evaluated'
            ELSE 'clear'
        END AS outcome,
        CASE WHEN preemption_count = 1 THEN 'a preemption' ELSE format('{} preemptions', preemption_count::BIGINT) END AS counted_text
    FROM judged
)

SELECT
    run_id,
    '' AS subject,
    outcome,
    CASE
        WHEN kv_count >= 5 OR (preemption_count > 0 AND kv_count >= 3) THEN 'high'
        WHEN kv_count >= 3 OR preemption_count > 0 THEN 'medium'
        ELSE 'low'
    END AS confidence,
    -- How much of the time they took is not known then.
    CASE WHEN known_count = 0 THEN 'warning' END AS severity,
    coalesce(kv_samples_ratio * coalesce(ttft_queue_ratio, queue_ratio), 0.1) AS weight,
    from_ts,
    to_ts,
    coalesce(evidence, []) AS evidence,
    CASE
        WHEN
            outcome = 'not_evaluated' AND stalled_count > 0
            THEN ['a run in which tokens flow: the engine stood still while requests waited']
        WHEN outcome = 'not_evaluated' THEN ['engine stats lines with KV cache usage (do not run with --disable-log-stats)']
    END AS missing,
    CASE
        WHEN engine_count = 1 AND last_running_count < first_running_count AND last_waiting_count > first_waiting_count
            THEN format(
                    'running fell from {} to {} while waiting grew from {} to {}',
                    first_running_count, last_running_count, first_waiting_count, last_waiting_count
                )
        WHEN waiting_count > 0 THEN format('up to {} requests waited', waiting_count)
        WHEN known_count = 0 THEN 'no stats line says how many waited'
        ELSE 'no stats line shows a request waiting'
    END AS trend_text,
    coalesce(format('The KV cache was up to {:.0f} % full', 100 * kv_ratio), 'The KV cache ran out of blocks') AS kv_text,
    coalesce(format('is {:.0f} % full', 100 * kv_ratio), 'ran out of blocks') AS full_text,
    CASE
        WHEN queue_count > 0
            THEN format(' in {:.0f} % of the {} samples in which requests waited', 100 * kv_samples_ratio, queue_count)
        ELSE ''
    END AS queue_text,
    CASE WHEN waiting_count > 0 THEN format(' while up to {} requests wait', waiting_count) ELSE '' END AS waiting_text,
    CASE
        WHEN ttft_queue_ratio >= 0.3 THEN format('p99 TTFT is {:.1f} s and {:.0f} % of TTFT is queue: the', p99_s, 100 * ttft_queue_ratio)
        ELSE 'The'
    END AS lead,
    CASE
        WHEN
            preemption_count > 0 AND preemption_count = evicted_count
            THEN format('the engine counted {}', counted_text)
        WHEN preemption_count > 0 AND preemption_count = line_count THEN format('the log tells of {}', counted_text)
        WHEN preemption_count > 0 THEN format('the requests'' own records count {}', counted_text)
        WHEN told_count > 0 OR request_count IS NOT NULL THEN 'none was preempted'
        ELSE 'nothing here counts preemptions (vllm:num_preemptions_total of /metrics does)'
    END AS preemption_text,
    CASE WHEN preemption_count > 0 THEN format(' and {} threw work away', counted_text) ELSE '' END
        AS preempted_text,
    kv_ratio AS measured_kv_ratio,
    $full_kv_ratio AS threshold_kv_ratio,
    kv_samples_ratio AS measured_kv_samples_ratio,
    $min_kv_samples_ratio AS threshold_kv_samples_ratio,
    queue_count AS measured_queue_samples_count,
    coalesce(waiting_count, 0) AS measured_waiting_count,
    CASE WHEN preemption_count > 0 OR told_count > 0 OR request_count IS NOT NULL THEN preemption_count END AS measured_preemption_count
FROM said
