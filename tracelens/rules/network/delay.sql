/*
title = "Most of the client's TTFT is spent between client and server"
belief = "The first token is slow, so the engine is slow."
cause = "network-ingress-dominated"
severity = "critical"
needs = ["client_request", "server_request"]
missing = ["the server's TTFT per request (--otlp-traces-endpoint, or --enable-per-request-metrics)", "an X-Request-Id or traceparent from the client, to join both sides"]
message = "Client TTFT is {measured_client_ttft_s}, the server's {measured_server_ttft_s} (medians of {measured_request_count} requests): {measured_outside_ratio} of it passes outside the server, and even the fastest tenth loses {measured_floor_s}."
verdict = "{measured_outside_ratio} of the client's TTFT of {measured_client_ttft_s} is the way to the server and back, {measured_floor_s} for every request; look at the path (proxy, region, TLS, connection set-up) before the engine."

[params]
min_outside_ratio = 0.5
min_floor_ratio = 0.5
min_outside_s = 0.05

[[remedy]]
kind = "config"
text = "Time the same request from the server's own host; then add one hop after the other."
moves = "client TTFT"
next_limit = "the slowest hop"

[[remedy]]
kind = "architecture"
text = "Place clients and servers near each other, keep connections open (no TLS set-up per request), and take hops out of the path."
moves = "client TTFT"
next_limit = "the server's own TTFT"
---
## What people assume
That a slow first token is computed slowly.

## What the data shows
Client TTFT less the server's own TTFT needs no common clock: both are lengths. What is left is the way in and the way back.

## How it is detected
The rest is at least `min_outside_ratio` of the client's TTFT at the median and longer than `min_outside_s` (below that it is the cost of any HTTP stack). A slow path costs every request about the same, so the fastest tenth must still lose `min_floor_ratio` of the median loss. Where the fastest requests lose almost nothing, the time went into a queue before the server (a connection pool, a busy event loop), which is another fault.

## What to do
Walk the path hop by hop.

## Known limits
A path that is slow only at times is not told from a queue in front of the server. Requests that gave up have no TTFT and are not in it.
*/
WITH crossed AS (
    SELECT
        run_id,
        client_source_id AS source_id,
        client_line_no AS line_no,
        client_sent_ts,
        client_ttft_s,
        ttft_s,
        client_ttft_s - ttft_s AS outside_s
    FROM request
    WHERE client_ttft_s IS NOT NULL AND ttft_s IS NOT NULL
),

counted AS (
    SELECT
        run_id,
        count(*) AS request_count,
        quantile_cont(client_ttft_s, 0.5) AS client_ttft_s,
        quantile_cont(ttft_s, 0.5) AS server_ttft_s,
        quantile_cont(outside_s, [0.1, 0.5]) AS outside_quantiles_s,
        outside_quantiles_s[2] AS outside_s,
        outside_quantiles_s[1] AS floor_s,
        quantile_cont(outside_s / nullif(client_ttft_s, 0), 0.5) AS outside_ratio,
        min(client_sent_ts) AS from_ts,
        max(client_sent_ts) AS to_ts,
        _lines(arg_max(_line_key(source_id, line_no), _ranked(outside_s, source_id, line_no), 5)) AS evidence
    FROM crossed
    GROUP BY run_id
)

SELECT
    run.run_id,
    '' AS subject,
    CASE
        WHEN coalesce(request_count, 0) < 3 THEN 'not_evaluated'
        WHEN
            outside_ratio >= $min_outside_ratio AND outside_s >= $min_outside_s
            AND floor_s >= $min_floor_ratio * outside_s
            THEN 'fired'
        ELSE 'clear'
    END AS outcome,
    CASE WHEN request_count >= 30 THEN 'high' WHEN request_count >= 10 THEN 'medium' ELSE 'low' END AS confidence,
    CASE WHEN outside_ratio IS NULL THEN 0.0 ELSE least(greatest(outside_ratio, 0.0), 1.0) END AS weight,
    from_ts,
    to_ts,
    evidence,
    request_count AS measured_request_count,
    client_ttft_s AS measured_client_ttft_s,
    server_ttft_s AS measured_server_ttft_s,
    outside_ratio AS measured_outside_ratio,
    floor_s AS measured_floor_s,
    $min_outside_ratio AS threshold_outside_ratio
FROM (SELECT DISTINCT run_id FROM client_request) AS run
LEFT JOIN counted ON run.run_id = counted.run_id
