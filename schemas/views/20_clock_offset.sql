CREATE VIEW clock_offset AS
WITH nested AS (
    -- Span and client row of one request: the client sends before the server sees it arrive, and sees the first content
    -- after the server had its first token.  Headers are no bound (before 0.17 the arrival is stamped after they leave),
    -- and the end is one only without a stream and where a span states decode (V0 stamps it a step late).
    SELECT
        client.run_id,
        client.source_id AS client_source_id,
        server.source_id AS server_source_id,
        epoch(server.arrival_ts - client.client_sent_ts) AS high_s,
        CASE
            WHEN client.client_first_chunk_ts IS NOT NULL
                THEN epoch(server.arrival_ts - client.client_first_chunk_ts) + server.ttft_s
            WHEN server.decode_s IS NOT NULL
                THEN epoch(server.arrival_ts - client.client_end_ts) + server.e2e_s
        END AS low_s
    FROM client_request AS client
    INNER JOIN server_request AS server
        ON
            client.run_id = server.run_id AND client.request_id = server.request_id
            AND server.measured_by IN ('span', 'log') AND client.source_id <> server.source_id
    WHERE client.client_sent_ts IS NOT NULL AND server.arrival_ts IS NOT NULL
    UNION ALL
    -- Log lines of the request: "Received" after the send and before the headers, the end before the client's end.
    -- A stamp is the interval [event_ts, event_ts + error_s).
    SELECT
        client.run_id,
        client.source_id,
        logged.source_id,
        CASE WHEN logged.event = 'received' THEN epoch(logged.event_ts - client.client_sent_ts) + logged.error_s END,
        CASE
            WHEN logged.event = 'received' AND client.streamed
                THEN epoch(logged.event_ts - coalesce(client.client_headers_ts, client.client_first_chunk_ts))
            WHEN logged.event IN ('received', 'finished') THEN epoch(logged.event_ts - client.client_end_ts)
        END
    FROM client_request AS client
    INNER JOIN request_event AS logged
        ON client.run_id = logged.run_id AND client.request_id = logged.request_id
    WHERE client.client_sent_ts IS NOT NULL AND logged.event IN ('received', 'finished') AND logged.event_ts IS NOT NULL
),

bound AS (
    SELECT
        run_id,
        client_source_id,
        server_source_id,
        max(low_s) AS low_s,
        min(high_s) AS high_s,
        count(*) AS pair_count
    FROM nested
    GROUP BY run_id, client_source_id, server_source_id
),

local_client AS (
    -- Every API call in the server's log came from its own host.
    SELECT run_id
    FROM access_line
    WHERE method = 'POST'
    GROUP BY run_id
    HAVING bool_and(regexp_matches(client_addr, '^(?:127\.|\[?::1\]?:|localhost)'))
),

judged AS (
    SELECT
        bound.*,
        source.clock = 'relative' AS placed_by_nesting,
        local_client.run_id IS NOT NULL AS same_host,
        bound.low_s <= bound.high_s AS is_consistent
    FROM bound
    INNER JOIN source ON bound.client_source_id = source.source_id
    LEFT JOIN local_client ON bound.run_id = local_client.run_id
)

SELECT
    run_id,
    client_source_id AS from_source_id,
    server_source_id AS to_source_id,
    low_s,
    high_s,
    CASE
        WHEN NOT is_consistent OR low_s IS NULL OR high_s IS NULL THEN NULL
        WHEN same_host AND NOT placed_by_nesting AND low_s <= 0.001 AND high_s >= -0.001 THEN 0.0
        ELSE (low_s + high_s) / 2
    END AS chosen_s,
    CASE
        WHEN NOT is_consistent OR low_s IS NULL OR high_s IS NULL THEN NULL
        WHEN same_host AND NOT placed_by_nesting AND low_s <= 0.001 AND high_s >= -0.001 THEN 0.0
        ELSE (high_s - low_s) / 2
    END AS error_s,
    NULL::DOUBLE AS drift,
    CASE
        WHEN low_s IS NULL OR high_s IS NULL THEN 'nesting gives one end only'
        WHEN NOT is_consistent THEN 'no offset fits all shared requests: wrong pairs, retries, or a clock that was set'
        WHEN placed_by_nesting THEN 'nesting (the client''s zero was placed by it)'
        WHEN same_host AND low_s <= 0.001 AND high_s >= -0.001
            THEN 'one host: every API call came from a loopback address, and nesting agrees'
        ELSE 'nesting'
    END AS basis,
    pair_count
FROM judged
UNION ALL
SELECT
    gpu.run_id,
    gpu.source_id AS from_source_id,
    NULL AS to_source_id,
    NULL AS low_s,
    NULL AS high_s,
    NULL AS chosen_s,
    NULL AS error_s,
    NULL AS drift,
    'a GPU log shares no event with a server; its stamps are taken as they are (--gpu-tz)' AS basis,
    0 AS pair_count
FROM source AS gpu
WHERE gpu.side = 'gpu';

COMMENT ON VIEW clock_offset IS 'One row per pair of clocks: how far the second is ahead of the first, as an interval. Stamps are never rewritten.';
COMMENT ON COLUMN clock_offset.run_id IS 'Run.';
COMMENT ON COLUMN clock_offset.from_source_id IS 'Source of the client''s (or GPU''s) clock.';
COMMENT ON COLUMN clock_offset.to_source_id IS 'Source of the server''s clock.';
COMMENT ON COLUMN clock_offset.low_s IS 'Lower end of server clock less client clock, seconds.';
COMMENT ON COLUMN clock_offset.high_s IS 'Upper end, seconds. Below low_s where the shared requests contradict each other.';
COMMENT ON COLUMN clock_offset.chosen_s IS 'The value that stages are computed with: 0 on one host, else the middle; NULL where there is none.';
COMMENT ON COLUMN clock_offset.error_s IS 'How far chosen_s may be off, seconds.';
COMMENT ON COLUMN clock_offset.drift IS 'Drift, seconds per second; NULL: not estimated.';
COMMENT ON COLUMN clock_offset.basis IS 'How it was found.';
COMMENT ON COLUMN clock_offset.pair_count IS 'Pairs of stamps behind it.';
