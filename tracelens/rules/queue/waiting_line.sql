/*
title = "Requests wait in the engine's queue through most of the run"
belief = "TTFT is GPU time: it is high, so the GPU is too slow and more cards will lower it."
cause = "queue-dominated-ttft"
severity = "warning"
needs = ["engine_sample"]
missing = ["engine stats lines with running and waiting counts (do not run with --disable-log-stats)"]
message = "{measured_waiting_count} requests wait on average while {measured_running_count} run, in {measured_waiting_ratio} of the busy samples, for {waits_for_what}: by Little's law at least {measured_queue_ratio} of the time to first token is queue. {wait_text}"
verdict = "At least {measured_queue_ratio} of the time to first token is waiting in the queue for {waits_for_what}; {first_change}, more GPUs come last."

[params]
min_waiting_ratio = 0.5
min_queue_ratio = 0.3
min_samples_count = 3
min_pinned_count = 4

[[remedy]]
kind = "config"
text = "Lift what the queue waits for: --max-num-seqs where all seats are taken, --max-num-batched-tokens where the step budget is full, more KV blocks where the cache is full."
moves = "queue"
next_limit = "batch prefill and TPOT: a fuller batch makes every step longer"

[[remedy]]
kind = "architecture"
text = "Admit less at once: limit the concurrency at the gateway, or spread bursts."
moves = "queue, tail of TTFT"
next_limit = "arrival rate against prefill rate"
---
## What people assume
TTFT is the time the GPU needs for the prompt, so a slow first token means a slow GPU.

## What the data shows
Two gauges suffice: by Little's law, waiting / (waiting + running) is the share of a request's time in the engine that it
spends in the queue, whatever the rate. TTFT is shorter than that time, so its share of queue is at least as large.

## How it is detected
Samples in which requests waited while tokens flowed (a frozen engine's last gauges say nothing) make up
`min_waiting_ratio` of the busy ones, at least `min_samples_count`: one line at the start of a burst is no queue. Over
them, waiting / (waiting + running) reaches `min_queue_ratio`. What they wait for is the commonest limit of
`binding_limit`; a sample without prompt tokens beside one with them counts as prefill, since prompts are counted in
lumps, and a running count that stands still over `min_pinned_count` samples while KV is free counts as seats where no
source names them. Where nothing names the limit, waiting_unexplained speaks instead. Where a client in the same case measured TTFT,
the part of its median above its minimum is reported as measured, and the finding is critical.

## What to do
Change the limit that the rule on seats, KV cache or step budget names.

## Known limits
A mean over a window: no request's own wait. While the load changes, Little's law holds only roughly. Info only where the
engine dies, falls silent under load, or errors follow, or where some data-parallel ranks hold the queue: the other finding explains it.
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

pinned AS (
    -- Seats that no source names: running stands still while others wait, as in seats_exhausted.
    SELECT run_id
    FROM binding_limit
    WHERE waiting_count > 0 AND waits_for NOT IN ('stalled', 'kv') AND seat_count IS NULL
    GROUP BY run_id
    HAVING
        count(*) >= $min_pinned_count
        AND max(running_count) >= 4
        AND min(running_count) >= 0.98 * max(running_count)
),

named AS (
    SELECT
        *,
        CASE
            WHEN waits_for IN ('unknown', 'prefill') AND waiting_count > 0 AND run_id IN (SELECT pinned.run_id FROM pinned) THEN 'seats'
            WHEN waits_for = 'unknown' AND near_prompt_tps > 0 AND waiting_count > 0 AND NOT has_remote_kv THEN 'prefill'
            ELSE waits_for
        END AS waits_for_limit,
        waiting_count > 0 AND waits_for NOT IN ('stalled', 'deferred') AS has_queue,
        running_count + waiting_count > 0 AS is_busy
    FROM sample
    WHERE running_count IS NOT NULL AND waiting_count IS NOT NULL
),

counted AS (
    SELECT
        run_id,
        count(*) FILTER (WHERE is_busy) AS busy_count,
        count(*) FILTER (WHERE has_queue) AS queue_count,
        count(*) FILTER (WHERE waits_for = 'stalled') AS stalled_count,
        avg(waiting_count) FILTER (WHERE has_queue) AS waiting_mean,
        avg(running_count) FILTER (WHERE has_queue) AS running_mean,
        mode(waits_for_limit) FILTER (WHERE has_queue) AS waits_for_limit,
        count(*) FILTER (WHERE waits_for_limit = 'seats') AS seats_count,
        count(*) FILTER (WHERE waits_for_limit = 'kv') AS kv_count,
        count(*) FILTER (WHERE waits_for_limit = 'prefill') AS prefill_count,
        count(DISTINCT concat(source_id, ':', engine_index)) AS engine_count,
        count(DISTINCT concat(source_id, ':', engine_index)) FILTER (WHERE has_queue AND waits_for IN ('kv', 'seats')) AS full_engine_count,
        min(sample_ts) FILTER (WHERE has_queue) AS from_ts,
        max(sample_ts) FILTER (WHERE has_queue) AS to_ts,
        min({'source_id': source_id, 'line_no': line_no}, 5) FILTER (WHERE has_queue) AS evidence
    FROM named
    GROUP BY run_id
),

silent AS (
    -- How long after a line with running requests the next one came, or the log went on.
    SELECT
        sample.run_id,
        epoch(coalesce(lead(sample.sample_ts) OVER line, source.last_ts) - sample.sample_ts) AS gap_s,
        median(epoch(sample.sample_ts - sample.earlier_ts)) OVER (PARTITION BY sample.run_id) AS interval_s,
        sample.running_count
    FROM (
        SELECT
            *,
            lag(sample_ts) OVER (PARTITION BY source_id, engine_index ORDER BY line_no) AS earlier_ts
        FROM binding_limit
        WHERE sample_ts IS NOT NULL
    ) AS sample
    INNER JOIN source ON sample.source_id = source.source_id
    WINDOW line AS (PARTITION BY sample.source_id, sample.engine_index ORDER BY sample.line_no)
),

stats AS (
    SELECT
        source_id,
        max(line_no) AS last_line
    FROM engine_state
    GROUP BY source_id
),

broken AS (
    -- The engine stopped serving in this run: silence under load, errors after the last stats line, or a line that it died.
    SELECT run_id
    FROM silent
    WHERE running_count > 0 AND gap_s > greatest(30, 3.5 * interval_s)
    UNION
    SELECT run_id
    FROM log_event
    WHERE kind IN ('dead', 'oom', 'stall')
    UNION
    SELECT access_line.run_id
    FROM access_line
    INNER JOIN stats ON access_line.source_id = stats.source_id
    WHERE access_line.status >= 500 AND access_line.line_no > stats.last_line
),

estimated AS (
    SELECT
        run_id,
        median(queue_wait_s) AS wait_s
    FROM queue_wait_estimate
    WHERE mean_waiting_count > 0
    GROUP BY run_id
),

scraped AS (
    SELECT
        run_id,
        max(mean_s) FILTER (WHERE metric = 'ttft_s') AS ttft_s,
        max(mean_s) FILTER (WHERE metric = 'queue_s') AS queue_s
    FROM metric_latency
    GROUP BY run_id
),

client AS (
    SELECT
        run_id,
        median(client_ttft_s) AS ttft_s,
        1 - min(client_ttft_s) / median(client_ttft_s) AS above_best_ratio
    FROM request
    WHERE client_ttft_s > 0
    GROUP BY run_id
    -- Where the server measured the queue itself, queue.share_of_ttft speaks.
    HAVING count(*) >= 5 AND count(queue_s) = 0
),

judged AS (
    SELECT
        counted.*,
        counted.waiting_mean / (counted.waiting_mean + counted.running_mean) AS queue_ratio,
        counted.queue_count / nullif(counted.busy_count, 0) AS waiting_ratio,
        broken.run_id IS NOT NULL AS is_broken,
        counted.full_engine_count > 0 AND counted.full_engine_count <= counted.engine_count / 2 AS is_lopsided,
        estimated.wait_s,
        scraped.ttft_s AS scraped_ttft_s,
        scraped.queue_s AS scraped_queue_s,
        client.ttft_s AS client_ttft_s,
        client.above_best_ratio
    FROM counted
    LEFT JOIN broken ON counted.run_id = broken.run_id
    LEFT JOIN estimated ON counted.run_id = estimated.run_id
    LEFT JOIN client ON counted.run_id = client.run_id
    LEFT JOIN scraped ON counted.run_id = scraped.run_id
),

said AS (
    SELECT
        *,
        client_ttft_s IS NOT NULL AND above_best_ratio >= $min_queue_ratio AS is_measured,
        CASE
            WHEN stalled_count > queue_count OR busy_count < $min_samples_count THEN 'not_evaluated'
            WHEN
                queue_count >= $min_samples_count
                AND waiting_ratio >= $min_waiting_ratio
                AND queue_ratio >= $min_queue_ratio
                THEN CASE WHEN waits_for_limit = 'unknown' THEN 'not_evaluated' ELSE 'fired' END
            -- A queue that comes and goes may still be most of the time to first token: that only single requests tell.
            WHEN queue_count > 1 THEN 'not_evaluated'
            ELSE 'clear'
        END AS outcome
    FROM judged
)

SELECT
    run_id,
    '' AS subject,
    outcome,
    CASE WHEN queue_count >= 10 AND is_measured THEN 'high' WHEN queue_count >= 5 OR is_measured THEN 'medium' ELSE 'low' END AS confidence,
    CASE WHEN is_broken OR is_lopsided THEN 'info' WHEN is_measured THEN 'critical' ELSE 'warning' END AS severity,
    coalesce(CASE WHEN is_measured THEN above_best_ratio ELSE 0.9 * queue_ratio END, 0) AS weight,
    from_ts,
    to_ts,
    coalesce(evidence, []) AS evidence,
    CASE
        WHEN stalled_count > queue_count THEN ['a run in which tokens flow: the engine stood still while requests waited']
        WHEN busy_count >= $min_samples_count AND waits_for_limit <> 'unknown'
            THEN ['times of single requests (--otlp-traces-endpoint): the queue of these stats lines comes and goes']
        WHEN waits_for_limit = 'unknown' THEN ['the server''s log from its start, which states the limits (--max-num-seqs)']
        ELSE ['at least 3 engine stats lines under load (do not run with --disable-log-stats)']
    END AS missing,
    CASE waits_for_limit
        WHEN 'seats' THEN 'a seat'
        WHEN 'kv' THEN 'KV-cache blocks'
        ELSE 'earlier prompts to be prefilled'
    END AS waits_for_what,
    CASE waits_for_limit
        WHEN 'seats' THEN 'raise --max-num-seqs first'
        WHEN 'kv' THEN 'give the KV cache room first'
        ELSE 'look at prompt lengths and --max-num-batched-tokens first'
    END AS first_change,
    concat_ws(
        ' ',
        CASE
            WHEN
                wait_s <= epoch(to_ts - from_ts)
                THEN format('About {:.1f} s of wait per request (estimate from the rate of requests).', wait_s)
        END,
        CASE
            WHEN scraped_queue_s IS NOT NULL AND scraped_ttft_s IS NOT NULL
                THEN format(
                        'By the server''s histograms the mean TTFT is {:.1f} s, {:.1f} s of it in the queue.',
                        scraped_ttft_s,
                        scraped_queue_s
                    )
            WHEN scraped_ttft_s IS NOT NULL THEN format('By the server''s histogram the mean TTFT is {:.1f} s.', scraped_ttft_s)
        END,
        CASE WHEN is_measured THEN format('The client''s median TTFT is {:.1f} s.', client_ttft_s) END
    ) AS wait_text,
    round(waiting_mean) AS measured_waiting_count,
    round(running_mean) AS measured_running_count,
    waiting_ratio AS measured_waiting_ratio,
    $min_waiting_ratio AS threshold_waiting_ratio,
    queue_ratio AS measured_queue_ratio,
    $min_queue_ratio AS threshold_queue_ratio,
    seats_count AS measured_seats_samples_count,
    kv_count AS measured_kv_samples_count,
    prefill_count AS measured_prefill_samples_count
FROM said
