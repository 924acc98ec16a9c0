CREATE VIEW request AS
WITH logged AS (
    SELECT
        run_id,
        request_id,
        min(event_ts) FILTER (WHERE event = 'received') AS received_ts,
        max(event_ts) FILTER (WHERE event = 'received') AS last_received_ts,
        max(event_ts) FILTER (WHERE event = 'finished') AS finished_ts,
        max(event_ts) FILTER (WHERE event IN ('aborted', 'failed')) AS gone_ts,
        bool_or(event = 'aborted') AS was_aborted,
        bool_or(event = 'failed') AS has_failed,
        count(*) FILTER (WHERE event = 'preempted') AS preemption_count,
        max(error_s) AS error_s,
        max(input_tokens) AS input_tokens,
        max(output_tokens) AS output_tokens,
        max(max_tokens) AS max_tokens,
        max(sequence_count) AS sequence_count,
        max(finish_reason) AS finish_reason
    FROM request_event
    GROUP BY run_id, request_id
),

named_client AS (
    SELECT
        client_request.* EXCLUDE (request_id),
        client_link.basis AS join_basis,
        coalesce(
            client_link.request_id,
            client_request.response_id,
            client_request.client_id,
            'request at ' || client_request.source_id || ':' || client_request.line_no
        ) AS name
    FROM client_request
    LEFT JOIN client_link
        ON client_request.source_id = client_link.source_id AND client_request.line_no = client_link.line_no
    -- A gateway's row of a request that another source tells better.
    WHERE client_request.is_secondary IS NULL
    -- A tool can write one request into two files (AIPerf: its records and its raw ones): the file that knows more counts.
    QUALIFY
        client_request.client_id IS NULL OR length(client_request.client_id) < 16 OR client_request.client_sent_ts IS NULL
        OR client_request.source_id = first_value(client_request.source_id) OVER (
            PARTITION BY client_request.run_id, client_request.client_id, client_request.client_sent_ts, client_request.client_end_ts
            ORDER BY client_link.basis IS NULL, client_request.response_id IS NULL, client_request.source_id, client_request.line_no
        )
),

client AS (
    -- A name that several client rows have is the joined one's, else the first one's; the others say where they stand.
    SELECT
        * EXCLUDE (name),
        CASE
            WHEN row_number() OVER (PARTITION BY run_id, name ORDER BY join_basis IS NULL, source_id, line_no) = 1 THEN name
            ELSE name || ' (again at ' || source_id || ':' || line_no || ')'
        END AS request_id
    FROM named_client
),

stated AS (
    SELECT *
    FROM server_request
    WHERE measured_by <> 'response'
    UNION ALL
    -- The metrics of a response belong to the client's line that they stand in, whatever it is called.
    SELECT server_request.* REPLACE (coalesce(client.request_id, server_request.request_id) AS request_id)
    FROM server_request
    LEFT JOIN client
        ON
            server_request.run_id = client.run_id
            AND server_request.source_id = client.source_id
            AND server_request.line_no = client.line_no
    WHERE server_request.measured_by = 'response'
),

-- An id can stand in several spans (n > 1, or a client that sent it twice): the first one is taken as a whole.  What it
-- leaves out is filled in from the server's own request log, then from the metrics of the response.
measured AS (
    SELECT
        run_id,
        request_id,
        arg_min(source_id, preference) AS source_id,
        arg_min(line_no, preference) AS line_no,
        arg_min(arrival_ts, preference) AS arrival_ts,
        arg_min(queue_s, preference) AS queue_s,
        arg_min(prefill_s, preference) AS prefill_s,
        arg_min(decode_s, preference) AS decode_s,
        arg_min(ttft_s, preference) AS ttft_s,
        arg_min(e2e_s, preference) AS e2e_s,
        arg_min(input_tokens, preference) AS input_tokens,
        arg_min(cached_input_tokens, preference) AS cached_input_tokens,
        arg_min(output_tokens, preference) AS output_tokens,
        arg_min(max_tokens, preference) AS max_tokens,
        arg_min(sequence_count, preference) AS sequence_count,
        arg_min(finish_reason, preference) AS finish_reason,
        max(preemption_count) AS preemption_count,
        bool_or(measured_by = 'span') AS has_span
    FROM (
        SELECT
            *,
            CASE measured_by WHEN 'span' THEN 0 WHEN 'log' THEN 1 ELSE 2 END AS preference
        FROM stated
        WHERE request_id IS NOT NULL
        QUALIFY row_number() OVER (PARTITION BY run_id, request_id, measured_by ORDER BY source_id, line_no) = 1
    )
    GROUP BY run_id, request_id
),

