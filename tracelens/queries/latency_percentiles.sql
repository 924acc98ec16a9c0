/*
Quantiles of TTFT, TPOT, end-to-end time, queue and prefill per run, over the requests in which each is known.
TTFT and end-to-end are the client's where it is known, else the server's: client_count says for how many.
[params]
run = ""
*/
SELECT
    run_id,
    measure,
    p50_s,
    p90_s,
    p95_s,
    p99_s,
    max_s,
    known_count,
    client_count,
    request_count
FROM _run_measure
WHERE measure IN ('ttft', 'tpot', 'e2e', 'queue', 'prefill') AND ($run = '' OR run_id = $run)
ORDER BY run_id ASC, list_position(['ttft', 'tpot', 'e2e', 'queue', 'prefill'], measure) ASC
