/*
First and last stamp of each run over all its sources, the coarsest error of a stamp, and its requests by how they ended.
arrival_rps is requests per second between the first and the last arrival.
[params]
run = ""
*/
WITH stamped AS (
    SELECT
        run_id,
        min(first_ts) AS first_ts,
        max(last_ts) AS last_ts
    FROM source
    WHERE ($run = '' OR run_id = $run)
    GROUP BY run_id
),

erring AS (
    SELECT
        run_id,
        max(error_s) AS error_s
    FROM engine_sample
    WHERE ($run = '' OR run_id = $run)
    GROUP BY run_id
),

counted AS (
    SELECT
        run_id,
        count(*) AS request_count,
        count(*) FILTER (WHERE end_status = 'ok') AS ok_count,
        count(*) FILTER (WHERE end_status IN ('error', 'rejected')) AS failed_count,
        count(*) FILTER (WHERE end_status = 'aborted') AS aborted_count,
        count(*) FILTER (WHERE end_status = 'unknown') AS unknown_count,
        count(*) FILTER (WHERE streamed = FALSE) AS not_streamed_count,
        (count(arrival_ts) - 1) / nullif(epoch(max(arrival_ts) - min(arrival_ts)), 0) AS arrival_rps,
        count(*) FILTER (WHERE coalesce(client_ttft_s, ttft_s) <= 1)
        / nullif(count(coalesce(client_ttft_s, ttft_s)), 0) AS ttft_within_1s_ratio
    FROM request
    WHERE ($run = '' OR run_id = $run)
    GROUP BY run_id
)

SELECT
    stamped.run_id,
    stamped.first_ts,
    stamped.last_ts,
    erring.error_s,
    coalesce(counted.request_count, 0) AS request_count,
    coalesce(counted.ok_count, 0) AS ok_count,
    coalesce(counted.failed_count, 0) AS failed_count,
    coalesce(counted.aborted_count, 0) AS aborted_count,
    coalesce(counted.unknown_count, 0) AS unknown_count,
    coalesce(counted.not_streamed_count, 0) AS not_streamed_count,
    counted.arrival_rps,
    counted.ttft_within_1s_ratio
FROM stamped
LEFT JOIN erring ON stamped.run_id = erring.run_id
LEFT JOIN counted ON stamped.run_id = counted.run_id
ORDER BY stamped.run_id ASC
