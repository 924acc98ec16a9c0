-- Of the streamed deltas of one request only the first is an event: its first token, at the latest.  Internal ids
-- (external id, dash, 8 hex digits) become external ones where the same file names them; the rest is left to join.sql.
WITH external AS (
    SELECT DISTINCT logged_id
    FROM part
    WHERE event IN ('received', 'finished', 'failed')
),

event_row AS (
    SELECT *
    FROM part
    WHERE event <> 'first_token'
    UNION ALL BY NAME
    SELECT *
    FROM part
    WHERE event = 'first_token'
    QUALIFY row_number() OVER (PARTITION BY logged_id ORDER BY line_no) = 1
)

SELECT event_row.* REPLACE (coalesce(whole.logged_id, shortened.logged_id, event_row.logged_id) AS request_id)
FROM event_row
LEFT JOIN external AS whole ON event_row.logged_id = whole.logged_id
LEFT JOIN external AS shortened
    ON
        event_row.event NOT IN ('received', 'finished', 'failed')
        AND regexp_replace(event_row.logged_id, '-[0-9a-f]{8}$', '') = shortened.logged_id
