/*
What the server's log shouts, over the same equal pieces of time as lanes: in each the gravest kind of line, and how many
lines of each kind. A piece without any is not there.
[params]
run = ""
pieces = 60
since = ""
until = ""
*/
WITH span AS (
    SELECT
        run_id,
        coalesce(try_cast(nullif($since, '') AS TIMESTAMP), min(window_ts)) AS from_ts,
        coalesce(try_cast(nullif($until, '') AS TIMESTAMP), max(window_ts) + INTERVAL 1 SECOND) AS to_ts
    FROM time_window
    WHERE $run IN ('', run_id)
    GROUP BY run_id
)

SELECT
    span.run_id,
    floor(
        epoch(event.event_ts - span.from_ts)
        / greatest(epoch(span.to_ts - span.from_ts) / least($pieces, greatest(ceil(epoch(span.to_ts - span.from_ts))::BIGINT, 1)), 1e-3)
    )::BIGINT AS place,
    CASE
        WHEN bool_or(event.kind = 'traceback' OR event.level IN ('ERROR', 'CRITICAL')) THEN 'error'
        WHEN bool_or(event.kind IN ('start', 'ready', 'stop')) THEN 'start'
        ELSE 'warning'
    END AS gravest,
    count(*) FILTER (WHERE event.kind = 'traceback' OR event.level IN ('ERROR', 'CRITICAL')) AS error_count,
    count(*) FILTER (WHERE event.level = 'WARNING') AS warning_count,
    count(*) AS event_count,
    arg_min(event.message, event.event_ts) AS first_message
FROM span
INNER JOIN log_event AS event
    ON span.run_id = event.run_id AND span.from_ts <= event.event_ts AND span.to_ts > event.event_ts
GROUP BY ALL
ORDER BY span.run_id ASC, place ASC
