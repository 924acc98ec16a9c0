-- The stages of requests, which are rows of _request_timing: that view by its name, or a choice from it.
CREATE MACRO _stages_of(requests) AS TABLE
    WITH listed AS (
        SELECT
            run_id,
            request_id,
            -- Which server's request this client's row is was concluded, not stated: so is every stage that joins the two.
            coalesce(join_basis = 'lengths and times', FALSE) AND frame <> 'server' AS is_matched,
            frame = 'client' AND client_e2e_s IS NOT NULL AS has_own_decode,
            unnest([
                {
                    'stage': 'client_wait', 'stage_index': 0,
                    'start_ts': _later(client_sent_ts, -client_wait_s),
                    'duration_s': client_wait_s,
                    'error_s': CASE WHEN client_wait_s IS NOT NULL THEN 0.0 END,
                    'provenance': CASE WHEN client_wait_s IS NOT NULL THEN 'observed' ELSE 'unknown' END,
                    'basis': CASE
                        WHEN client_wait_s IS NOT NULL THEN 'client: planned to sent; outside TTFT'
                        ELSE 'needs a client that notes when it meant to send'
                    END
                },
                {
                    'stage': 'network_in', 'stage_index': 1,
                    'start_ts': CASE WHEN network_in_s IS NOT NULL THEN client_sent_ts END,
                    'duration_s': network_in_s,
                    'error_s': CASE WHEN network_in_s IS NOT NULL THEN offset_error_s END,
                    'provenance': CASE WHEN network_in_s IS NOT NULL THEN 'derived' ELSE 'unknown' END,
                    'basis': CASE
                        WHEN network_in_s IS NOT NULL
                            THEN 'server arrival less client send, over the clock offset'
                                || CASE
                                    WHEN NOT arrival_includes_tokenize THEN '; holds tokenization (arrival is stamped after it)'
                                    ELSE ''
                                END
                        WHEN client_sent_ts IS NULL THEN 'no client stamp'
                        WHEN NOT coalesce(has_arrival, FALSE) THEN 'no precise arrival on the server (spans)'
                        WHEN offset_error_s IS NULL THEN 'no clock offset fits'
                        WHEN client_ttft_s IS NULL THEN 'the client saw no first token'
                        WHEN is_contradicted THEN 'client and server stamps of this request contradict the clock offset'
                        ELSE 'the clock offset is less sure than this is long'
                    END
                },
                {
                    'stage': 'tokenize', 'stage_index': 2,
                    'start_ts': CASE WHEN tokenize_s IS NOT NULL THEN arrival_ts END,
                    'duration_s': tokenize_s,
                    'error_s': CASE
                        WHEN tokenize_by_headers_s IS NOT NULL THEN offset_error_s
                        WHEN tokenize_s IS NOT NULL THEN tokenize_s
                    END,
                    'provenance': CASE
                        WHEN tokenize_s IS NOT NULL THEN 'derived'
                        WHEN arrival_includes_tokenize = FALSE AND network_in_s IS NOT NULL THEN 'within'
                        WHEN blocking_step_s >= rest_s THEN 'within'
                        ELSE 'unknown'
                    END,
                    'basis': CASE
                        WHEN tokenize_by_headers_s IS NOT NULL
                            THEN 'arrival to response headers (they leave after tokenization), less the way back; front end included'
                        WHEN tokenize_s IS NOT NULL THEN 'what the running step''s line leaves over'
                        WHEN arrival_includes_tokenize = FALSE AND network_in_s IS NOT NULL THEN 'inside network_in'
                        WHEN blocking_step_s >= rest_s THEN 'inside step_wait'
                        WHEN
                            arrival_includes_tokenize = FALSE AND frame = 'client'
                            THEN 'inside unaccounted: this version stamps the arrival after it'
                        WHEN
                            arrival_includes_tokenize = FALSE AND frame = 'server'
                            THEN 'before the TTFT: this version stamps the arrival after it'
                        WHEN rest_s IS NULL THEN 'needs spans and a client that notes response headers'
                        WHEN client_headers_ts IS NULL OR NOT coalesce(streamed, FALSE)
                            THEN 'inside unaccounted: the client noted no response headers'
                        WHEN arrival_includes_tokenize IS NULL
                            THEN 'inside unaccounted: no known vLLM version says where its arrival stands'
                        ELSE 'inside unaccounted: the clock offset is less sure than this is long'
                    END
                },
                {
                    'stage': 'step_wait', 'stage_index': 3,
                    'start_ts': CASE WHEN has_arrival AND step_wait_s IS NOT NULL THEN _later(arrival_ts, rest_s - step_wait_s) END,
                    'duration_s': step_wait_s,
                    'error_s': CASE
                        WHEN tokenize_by_headers_s IS NOT NULL THEN offset_error_s
                        WHEN step_wait_s IS NOT NULL AND blocking_step_s IS NOT NULL THEN least(step_wait_s, 1.0)
                        WHEN step_wait_s IS NOT NULL THEN 0.0
                    END,
                    'provenance': CASE
                        WHEN step_wait_s IS NOT NULL THEN 'derived'
                        WHEN queue_starts = 'arrival' AND queue_s IS NOT NULL THEN 'within'
                        ELSE 'unknown'
                    END,
                    'basis': CASE
                        WHEN step_wait_s IS NOT NULL AND tokenize_by_headers_s IS NOT NULL
                            THEN 'TTFT less queue, prefill and tokenize: hand-over and the wait for the running step'
                        WHEN step_wait_s IS NOT NULL AND blocking_step_s IS NOT NULL
                            THEN format('a step of {:.3f} s ended as it was scheduled (step lines)', blocking_step_s)
                        WHEN step_wait_s IS NOT NULL THEN 'TTFT less queue and prefill: hand-over and the wait for the running step'
                        WHEN queue_starts = 'arrival' AND queue_s IS NOT NULL THEN 'inside queue (V0 counts it from arrival)'
                        WHEN
                            rest_s IS NOT NULL
                            THEN 'inside unaccounted: needs response headers, or step lines (--enable-logging-iteration-details)'
                        ELSE 'in no vLLM metric; needs spans with response headers, or step lines'
                    END
                },
                {
                    'stage': 'queue', 'stage_index': 4,
                    'start_ts': CASE WHEN has_arrival THEN _later(arrival_ts, rest_s) END,
                    'duration_s': queue_s,
                    'error_s': CASE WHEN queue_s IS NOT NULL THEN 0.0 END,
                    'provenance': CASE WHEN queue_s IS NOT NULL THEN 'observed' ELSE 'unknown' END,
                    'basis': CASE
                        WHEN queue_s IS NOT NULL AND has_span THEN 'span: time_in_queue'
                        WHEN queue_s IS NOT NULL THEN 'stated by the server'
                        ELSE 'needs spans (--otlp-traces-endpoint) or --enable-per-request-metrics'
                    END
                },
                {
                    'stage': 'kv_alloc', 'stage_index': 5,
                    'start_ts': NULL::TIMESTAMP,
                    'duration_s': NULL::DOUBLE,
                    'error_s': NULL::DOUBLE,
                    'provenance': CASE WHEN queue_s IS NOT NULL OR prefill_s IS NOT NULL THEN 'within' ELSE 'unknown' END,
                    'basis': CASE
                        WHEN queue_s IS NOT NULL OR prefill_s IS NOT NULL
                            THEN 'inside queue while blocks are short, else inside prefill; vLLM does not measure it'
                        ELSE 'vLLM does not measure it'
                    END
                },
                {
                    'stage': 'prefill', 'stage_index': 6,
                    'start_ts': CASE WHEN has_arrival THEN _later(arrival_ts, ttft_s - prefill_s) END,
                    'duration_s': prefill_s,
                    'error_s': CASE WHEN prefill_s IS NOT NULL THEN 0.0 END,
                    'provenance': CASE WHEN prefill_s IS NULL THEN 'unknown' WHEN prefill_stated THEN 'observed' ELSE 'derived' END,
                    'basis': CASE
                        WHEN prefill_s IS NULL THEN 'needs spans (--otlp-traces-endpoint) or --enable-per-request-metrics'
                        WHEN NOT prefill_stated THEN 'TTFT less queue'
                        WHEN has_span THEN 'span: time_in_model_prefill; batch-mates'' work in the same steps is in it'
                        ELSE 'stated by the server'
                    END
                },
                {
                    'stage': 'sample', 'stage_index': 7,
                    'start_ts': NULL::TIMESTAMP,
                    'duration_s': NULL::DOUBLE,
                    'error_s': NULL::DOUBLE,
                    'provenance': CASE WHEN prefill_s IS NOT NULL THEN 'within' ELSE 'unknown' END,
                    'basis': CASE WHEN prefill_s IS NOT NULL THEN 'inside prefill' ELSE 'vLLM does not measure it' END
                },
                {
                    'stage': 'stream_out', 'stage_index': 8,
                    'start_ts': CASE WHEN stream_out_s IS NOT NULL THEN _later(arrival_ts, ttft_s) END,
                    'duration_s': stream_out_s,
                    'error_s': CASE WHEN stream_out_s IS NOT NULL THEN offset_error_s END,
                    'provenance': CASE WHEN stream_out_s IS NOT NULL THEN 'derived' ELSE 'unknown' END,
                    'basis': CASE
                        WHEN stream_out_s IS NOT NULL THEN 'client first content less server first token, over the clock offset'
                        WHEN streamed = FALSE THEN 'the client did not stream: it saw no first token'
                        WHEN client_first_chunk_ts IS NULL THEN 'no client stamp'
                        WHEN NOT coalesce(has_arrival, FALSE) OR ttft_s IS NULL THEN 'no precise first token on the server (spans)'
                        WHEN offset_error_s IS NULL THEN 'no clock offset fits'
                        WHEN is_contradicted THEN 'client and server stamps of this request contradict the clock offset'
                        ELSE 'the clock offset is less sure than this is long'
                    END
                },
                {
                    'stage': 'decode', 'stage_index': 9,
                    'start_ts': CASE
                        WHEN frame = 'client' THEN client_first_chunk_ts
                        WHEN has_arrival THEN _later(arrival_ts, ttft_s)
                    END,
                    'duration_s': decode_stage_s,
                    'error_s': CASE
                        WHEN decode_stage_s IS NULL THEN NULL
                        WHEN frame = 'server' THEN e2e_error_s
                        ELSE 0.0
                    END,
                    'provenance': CASE
                        WHEN decode_stage_s IS NOT NULL AND frame = 'server' AND e2e_error_s > 0 THEN 'derived'
                        WHEN decode_stage_s IS NOT NULL THEN 'observed'
                        WHEN frame = 'end' THEN 'within'
                        ELSE 'unknown'
                    END,
                    'basis': CASE
                        WHEN decode_stage_s IS NOT NULL AND frame = 'client' AND client_e2e_s IS NOT NULL
                            THEN 'client: first content to end of the answer'
                        WHEN decode_stage_s IS NOT NULL AND frame = 'server' AND e2e_error_s > 0
                            THEN 'end to end from the log''s whole seconds, less TTFT'
                        WHEN decode_stage_s IS NOT NULL AND has_span THEN 'span: first to last token; preempted time is in it'
                        WHEN decode_stage_s IS NOT NULL THEN 'stated by the server'
                        WHEN frame = 'end' THEN 'inside unaccounted: no first token was seen'
                        WHEN after_first_token_s < 0 THEN 'the end lies before the first token: the sources disagree'
                        ELSE 'no end was seen'
                    END
                },
                {
                    'stage': 'unaccounted', 'stage_index': 10,
                    'start_ts': NULL::TIMESTAMP,
                    'duration_s': left_s,
                    'error_s': CASE
                        WHEN left_s IS NULL THEN NULL
                        WHEN frame = 'end' AND client_e2e_s IS NULL THEN e2e_error_s
                        -- Of the two ends over the network one's error is the other's; alone it is in what is left.
                        WHEN (network_in_s IS NULL) <> (stream_out_s IS NULL) THEN offset_error_s
                        WHEN tokenize_s IS NULL AND blocking_step_s < rest_s THEN least(step_wait_s, 1.0)
                        ELSE 0.0
                    END,
                    'provenance': CASE WHEN left_s IS NOT NULL THEN 'derived' ELSE 'unknown' END,
                    'basis': CASE
                        WHEN left_s IS NULL THEN 'neither a first token nor an end was seen'
                        WHEN left_s < -0.001 THEN 'the parts exceed the whole: the sources disagree'
                        WHEN
                            frame = 'end' AND coalesce(queue_s, prefill_s, decode_stage_s) IS NULL
                            THEN 'end to end only: no first token was seen'
                        WHEN frame = 'end' THEN 'end to end less the stages that are known: no first token was seen'
                        ELSE coalesce('TTFT less the stages that are known; in it: ' || nullif(concat_ws(
                                ', ',
                                CASE WHEN network_in_s IS NULL AND frame = 'client' THEN 'network_in' END,
                                CASE
                                    WHEN tokenize_s IS NULL AND coalesce(arrival_includes_tokenize, TRUE)
                                        THEN 'front end and tokenize'
                                END,
                                CASE WHEN step_wait_s IS NULL AND queue_starts IS DISTINCT FROM 'arrival' THEN 'step_wait' END,
                                CASE WHEN queue_s IS NULL THEN 'queue' END,
                                CASE WHEN prefill_s IS NULL THEN 'prefill' END,
                                CASE WHEN stream_out_s IS NULL AND frame = 'client' THEN 'stream_out' END
                            ), ''), 'all of the TTFT is in the other stages')
                    END
                }
            ]) AS piece
        FROM query_table(requests)
    )

    SELECT
        run_id,
        request_id,
        piece.stage AS stage,
        piece.stage_index AS stage_index,
        piece.start_ts AS start_ts,
        piece.duration_s AS duration_s,
        piece.error_s AS error_s,
        CASE
            WHEN matched_piece AND piece.provenance = 'observed' THEN 'derived'
            ELSE piece.provenance
        END::provenance AS provenance,
        piece.basis || CASE
            WHEN matched_piece AND piece.provenance IN ('observed', 'derived') THEN '; client row matched by lengths and times'
            ELSE ''
        END AS basis
    FROM (
        SELECT
            *,
            is_matched AND piece.stage <> 'client_wait' AND NOT (piece.stage = 'decode' AND has_own_decode) AS matched_piece
        FROM listed
    );

