CREATE VIEW request_stage AS
WITH known AS (
    SELECT
        *,
        CASE WHEN frame <> 'end' THEN network_in_s END AS net_in,
        CASE WHEN frame <> 'end' THEN tokenize_s END AS tok,
        CASE WHEN frame <> 'end' THEN step_wait_s END AS wait,
        CASE WHEN frame <> 'end' THEN queue_s END AS que,
        CASE WHEN frame <> 'end' THEN prefill_s END AS pre,
        CASE WHEN frame <> 'end' THEN stream_out_s END AS net_out
    FROM _request_timing
),

summed AS (
    SELECT
        *,
        whole_s
        - coalesce(net_in, 0) - coalesce(tok, 0) - coalesce(wait, 0) - coalesce(que, 0) - coalesce(pre, 0) - coalesce(net_out, 0)
            AS left_s
    FROM known
),

listed AS (
    SELECT
        run_id,
        request_id,
        unnest([
            {
                'stage': 'client_wait', 'stage_index': 0,
                'start_ts': client_sent_ts - to_microseconds((client_wait_s * 1e6)::BIGINT),
                'duration_s': client_wait_s,
                'error_s': CASE WHEN client_wait_s IS NOT NULL THEN 0.0 END,
                'provenance': CASE WHEN client_wait_s IS NOT NULL THEN 'observed' ELSE 'unknown' END,
                'basis': CASE WHEN client_wait_s IS NOT NULL
                    THEN 'client: planned to sent; outside TTFT'
                    ELSE 'needs a client that notes when it meant to send' END
            },
            {
                'stage': 'network_in', 'stage_index': 1,
                'start_ts': CASE WHEN net_in IS NOT NULL THEN client_sent_ts END,
                'duration_s': net_in,
                'error_s': CASE WHEN net_in IS NOT NULL THEN offset_error_s END,
                'provenance': CASE WHEN net_in IS NOT NULL THEN 'derived' ELSE 'unknown' END,
                'basis': CASE
                    WHEN net_in IS NOT NULL THEN 'server arrival less client send, over the clock offset'
                        || CASE WHEN NOT arrival_includes_tokenize THEN '; holds tokenization (arrival is stamped after it)' ELSE '' END
                    WHEN client_sent_ts IS NULL THEN 'no client stamp'
                    WHEN arrival_basis IS DISTINCT FROM 'span' THEN 'no precise arrival on the server (spans)'
                    WHEN offset_error_s IS NULL THEN 'no clock offset fits'
                    WHEN client_ttft_s IS NULL THEN 'the client saw no first token'
                    ELSE 'the clock offset is less sure than this is long' END
            },
            {
                'stage': 'tokenize', 'stage_index': 2,
                'start_ts': CASE WHEN tok IS NOT NULL THEN arrival_ts END,
                'duration_s': tok,
                'error_s': CASE WHEN tokenize_by_headers_s IS NOT NULL THEN offset_error_s WHEN tok IS NOT NULL THEN tok END,
                'provenance': CASE
                    WHEN tok IS NOT NULL THEN 'derived'
                    WHEN arrival_includes_tokenize = FALSE AND net_in IS NOT NULL THEN 'within'
                    WHEN blocking_step_s >= rest_s THEN 'within'
                    ELSE 'unknown' END,
                'basis': CASE
                    WHEN tokenize_by_headers_s IS NOT NULL
                        THEN 'arrival to response headers (they leave after tokenization), less the way back; front end included'
                    WHEN tok IS NOT NULL THEN 'what the running step''s line leaves over'
                    WHEN arrival_includes_tokenize = FALSE AND net_in IS NOT NULL THEN 'inside network_in'
                    WHEN blocking_step_s >= rest_s THEN 'inside step_wait'
                    WHEN rest_s IS NOT NULL THEN 'inside unaccounted: the client noted no response headers'
                    ELSE 'needs spans and a client that notes response headers' END
            },
            {
                'stage': 'step_wait', 'stage_index': 3,
                'start_ts': CASE WHEN wait IS NOT NULL THEN arrival_ts + to_microseconds(((rest_s - wait) * 1e6)::BIGINT) END,
                'duration_s': wait,
                'error_s': CASE
                    WHEN tokenize_by_headers_s IS NOT NULL THEN offset_error_s
                    WHEN wait IS NOT NULL THEN CASE WHEN blocking_step_s IS NULL THEN 0.0 ELSE least(wait, 1.0) END END,
                'provenance': CASE
                    WHEN wait IS NOT NULL THEN 'derived'
                    WHEN queue_starts = 'arrival' AND que IS NOT NULL THEN 'within'
                    ELSE 'unknown' END,
                'basis': CASE
                    WHEN tokenize_by_headers_s IS NOT NULL
                        THEN 'TTFT less queue, prefill and tokenize: hand-over and the wait for the running step'
                    WHEN wait IS NOT NULL AND blocking_step_s IS NOT NULL
                        THEN format('a step of {:.3f} s ended as it was scheduled (step lines)', blocking_step_s)
                    WHEN wait IS NOT NULL THEN 'TTFT less queue and prefill: hand-over and the wait for the running step'
                    WHEN queue_starts = 'arrival' AND que IS NOT NULL THEN 'inside queue (V0 counts it from arrival)'
                    WHEN rest_s IS NOT NULL THEN 'inside unaccounted: needs response headers, or step lines (--enable-logging-iteration-details)'
                    ELSE 'in no vLLM metric; needs spans with response headers, or step lines' END
            },
            {
                'stage': 'queue', 'stage_index': 4,
                'start_ts': CASE WHEN has_span THEN arrival_ts + to_microseconds((rest_s * 1e6)::BIGINT) END,
                'duration_s': que,
                'error_s': CASE WHEN que IS NOT NULL THEN 0.0 END,
                'provenance': CASE WHEN que IS NOT NULL THEN 'observed' ELSE 'unknown' END,
                'basis': CASE
                    WHEN que IS NOT NULL AND has_span THEN 'span: time_in_queue'
                    WHEN que IS NOT NULL THEN 'stated by the server'
                    ELSE 'needs spans (--otlp-traces-endpoint) or --enable-per-request-metrics' END
            },
            {
                'stage': 'kv_alloc', 'stage_index': 5,
                'start_ts': NULL::TIMESTAMP,
                'duration_s': NULL::DOUBLE,
                'error_s': NULL::DOUBLE,
                'provenance': CASE WHEN que IS NOT NULL OR pre IS NOT NULL THEN 'within' ELSE 'unknown' END,
                'basis': CASE WHEN que IS NOT NULL OR pre IS NOT NULL
                    THEN 'inside queue while blocks are short, else inside prefill; vLLM does not measure it'
                    ELSE 'vLLM does not measure it' END
            },
            {
                'stage': 'prefill', 'stage_index': 6,
                'start_ts': CASE WHEN has_span THEN arrival_ts + to_microseconds(((ttft_s - prefill_s) * 1e6)::BIGINT) END,
                'duration_s': pre,
                'error_s': CASE WHEN pre IS NOT NULL THEN 0.0 END,
                'provenance': CASE WHEN pre IS NULL THEN 'unknown' WHEN prefill_stated THEN 'observed' ELSE 'derived' END,
                'basis': CASE
                    WHEN pre IS NULL THEN 'needs spans (--otlp-traces-endpoint) or --enable-per-request-metrics'
                    WHEN NOT prefill_stated THEN 'TTFT less queue'
                    WHEN has_span THEN 'span: time_in_model_prefill; batch-mates'' work in the same steps is in it'
                    ELSE 'stated by the server' END
            },
            {
                'stage': 'sample', 'stage_index': 7,
                'start_ts': NULL::TIMESTAMP,
                'duration_s': NULL::DOUBLE,
                'error_s': NULL::DOUBLE,
                'provenance': CASE WHEN pre IS NOT NULL THEN 'within' ELSE 'unknown' END,
                'basis': CASE WHEN pre IS NOT NULL THEN 'inside prefill' ELSE 'vLLM does not measure it' END
            },
            {
                'stage': 'stream_out', 'stage_index': 8,
                'start_ts': CASE WHEN net_out IS NOT NULL THEN arrival_ts + to_microseconds((ttft_s * 1e6)::BIGINT) END,
                'duration_s': net_out,
                'error_s': CASE WHEN net_out IS NOT NULL THEN offset_error_s END,
                'provenance': CASE WHEN net_out IS NOT NULL THEN 'derived' ELSE 'unknown' END,
                'basis': CASE
                    WHEN net_out IS NOT NULL THEN 'client first content less server first token, over the clock offset'
                    WHEN streamed = FALSE THEN 'the client did not stream: it saw no first token'
                    WHEN client_first_chunk_ts IS NULL THEN 'no client stamp'
                    WHEN offset_error_s IS NULL THEN 'no clock offset'
                    ELSE 'the clock offset is less sure than this is long' END
            },
            {
                'stage': 'decode', 'stage_index': 9,
                'start_ts': CASE frame
                    WHEN 'client' THEN client_first_chunk_ts
                    WHEN 'server' THEN arrival_ts + to_microseconds((ttft_s * 1e6)::BIGINT) END,
                'duration_s': after_first_token_s,
                'error_s': CASE WHEN after_first_token_s IS NOT NULL THEN 0.0 END,
                'provenance': CASE
                    WHEN after_first_token_s IS NOT NULL THEN 'observed'
                    WHEN frame = 'end' THEN 'within'
                    ELSE 'unknown' END,
                'basis': CASE
                    WHEN after_first_token_s IS NOT NULL AND frame = 'client' THEN 'client: first content to end of the answer'
                    WHEN after_first_token_s IS NOT NULL THEN 'span: first to last token; preempted time is in it'
                    WHEN frame = 'end' THEN 'inside unaccounted: no first token was seen'
                    ELSE 'no end was seen' END
            },
            {
                'stage': 'unaccounted', 'stage_index': 10,
                'start_ts': NULL::TIMESTAMP,
                'duration_s': left_s,
                'error_s': CASE WHEN frame = 'end' THEN e2e_error_s WHEN left_s IS NOT NULL THEN 0.0 END,
                'provenance': CASE WHEN left_s IS NOT NULL THEN 'derived' ELSE 'unknown' END,
                'basis': CASE
                    WHEN left_s IS NULL THEN 'neither a first token nor an end was seen'
                    WHEN frame = 'end' THEN 'end to end only: no first token was seen'
                    WHEN left_s < -0.001 THEN 'the parts exceed the whole: the sources disagree'
                    ELSE 'TTFT less the stages that are known: ' || coalesce(nullif(concat_ws(
                        ', ',
                        CASE WHEN net_in IS NULL AND frame = 'client' THEN 'network_in' END,
                        CASE WHEN tok IS NULL AND coalesce(arrival_includes_tokenize, TRUE) THEN 'front end and tokenize' END,
                        CASE WHEN wait IS NULL AND queue_starts IS DISTINCT FROM 'arrival' THEN 'step_wait' END,
                        CASE WHEN que IS NULL THEN 'queue' END,
                        CASE WHEN pre IS NULL THEN 'prefill' END,
                        CASE WHEN net_out IS NULL AND frame = 'client' THEN 'stream_out' END
                    ), ''), 'nothing is left out') END
            }
        ]) AS piece
    FROM summed
)

