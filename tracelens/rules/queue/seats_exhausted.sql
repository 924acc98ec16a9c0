/*
title = "All seats are taken while the KV cache has room"
belief = "TTFT is high, so the GPU is too slow; add cards."
cause = "max-num-seqs-too-small"
severity = "critical"
needs = ["engine_sample"]
missing = ["engine stats lines with running and waiting counts (do not run with --disable-log-stats)"]
message = "All {measured_seat_count} seats were taken in {measured_seats_ratio} of the {measured_queue_samples_count} samples in which requests waited (up to {measured_waiting_count} of them); the KV cache was at most {kv_text} full. {seat_text}"
verdict = "{lead}: all {measured_seat_count} seats were taken while KV was at {kv_text}; raise --max-num-seqs, more GPUs would not help."

[params]
min_ratio = 0.5
min_samples_count = 2
min_pinned_count = 4
full_kv_ratio = 0.9

[[remedy]]
kind = "config"
text = "Raise --max-num-seqs in steps (double it), watching KV-cache usage, preemptions and TPOT."
moves = "queue"
next_limit = "batch prefill, TPOT, then the KV cache"

[[remedy]]
kind = "config"
text = "If TPOT must not rise, keep the seats and limit the concurrency at the gateway, so that requests wait where they can be sent elsewhere."
moves = "tail of TTFT"
next_limit = "arrival rate"
---
## What people assume
A long queue means that the GPU cannot keep up.

## What the data shows
The scheduler runs at most --max-num-seqs requests at once. When they are taken and KV blocks are free, the next request
waits although there is room for it.

## How it is detected
In `min_ratio` of the samples in which requests wait while tokens flow (at least `min_samples_count`), running is
within 2 % of the seats and the KV cache below `full_kv_ratio` (above it, the cache decides). The seats are stated in the
log, or the version's default (lower confidence). Where neither is known, the same running count in `min_pinned_count`
samples or more, with requests waiting and KV free, is taken for the seats, at low confidence.

## What to do
Raise the limit. It moves work, not only waiting: each step gets longer, so TPOT and the prefill of a batch grow.

## Known limits
With n > 1 a request takes several seats in some versions. A small value may have been set on purpose, to protect TPOT.
Running pinned with nothing waiting is a client's limit, see client.concurrency_cap.
*/
WITH live AS (
    SELECT *
    FROM binding_limit
    WHERE waiting_count > 0 AND waits_for <> 'stalled'
),

pinned AS (
    -- Seats that no source names: the count at which running stands still while others wait and KV is free.
    SELECT
        run_id,
        max(running_count) AS seat_count
    FROM live
    WHERE seat_count IS NULL
    GROUP BY run_id
    HAVING
        count(*) >= $min_pinned_count
        AND max(running_count) >= 4
        AND min(running_count) >= _full_seats_ratio() * max(running_count)
),

sample AS (
    SELECT
        live.*,
        coalesce(live.seat_count, pinned.seat_count) AS seats,
        coalesce(live.seat_is_stated, FALSE) AS is_stated,
        live.seat_count IS NULL AS is_inferred,
        coalesce(live.deferred_count, 0) < live.waiting_count
        AND coalesce(live.kv_cache_usage_ratio, 0) < $full_kv_ratio
        AND coalesce(live.preemption_count, 0) = 0
        AND live.running_count >= _full_seats_ratio() * coalesce(live.seat_count, pinned.seat_count) AS is_full
    FROM live
    LEFT JOIN pinned ON live.run_id = pinned.run_id
),

counted AS (
    SELECT
        run_id,
        count(*) AS queue_count,
        count(*) FILTER (WHERE is_full) AS full_count,
        max(seats) AS seat_count,
        bool_or(is_stated) AS is_stated,
        bool_or(is_inferred) AS is_inferred,
        max(waiting_count) FILTER (WHERE is_full) AS waiting_count,
        max(kv_cache_usage_ratio) FILTER (WHERE is_full) AS kv_ratio,
        avg(waiting_count) FILTER (WHERE is_full) AS waiting_mean,
        avg(running_count) FILTER (WHERE is_full) AS running_mean,
        min(sample_ts) FILTER (WHERE is_full) AS from_ts,
        max(sample_ts) FILTER (WHERE is_full) AS to_ts,
        list({'source_id': source_id, 'line_no': line_no} ORDER BY waiting_count DESC, line_no ASC) FILTER (WHERE is_full)[:5] AS evidence
    FROM sample
    GROUP BY run_id
),

every_run AS (
    SELECT
        run_id,
        count(*) AS sample_count,
        count(*) FILTER (WHERE running_count > 0 OR waiting_count > 0) AS busy_count,
        count(*) FILTER (WHERE waits_for = 'stalled') AS stalled_count,
        max(seat_count) AS known_seat_count
    FROM binding_limit
    WHERE waits_for <> 'unknown' OR waiting_count > 0
    GROUP BY run_id
),

