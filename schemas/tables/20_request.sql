CREATE TABLE request_event (
    run_id VARCHAR NOT NULL,
    source_id INTEGER NOT NULL,
    line_no BIGINT NOT NULL,
    request_id VARCHAR NOT NULL,
    logged_id VARCHAR NOT NULL,
    event event_kind NOT NULL,
    event_ts TIMESTAMP,
    error_s DOUBLE,
    process VARCHAR,
    finish_reason VARCHAR,
    detail VARCHAR,
    input_tokens BIGINT,
    output_tokens BIGINT,
    max_tokens BIGINT,
    sequence_count BIGINT,
    input_char_count BIGINT,
    engine_id VARCHAR
);
COMMENT ON TABLE request_event IS 'One row per lifecycle line of one request. A line that names several requests gives one row each.';
COMMENT ON COLUMN request_event.run_id IS 'Run of the source.';
COMMENT ON COLUMN request_event.source_id IS 'Source that the line stands in.';
COMMENT ON COLUMN request_event.line_no IS 'Its line number, from 1.';
COMMENT ON COLUMN request_event.request_id IS 'The request''s external id. vLLM 0.14 and later log an internal id (external id, dash, 8 hex digits) in some lines: that is mapped back where the external id is known. An id that is used again, after a later start of the server or after the end of the request that had it, has #2 behind it, then #3.';
COMMENT ON COLUMN request_event.logged_id IS 'The id as the line has it.';
COMMENT ON COLUMN request_event.event IS 'What happened. received: after chat template and tokenization, not the arrival. added: sent to the engine.';
COMMENT ON COLUMN request_event.event_ts IS 'Stamp of the line, UTC: the event lies in [event_ts, event_ts + error_s).';
COMMENT ON COLUMN request_event.error_s IS 'Resolution of the stamp, seconds (1 in vLLM''s own logs).';
COMMENT ON COLUMN request_event.process IS 'Process that wrote the line, as its prefix names it.';
COMMENT ON COLUMN request_event.finish_reason IS 'stop, length, abort, error, as the line has it.';
COMMENT ON COLUMN request_event.detail IS 'Reason of a failure, as the line has it.';
COMMENT ON COLUMN request_event.input_tokens IS 'Prompt tokens, where the line lists them.';
COMMENT ON COLUMN request_event.output_tokens IS 'Output tokens, where the line lists them.';
COMMENT ON COLUMN request_event.max_tokens IS 'max_tokens of the sampling parameters.';
COMMENT ON COLUMN request_event.sequence_count IS 'n of the sampling parameters.';
COMMENT ON COLUMN request_event.input_char_count IS 'Characters of the prompt as logged (Python repr), where the line has it.';
COMMENT ON COLUMN request_event.engine_id IS 'The engine''s own id of the request, where the line has both (Rust front end): other processes log that one.';

CREATE TABLE server_request (
    run_id VARCHAR NOT NULL,
    source_id INTEGER NOT NULL,
    line_no BIGINT NOT NULL,
    request_id VARCHAR,
    trace_id VARCHAR,
    measured_by VARCHAR NOT NULL,
    arrival_ts TIMESTAMP,
    queue_s DOUBLE,
    prefill_s DOUBLE,
    decode_s DOUBLE,
    inference_s DOUBLE,
    ttft_s DOUBLE,
    e2e_s DOUBLE,
    input_tokens BIGINT,
    cached_input_tokens BIGINT,
    output_tokens BIGINT,
    max_tokens BIGINT,
    sequence_count BIGINT,
    finish_reason VARCHAR,
    preemption_count BIGINT,
    service VARCHAR,
    other VARCHAR
);
COMMENT ON TABLE server_request IS 'One row per request as one server-side source measured it: a span, the metrics object of a response, a log line with durations.';
COMMENT ON COLUMN server_request.run_id IS 'Run of the source.';
COMMENT ON COLUMN server_request.source_id IS 'Source that stated it.';
COMMENT ON COLUMN server_request.line_no IS 'Line of it, from 1.';
COMMENT ON COLUMN server_request.request_id IS 'The server''s id of the request.';
COMMENT ON COLUMN server_request.trace_id IS 'Trace id of the span, 32 lower-case hex digits.';
COMMENT ON COLUMN server_request.measured_by IS 'span, response (metrics object in the answer) or log.';
COMMENT ON COLUMN server_request.arrival_ts IS 'Start of the span, UTC. vLLM 0.17 and later: before chat template and tokenization; before that: after them.';
COMMENT ON COLUMN server_request.queue_s IS 'Queued to first scheduled, seconds. vLLM: gen_ai.latency.time_in_queue. V1 does not count the wait for a running step in it; V0 starts it at arrival.';
COMMENT ON COLUMN server_request.prefill_s IS 'First scheduled to first token, seconds. In a response it is what vLLM calls time_to_first_token_ms.';
COMMENT ON COLUMN server_request.decode_s IS 'First to last token, seconds; preempted time is in it.';
COMMENT ON COLUMN server_request.inference_s IS 'First scheduled to last token, seconds.';
COMMENT ON COLUMN server_request.ttft_s IS 'Arrival to first token, seconds. It begins at arrival_ts, a client''s TTFT as it sends: the two are not to be compared, their difference is network and front end.';
COMMENT ON COLUMN server_request.e2e_s IS 'Arrival to last token, seconds.';
COMMENT ON COLUMN server_request.input_tokens IS 'Prompt tokens.';
COMMENT ON COLUMN server_request.cached_input_tokens IS 'Prompt tokens that the prefix cache held.';
COMMENT ON COLUMN server_request.output_tokens IS 'Tokens generated.';
COMMENT ON COLUMN server_request.max_tokens IS 'max_tokens asked for.';
COMMENT ON COLUMN server_request.sequence_count IS 'n asked for.';
COMMENT ON COLUMN server_request.finish_reason IS 'Why it ended.';
COMMENT ON COLUMN server_request.preemption_count IS 'Times it was preempted.';
COMMENT ON COLUMN server_request.service IS 'service.name of the span''s resource.';
COMMENT ON COLUMN server_request.other IS 'Further numbers that the source gave, as a JSON object.';

CREATE TABLE request_text (
    run_id VARCHAR NOT NULL,
    source_id INTEGER NOT NULL,
    line_no BIGINT NOT NULL,
    request_id VARCHAR,
    kind VARCHAR NOT NULL,
    content VARCHAR
);
COMMENT ON TABLE request_text IS 'One row per prompt or output text. Empty unless the case was made with --keep-text.';
COMMENT ON COLUMN request_text.run_id IS 'Run of the source.';
COMMENT ON COLUMN request_text.source_id IS 'Source that has it.';
COMMENT ON COLUMN request_text.line_no IS 'Its line number, from 1.';
COMMENT ON COLUMN request_text.request_id IS 'Request, as the source names it.';
COMMENT ON COLUMN request_text.kind IS 'prompt or output.';
COMMENT ON COLUMN request_text.content IS 'The text as the source has it.';
