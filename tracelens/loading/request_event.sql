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
--
-- Ids are long and each is another, so every step on all of them costs: they are grouped and joined as seldom as can be, and
-- only by what can wait on the disk (no text in an aggregate, no NOT IN): a log may name more ids than memory holds.  Each join
-- and each group keeps dozens of blocks in memory however little it is allowed, so no statement has two of them over all ids.
CREATE OR REPLACE TEMP VIEW written AS
SELECT NULL::VARCHAR AS engine_id
WHERE FALSE
UNION ALL BY NAME
SELECT *
FROM part;

CREATE OR REPLACE TEMP TABLE target AS
SELECT
    logged_id,
    bool_or(event <> 'aborted') AS is_external
FROM written
WHERE event IN ('received', 'finished', 'failed', 'aborted')
GROUP BY logged_id;

CREATE OR REPLACE TEMP TABLE tried AS
WITH parted AS (
    SELECT
        logged_id,
        substr(logged_id, -9, 1) = '-' AND regexp_matches(right(logged_id, 8), '^[0-9a-f]{8}$') AS has_suffix,
        contains(logged_id, '_') AND regexp_matches(logged_id, '^\d+_') AS has_number
    FROM written
    WHERE event NOT IN ('received', 'finished', 'failed')
),

candidate AS (
    SELECT
        logged_id,
        left(logged_id, -9) AS request_id,
        2 AS attempt
    FROM parted
    WHERE has_suffix
    UNION ALL
    SELECT
        logged_id,
        regexp_replace(logged_id, '^\d+_', '') AS request_id,
        3 AS attempt
    FROM parted
    WHERE has_number
    UNION ALL
    SELECT
        logged_id,
        regexp_replace(left(logged_id, -9), '^\d+_', '') AS request_id,
        4 AS attempt
    FROM parted
    WHERE has_number AND has_suffix
    UNION ALL
    SELECT
        engine_id AS logged_id,
        logged_id AS request_id,
        1 AS attempt
    FROM written
    WHERE engine_id IS NOT NULL AND engine_id <> logged_id
)

SELECT candidate.*
FROM candidate
INNER JOIN target ON candidate.request_id = target.logged_id;

-- What a client was told is no internal id, unless a line says so.
CREATE OR REPLACE TEMP TABLE internal AS
SELECT tried.*
FROM tried
LEFT JOIN target ON tried.logged_id = target.logged_id AND target.is_external
WHERE tried.attempt = 1 OR target.logged_id IS NULL;

CREATE OR REPLACE TEMP TABLE shortened AS
SELECT
    logged_id,
    request_id
FROM internal
QUALIFY row_number() OVER (PARTITION BY logged_id ORDER BY attempt, request_id) = 1;

DROP TABLE target;

DROP TABLE tried;

DROP TABLE internal;

CREATE OR REPLACE TEMP VIEW named AS
SELECT written.* REPLACE (coalesce(shortened.request_id, written.logged_id) AS request_id)
FROM written
LEFT JOIN shortened ON written.logged_id = shortened.logged_id;

-- Nearly all ids begin once: only the others, and those few that share their hash, are looked at in order.  An internal id counts
-- as one beginning of its external one.
CREATE OR REPLACE TEMP TABLE begun AS
SELECT
    hash(logged_id) AS id_hash,
    event = 'received' AS is_received
FROM written
WHERE event IN ('received', 'added')
UNION ALL
SELECT
    hash(request_id) AS id_hash,
    FALSE AS is_received
FROM shortened;

CREATE OR REPLACE TEMP TABLE repeated AS
SELECT id_hash
FROM begun
GROUP BY id_hash
HAVING count(*) FILTER (WHERE is_received) > 1 OR count(*) FILTER (WHERE NOT is_received) > 1;

INSERT INTO repeated
SELECT hash(request_id)
FROM shortened
WHERE hash(logged_id) IN (SELECT repeated.id_hash FROM repeated);

DROP TABLE begun;

CREATE OR REPLACE TEMP TABLE repeated_name AS
SELECT
    logged_id,
    request_id
FROM shortened
WHERE hash(request_id) IN (SELECT repeated.id_hash FROM repeated);

-- A request is taken in once; where no line says so, it is sent to the engine once (or once per answer).
CREATE OR REPLACE TEMP TABLE again AS
WITH repeating AS MATERIALIZED (
    SELECT
        coalesce(repeated_name.request_id, written.logged_id) AS request_id,
        written.line_no,
        written.event,
        bool_or(written.event = 'received') OVER (PARTITION BY coalesce(repeated_name.request_id, written.logged_id)) AS is_received
    FROM written
    LEFT JOIN repeated_name ON written.logged_id = repeated_name.logged_id
    WHERE written.event NOT IN ('first_token', 'scheduled', 'preempted')
        AND hash(coalesce(repeated_name.request_id, written.logged_id)) IN (SELECT repeated.id_hash FROM repeated)
),

server_start AS (
    SELECT coalesce(list(line_no), []) AS line_nos
    FROM log_event
    WHERE source_id = $source
        AND kind = 'start'
        AND regexp_matches(message, 'vLLM (?:API )?server version|Started server process')
        AND line_no > (SELECT min(written.line_no) FROM written)
),

turn AS (
    SELECT
        repeating.request_id,
        repeating.line_no,
        CASE WHEN repeating.event IN ('received', 'added') THEN 'begins' ELSE 'ends' END AS turn,
        len(list_filter(server_start.line_nos, LAMBDA s: s < repeating.line_no)) AS start_no
    FROM repeating
    CROSS JOIN server_start
    WHERE repeating.event <> 'added' OR NOT repeating.is_received
),

told AS (
    SELECT
        request_id,
        line_no,
        turn = 'begins'
        AND (
            start_no > lag(CASE WHEN turn = 'begins' THEN start_no END IGNORE NULLS) OVER so_far
            OR (
                lag(turn) OVER so_far = 'ends'
                AND lag(CASE WHEN turn = 'begins' THEN line_no END IGNORE NULLS) OVER so_far IS NOT NULL
            )
        ) AS is_again
    FROM turn
    WINDOW so_far AS (PARTITION BY request_id ORDER BY line_no)
)

SELECT
    request_id,
    list(line_no) AS line_nos
FROM told
WHERE is_again
GROUP BY request_id;

CREATE OR REPLACE TEMP VIEW lived AS
SELECT
    named.*,
    1 + len(list_filter(again.line_nos, LAMBDA s: s <= named.line_no)) AS life_no
FROM named
LEFT JOIN again ON named.request_id = again.request_id;

CREATE OR REPLACE TEMP TABLE later_token AS
SELECT line_no
FROM lived
WHERE event = 'first_token'
QUALIFY row_number() OVER (PARTITION BY logged_id, life_no ORDER BY line_no) > 1;

SELECT
    * EXCLUDE (life_no)
    REPLACE (CASE WHEN life_no > 1 THEN request_id || '#' || life_no ELSE request_id END AS request_id)
FROM lived
WHERE event <> 'first_token' OR line_no NOT IN (SELECT later_token.line_no FROM later_token)
