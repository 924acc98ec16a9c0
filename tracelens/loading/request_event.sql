-- Of the streamed deltas of one request only the first is an event: its first token, at the latest.
--
-- Internal ids become external ones where the same file names them.  An internal id is the one that a line of the Rust
-- front end gives beside the external id, or it is the external id with a dash and 8 hex digits behind it (vLLM 0.14 and
-- later), or one of the n answers to a request, with its number in front.  Of two ids of one abort the shorter one is
-- the external one.  The rest is left to join.sql.
--
-- A server that is started again in the same file may use its ids again, where clients choose them: a request that
-- begins anew behind a start of the server is another one.
WITH written AS (
    SELECT NULL::VARCHAR AS engine_id
    WHERE FALSE
    UNION ALL BY NAME
    SELECT *
    FROM part
),

external AS (
    SELECT DISTINCT logged_id
    FROM written
    WHERE event IN ('received', 'finished', 'failed')
),

target AS (
    SELECT logged_id
    FROM external
    UNION
    SELECT logged_id
    FROM written
    WHERE event = 'aborted'
),

internal AS (
    SELECT DISTINCT logged_id
    FROM written
    WHERE event NOT IN ('received', 'finished', 'failed') AND logged_id NOT IN (SELECT external.logged_id FROM external)
),

candidate AS (
    SELECT
        logged_id,
        unnest([
            regexp_replace(logged_id, '-[0-9a-f]{8}$', ''),
            regexp_replace(logged_id, '^\d+_', ''),
            regexp_replace(regexp_replace(logged_id, '^\d+_', ''), '-[0-9a-f]{8}$', '')
        ]) AS request_id,
        unnest([2, 3, 4]) AS attempt
    FROM internal
    WHERE regexp_matches(logged_id, '^\d+_|-[0-9a-f]{8}$')
    UNION ALL
    SELECT
        engine_id AS logged_id,
        logged_id AS request_id,
        1 AS attempt
    FROM written
    WHERE engine_id IS NOT NULL
),

shortened AS (
    SELECT
        candidate.logged_id,
        arg_min(candidate.request_id, candidate.attempt) AS request_id
    FROM candidate
    INNER JOIN target ON candidate.request_id = target.logged_id
    WHERE candidate.request_id <> candidate.logged_id
    GROUP BY candidate.logged_id
),

event_row AS (
    SELECT *
    FROM written
    WHERE event <> 'first_token'
    UNION ALL BY NAME
    SELECT *
    FROM written
    WHERE event = 'first_token'
    QUALIFY row_number() OVER (PARTITION BY logged_id ORDER BY line_no) = 1
),

named AS (
    SELECT event_row.* REPLACE (coalesce(shortened.request_id, event_row.logged_id) AS request_id)
    FROM event_row
    LEFT JOIN shortened ON event_row.logged_id = shortened.logged_id
),

server_start AS (
    SELECT coalesce(list(line_no), []) AS line_nos
    FROM log_event
    WHERE source_id = $source
        AND kind = 'start'
        AND regexp_matches(message, 'vLLM (?:API )?server version|Started server process')
        AND line_no > (SELECT min(written.line_no) FROM written)
),

-- A request is taken in once; where no line says so, it is sent to the engine once (or once per answer).
beginning AS (
    SELECT
        named.request_id,
        named.line_no,
        len(list_filter(server_start.line_nos, LAMBDA s: s < named.line_no)) AS start_no
    FROM named
    CROSS JOIN server_start
    WHERE len(server_start.line_nos) > 0 AND named.event IN ('received', 'added')
    QUALIFY
        (named.event = 'received') = max(named.event = 'received') OVER (PARTITION BY named.request_id)
),

again AS (
    SELECT
        request_id,
        line_no,
        dense_rank() OVER (PARTITION BY request_id ORDER BY start_no) AS life_no
    FROM beginning
    QUALIFY max(start_no) OVER (PARTITION BY request_id) > min(start_no) OVER (PARTITION BY request_id)
)

SELECT named.* REPLACE (CASE WHEN again.life_no > 1 THEN named.request_id || '#' || again.life_no ELSE named.request_id END AS request_id)
FROM named
ASOF LEFT JOIN again ON named.request_id = again.request_id AND named.line_no >= again.line_no