timed AS (
    SELECT
        run_id,
        coalesce(client_ttft_s, ttft_s) AS ttft_s,
        CASE WHEN queue_s >= 0 THEN least(queue_s, coalesce(client_ttft_s, ttft_s)) END AS queue_s,
        quantile_cont(coalesce(client_ttft_s, ttft_s), 0.99) OVER (PARTITION BY run_id) AS p99_s
    FROM request
    WHERE coalesce(client_ttft_s, ttft_s) > 0
),

ttft AS (
    SELECT
        run_id,
        any_value(p99_s) AS p99_s,
        count(queue_s) AS queue_known_count,
        sum(queue_s) FILTER (WHERE ttft_s >= p99_s) / sum(ttft_s) FILTER (WHERE ttft_s >= p99_s) AS tail_ratio
    FROM timed
    GROUP BY run_id
    HAVING count(*) >= 5
),

judged AS (
    SELECT
        every_run.run_id,
        every_run.busy_count,
        every_run.stalled_count,
        every_run.known_seat_count,
        counted.* EXCLUDE (run_id),
        counted.full_count / counted.queue_count AS seats_ratio,
        counted.waiting_mean / (counted.waiting_mean + counted.running_mean) AS queue_ratio,
        ttft.p99_s,
        CASE WHEN ttft.queue_known_count >= 5 THEN ttft.tail_ratio END AS tail_ratio
    FROM every_run
    LEFT JOIN counted ON every_run.run_id = counted.run_id
    LEFT JOIN ttft ON every_run.run_id = ttft.run_id
),

said AS (
    SELECT
        *,
        CASE
            WHEN full_count >= $min_samples_count AND seats_ratio >= $min_ratio THEN 'fired'
            WHEN busy_count < $min_samples_count OR (coalesce(queue_count, 0) = 0 AND stalled_count > 0) THEN 'not_evaluated'
            WHEN queue_count > 0 AND known_seat_count IS NULL AND seat_count IS NULL THEN 'not_evaluated'
            -- Full whenever something waited, but seen too seldom to say either.
            WHEN full_count > 0 AND seats_ratio >= $min_ratio AND busy_count < 2 * $min_samples_count THEN 'not_evaluated'
            ELSE 'clear'
        END AS outcome
    FROM judged
)

SELECT
    run_id,
    '' AS subject,
    outcome,
    CASE
        WHEN is_inferred OR full_count < 3 THEN 'low'
        WHEN is_stated AND full_count >= 5 THEN 'high'
        ELSE 'medium'
    END AS confidence,
    coalesce(seats_ratio * coalesce(tail_ratio, queue_ratio), 0) AS weight,
    from_ts,
    to_ts,
    coalesce(evidence, []) AS evidence,
    CASE
        WHEN outcome = 'not_evaluated' AND full_count > 0
            THEN ['more stats lines under load: a longer piece of the log, or a scrape of /metrics']
        WHEN outcome = 'not_evaluated' AND queue_count > 0 THEN ['max_num_seqs: the start of the server log, or its command line']
        WHEN
            outcome = 'not_evaluated' AND stalled_count > 0
            THEN ['a run in which tokens flow: the engine stood still while requests waited']
        WHEN outcome = 'not_evaluated' THEN ['engine stats lines under load (do not run with --disable-log-stats)']
    END AS missing,
    CASE
        WHEN is_inferred THEN 'No source names max_num_seqs; running stands at this count.'
        WHEN NOT is_stated THEN 'max_num_seqs is the default of this version: nobody set it.'
        ELSE 'max_num_seqs is stated, not a default.'
    END AS seat_text,
    CASE
        WHEN tail_ratio >= 0.3 THEN format('p99 TTFT of {:.1f} s is {:.0f} % queue', p99_s, 100 * tail_ratio)
        WHEN p99_s IS NOT NULL THEN format('p99 TTFT is {:.1f} s and up to {} requests wait', p99_s, waiting_count)
        ELSE format('At least {:.0f} % of the time to first token is queue', 100 * queue_ratio)
    END AS lead,
    coalesce(format('{:.0f} %', 100 * kv_ratio), 'an unknown level') AS kv_text,
    seat_count AS measured_seat_count,
    seats_ratio AS measured_seats_ratio,
    $min_ratio AS threshold_seats_ratio,
    queue_count AS measured_queue_samples_count,
    waiting_count AS measured_waiting_count,
    kv_ratio AS measured_kv_ratio,
    $full_kv_ratio AS threshold_kv_ratio
FROM said
