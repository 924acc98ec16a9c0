CREATE TABLE client_request (
    run_id VARCHAR NOT NULL,
    source_id INTEGER NOT NULL,
    line_no BIGINT NOT NULL,
    client_id VARCHAR,
    request_id VARCHAR,
    response_id VARCHAR,
    trace_id VARCHAR,
    position BIGINT,
    attempt BIGINT,
    label VARCHAR,
    client_planned_ts TIMESTAMP,
    client_sent_ts TIMESTAMP,
    client_headers_ts TIMESTAMP,
    client_first_byte_ts TIMESTAMP,
    client_first_chunk_ts TIMESTAMP,
    client_last_chunk_ts TIMESTAMP,
    client_end_ts TIMESTAMP,
    client_planned_s DOUBLE,
    client_sent_s DOUBLE,
    client_wait_s DOUBLE,
    client_headers_s DOUBLE,
    client_first_byte_s DOUBLE,
    client_ttft_s DOUBLE,
    client_reported_ttft_s DOUBLE,
    client_ttft_kind VARCHAR,
    client_e2e_s DOUBLE,
    client_tpot_s DOUBLE,
    streamed BOOLEAN,
    status request_status,
    http_status INTEGER,
    error VARCHAR,
    finish_reason VARCHAR,
    input_tokens BIGINT,
    cached_input_tokens BIGINT,
    output_tokens BIGINT,
    output_tokens_basis VARCHAR,
    max_tokens BIGINT,
    input_char_count BIGINT,
    chunk_count BIGINT,
    model VARCHAR,
    seen_by VARCHAR,
    gateway_id VARCHAR,
    is_secondary BOOLEAN,
    other VARCHAR
);
COMMENT ON TABLE client_request IS 'One row per request as a client saw it, or a gateway between client and server.';
COMMENT ON COLUMN client_request.run_id IS 'Run of the source.';
COMMENT ON COLUMN client_request.source_id IS 'Source that stated it.';
COMMENT ON COLUMN client_request.line_no IS 'Line of it, from 1; in a document that holds several requests the request''s place in it, from 1.';
COMMENT ON COLUMN client_request.client_id IS 'The id that the client used, as it wrote it (often sent as X-Request-Id).';
COMMENT ON COLUMN client_request.request_id IS 'The server''s id of the same request, where the two were joined; see client_link.';
COMMENT ON COLUMN client_request.response_id IS 'The id that the server put into its answer.';
COMMENT ON COLUMN client_request.trace_id IS 'Trace id that the client sent, 32 lower-case hex digits.';
COMMENT ON COLUMN client_request.position IS 'Place in the order of sending, from 0, where the file''s ids are positional.';
COMMENT ON COLUMN client_request.attempt IS 'Which attempt this was, from 1.';
COMMENT ON COLUMN client_request.label IS 'The client''s own class of the request.';
COMMENT ON COLUMN client_request.client_planned_ts IS 'When the load pattern wanted it sent, client''s clock.';
COMMENT ON COLUMN client_request.client_sent_ts IS 'When it was handed to the HTTP client, client''s clock.';
COMMENT ON COLUMN client_request.client_headers_ts IS 'Status and headers arrived. In a stream that is before the queue.';
COMMENT ON COLUMN client_request.client_first_byte_ts IS 'First byte of the body arrived.';
COMMENT ON COLUMN client_request.client_first_chunk_ts IS 'First chunk with content arrived (text, reasoning or tool call; not the role-only chunk).';
COMMENT ON COLUMN client_request.client_last_chunk_ts IS 'Last chunk with content arrived.';
COMMENT ON COLUMN client_request.client_end_ts IS 'The answer was complete, or the client gave up.';
COMMENT ON COLUMN client_request.client_planned_s IS 'When it was planned, seconds on the source''s own clock, for sources whose zero is unknown.';
COMMENT ON COLUMN client_request.client_sent_s IS 'When it was sent, seconds on the source''s own clock, for sources whose zero is unknown (perf_counter and other monotonic clocks): differences hold, times of day do not.';
COMMENT ON COLUMN client_request.client_wait_s IS 'Planned to sent, seconds: the client''s own queue. Outside TTFT: where a client waits for answers before it sends, TTFT alone leaves out what users would have waited (coordinated omission).';
COMMENT ON COLUMN client_request.client_headers_s IS 'Sent to headers, seconds.';
COMMENT ON COLUMN client_request.client_first_byte_s IS 'Sent to first byte of the body, seconds.';
COMMENT ON COLUMN client_request.client_ttft_s IS 'Sent to first chunk with content, seconds. NULL where the client did not stream: it saw no first token.';
COMMENT ON COLUMN client_request.client_reported_ttft_s IS 'What the tool itself calls TTFT, seconds; where it stops its watch stands in client_ttft_kind, and a role-only chunk or a first byte can be long before the first token.';
COMMENT ON COLUMN client_request.client_ttft_kind IS 'What the tool''s TTFT stops at: content, role, first_byte, headers or whole_response.';
COMMENT ON COLUMN client_request.client_e2e_s IS 'Sent to end of the answer, seconds.';
COMMENT ON COLUMN client_request.client_tpot_s IS 'First to last content chunk over output_tokens - 1, seconds; NULL for fewer than two tokens.';
COMMENT ON COLUMN client_request.streamed IS 'Whether the client asked for a stream and got one.';
COMMENT ON COLUMN client_request.status IS 'How it ended for the client.';
COMMENT ON COLUMN client_request.http_status IS 'HTTP status.';
COMMENT ON COLUMN client_request.error IS 'The client''s error text.';
COMMENT ON COLUMN client_request.finish_reason IS 'stop, length and the like, from the answer.';
COMMENT ON COLUMN client_request.input_tokens IS 'Prompt tokens, as the file has them.';
COMMENT ON COLUMN client_request.cached_input_tokens IS 'Prompt tokens that the server took from its prefix cache, from the answer.';
COMMENT ON COLUMN client_request.output_tokens IS 'Tokens generated, as the file has them.';
COMMENT ON COLUMN client_request.output_tokens_basis IS 'usage (the server counted), client (the client counted), requested (what was asked for) or chunks.';
COMMENT ON COLUMN client_request.max_tokens IS 'max_tokens asked for.';
COMMENT ON COLUMN client_request.input_char_count IS 'Characters of the prompt.';
COMMENT ON COLUMN client_request.chunk_count IS 'Chunks with content that arrived.';
COMMENT ON COLUMN client_request.model IS 'Model asked for.';
COMMENT ON COLUMN client_request.seen_by IS 'Who saw it: NULL for the client itself, llm_gateway (a proxy that reads the stream, such as LiteLLM) or http_gateway (an access log: nginx, Envoy, HAProxy). For gateways sent is the arrival at the gateway.';
COMMENT ON COLUMN client_request.gateway_id IS 'The gateway''s own id of the request; many gateways send it on as X-Request-Id.';
COMMENT ON COLUMN client_request.is_secondary IS 'Whether another source tells of the same request better, so that this row is no request of its own in the view request. Set by every ingest.';
COMMENT ON COLUMN client_request.other IS 'Further keys of the line, as a JSON object (no prompts, no outputs).';

