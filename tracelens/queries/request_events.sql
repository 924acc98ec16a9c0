/*
The log lines of one request's life, in order; each lies within [event_ts, event_ts + error_s).
[params]
request = ""
run = ""
*/
SELECT
    event.run_id,
    event.event_ts,
    event.error_s,
    event.event,
    event.logged_id,
    event.process,
    event.finish_reason,
    event.detail,
    event.input_tokens,
    event.output_tokens,
    source.path,
    event.line_no
FROM request_event AS event
INNER JOIN source ON event.source_id = source.source_id
WHERE event.request_id = $request AND ($run = '' OR event.run_id = $run)
ORDER BY event.run_id ASC, event.event_ts ASC NULLS LAST, event.source_id ASC, event.line_no ASC
