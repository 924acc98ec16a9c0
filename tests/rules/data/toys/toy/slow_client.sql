/*
title = "A client waits long"
belief = "All clients wait alike."
cause = "toy-slow-client"
severity = "info"
needs = ["client_request"]
missing = ["a client file with the stamps of every chunk"]
message = "Client {subject} waited {measured_ttft_s}."

[params]
max_ttft_s = 5.0

[[remedy]]
kind = "architecture"
text = "Look at that client."
---
## What people assume
Clients are alike.

## What the data shows
One is not.

## How it is detected
By its TTFT.

## What to do
Look at it.

## Known limits
A toy.
*/
SELECT
    run_id,
    client_id AS subject,
    CASE
        WHEN client_ttft_s IS NULL THEN 'not_evaluated'
        WHEN client_ttft_s > $max_ttft_s THEN 'fired'
        ELSE 'clear'
    END AS outcome,
    'low' AS confidence,
    least(client_ttft_s / 100, 1) AS weight,
    client_sent_ts AS from_ts,
    NULL::TIMESTAMP AS to_ts,
    [{'source_id': source_id, 'line_no': line_no, 'text': client_id}] AS evidence,
    client_ttft_s AS measured_ttft_s,
    $max_ttft_s AS threshold_ttft_s
FROM client_request