CREATE VIEW request_stage AS
FROM _stages_of('_request_timing');

COMMENT ON VIEW request_stage IS 'One row per request and stage. All but client_wait and decode add up to the TTFT (the client''s where it is known, else the server''s); with decode they add up to the end-to-end time. Where no first token was seen, they add up to the end-to-end time, most of it in unaccounted.';
COMMENT ON COLUMN request_stage.run_id IS 'Run.';
COMMENT ON COLUMN request_stage.request_id IS 'Request, as in request.';
COMMENT ON COLUMN request_stage.stage IS 'client_wait, network_in, tokenize, step_wait, queue, kv_alloc, prefill, sample, stream_out, decode or unaccounted.';
COMMENT ON COLUMN request_stage.stage_index IS 'Place in that order, from 0.';
COMMENT ON COLUMN request_stage.start_ts IS 'When it began, on the clock of the source that saw it; NULL where its place is not known.';
COMMENT ON COLUMN request_stage.duration_s IS 'How long it took, seconds; NULL where it is within another stage or unknown, never 0 for that.';
COMMENT ON COLUMN request_stage.error_s IS 'How far duration_s may be off, seconds.';
COMMENT ON COLUMN request_stage.provenance IS 'observed, derived, within or unknown.';
COMMENT ON COLUMN request_stage.basis IS 'From what it was taken; for within, inside which stage; for unknown, what would show it.';
