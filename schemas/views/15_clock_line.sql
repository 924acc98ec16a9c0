-- Offset of two clocks as a function of time.  In the plane of (offset at the middle of the run, drift) every pair of stamps
-- cuts away a half plane: a server's stamp that lies after the client's bounds the line from above, one before it from below.
-- What is left is a convex polygon; its corners are kept, and the offset at any instant lies between the lowest and the
-- highest of the lines through them.  (Duda 1987; Clement and Dagenais 2009.)
CREATE VIEW _clock_line AS
WITH nested AS (
    -- Span and client row of one request: the client sends before the server sees it arrive, and sees the first content
    -- after the server had its first token.  Headers are no bound (before 0.17 the arrival is stamped after they leave).
    -- The end is one only for an answer that came whole, without a stream, and where decode is stated (V0 stamps it late).
    SELECT
        client.source_id AS client_source_id,
        server.source_id AS server_source_id,
        client.client_sent_ts AS high_at_ts,
        epoch(server.arrival_ts - client.client_sent_ts) AS high_s,
        coalesce(client.client_first_chunk_ts, client.client_end_ts, client.client_sent_ts) AS low_at_ts,
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
        client.source_id AS client_source_id,
        logged.source_id AS server_source_id,
        client.client_sent_ts AS high_at_ts,
        CASE
            WHEN logged.event = 'received' THEN epoch(logged.event_ts - client.client_sent_ts) + coalesce(logged.error_s, 1.0)
        END AS high_s,
        CASE
            WHEN logged.event = 'received' THEN coalesce(client.client_headers_ts, client.client_first_chunk_ts, client.client_sent_ts)
            ELSE coalesce(client.client_end_ts, client.client_sent_ts)
        END AS low_at_ts,
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

bounding AS (
    SELECT *
    FROM nested
    WHERE (low_s IS NOT NULL OR high_s IS NOT NULL) AND isfinite(coalesce(low_s, 0)) AND isfinite(coalesce(high_s, 0))
),

-- Within a minute even 200 ppm move the offset by no more than 6 ms from the middle: left out.
span AS (
    SELECT
        client_source_id,
        server_source_id,
        min(high_at_ts) AS first_ts,
        epoch(max(high_at_ts) - min(high_at_ts)) AS span_s,
        min(high_at_ts) + (max(high_at_ts) - min(high_at_ts)) / 2 AS middle_ts,
        epoch(max(high_at_ts) - min(high_at_ts)) >= 60 AND count(*) >= 20 AS can_drift,
        count(*) AS pair_count,
        count(*) FILTER (WHERE low_s IS NULL) AS open_count
    FROM bounding
    GROUP BY client_source_id, server_source_id
),

-- A first guess at the drift (Theil and Sen over the medians of 32 slices), good enough to lay the pairs side by side.
slice AS (
    SELECT
        bounding.client_source_id,
        bounding.server_source_id,
        floor(32 * epoch(bounding.high_at_ts - span.first_ts) / span.span_s) AS slice_no,
        median((bounding.low_s + bounding.high_s) / 2) AS middle_s
    FROM bounding
    INNER JOIN span
        ON
            bounding.client_source_id = span.client_source_id
            AND bounding.server_source_id = span.server_source_id
    WHERE span.can_drift AND bounding.low_s IS NOT NULL AND bounding.high_s IS NOT NULL
    GROUP BY ALL
),

guess AS (
    SELECT
        span.client_source_id,
        span.server_source_id,
        greatest(-2e-4, least(2e-4, median(
            (other.middle_s - slice.middle_s) / (other.slice_no - slice.slice_no) * 32 / span.span_s
        ))) AS drift
    FROM span
    INNER JOIN slice
        ON
            span.client_source_id = slice.client_source_id
            AND span.server_source_id = slice.server_source_id
    INNER JOIN slice AS other
        ON
            slice.client_source_id = other.client_source_id
            AND slice.server_source_id = other.server_source_id
            AND other.slice_no >= slice.slice_no + 4
    GROUP BY ALL
),

level AS (
    SELECT
        bounding.client_source_id,
        bounding.server_source_id,
        span.can_drift,
        bounding.low_s,
        bounding.high_s,
        epoch(bounding.low_at_ts - span.middle_ts) AS low_at_s,
        epoch(bounding.high_at_ts - span.middle_ts) AS high_at_s,
        bounding.low_s - coalesce(guess.drift, 0) * epoch(bounding.low_at_ts - span.middle_ts) AS level_low_s,
        bounding.high_s - coalesce(guess.drift, 0) * epoch(bounding.high_at_ts - span.middle_ts) AS level_high_s,
        floor(32 * epoch(bounding.low_at_ts - span.first_ts) / nullif(span.span_s, 0)) AS low_slice_no,
        floor(32 * epoch(bounding.high_at_ts - span.first_ts) / nullif(span.span_s, 0)) AS high_slice_no
    FROM bounding
    INNER JOIN span
        ON
            bounding.client_source_id = span.client_source_id
            AND bounding.server_source_id = span.server_source_id
    LEFT JOIN guess
        ON
            span.client_source_id = guess.client_source_id
            AND span.server_source_id = guess.server_source_id
),

bound AS (
    SELECT
        client_source_id,
        server_source_id,
        max(level_low_s) AS low_s,
        min(level_high_s) AS high_s,
        count(*) FILTER (WHERE level_low_s IS NULL) AS open_count,
        count(*) AS pair_count
    FROM level
    GROUP BY client_source_id, server_source_id
),

-- Where pairs contradict each other: the offset that most of them allow (Marzullo's sweep over the intervals' ends).
edge AS (
    SELECT
        level.client_source_id,
        level.server_source_id,
        bound.open_count,
        bound.pair_count,
        unnest([{'at_s': level.level_low_s, 'step': 1}, {'at_s': level.level_high_s, 'step': -1}]) AS turn
    FROM bound
    INNER JOIN level
        ON
            bound.client_source_id = level.client_source_id
            AND bound.server_source_id = level.server_source_id
    WHERE bound.low_s > bound.high_s AND bound.pair_count >= 10
),

swept AS (
    SELECT
        client_source_id,
        server_source_id,
        pair_count,
        turn.at_s AS low_s,
        (open_count + sum(turn.step) OVER sweep)::BIGINT AS agreeing_count,
        lead(turn.at_s) OVER sweep AS high_s
    FROM edge
    WHERE turn.at_s IS NOT NULL
    WINDOW sweep AS (
        PARTITION BY client_source_id, server_source_id
        ORDER BY turn.at_s ASC, turn.step DESC
        ROWS UNBOUNDED PRECEDING
    )
),

majority AS (
    SELECT
        client_source_id,
        server_source_id,
        max(agreeing_count) AS agreeing_count,
        arg_max({'low_s': low_s, 'high_s': high_s}, {'agreeing_count': agreeing_count, 'width_s': high_s - low_s}) AS winner
    FROM swept
    WHERE high_s IS NOT NULL
    GROUP BY client_source_id, server_source_id
    HAVING max(agreeing_count) >= 0.8 * max(pair_count)
),

agreeing AS (
    SELECT level.*
    FROM level
    INNER JOIN bound
        ON
            level.client_source_id = bound.client_source_id
            AND level.server_source_id = bound.server_source_id
    LEFT JOIN majority
        ON
            level.client_source_id = majority.client_source_id
            AND level.server_source_id = majority.server_source_id
    WHERE
        CASE
            WHEN majority.client_source_id IS NOT NULL
                THEN
                    coalesce(level.level_low_s <= majority.winner.low_s, TRUE)
                    AND coalesce(level.level_high_s >= majority.winner.high_s, TRUE)
            ELSE coalesce(bound.low_s <= bound.high_s, TRUE)
        END
),

flat AS (
    -- What the pairs say where the two clocks run alike.
    SELECT
        client_source_id,
        server_source_id,
        max(low_s) AS low_s,
        min(high_s) AS high_s
    FROM agreeing
    GROUP BY client_source_id, server_source_id
),

-- Of each slice only the two pairs that bound the line best: fewer half planes, so the polygon is never too small.
half_plane AS (
    SELECT
        *,
        row_number() OVER (PARTITION BY client_source_id, server_source_id) AS plane_no
    FROM (
        SELECT
            client_source_id,
            server_source_id,
            -1.0 AS a,
            -arg_max(low_at_s, level_low_s) AS b,
            -arg_max(low_s, level_low_s) AS c
        FROM agreeing
        WHERE can_drift AND low_s IS NOT NULL
        GROUP BY client_source_id, server_source_id, low_slice_no
        UNION ALL
        SELECT
            client_source_id,
            server_source_id,
            1.0 AS a,
            arg_min(high_at_s, level_high_s) AS b,
            arg_min(high_s, level_high_s) AS c
        FROM agreeing
        WHERE can_drift AND high_s IS NOT NULL
        GROUP BY client_source_id, server_source_id, high_slice_no
        UNION ALL
        -- No clock that a computer has is worse than 200 ppm.
        SELECT
            client_source_id,
            server_source_id,
            0.0 AS a,
            unnest([1.0, -1.0]) AS b,
            2e-4 AS c
        FROM span
        WHERE can_drift
    )
),

crossing AS (
    SELECT
        one.client_source_id,
        one.server_source_id,
        (one.c * other.b - other.c * one.b) / (one.a * other.b - other.a * one.b) AS offset_s,
        (one.a * other.c - other.a * one.c) / (one.a * other.b - other.a * one.b) AS drift
    FROM half_plane AS one
    INNER JOIN half_plane AS other
        ON
            one.client_source_id = other.client_source_id
            AND one.server_source_id = other.server_source_id
            AND one.plane_no < other.plane_no
            AND abs(one.a * other.b - other.a * one.b) > 1e-9
),

polygon AS (
    SELECT
        client_source_id,
        server_source_id,
        list({'offset_s': offset_s, 'drift': drift}) AS corners,
        min(offset_s) AS low_s,
        max(offset_s) AS high_s,
        min(drift) AS drift_low,
        max(drift) AS drift_high
    FROM (
        SELECT
            crossing.client_source_id,
            crossing.server_source_id,
            crossing.offset_s,
            crossing.drift
        FROM crossing
        INNER JOIN half_plane
            ON
                crossing.client_source_id = half_plane.client_source_id
                AND crossing.server_source_id = half_plane.server_source_id
        GROUP BY ALL
        HAVING max(half_plane.a * crossing.offset_s + half_plane.b * crossing.drift - half_plane.c) <= 1e-6
    )
    GROUP BY client_source_id, server_source_id
    -- Open to one side it bounds nothing.
    HAVING count(DISTINCT round(offset_s, 9)) > 1 OR min(offset_s) = max(offset_s)
),

local_client AS (
    -- Every API call in the server's log came from its own host.
    SELECT run_id
    FROM access_line
    WHERE method = 'POST'
    GROUP BY run_id
    HAVING bool_and(
            starts_with(client_addr, '127.') OR starts_with(client_addr, '[::1]')
            OR starts_with(client_addr, '::1') OR starts_with(client_addr, 'localhost')
        )
),

judged AS (
    SELECT
        source.run_id,
        span.client_source_id,
        span.server_source_id,
        span.middle_ts,
        span.can_drift,
        span.pair_count,
        coalesce(majority.agreeing_count, CASE WHEN coalesce(bound.low_s <= bound.high_s, TRUE) THEN span.pair_count END) AS agreeing_count,
        -- What contradicts itself is shown as it is.
        CASE WHEN flat.client_source_id IS NULL THEN bound.low_s ELSE flat.low_s END AS flat_low_s,
        CASE WHEN flat.client_source_id IS NULL THEN bound.high_s ELSE flat.high_s END AS flat_high_s,
        flat.client_source_id IS NOT NULL AS has_majority,
        polygon.corners,
        polygon.low_s,
        polygon.high_s,
        polygon.drift_low,
        polygon.drift_high,
        source.clock = 'relative' AS placed_by_nesting,
        local_client.run_id IS NOT NULL AND source.clock <> 'relative'
        AND flat.low_s <= flat.high_s AND flat.low_s <= 0.001 AND flat.high_s >= -0.001 AS is_one_host
    FROM span
    INNER JOIN source ON span.client_source_id = source.source_id
    INNER JOIN bound
        ON
            span.client_source_id = bound.client_source_id
            AND span.server_source_id = bound.server_source_id
    LEFT JOIN flat
        ON
            span.client_source_id = flat.client_source_id
            AND span.server_source_id = flat.server_source_id
    LEFT JOIN majority
        ON
            span.client_source_id = majority.client_source_id
            AND span.server_source_id = majority.server_source_id
    LEFT JOIN polygon
        ON
            span.client_source_id = polygon.client_source_id
            AND span.server_source_id = polygon.server_source_id
    LEFT JOIN local_client ON source.run_id = local_client.run_id
),

settled AS (
    SELECT
        * REPLACE (coalesce(is_one_host, FALSE) AS is_one_host),
        coalesce(has_majority AND can_drift AND corners IS NOT NULL AND NOT coalesce(is_one_host, FALSE), FALSE) AS is_line
    FROM judged
)

SELECT
    run_id,
    client_source_id,
    server_source_id,
    middle_ts,
    pair_count,
    agreeing_count,
    placed_by_nesting,
    is_one_host,
    CASE WHEN is_line THEN low_s ELSE flat_low_s END AS low_s,
    CASE WHEN is_line THEN high_s ELSE flat_high_s END AS high_s,
    CASE WHEN is_line THEN drift_low END AS drift_low,
    CASE WHEN is_line THEN drift_high END AS drift_high,
    is_line OR (has_majority AND coalesce(flat_low_s <= flat_high_s, FALSE)) AS is_known,
    CASE
        WHEN is_line THEN corners
        WHEN has_majority AND flat_low_s <= flat_high_s
            THEN [{'offset_s': flat_low_s, 'drift': 0.0}, {'offset_s': flat_high_s, 'drift': 0.0}]
    END AS corners
FROM settled;
COMMENT ON VIEW _clock_line IS 'One row per pair of clocks: what is left of (offset at middle_ts, drift) after every shared request, as the corners of a polygon.';

-- Lowest and highest offset that the corners allow, some seconds after the middle of the run.
CREATE MACRO _lowest_offset(corners, after_s) AS
list_min(list_transform(corners, LAMBDA corner: corner.offset_s + corner.drift * after_s));

CREATE MACRO _highest_offset(corners, after_s) AS
list_max(list_transform(corners, LAMBDA corner: corner.offset_s + corner.drift * after_s));
