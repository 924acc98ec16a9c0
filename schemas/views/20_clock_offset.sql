CREATE VIEW clock_offset AS
WITH nested AS (
    -- Span and client row of one request: the client sends before the server sees it arrive, and sees the first content
    -- after the server had its first token.  Headers are no bound (before 0.17 the arrival is stamped after they leave).
    -- The end is one only for an answer that came whole, without a stream, and where decode is stated (V0 stamps it late).
    SELECT
        client.run_id,
        client.source_id AS client_source_id,
        server.source_id AS server_source_id,
        epoch(server.arrival_ts - client.client_sent_ts) AS high_s,
        CASE
            WHEN client.client_first_chunk_ts IS NOT NULL
                THEN epoch(server.arrival_ts - client.client_first_chunk_ts) + server.ttft_s
            WHEN client.status = 'ok' AND server.decode_s IS NOT NULL
                THEN epoch(server.arrival_ts - client.client_end_ts) + server.e2e_s
        END AS low_s
    FROM client_request AS client
    INNER JOIN server_request AS server
        ON
            client.run_id = server.run_id AND client.request_id = server.request_id
            AND server.measured_by IN ('span', 'log') AND client.source_id <> server.source_id
    WHERE client.client_sent_ts IS NOT NULL AND server.arrival_ts IS NOT NULL
    UNION ALL
    -- Log lines of the request: "Received" after the send and before the headers, the end before the client's end, unless
    -- the client went away before.  A stamp is the interval [event_ts, event_ts + error_s).
    SELECT
        client.run_id,
        client.source_id AS client_source_id,
        logged.source_id AS server_source_id,
        CASE
            WHEN logged.event = 'received' THEN epoch(logged.event_ts - client.client_sent_ts) + coalesce(logged.error_s, 1.0)
        END AS high_s,
        CASE
            WHEN logged.event = 'received' AND client.streamed
                THEN epoch(logged.event_ts - coalesce(client.client_headers_ts, client.client_first_chunk_ts))
            WHEN client.status = 'ok' THEN epoch(logged.event_ts - client.client_end_ts)
        END AS low_s
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
        count(*) AS pair_count,
        count(*) FILTER (WHERE low_s IS NULL) AS open_count
    FROM nested
    WHERE low_s IS NOT NULL OR high_s IS NOT NULL
    GROUP BY run_id, client_source_id, server_source_id
),

-- Where pairs contradict each other: the offset that most of them allow (Marzullo's sweep over the intervals' ends).
edge AS (
    SELECT
        run_id,
        client_source_id,
        server_source_id,
        low_s AS at_s,
        1 AS step
    FROM nested
    WHERE low_s IS NOT NULL
    UNION ALL
    SELECT
        run_id,
        client_source_id,
        server_source_id,
        high_s AS at_s,
        -1 AS step
    FROM nested
    WHERE high_s IS NOT NULL
),

swept AS (
    SELECT
        bound.run_id,
        bound.client_source_id,
        bound.server_source_id,
        bound.pair_count,
        edge.at_s AS low_s,
        (bound.open_count + sum(edge.step) OVER sweep)::BIGINT AS agreeing_count,
        lead(edge.at_s) OVER sweep AS high_s
    FROM bound
    INNER JOIN edge
        ON
            bound.run_id = edge.run_id
            AND bound.client_source_id = edge.client_source_id
            AND bound.server_source_id = edge.server_source_id
    WHERE bound.low_s > bound.high_s
    WINDOW sweep AS (
        PARTITION BY bound.run_id, bound.client_source_id, bound.server_source_id
        ORDER BY edge.at_s ASC, edge.step DESC
        ROWS UNBOUNDED PRECEDING
    )
),

