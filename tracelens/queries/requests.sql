/*
All requests in the order of their arrival, equal ones by a hash of their ids; label and status choose some of them.
[params]
run = ""
status = ""
label = ""
*/
SELECT
    run_id,
    request_id,
    status,
    arrival_ts,
    client_ttft_s,
    ttft_s,
    queue_s,
    prefill_s,
    decode_s,
    tpot_s,
    e2e_s,
    client_e2e_s,
    input_tokens,
    cached_input_tokens,
    output_tokens,
    finish_reason,
    preemption_count,
    streamed,
    http_status,
    label,
    client_id,
    arrival_basis,
    join_basis
FROM _request_timing
WHERE ($run = '' OR run_id = $run) AND $status IN ('', status::VARCHAR) AND ($label = '' OR label = $label)
ORDER BY run_id ASC, arrival_ts ASC NULLS LAST, id_hash ASC
