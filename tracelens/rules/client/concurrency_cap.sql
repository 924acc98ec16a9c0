/*
title = "The client never has more than a fixed number of requests in flight"
belief = "Throughput does not grow, so the server (or the GPU) is at its limit."
cause = "client-concurrency-cap"
severity = "warning"
needs = ["source"]
missing = ["engine stats lines (do not run with --disable-log-stats), or spans with a client file"]
message = "{how_text}"
verdict = "The client holds the server at {measured_running_count} requests while nothing waits and there is room: raise the client's connection limit (aiohttp and httpx stop at 100 by default), the server is not the limit."

[params]
min_pinned_ratio = 0.8
min_samples_count = 3
pool_default_count = 100
free_kv_ratio = 0.9
min_wait_s = 0.5
min_network_ratio = 0.5

[[remedy]]
kind = "config"
text = "Raise the client's pool: aiohttp TCPConnector(limit=0), httpx Limits(max_connections=None), or the load generator's concurrency."
moves = "throughput, wait inside the client"
next_limit = "seats (--max-num-seqs), KV cache"
---
## What people assume
Throughput is flat, so the server is full.

## What the data shows
Running stands at one number that is no limit of the server, and nothing waits: somebody in front lets no more through. The
rest waits inside the client, where no server metric sees it.

## How it is detected
Stats lines: running equals its maximum in `min_pinned_ratio` of the busy samples (at least `min_samples_count`), at least
8, nothing waits, KV is below `free_kv_ratio`, and the number is below the seats. At `pool_default_count`, which is a
library's default that nobody chose, it is a warning; at any other number somebody probably chose it, and it is info.
Spans and a client file: requests reach the server `min_wait_s` or more after they were sent, that is `min_network_ratio`
of their TTFT, and on arrival the server then always holds the same number of requests: one enters as another ends.

## What to do
Raise the limit of the client, then look at the server again.

## Known limits
A load test with a fixed concurrency looks the same and is no fault. Proxies and gateways cap in the same way.
*/
WITH busy AS (
    SELECT
        run_id,
        source_id,
        line_no,
        sample_ts,
        running_count,
        waiting_count,
        kv_cache_usage_ratio,
        seat_count,
        max(running_count) OVER (PARTITION BY source_id, engine_index) AS top_count
    FROM binding_limit
    WHERE running_count > 0 AND waiting_count IS NOT NULL
),

counted AS (
    SELECT
        run_id,
        count(*) AS busy_count,
        avg((running_count = top_count)::INTEGER) AS pinned_ratio,
        min(top_count) AS top_count,
        max(waiting_count) AS waiting_count,
        max(kv_cache_usage_ratio) AS kv_ratio,
        min(seat_count) AS seat_count,
        min(sample_ts) AS from_ts,
        max(sample_ts) AS to_ts,
        min({'source_id': source_id, 'line_no': line_no}, 5) FILTER (WHERE running_count = top_count)
            AS evidence
    FROM busy
    GROUP BY run_id
),

held AS (
    SELECT
        *,
        coalesce(
            busy_count >= $min_samples_count
            AND pinned_ratio >= $min_pinned_ratio
            AND top_count >= 8
            AND waiting_count = 0
            AND coalesce(kv_ratio, 0) < $free_kv_ratio
            AND top_count < _full_seats_ratio() * coalesce(seat_count, 1e9), FALSE
        ) AS is_held
    FROM counted
),

arrived AS (
    SELECT
        run_id,
        request_no,
        arrival_ts,
        e2e_s,
        client_ttft_s,
        network_in_s,
        client_source_id,
        client_line_no
    FROM _request_timing
    WHERE arrival_basis IN ('span', 'request log') AND e2e_s > 0
),

travelled AS (
    SELECT
        run_id,
        count(network_in_s) AS known_count,
        count(*) FILTER (WHERE network_in_s >= $min_wait_s) AS late_count,
        median(network_in_s) AS network_in_s,
        sum(network_in_s) / nullif(sum(client_ttft_s) FILTER (WHERE network_in_s IS NOT NULL), 0) AS network_ratio
    FROM arrived
    GROUP BY run_id
),

-- Where few requests are late on their way in, nobody need know how many were in flight when each came.
served AS (
    SELECT arrived.*
    FROM arrived
    INNER JOIN travelled ON arrived.run_id = travelled.run_id
    WHERE travelled.late_count >= 10 AND travelled.network_ratio >= $min_network_ratio
),

