/*
Requests that an id, or a part of one, may mean: the surest kind of match only.
An id matches as the server's, as the client's, as a log line has it (with 8 hex digits after it), as a trace id; then
as a beginning or an end; then as any part. What log lines have behind an id is searched where nothing else matches.
[params]
id = ""
run = ""
top = 20
*/
WITH called AS MATERIALIZED (
    SELECT
        run_id,
        request_id,
        0 AS match_rank
    FROM _request_called($id, $run)
),

-- All names are read where no request has this very id: those from the first row (line) on, or from one behind all.
reading AS MATERIALIZED (
    SELECT CASE WHEN EXISTS (SELECT 1 FROM called) THEN 9223372036854775807 ELSE 0 END AS first_no
),

named AS (
    SELECT
        run_id,
        request_id,
        request_id AS name,
        request_no AS place_no
    FROM _request_timing
    UNION ALL
    SELECT
        run_id,
        request_id,
        client_id AS name,
        request_no AS place_no
    FROM _request_timing
    UNION ALL
    SELECT
        run_id,
        request_id,
        trace_id AS name,
        line_no AS place_no
    FROM server_request
    UNION ALL
    SELECT
        run_id,
        request_id,
        response_id AS name,
        line_no AS place_no
    FROM client_request
    UNION ALL
    SELECT
        run_id,
        request_id,
        trace_id AS name,
        line_no AS place_no
    FROM client_request
    UNION ALL
    SELECT
        run_id,
        request_id,
        gateway_id AS name,
        line_no AS place_no
    FROM client_request
),

matched AS MATERIALIZED (
    SELECT
        run_id,
        request_id,
        min(_match_rank(name, $id)) AS match_rank
    FROM named
    WHERE
        (contains(name, $id) OR ($id <> _without_hex($id) AND name = _without_hex($id)))
        AND ($run = '' OR run_id = $run) AND request_id IS NOT NULL
        AND place_no >= (SELECT first_no FROM reading) -- noqa: RF02
    GROUP BY run_id, request_id
),

logged AS (
    -- A whole name: that of a request with its 8 hex digits.
    SELECT
        run_id,
        request_id,
        1 AS match_rank
    FROM request_event
    WHERE
        logged_id = $id AND request_id = _without_hex($id) AND $id <> _without_hex($id) AND ($run = '' OR run_id = $run)
        AND line_no >= (SELECT first_no FROM reading) -- noqa: RF02
    UNION ALL
    SELECT
        run_id,
        request_id,
        _match_rank(logged_id, $id) AS match_rank
    FROM request_event
    WHERE
        contains(logged_id, $id) AND ($run = '' OR run_id = $run)
        -- Said of both sides of the join, so that neither is read where something matched.
        AND request_id >= (SELECT CASE WHEN first_no > 0 OR EXISTS (SELECT 1 FROM matched) THEN chr(1114111) ELSE '' END FROM reading) -- noqa: RF02
        AND line_no >= (
            SELECT CASE WHEN first_no > 0 OR EXISTS (SELECT 1 FROM matched) THEN 9223372036854775807 ELSE 0 END
            FROM reading
        ) -- noqa: RF02
),

found AS MATERIALIZED (
    SELECT
        run_id,
        request_id,
        min(match_rank) AS match_rank
    FROM (
        FROM called
        UNION ALL
        FROM matched
        UNION ALL
        FROM logged
    )
    GROUP BY run_id, request_id
),

best AS (
    SELECT min(match_rank) AS match_rank
    FROM found
)

SELECT
    found.run_id,
    found.request_id,
    ['request id', 'client, logged or trace id', 'id without its 8 hex digits', 'beginning or end', 'part'][best.match_rank + 1]
        AS matched_by,
    count(*) OVER () AS match_count
FROM found
INNER JOIN best ON found.match_rank = best.match_rank
ORDER BY found.request_id ASC, found.run_id ASC
LIMIT $top
