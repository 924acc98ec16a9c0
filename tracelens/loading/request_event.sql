-- Of the streamed deltas of one request only the first is an event: its first token, at the latest.
--
-- Internal ids become external ones where the same file names them.  An internal id is the one that a line of the Rust
-- front end gives beside the external id, or it is the external id with a dash and 8 hex digits behind it (vLLM 0.14 and
-- later), or one of the n answers to a request, with its number in front.  Of two ids of one abort the shorter one is
-- the external one.  The rest is left to join.sql.
--
-- Where clients choose them, ids are used again: by a server that is started anew, or by a client that sends its request once
-- more.  A request that begins anew behind a start of the server, or behind its own end, is another one.  Starts that stand
-- in other files are left to join.sql.
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

named AS (
    SELECT written.* REPLACE (coalesce(shortened.request_id, written.logged_id) AS request_id)
    FROM written
    LEFT JOIN shortened ON written.logged_id = shortened.logged_id
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
turn AS (
    SELECT
        named.request_id,
        named.line_no,
        CASE WHEN named.event IN ('received', 'added') THEN 'begins' ELSE 'ends' END AS turn,
        len(list_filter(server_start.line_nos, LAMBDA s: s < named.line_no)) AS start_no
    FROM named
    CROSS JOIN server_start
    WHERE
        named.event NOT IN ('first_token', 'scheduled', 'preempted')
        AND (
            named.event <> 'added'
            OR named.request_id NOT IN (SELECT n.request_id FROM named AS n WHERE n.event = 'received' AND n.request_id IS NOT NULL)
        )
),

-- Nearly all ids begin once: only the others are looked at in order.
repeated AS (
    SELECT request_id
    FROM turn
    WHERE turn = 'begins' AND request_id IS NOT NULL
    GROUP BY request_id
    HAVING count(*) > 1
),

told AS (
    SELECT
        request_id,
        line_no,
        turn,
        turn = 'begins'
        AND (
            start_no > lag(CASE WHEN turn = 'begins' THEN start_no END IGNORE NULLS) OVER so_far
            OR (
                lag(turn) OVER so_far = 'ends'
                AND lag(CASE WHEN turn = 'begins' THEN line_no END IGNORE NULLS) OVER so_far IS NOT NULL
            )
        ) AS is_again
    FROM turn
    WHERE request_id IN (SELECT repeated.request_id FROM repeated)
    WINDOW so_far AS (PARTITION BY request_id ORDER BY line_no)
),

again AS (
    SELECT
        request_id,
        line_no,
        1 + row_number() OVER (PARTITION BY request_id ORDER BY line_no) AS life_no
    FROM told
    WHERE is_again
),

lived AS (
    SELECT
        named.*,
        again.life_no
    FROM (SELECT * FROM named WHERE request_id IN (SELECT repeated.request_id FROM repeated)) AS named
    ASOF LEFT JOIN again ON named.request_id = again.request_id AND named.line_no >= again.line_no
    UNION ALL
    SELECT
        *,
        NULL AS life_no
    FROM named
    WHERE request_id IS NULL OR request_id NOT IN (SELECT repeated.request_id FROM repeated)
),

numbered AS (
    SELECT * REPLACE (CASE WHEN life_no > 1 THEN request_id || '#' || life_no ELSE request_id END AS request_id)
    FROM lived
)

SELECT * EXCLUDE (life_no)
FROM numbered
WHERE event <> 'first_token'
UNION ALL
SELECT * EXCLUDE (life_no)
FROM numbered
WHERE event = 'first_token'
QUALIFY row_number() OVER (PARTITION BY logged_id, life_no ORDER BY line_no) = 1
