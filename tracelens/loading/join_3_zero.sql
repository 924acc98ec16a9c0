-- Nothing to do without rows of client_request.
--
-- Clocks with an unknown zero (monotonic stamps, seconds since the first send) are placed by nesting, as any other clock:
-- laid roughly beside the server's first, then moved by the offset that nearly all shared requests allow.
CREATE OR REPLACE TEMP TABLE zero_point AS
WITH arrival AS (
    SELECT
        request_id,
        arrival_ts
    FROM server_request
    WHERE run_id = $run AND measured_by IN ('span', 'log')
    UNION ALL
    SELECT
        request_id,
        event_ts
    FROM request_event
    WHERE run_id = $run AND event = 'received'
)

SELECT
    client.source_id,
    median(_later(arrival.arrival_ts, -client.client_sent_s)) AS zero_ts,
    0.0 AS error_s,
    count(DISTINCT client.request_id) AS pair_count
FROM client_request AS client
INNER JOIN source ON client.source_id = source.source_id AND source.clock = 'relative'
INNER JOIN arrival ON client.request_id = arrival.request_id
WHERE client.run_id = $run AND client.client_sent_s IS NOT NULL AND arrival.arrival_ts IS NOT NULL
GROUP BY client.source_id;

UPDATE client_request
SET
    client_sent_ts = _later(zero_ts, client_sent_s),
    client_headers_ts = _later(zero_ts, client_sent_s + client_headers_s),
    client_first_chunk_ts = _later(zero_ts, client_sent_s + client_ttft_s),
    client_end_ts = _later(zero_ts, client_sent_s + client_e2e_s)
FROM zero_point
WHERE client_request.run_id = $run AND client_request.source_id = zero_point.source_id;

CREATE OR REPLACE TEMP TABLE zero_point AS
SELECT
    zero_point.source_id,
    _later(zero_point.zero_ts, (link.low_s + link.high_s) / 2) AS zero_ts,
    (link.high_s - link.low_s) / 2 AS error_s,
    zero_point.pair_count AS pair_count
FROM zero_point
LEFT JOIN _clock_line AS link ON zero_point.source_id = link.client_source_id AND link.is_known
QUALIFY row_number() OVER (PARTITION BY zero_point.source_id ORDER BY link.high_s - link.low_s NULLS LAST, link.server_source_id) = 1;

-- Where no offset fits, nothing is placed: zero_ts is NULL.
UPDATE client_request
SET
    client_planned_ts = _later(zero_ts, client_planned_s),
    client_sent_ts = _later(zero_ts, client_sent_s),
    client_headers_ts = _later(zero_ts, client_sent_s + client_headers_s),
    client_first_byte_ts = _later(zero_ts, client_sent_s + client_first_byte_s),
    client_first_chunk_ts = _later(zero_ts, client_sent_s + client_ttft_s),
    client_end_ts = _later(zero_ts, client_sent_s + client_e2e_s)
FROM zero_point
WHERE client_request.run_id = $run AND client_request.source_id = zero_point.source_id;

UPDATE source
SET
    time_basis = CASE
        WHEN zero_ts IS NULL
            THEN format(
                    'seconds from an unknown zero; no zero fits {} shared requests: wrong pairs, or a clock that was set', pair_count
                )
        ELSE format(
                'seconds from an unknown zero, placed by {} shared requests to within {:.0f} ms', pair_count, error_s * 1000
            )
    END
FROM zero_point
WHERE source.source_id = zero_point.source_id;
