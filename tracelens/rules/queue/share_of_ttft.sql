/*
title = "Most of the time to first token is waiting in the queue"
belief = "TTFT is GPU time: it is high, so the GPU is too slow and more cards will lower it."
cause = "queue-dominated-ttft"
severity = "critical"
needs = ["request"]
missing = ["queue time per request: spans (--otlp-traces-endpoint) or --enable-per-request-metrics"]
message = "{measured_queue_s} of {measured_ttft_s} was waiting for {waits_for_what} at p50; among the slowest tenth {measured_tail_queue_s} of {measured_tail_ttft_s} ({measured_tail_ratio}), over {measured_request_count} requests."
verdict = "{measured_tail_queue_s} of the {measured_tail_ttft_s} {span_text} of the slowest tenth was waiting for {waits_for_what}, not computing; {first_change}, more GPUs come last."

[params]
min_share_ratio = 0.3
min_tail_ratio = 0.5
min_prefills_count = 3.0
min_wait_s = 0.1

[[remedy]]
kind = "config"
text = "Lift what the queue waits for: --max-num-seqs where all seats are taken, --max-num-batched-tokens where the step budget is full, more KV blocks where the cache is full."
moves = "queue"
next_limit = "batch prefill and TPOT: a fuller batch makes every step longer"

[[remedy]]
kind = "architecture"
text = "Admit less at once: limit the concurrency at the gateway, or spread bursts, so that requests wait where they can be sent elsewhere."
moves = "queue, tail of TTFT"
next_limit = "arrival rate against prefill rate"

[[remedy]]
kind = "hardware"
text = "Add a replica only when power or DRAM activity show that the GPU is saturated after the two above."
moves = "queue"
next_limit = "cost"
---
## What people assume
TTFT is the time the GPU needs for the prompt, so a slow first token means a slow GPU.

## What the data shows
TTFT = way in + tokenization + queue + prefill + way out. The server's own queue time beside the TTFT says how much of it
nobody computed. The queue is a symptom; the stats lines of the same run say what it waits for.

## How it is detected
Fires where the median request spends `min_share_ratio` of its TTFT in the queue, or the slowest tenth `min_tail_ratio` of
theirs (a mean hides the tail), and the slowest tenth waits longer than `min_prefills_count` median prefills and
`min_wait_s`: a wait of one or two steps is the rhythm of the engine, no queue. Where no source has a TTFT, the
end-to-end time stands for it, which makes the share smaller.

## What to do
Change the limit that the rule on seats, KV cache or step budget names; it moves the queue, not the prefill.

## Known limits
Aborted requests leave no span, so the longest waits can be missing. V1's queue time does not hold the wait for a running
engine step: a long prefill can starve requests at queue 0.
*/
WITH timed AS (
    SELECT
        run_id,
        coalesce(client_ttft_s, ttft_s, e2e_s) AS ttft_s,
        least(queue_s, coalesce(client_ttft_s, ttft_s, e2e_s)) AS queue_s,
        prefill_s,
        coalesce(client_ttft_s, ttft_s) IS NULL AS is_whole,
        arrival_ts,
        server_source_id AS source_id,
        server_line_no AS line_no
    FROM request
    WHERE queue_s >= 0 AND coalesce(client_ttft_s, ttft_s, e2e_s) > 0
),

middle AS (
    SELECT
        run_id,
        count(*) AS request_count,
        quantile_cont(ttft_s, [0.5, 0.9]) AS ttft_quantiles_s,
        ttft_quantiles_s[1] AS ttft_s,
        median(queue_s) AS queue_s,
        median(queue_s / ttft_s) AS share_ratio,
        median(prefill_s) AS prefill_s,
        ttft_quantiles_s[2] AS slow_s,
        bool_or(is_whole) AS is_whole,
        min(arrival_ts) AS from_ts,
        max(arrival_ts) AS to_ts
    FROM timed
    GROUP BY run_id
),

tail AS (
    SELECT
        timed.run_id,
        avg(timed.ttft_s) AS ttft_s,
        avg(timed.queue_s) AS queue_s,
        sum(timed.queue_s) / sum(timed.ttft_s) AS share_ratio,
        arg_max({'source_id': timed.source_id, 'line_no': timed.line_no}, _ranked(timed.queue_s, timed.source_id, timed.line_no), 5)
        FILTER (WHERE timed.source_id IS NOT NULL) AS evidence
    FROM timed
    INNER JOIN middle ON timed.run_id = middle.run_id AND timed.ttft_s >= middle.slow_s
    GROUP BY timed.run_id
),

named AS (
    SELECT
        run_id,
        mode(waits_for) AS waits_for
    FROM binding_limit
    WHERE waits_for IN ('seats', 'kv', 'prefill', 'deferred')
    GROUP BY run_id
),

judged AS (
    SELECT
        middle.run_id,
        middle.request_count,
        middle.is_whole,
        middle.from_ts,
        middle.to_ts,
        tail.evidence,
        middle.queue_s AS measured_queue_s,
        middle.ttft_s AS measured_ttft_s,
        middle.share_ratio AS measured_share_ratio,
        tail.queue_s AS measured_tail_queue_s,
        tail.ttft_s AS measured_tail_ttft_s,
        tail.share_ratio AS measured_tail_ratio,
        named.waits_for,
        (middle.share_ratio >= $min_share_ratio OR tail.share_ratio >= $min_tail_ratio)
        AND tail.queue_s >= greatest($min_wait_s, $min_prefills_count * coalesce(middle.prefill_s, 0)) AS is_fired
    FROM middle
    INNER JOIN tail ON middle.run_id = tail.run_id
    LEFT JOIN named ON middle.run_id = named.run_id
)

SELECT
    run_id,
    '' AS subject,
    CASE WHEN is_fired THEN 'fired' WHEN request_count < 3 THEN 'not_evaluated' ELSE 'clear' END AS outcome,
    CASE WHEN request_count >= 30 AND NOT is_whole THEN 'high' WHEN request_count >= 10 THEN 'medium' ELSE 'low' END AS confidence,
    CASE WHEN request_count >= 10 THEN 'critical' ELSE 'warning' END AS severity,
    -- A symptom stands below the limit that it waits for.
    0.9 * greatest(measured_share_ratio, measured_tail_ratio) AS weight,
    from_ts,
    to_ts,
    evidence,
    CASE waits_for
        WHEN 'seats' THEN 'a seat'
        WHEN 'kv' THEN 'KV-cache blocks'
        WHEN 'prefill' THEN 'earlier prompts to be prefilled'
        WHEN 'deferred' THEN 'something else than capacity (grammar, LoRA slots, remote KV)'
        ELSE 'something that these files do not name'
    END AS waits_for_what,
    CASE waits_for
        WHEN 'seats' THEN 'raise --max-num-seqs first'
        WHEN 'kv' THEN 'give the KV cache room first'
        WHEN 'prefill' THEN 'look at prompt lengths and --max-num-batched-tokens first'
        WHEN 'deferred' THEN 'find what holds requests back first'
        ELSE 'collect the engine''s stats lines to see which limit binds'
    END AS first_change,
    CASE WHEN is_whole THEN 'end to end (no first token is known)' ELSE 'to first token' END AS span_text,
    request_count AS measured_request_count,
    measured_queue_s,
    measured_ttft_s,
    measured_share_ratio,
    $min_share_ratio AS threshold_share_ratio,
    measured_tail_queue_s,
    measured_tail_ttft_s,
    measured_tail_ratio,
    $min_tail_ratio AS threshold_tail_ratio
FROM judged
