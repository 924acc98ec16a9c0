/*
Where one request stands among the requests of its run by a measure, the worst first, and which ones stand next to it.
With an empty request: the worst. by is ttft, e2e, tpot, queue or prefill, as in slowest.
[params]
request = ""
by = "ttft"
run = ""
*/
WITH measured AS (
    SELECT
        run_id,
        request_id,
        CASE $by
            WHEN 'ttft' THEN coalesce(client_ttft_s, ttft_s)
            WHEN 'e2e' THEN coalesce(client_e2e_s, e2e_s)
            WHEN 'tpot' THEN tpot_s
            WHEN 'queue' THEN queue_s
            WHEN 'prefill' THEN prefill_s
            ELSE error('by is ttft, e2e, tpot, queue or prefill')
        END AS measure_s
    FROM request
    WHERE $run IN ('', run_id)
),

ranked AS (
    SELECT
        run_id,
        request_id,
        measure_s,
        row_number() OVER ordered AS place,
        lag(request_id) OVER ordered AS worse_id,
        lead(request_id) OVER ordered AS better_id,
        count(measure_s) OVER (PARTITION BY run_id) AS known_count
    FROM measured
    WINDOW ordered AS (PARTITION BY run_id ORDER BY measure_s DESC NULLS LAST, request_id ASC)
)

SELECT
    run_id,
    request_id,
    $by AS measure,
    measure_s,
    place,
    known_count,
    worse_id,
    better_id
FROM ranked
WHERE ($request = '' AND place = 1) OR request_id = $request
ORDER BY run_id ASC
