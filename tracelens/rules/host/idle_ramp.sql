/*
title = "The first request after a pause is slow"
belief = "TTFT jumps around at random, so the prompt cache or the queue is at fault."
cause = "idle-ramp"
severity = "info"
needs = ["client_request"]
missing = ["a client file with send times, first content and end of each request, with pauses and without", "GPU clocks and power through a pause (nvidia-smi dmon -s pc -o DT)"]
message = "After a pause of {measured_pause_s} (median) TTFT is {measured_idle_ttft_s}, back to back {measured_busy_ttft_s}; one request at a time, so no queue."
verdict = "A pause makes the next request slow ({measured_idle_ttft_s} against {measured_busy_ttft_s}): clocks, power or sleeping threads ramp up; keep the server busy with a small request, or pin clocks."

[params]
min_pause_s = 5.0
max_busy_pause_s = 1.0
min_times_ratio = 2.0
min_difference_s = 0.2
min_request_count = 3

[[remedy]]
kind = "config"
text = "Pin the GPU's clocks (nvidia-smi -lgc) or keep persistence mode on, set the host's CPU governor to performance, and send a tiny request every few seconds."
moves = "TTFT after a pause"
next_limit = "prefill time"
---
## What people assume
Slow answers are a queue or a cold cache.
## What the data shows
One request at a time: those that follow a pause are slow, those that follow at once are not.
## How it is detected
Requests of one client that do not overlap.  At least `min_request_count` begin `min_pause_s` or more after the end of the one before, and as many
within `max_busy_pause_s`; the first of each series is left out, since it pays for loading and compilation.  The median TTFT after a pause is at
least `min_times_ratio` times and `min_difference_s` above the other.  GPUs fall to idle clocks within seconds: hence five.
## What to do
Keep it warm, if it matters.
## Known limits
What ramps up (GPU clock, power state, host threads) needs telemetry.  Prompts that differ between both groups blur the comparison.
*/
WITH sent AS (
    SELECT
        run_id,
        min(client_sent_ts) AS from_ts,
        max(client_sent_ts) AS to_ts
    FROM client_request
    WHERE client_ttft_s IS NOT NULL AND client_e2e_s IS NOT NULL AND coalesce(epoch(client_sent_ts), client_sent_s) IS NOT NULL
        AND is_secondary IS NULL
    GROUP BY run_id
),

grouped AS (
    SELECT
        sent.run_id,
        count(pause.run_id) FILTER (WHERE pause_s >= $min_pause_s) AS idle_count,
        count(pause.run_id) FILTER (WHERE pause_s < $max_busy_pause_s) AS busy_count,
        median(pause_s) FILTER (WHERE pause_s >= $min_pause_s) AS pause_s,
        median(client_ttft_s) FILTER (WHERE pause_s >= $min_pause_s) AS idle_ttft_s,
        median(client_ttft_s) FILTER (WHERE pause_s < $max_busy_pause_s) AS busy_ttft_s,
        arg_max(
            {'source_id': source_id, 'line_no': line_no}, _ranked(client_ttft_s, source_id, line_no), 5
        ) FILTER (WHERE pause_s >= $min_pause_s) AS evidence
    FROM sent
    LEFT JOIN _client_pause AS pause ON sent.run_id = pause.run_id
    GROUP BY sent.run_id
)

SELECT
    grouped.run_id,
    '' AS subject,
    CASE
        WHEN least(idle_count, busy_count) < $min_request_count THEN 'not_evaluated'
        WHEN idle_ttft_s >= $min_times_ratio * busy_ttft_s AND idle_ttft_s - busy_ttft_s >= $min_difference_s THEN 'fired'
        ELSE 'clear'
    END AS outcome,
    CASE WHEN least(idle_count, busy_count) >= 15 THEN 'high' WHEN least(idle_count, busy_count) >= 5 THEN 'medium' ELSE 'low' END
        AS confidence,
    coalesce(greatest(1 - busy_ttft_s / nullif(idle_ttft_s, 0), 0), 0) AS weight,
    sent.from_ts,
    sent.to_ts,
    coalesce(evidence, []) AS evidence,
    pause_s AS measured_pause_s,
    idle_ttft_s AS measured_idle_ttft_s,
    busy_ttft_s AS measured_busy_ttft_s,
    idle_count AS measured_idle_count,
    busy_count AS measured_busy_count,
    $min_times_ratio AS threshold_times_ratio
FROM grouped
LEFT JOIN sent ON grouped.run_id = sent.run_id
