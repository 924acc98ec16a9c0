/*
What the server's log shouts, over the same equal pieces of time as lanes: in each the gravest kind of line, and how many
lines of each kind. A piece without any is not there.
[params]
run = ""
pieces = 60
since = ""
until = ""
*/
SELECT
    w.run_id,
    floor(epoch(event.event_ts - w.from_ts) / w.piece_s)::BIGINT AS place,
    CASE
        WHEN bool_or(event.kind = 'traceback' OR event.level IN ('ERROR', 'CRITICAL')) THEN 'error'
        WHEN bool_or(event.kind IN ('start', 'ready', 'stop')) THEN 'start'
        ELSE 'warning'
    END AS gravest,
    count(*) FILTER (WHERE event.kind = 'traceback' OR event.level IN ('ERROR', 'CRITICAL')) AS error_count,
    count(*) FILTER (WHERE event.level = 'WARNING') AS warning_count,
    count(*) AS event_count,
    arg_min(event.message, event.event_ts) AS first_message
FROM _lane_window($run, $pieces, $since, $until) AS w
INNER JOIN log_event AS event
    ON w.run_id = event.run_id AND w.from_ts <= event.event_ts AND w.to_ts > event.event_ts
GROUP BY ALL
ORDER BY w.run_id ASC, place ASC
