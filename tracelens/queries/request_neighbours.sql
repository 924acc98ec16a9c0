/*
Requests that were in the server at the same time as one request, longest shared time first, and what each was doing
when that one arrived. Times are the server's where it saw the request, else the client's: see clock.
[params]
request = ""
run = ""
top = 5
*/
SELECT
    run_id,
    request_id,
    status,
    from_ts,
    to_ts,
    epoch(least(to_ts, my_to_ts) - greatest(from_ts, my_from_ts)) AS shared_s,
    CASE
        WHEN from_ts > my_from_ts THEN 'not there yet'
        WHEN my_from_ts >= first_token_ts THEN 'decode'
        WHEN my_from_ts >= prefill_ts THEN 'prefill'
        WHEN my_from_ts < first_token_ts THEN 'waiting'
        ELSE 'not known'
    END AS was_doing,
    ttft_s,
    queue_s,
    input_tokens,
    output_tokens,
    clock
FROM _beside($request, $run)
WHERE from_ts < my_to_ts AND to_ts > my_from_ts
ORDER BY run_id ASC, shared_s DESC, request_id ASC
LIMIT $top
