/*
One request: everything that its sources say of it joined, and how it stands in its run. ttft_percentile_ratio and
e2e_percentile_ratio are the share of the requests with a known TTFT (end-to-end time) that are not slower.
[params]
request = ""
run = ""
*/
WITH me AS MATERIALIZED (
    SELECT
        *,
        coalesce(client_ttft_s, ttft_s) AS whole_ttft_s,
        coalesce(client_e2e_s, e2e_s) AS whole_e2e_s
    FROM _request_called($request, $run)
),

not_slower AS (
    SELECT
        me.run_id,
        count(*) FILTER (WHERE coalesce(other.client_ttft_s, other.ttft_s) <= me.whole_ttft_s) AS ttft_count,
        count(*) FILTER (WHERE coalesce(other.client_e2e_s, other.e2e_s) <= me.whole_e2e_s) AS e2e_count
    FROM me
    INNER JOIN request AS other ON me.run_id = other.run_id
    GROUP BY me.run_id
)

SELECT
    me.run_id,
    me.request_id,
    me.arrival_ts,
    me.arrival_basis,
    me.ttft_s,
    me.client_ttft_s,
    me.queue_s,
    me.prefill_s,
    me.prefill_stated,
    me.decode_s,
    me.tpot_s,
    me.e2e_s,
    me.e2e_error_s,
    me.client_e2e_s,
    me.client_wait_s,
    me.client_sent_ts,
    me.client_headers_ts,
    me.client_first_chunk_ts,
    me.input_tokens,
    me.cached_input_tokens,
    me.output_tokens,
    me.max_tokens,
    me.finish_reason,
    me.preemption_count,
    me.streamed,
    me.status,
    me.end_status,
    me.http_status,
    me.client_id,
    me.label,
    me.join_basis,
    me.has_span,
    me.server_source_id,
    me.server_line_no,
    me.client_source_id,
    me.client_line_no,
    me.whole_ttft_s,
    me.whole_e2e_s,
    me.arrival_ts + to_microseconds((coalesce(me.e2e_s, me.client_e2e_s, me.whole_ttft_s) * 1e6)::BIGINT) AS end_ts,
    ttft.request_count AS run_request_count,
    ttft.p50_s AS run_ttft_p50_s,
    e2e.p50_s AS run_e2e_p50_s,
    CASE WHEN me.whole_ttft_s IS NOT NULL THEN not_slower.ttft_count / ttft.known_count END AS ttft_percentile_ratio,
    CASE WHEN me.whole_e2e_s IS NOT NULL THEN not_slower.e2e_count / e2e.known_count END AS e2e_percentile_ratio,
    server.path AS server_path,
    client.path AS client_path
FROM me
INNER JOIN not_slower ON me.run_id = not_slower.run_id
INNER JOIN _run_measure AS ttft ON me.run_id = ttft.run_id AND ttft.measure = 'ttft'
INNER JOIN _run_measure AS e2e ON me.run_id = e2e.run_id AND e2e.measure = 'e2e'
LEFT JOIN source AS server ON me.server_source_id = server.source_id
LEFT JOIN source AS client ON me.client_source_id = client.source_id
ORDER BY me.run_id