moment AS (
    SELECT
        run_id,
        request_no,
        arrival_ts AS at_ts,
        1 AS change
    FROM served
    UNION ALL
    SELECT
        run_id,
        NULL AS request_no,
        _later(arrival_ts, e2e_s) AS at_ts,
        -1 AS change
    FROM served
),

swept AS (
    SELECT
        run_id,
        request_no,
        sum(change) OVER (PARTITION BY run_id ORDER BY at_ts, change ROWS UNBOUNDED PRECEDING) AS in_flight_count
    FROM moment
),

entered AS (
    SELECT
        served.*,
        swept.in_flight_count
    FROM served
    INNER JOIN swept ON served.run_id = swept.run_id AND served.request_no = swept.request_no
),

pooled AS (
    SELECT
        run_id,
        mode(in_flight_count) FILTER (WHERE network_in_s >= $min_wait_s) AS pool_count,
        max(in_flight_count) AS top_count,
        arg_max(
            {'source_id': client_source_id, 'line_no': client_line_no}, _ranked(network_in_s, client_source_id, client_line_no), 5
        ) FILTER (
            WHERE network_in_s IS NOT NULL
        )
            AS evidence
    FROM entered
    GROUP BY run_id
),

pinned AS (
    SELECT
        pooled.run_id,
        avg((entered.in_flight_count >= pooled.pool_count)::INTEGER) AS pinned_ratio
    FROM pooled
    INNER JOIN entered ON pooled.run_id = entered.run_id AND entered.network_in_s >= $min_wait_s
    GROUP BY pooled.run_id
),

judged AS (
    SELECT
        run.run_id,
        held.busy_count,
        coalesce(held.is_held, FALSE) AS is_held,
        held.top_count AS held_count,
        held.kv_ratio,
        coalesce(held.is_held AND held.top_count = $pool_default_count, FALSE) AS is_default_pool,
        coalesce(
            travelled.late_count >= 10
            AND travelled.network_ratio >= $min_network_ratio
            AND pinned.pinned_ratio >= $min_pinned_ratio
            AND pooled.pool_count >= pooled.top_count - 1
            AND pooled.pool_count >= 2, FALSE
        ) AS is_pooled,
        pooled.pool_count,
        travelled.known_count,
        travelled.network_in_s,
        travelled.network_ratio,
        coalesce(pinned.pinned_ratio, held.pinned_ratio) AS pinned_ratio,
        held.from_ts,
        held.to_ts,
        coalesce(held.evidence, []) AS held_evidence,
        coalesce(pooled.evidence, []) AS pooled_evidence
    FROM (SELECT DISTINCT run_id FROM source) AS run
    LEFT JOIN held ON run.run_id = held.run_id
    LEFT JOIN travelled ON run.run_id = travelled.run_id
    LEFT JOIN pooled ON run.run_id = pooled.run_id
    LEFT JOIN pinned ON run.run_id = pinned.run_id
)

SELECT
    run_id,
    '' AS subject,
    CASE
        WHEN is_held OR is_pooled THEN 'fired'
        WHEN coalesce(busy_count, 0) < $min_samples_count AND coalesce(known_count, 0) < 10 THEN 'not_evaluated'
        ELSE 'clear'
    END AS outcome,
    CASE WHEN is_pooled THEN 'high' WHEN busy_count >= 5 THEN 'medium' ELSE 'low' END AS confidence,
    CASE WHEN is_pooled OR is_default_pool THEN 'warning' ELSE 'info' END AS severity,
    CASE WHEN is_pooled THEN network_ratio WHEN is_held THEN 0.5 ELSE 0 END AS weight,
    from_ts,
    to_ts,
    CASE WHEN is_pooled THEN pooled_evidence ELSE held_evidence END AS evidence,
    CASE
        WHEN is_pooled
            THEN format(
                    'Requests reach the server {:.1f} s after they were sent (p50), and it then always holds {:.0f}: '
                    || 'a pool in the client lets one in as another ends.',
                    network_in_s, pool_count::DOUBLE
                )
        WHEN is_held
            THEN format(
                    'Running stands at {} in {:.0f} % of {} busy samples while nothing waits and the KV cache is at most {:.0f} % full.',
                    held_count, 100 * pinned_ratio, busy_count, 100 * coalesce(kv_ratio, 0)
                )
        ELSE 'No fixed number of requests in flight.'
    END AS how_text,
    CASE WHEN is_pooled THEN pool_count::BIGINT ELSE held_count END AS measured_running_count,
    pinned_ratio AS measured_pinned_ratio,
    $min_pinned_ratio AS threshold_pinned_ratio
FROM judged