unnamed AS (
    SELECT
        run_id,
        'request at ' || source_id || ':' || line_no AS request_id,
        source_id,
        line_no,
        arrival_ts,
        queue_s,
        prefill_s,
        decode_s,
        ttft_s,
        e2e_s,
        input_tokens,
        cached_input_tokens,
        output_tokens,
        max_tokens,
        sequence_count,
        finish_reason,
        preemption_count,
        measured_by = 'span' AS has_span
    FROM stated
    WHERE request_id IS NULL
),

server AS (
    SELECT * FROM measured
    UNION ALL BY NAME
    SELECT * FROM unnamed
),

server_all AS (
    SELECT
        coalesce(server.run_id, logged.run_id) AS run_id,
        coalesce(server.request_id, logged.request_id) AS request_id,
        server.* EXCLUDE (run_id, request_id),
        logged.received_ts,
        -- From the log's stamps alone; an id that was received twice has no length of its own there.
        CASE
            WHEN logged.received_ts = logged.last_received_ts AND coalesce(logged.finished_ts, logged.gone_ts) >= logged.received_ts
                THEN epoch(coalesce(logged.finished_ts, logged.gone_ts) - logged.received_ts)
        END AS log_e2e_s,
        logged.finished_ts,
        logged.was_aborted,
        logged.has_failed,
        logged.error_s AS log_error_s,
        logged.input_tokens AS log_input_tokens,
        logged.output_tokens AS log_output_tokens,
        logged.max_tokens AS log_max_tokens,
        logged.sequence_count AS log_sequence_count,
        logged.finish_reason AS log_finish_reason,
        logged.preemption_count AS log_preemption_count
    FROM server
    FULL OUTER JOIN logged ON server.run_id = logged.run_id AND server.request_id = logged.request_id
)

SELECT
    coalesce(s.run_id, c.run_id) AS run_id,
    coalesce(s.request_id, c.request_id) AS request_id,
    coalesce(s.arrival_ts, s.received_ts, c.client_sent_ts) AS arrival_ts,
    CASE
        WHEN s.arrival_ts IS NOT NULL AND s.has_span THEN 'span'
        WHEN s.arrival_ts IS NOT NULL THEN 'request log'
        WHEN s.received_ts IS NOT NULL THEN 'log, whole second, after tokenization'
        WHEN c.client_sent_ts IS NOT NULL THEN 'client sent'
    END AS arrival_basis,
    s.ttft_s,
    c.client_ttft_s,
    s.queue_s,
    coalesce(s.prefill_s, CASE WHEN s.has_span AND s.ttft_s >= s.queue_s THEN s.ttft_s - s.queue_s END) AS prefill_s,
    s.prefill_s IS NOT NULL AS prefill_stated,
    s.decode_s,
    coalesce(
        CASE
            WHEN coalesce(s.output_tokens, c.output_tokens) > 1
                THEN coalesce(s.decode_s, s.e2e_s - s.ttft_s) / (coalesce(s.output_tokens, c.output_tokens) - 1)
        END,
        c.client_tpot_s
    ) AS tpot_s,
    coalesce(s.e2e_s, s.ttft_s + s.decode_s, s.log_e2e_s) AS e2e_s,
    CASE
        WHEN coalesce(s.e2e_s, s.ttft_s + s.decode_s) IS NOT NULL THEN 0.0
        WHEN s.log_e2e_s IS NOT NULL THEN coalesce(s.log_error_s, 1.0)
    END AS e2e_error_s,
    c.client_e2e_s,
    c.client_wait_s,
    c.client_sent_ts,
    c.client_headers_ts,
    c.client_first_chunk_ts,
    coalesce(s.input_tokens, c.input_tokens, s.log_input_tokens) AS input_tokens,
    coalesce(s.cached_input_tokens, c.cached_input_tokens) AS cached_input_tokens,
    coalesce(s.output_tokens, c.output_tokens, s.log_output_tokens) AS output_tokens,
    coalesce(s.max_tokens, c.max_tokens, s.log_max_tokens) AS max_tokens,
    coalesce(s.finish_reason, c.finish_reason, s.log_finish_reason) AS finish_reason,
    coalesce(s.preemption_count, nullif(s.log_preemption_count, 0)) AS preemption_count,
    c.streamed,
    CASE
        WHEN c.status = 'aborted' AND c.http_status BETWEEN 200 AND 299 THEN 'ok'
        WHEN c.status <> 'unknown' THEN c.status::VARCHAR
        WHEN s.finished_ts IS NOT NULL OR s.e2e_s IS NOT NULL OR s.ttft_s IS NOT NULL THEN 'ok'
        WHEN s.has_failed THEN 'error'
        WHEN s.was_aborted THEN 'aborted'
        ELSE 'unknown'
    END::request_status AS status,
    CASE
        WHEN c.status <> 'unknown' THEN c.status::VARCHAR
        WHEN s.was_aborted THEN 'aborted'
        WHEN s.has_failed THEN 'error'
        WHEN s.finished_ts IS NOT NULL OR s.e2e_s IS NOT NULL THEN 'ok'
        ELSE 'unknown'
    END::request_status AS end_status,
    c.http_status,
    c.client_id,
    c.label,
    c.join_basis,
    s.has_span,
    s.source_id AS server_source_id,
    s.line_no AS server_line_no,
    c.source_id AS client_source_id,
    c.line_no AS client_line_no