majority AS (
    SELECT
        run_id,
        client_source_id,
        server_source_id,
        min(low_s) AS low_s,
        max(high_s) AS high_s,
        any_value(agreeing_count) AS agreeing_count
    FROM (
        SELECT *
        FROM swept
        QUALIFY agreeing_count = max(agreeing_count) OVER (PARTITION BY run_id, client_source_id, server_source_id)
    )
    WHERE pair_count >= 10 AND agreeing_count >= 0.8 * pair_count
    GROUP BY run_id, client_source_id, server_source_id
),

local_client AS (
    -- Every API call in the server's log came from its own host.
    SELECT run_id
    FROM access_line
    WHERE method = 'POST' AND run_id IN (SELECT bound.run_id FROM bound)
    GROUP BY run_id
    HAVING bool_and(
            starts_with(client_addr, '127.') OR starts_with(client_addr, '[::1]')
            OR starts_with(client_addr, '::1') OR starts_with(client_addr, 'localhost')
        )
),

judged AS (
    SELECT
        bound.run_id,
        bound.client_source_id,
        bound.server_source_id,
        bound.pair_count,
        coalesce(majority.agreeing_count, CASE WHEN bound.low_s <= bound.high_s THEN bound.pair_count END) AS agreeing_count,
        coalesce(majority.low_s, bound.low_s) AS low_s,
        coalesce(majority.high_s, bound.high_s) AS high_s,
        source.clock = 'relative' AS placed_by_nesting,
        local_client.run_id IS NOT NULL AS same_host
    FROM bound
    INNER JOIN source ON bound.client_source_id = source.source_id
    LEFT JOIN local_client ON bound.run_id = local_client.run_id
    LEFT JOIN majority
        ON
            bound.run_id = majority.run_id
            AND bound.client_source_id = majority.client_source_id
            AND bound.server_source_id = majority.server_source_id
),

settled AS (
    SELECT
        *,
        low_s IS NOT NULL AND high_s IS NOT NULL AND low_s <= high_s AS is_known,
        same_host AND NOT placed_by_nesting AND low_s <= 0.001 AND high_s >= -0.001 AS is_one_host
    FROM judged
)

SELECT
    run_id,
    client_source_id AS from_source_id,
    server_source_id AS to_source_id,
    low_s,
    high_s,
    CASE
        WHEN is_known AND is_one_host THEN 0.0
        WHEN is_known THEN (low_s + high_s) / 2
    END AS chosen_s,
    CASE
        WHEN is_known AND is_one_host THEN 0.0
        WHEN is_known THEN (high_s - low_s) / 2
    END AS error_s,
    NULL::DOUBLE AS drift,
    CASE
        WHEN low_s IS NULL OR high_s IS NULL THEN 'nesting gives one end only'
        WHEN NOT is_known THEN 'no offset fits all shared requests: wrong pairs, retries, or a clock that was set'
        WHEN placed_by_nesting THEN 'nesting (the client''s zero was placed by it)'
        WHEN is_one_host THEN 'one host: every API call came from a loopback address, and nesting agrees'
        ELSE 'nesting'
    END || CASE
        WHEN agreeing_count < pair_count
            THEN format('; {} of {} pairs contradict it (wrong pairs, retries)', pair_count - agreeing_count, pair_count)
        ELSE ''
    END AS basis,
    pair_count
FROM settled
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
COMMENT ON COLUMN clock_offset.high_s IS 'Upper end, seconds. Below low_s where the shared requests contradict each other; where at least 8 in 10 of 10 or more agree, both ends are theirs.';
COMMENT ON COLUMN clock_offset.chosen_s IS 'The value that stages are computed with: 0 on one host, else the middle; NULL where there is none.';
COMMENT ON COLUMN clock_offset.error_s IS 'How far chosen_s may be off, seconds.';
COMMENT ON COLUMN clock_offset.drift IS 'Drift, seconds per second; NULL: not estimated.';
COMMENT ON COLUMN clock_offset.basis IS 'How it was found.';
COMMENT ON COLUMN clock_offset.pair_count IS 'Pairs of stamps behind it.';
