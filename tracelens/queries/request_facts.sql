/*
One request: everything that its sources say of it joined, and how it stands in its run.
[params]
request = ""
run = ""
*/
WITH whole AS (
    SELECT
        *,
        coalesce(client_ttft_s, ttft_s) AS whole_ttft_s,
        coalesce(client_e2e_s, e2e_s) AS whole_e2e_s
    FROM request
    WHERE $run IN ('', run_id)
),

run_of AS (
    SELECT
        whole.run_id,
        count(*) AS run_request_count,
        quantile_cont(whole.whole_ttft_s, 0.5) AS run_ttft_p50_s,
        quantile_cont(whole.whole_e2e_s, 0.5) AS run_e2e_p50_s,
        count(*) FILTER (WHERE whole.whole_ttft_s < me.whole_ttft_s)
        / nullif(count(whole.whole_ttft_s) FILTER (WHERE me.whole_ttft_s IS NOT NULL), 0) AS ttft_percentile_ratio,
        count(*) FILTER (WHERE whole.whole_e2e_s < me.whole_e2e_s)
        / nullif(count(whole.whole_e2e_s) FILTER (WHERE me.whole_e2e_s IS NOT NULL), 0) AS e2e_percentile_ratio
    FROM whole
    INNER JOIN whole AS me ON whole.run_id = me.run_id AND me.request_id = $request
    GROUP BY whole.run_id
)

SELECT
    whole.*,
    whole.arrival_ts + to_microseconds((coalesce(whole.e2e_s, whole.client_e2e_s, whole.whole_ttft_s) * 1e6)::BIGINT) AS end_ts,
    run_of.run_request_count,
    run_of.run_ttft_p50_s,
    run_of.run_e2e_p50_s,
    run_of.ttft_percentile_ratio,
    run_of.e2e_percentile_ratio,
    server.path AS server_path,
    client.path AS client_path
FROM whole
INNER JOIN run_of ON whole.run_id = run_of.run_id
LEFT JOIN source AS server ON whole.server_source_id = server.source_id
LEFT JOIN source AS client ON whole.client_source_id = client.source_id
WHERE whole.request_id = $request
ORDER BY whole.run_id
