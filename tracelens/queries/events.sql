/*
Warnings, errors, starts, stops, compilations and tracebacks of the server, in the order of time.
[params]
run = ""
kind = ""
level = ""
*/
SELECT
    event.run_id,
    event.event_ts,
    event.level,
    event.kind,
    event.process,
    event.message,
    source.path,
    event.line_no,
    event.last_line_no
FROM log_event AS event
INNER JOIN source ON event.source_id = source.source_id
WHERE ($run = '' OR event.run_id = $run) AND $kind IN ('', event.kind) AND ($level = '' OR event.level = upper($level))
ORDER BY event.run_id ASC, event.event_ts ASC NULLS LAST, event.source_id ASC, event.line_no ASC
