/*
title = "Requests wait"
belief = "The GPU is too slow."
cause = "toy-waiting"
severity = "critical"
needs = ["engine_sample"]
missing = ["engine stats lines (do not run with --disable-log-stats)"]
message = "Up to {measured_waiting_count} requests waited, {measured_share_ratio} of the samples, at least {min_waiting_count} asked for."
verdict = "Up to {measured_waiting_count} requests waited; raise --max-num-seqs."

[params]
min_waiting_count = 5

[[remedy]]
kind = "config"
text = "Raise --max-num-seqs."
moves = "queue"
next_limit = "TPOT"

[[remedy]]
kind = "hardware"
text = "Add cards."
---
## What people assume
The GPU is too slow.

## What the data shows
Requests wait.

## How it is detected
The longest line.

## What to do
Raise the seats.

## Known limits
A toy.
*/
SELECT
    run_id,
    '' AS subject,
    CASE WHEN max(waiting_count) >= $min_waiting_count THEN 'fired' ELSE 'clear' END AS outcome,
    'high' AS confidence,
    0.5 AS weight,
    min(sample_ts) AS from_ts,
    max(sample_ts) AS to_ts,
    list({'source_id': source_id, 'line_no': line_no} ORDER BY waiting_count DESC, line_no) AS evidence,
    max(waiting_count) AS measured_waiting_count,
    avg((waiting_count > 0)::INTEGER) AS measured_share_ratio,
    $min_waiting_count AS threshold_waiting_count
FROM engine_sample
GROUP BY run_id
