/*
The requests of a run with what one sorts and filters by, the slowest first. ttft_s and e2e_s are the client's where it is known,
else the server's; rest_s is TTFT less queue and prefill; status is how it ended; ttft_percentile_ratio is the share of the
requests with a known TTFT that are not slower; id_hash is a hash of its id, by which equal ones are put in order.
[params]
run = ""
*/
SELECT
    run_id,
    request_id,
    end_status AS status,
    arrival_ts,
    coalesce(client_ttft_s, ttft_s) AS ttft_s,
    ttft_percentile_ratio,
    queue_s,
    prefill_s,
    coalesce(client_ttft_s, ttft_s) - queue_s - prefill_s AS rest_s,
    tpot_s,
    coalesce(client_e2e_s, e2e_s) AS e2e_s,
    CASE WHEN client_e2e_s IS NOT NULL THEN 0.0 ELSE e2e_error_s END AS e2e_error_s,
    input_tokens,
    cached_input_tokens,
    output_tokens,
    preemption_count,
    streamed,
    finish_reason,
    http_status,
    label,
    client_id,
    id_hash
FROM _request_percentile
WHERE ($run = '' OR run_id = $run)
ORDER BY ttft_s DESC NULLS LAST, id_hash ASC, run_id ASC
