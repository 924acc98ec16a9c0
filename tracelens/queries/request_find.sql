/*
Requests that an id, or a part of one, may mean: the surest kind of match only.
An id matches as the server's, as the client's, as a log line has it (with 8 hex digits after it), as a trace id; then
as a beginning or an end; then as any part.
[params]
id = ""
run = ""
top = 20
*/
WITH named AS (
    SELECT
        run_id,
        request_id,
        request_id AS name,
        0 AS kind
    FROM request
    UNION ALL
    SELECT
        run_id,
        request_id,
        client_id AS name,
        1 AS kind
    FROM request
    WHERE client_id IS NOT NULL
    UNION ALL
    SELECT
        run_id,
        request_id,
        logged_id AS name,
        1 AS kind
    FROM request_event
    UNION ALL
    SELECT
        run_id,
        request_id,
        trace_id AS name,
        1 AS kind
    FROM server_request
    WHERE request_id IS NOT NULL AND trace_id IS NOT NULL
    UNION ALL
    SELECT
        run_id,
        request_id,
        unnest([response_id, trace_id, gateway_id]) AS name,
        1 AS kind
    FROM client_request
    WHERE request_id IS NOT NULL
),

matched AS (
    SELECT
        run_id,
        request_id,
        min(CASE
            WHEN name = $id THEN kind
            WHEN name = regexp_replace($id, '-[0-9a-f]{8}$', '') THEN 2
            WHEN starts_with(name, $id) OR ends_with(name, $id) THEN 3
            WHEN contains(name, $id) THEN 4
        END) AS match_rank
    FROM named
    WHERE ($run = '' OR run_id = $run) AND (contains(name, $id) OR name = regexp_replace($id, '-[0-9a-f]{8}$', ''))
    GROUP BY run_id, request_id
)

SELECT
    run_id,
    request_id,
    ['request id', 'client, logged or trace id', 'id without its 8 hex digits', 'beginning or end', 'part'][match_rank + 1] AS matched_by,
    count(*) OVER () AS match_count
FROM matched
WHERE match_rank IS NOT NULL
QUALIFY match_rank = min(match_rank) OVER ()
ORDER BY request_id ASC, run_id ASC
LIMIT $top
