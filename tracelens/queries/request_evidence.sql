/*
Every line of every source that one request's numbers were taken from.
[params]
request = ""
run = ""
*/
WITH served AS (
    -- Two searches, not one with OR: the second reads no ids.
    SELECT *
    FROM server_request
    WHERE request_id = $request
    UNION ALL
    SELECT *
    FROM server_request
    WHERE request_id IS NULL AND $request = 'request at ' || source_id || ':' || line_no
),

line AS (
    SELECT
        run_id,
        source_id,
        line_no,
        event_ts AS line_ts,
        error_s,
        event::VARCHAR AS what,
        concat_ws(', ', logged_id, finish_reason, detail) AS says
    FROM request_event
    WHERE request_id = $request
    UNION ALL
    SELECT
        run_id,
        source_id,
        line_no,
        arrival_ts AS line_ts,
        NULL AS error_s,
        measured_by AS what,
        concat_ws(
            ', ',
            format('TTFT {:.3f} s', ttft_s),
            format('queue {:.4f} s', queue_s),
            format('prefill {:.3f} s', prefill_s),
            format('decode {:.3f} s', decode_s),
            format('end to end {:.3f} s', e2e_s),
            finish_reason
        ) AS says
    FROM served
    UNION ALL
    SELECT
        client.run_id,
        client.source_id,
        client.line_no,
        client.client_sent_ts AS line_ts,
        NULL AS error_s,
        coalesce(replace(client.seen_by, '_', ' '), 'client') AS what,
        concat_ws(
            ', ',
            client.client_id,
            format('TTFT {:.3f} s', client.client_ttft_s),
            format('end to end {:.3f} s', client.client_e2e_s),
            client.status::VARCHAR,
            'HTTP ' || client.http_status,
            client.error
        ) AS says
    FROM client_request AS client
    INNER JOIN _request_called($request, $run) AS r
        ON client.run_id = r.run_id AND client.source_id = r.client_source_id AND client.line_no = r.client_line_no
    UNION ALL
    -- Gateways on the way, where another source tells the request.
    SELECT
        run_id,
        source_id,
        line_no,
        client_sent_ts AS line_ts,
        NULL AS error_s,
        replace(seen_by, '_', ' ') AS what,
        concat_ws(
            ', ',
            gateway_id,
            format('headers after {:.3f} s', client_headers_s),
            format('TTFT {:.3f} s', client_ttft_s),
            format('end to end {:.3f} s', client_e2e_s),
            status::VARCHAR,
            'HTTP ' || http_status,
            error
        ) AS says
    FROM client_request
    WHERE request_id = $request AND is_secondary
)

SELECT
    line.run_id,
    source.path,
    line.line_no,
    line.line_ts,
    line.error_s,
    line.what,
    line.says
FROM line
INNER JOIN source ON line.source_id = source.source_id
WHERE ($run = '' OR line.run_id = $run)
ORDER BY line.run_id ASC, line.line_ts ASC NULLS LAST, line.source_id ASC, line.line_no ASC