CREATE TABLE client_stream (
    run_id VARCHAR NOT NULL,
    source_id INTEGER NOT NULL,
    line_no BIGINT NOT NULL,
    client_id VARCHAR,
    chunk_offset_s FLOAT[],
    chunk_kind VARCHAR
);
COMMENT ON TABLE client_stream IS 'One row per streamed request: when each of its chunks arrived.';
COMMENT ON COLUMN client_stream.run_id IS 'Run of the source.';
COMMENT ON COLUMN client_stream.source_id IS 'Source; the same line of client_request has the rest.';
COMMENT ON COLUMN client_stream.line_no IS 'Line, as in client_request.';
COMMENT ON COLUMN client_stream.client_id IS 'As in client_request.';
COMMENT ON COLUMN client_stream.chunk_offset_s IS 'Sent to arrival of each chunk, seconds, in order.';
COMMENT ON COLUMN client_stream.chunk_kind IS 'One letter per chunk: r role, c content, t reasoning, e empty content, f finish, u usage, k keep-alive, D end mark, E error, ? not said.';

CREATE TABLE client_summary (
    run_id VARCHAR NOT NULL,
    source_id INTEGER NOT NULL,
    line_no BIGINT NOT NULL,
    tool VARCHAR NOT NULL,
    subject VARCHAR,
    name VARCHAR NOT NULL,
    statistic VARCHAR,
    measured DOUBLE,
    unit VARCHAR,
    measured_s DOUBLE,
    stated VARCHAR
);
COMMENT ON TABLE client_summary IS 'One row per number that a load generator states of many requests together. Kept as stated: nothing in it is spread over requests or joined to any.';
COMMENT ON COLUMN client_summary.run_id IS 'Run of the source.';
COMMENT ON COLUMN client_summary.source_id IS 'Source that stated it.';
COMMENT ON COLUMN client_summary.line_no IS 'Line of it, from 1; in a JSON document the place of the result in it, from 1.';
COMMENT ON COLUMN client_summary.tool IS 'Load generator that stated it: aiperf, guidellm, vllm bench and so on.';
COMMENT ON COLUMN client_summary.subject IS 'Part of the load that it is about, in the tool''s words: a stage, a rate, only what succeeded. NULL is all of it.';
COMMENT ON COLUMN client_summary.name IS 'What was measured, as the tool calls it. Tools give different things one name: TTFT of the role-only chunk, time per token with or without the first one.';
COMMENT ON COLUMN client_summary.statistic IS 'mean, std, min, max, count, sum, p50, p99 and so on, over requests or chunks as the tool counts them. NULL is a single number.';
COMMENT ON COLUMN client_summary.measured IS 'The number, in the tool''s unit. NULL where the tool wrote a word; see stated.';
COMMENT ON COLUMN client_summary.unit IS 'Unit as the tool writes it.';
COMMENT ON COLUMN client_summary.measured_s IS 'The number in seconds, where it is a time.';
COMMENT ON COLUMN client_summary.stated IS 'What the tool wrote where that is no number: inf, not set, the prefix of its request ids.';
