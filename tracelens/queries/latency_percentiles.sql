/*
Quantiles of TTFT, TPOT, end-to-end time, queue and prefill per run, over the requests in which each is known.
TTFT and end-to-end are the client's where it is known, else the server's: client_count says for how many.
[params]
run = ""
*/
WITH listed AS (
    SELECT
        run_id,
        unnest([
            {
                'place': 1, 'measure': 'ttft', 'measure_s': coalesce(client_ttft_s, ttft_s),
                'by_client': client_ttft_s IS NOT NULL
            },
            {
                'place': 2, 'measure': 'tpot', 'measure_s': tpot_s,
                'by_client': tpot_s IS NOT NULL AND decode_s IS NULL AND (e2e_s IS NULL OR ttft_s IS NULL)
            },
            {
                'place': 3, 'measure': 'e2e', 'measure_s': coalesce(client_e2e_s, e2e_s),
                'by_client': client_e2e_s IS NOT NULL
            },
            {'place': 4, 'measure': 'queue', 'measure_s': queue_s, 'by_client': FALSE},
            {'place': 5, 'measure': 'prefill', 'measure_s': prefill_s, 'by_client': FALSE}
        ]) AS piece
    FROM request
    WHERE $run IN ('', run_id)
),

measured AS (
    SELECT
        run_id,
        piece.place AS place,
        piece.measure AS measure,
        piece.measure_s AS measure_s,
        piece.by_client AS by_client
    FROM listed
)

SELECT
    run_id,
    measure,
    quantile_cont(measure_s, 0.5) AS p50_s,
    quantile_cont(measure_s, 0.9) AS p90_s,
    quantile_cont(measure_s, 0.95) AS p95_s,
    quantile_cont(measure_s, 0.99) AS p99_s,
    max(measure_s) AS max_s,
    count(measure_s) AS known_count,
    count(measure_s) FILTER (WHERE by_client) AS client_count,
    count(*) AS request_count
FROM measured
GROUP BY run_id, measure, place
ORDER BY run_id ASC, place ASC