SELECT
    run_id,
    request_id,
    piece.stage AS stage,
    piece.stage_index AS stage_index,
    piece.start_ts AS start_ts,
    piece.duration_s AS duration_s,
    piece.error_s AS error_s,
    piece.provenance::provenance AS provenance,
    piece.basis AS basis
FROM listed;

COMMENT ON VIEW request_stage IS 'One row per request and stage. All but client_wait and decode add up to the TTFT (the client''s where it is known, else the server''s); with decode they add up to the end-to-end time. Where no first token was seen, unaccounted holds the end-to-end time.';
COMMENT ON COLUMN request_stage.run_id IS 'Run.';
COMMENT ON COLUMN request_stage.request_id IS 'Request, as in request.';
COMMENT ON COLUMN request_stage.stage IS 'client_wait, network_in, tokenize, step_wait, queue, kv_alloc, prefill, sample, stream_out, decode or unaccounted.';
COMMENT ON COLUMN request_stage.stage_index IS 'Place in that order, from 0.';
COMMENT ON COLUMN request_stage.start_ts IS 'When it began, on the clock of the source that saw it; NULL where its place is not known.';
COMMENT ON COLUMN request_stage.duration_s IS 'How long it took, seconds; NULL where it is within another stage or unknown, never 0 for that.';
COMMENT ON COLUMN request_stage.error_s IS 'How far duration_s may be off, seconds.';
COMMENT ON COLUMN request_stage.provenance IS 'observed, derived, within or unknown.';
COMMENT ON COLUMN request_stage.basis IS 'From what it was taken; for within, inside which stage; for unknown, what would show it.';
