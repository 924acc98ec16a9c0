/*
Prompt length and TTFT of single requests, at most `points` of them per run, evenly spread over the order of arrival.
[params]
run = ""
points = 1500
*/
WITH known AS (
    SELECT
        run_id,
        request_id,
        input_tokens,
        cached_input_tokens,
        coalesce(client_ttft_s, ttft_s) AS ttft_s,
        tpot_s,
        row_number() OVER (PARTITION BY run_id ORDER BY arrival_ts ASC, request_id ASC) AS place,
        count(*) OVER (PARTITION BY run_id) AS known_count
    FROM request
    WHERE $run IN ('', run_id) AND input_tokens IS NOT NULL AND coalesce(client_ttft_s, ttft_s) IS NOT NULL
)

SELECT
    run_id,
    request_id,
    input_tokens,
    cached_input_tokens,
    ttft_s,
    tpot_s
FROM known
WHERE known_count <= $points OR place % ceil(known_count / $points) = 0
ORDER BY run_id ASC, input_tokens ASC, ttft_s ASC, request_id ASC