FROM server_all AS s
FULL OUTER JOIN client AS c ON s.run_id = c.run_id AND s.request_id = c.request_id;

COMMENT ON VIEW request IS 'One row per request, everything that any source says of it joined.';
COMMENT ON COLUMN request.run_id IS 'Run.';
COMMENT ON COLUMN request.request_id IS 'The server''s external id; the client''s where the server side has none.';
COMMENT ON COLUMN request.arrival_ts IS 'When it arrived, UTC; see arrival_basis.';
COMMENT ON COLUMN request.arrival_basis IS 'What arrival_ts is: the span''s start, the server''s own request log, the log''s Received line (whole second, after tokenization), or the client''s send.';
COMMENT ON COLUMN request.ttft_s IS 'TTFT on the server: arrival to first token, seconds.';
COMMENT ON COLUMN request.client_ttft_s IS 'TTFT at the client: sent to first chunk with content, seconds. NULL where it did not stream.';
COMMENT ON COLUMN request.queue_s IS 'Time in the scheduler''s queue, seconds. It does not hold the wait for a running engine step (V1).';
COMMENT ON COLUMN request.prefill_s IS 'First scheduled to first token, seconds; V0 spans do not state it: there it is TTFT less queue.';
COMMENT ON COLUMN request.prefill_stated IS 'Whether a source stated prefill_s.';
COMMENT ON COLUMN request.decode_s IS 'First to last token on the server, seconds.';
COMMENT ON COLUMN request.tpot_s IS 'Time per output token after the first, seconds; from the server where it is known, else from the client.';
COMMENT ON COLUMN request.e2e_s IS 'Arrival to last token on the server, seconds; from log stamps where no span says it, see e2e_error_s.';
COMMENT ON COLUMN request.e2e_error_s IS 'Error of e2e_s, seconds: 0 where the server measured it, 1 where it is the difference of two log stamps.';
COMMENT ON COLUMN request.client_e2e_s IS 'Sent to end of the answer at the client, seconds.';
COMMENT ON COLUMN request.client_wait_s IS 'Planned to sent at the client, seconds.';
COMMENT ON COLUMN request.client_sent_ts IS 'When the client sent it, client''s clock.';
COMMENT ON COLUMN request.client_headers_ts IS 'When response headers reached the client, client''s clock.';
COMMENT ON COLUMN request.client_first_chunk_ts IS 'When the first content reached the client, client''s clock.';
COMMENT ON COLUMN request.input_tokens IS 'Prompt tokens.';
COMMENT ON COLUMN request.cached_input_tokens IS 'Prompt tokens from the prefix cache.';
COMMENT ON COLUMN request.output_tokens IS 'Tokens generated.';
COMMENT ON COLUMN request.max_tokens IS 'max_tokens asked for.';
COMMENT ON COLUMN request.finish_reason IS 'Why it ended.';
COMMENT ON COLUMN request.preemption_count IS 'Times it was preempted, as far as any source says.';
COMMENT ON COLUMN request.streamed IS 'Whether the client streamed it; NULL where no client file has it.';
COMMENT ON COLUMN request.status IS 'How it was answered: ok once an answer began (2xx, a first token), even if the client then went away; so TTFT over ok requests counts in those that gave up later.';
COMMENT ON COLUMN request.end_status IS 'How it ended: the client''s word, else the server''s. A request can be answered (status ok) and end aborted.';
COMMENT ON COLUMN request.http_status IS 'HTTP status at the client.';
COMMENT ON COLUMN request.client_id IS 'The client''s own id.';
COMMENT ON COLUMN request.label IS 'The client''s own class of the request.';
COMMENT ON COLUMN request.join_basis IS 'What joined client and server, see client_link.';
COMMENT ON COLUMN request.has_span IS 'Whether a span measured it.';
COMMENT ON COLUMN request.server_source_id IS 'Source of the server''s measurement.';
COMMENT ON COLUMN request.server_line_no IS 'Line of it.';
COMMENT ON COLUMN request.client_source_id IS 'Source of the client''s row.';
COMMENT ON COLUMN request.client_line_no IS 'Line of it.';
