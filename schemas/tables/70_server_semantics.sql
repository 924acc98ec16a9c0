-- sqlfluff:max_line_length:260
CREATE TABLE server_semantics (
    engine VARCHAR NOT NULL,
    from_version INTEGER NOT NULL,
    until_version INTEGER NOT NULL,
    arrival_includes_tokenize BOOLEAN NOT NULL,
    queue_starts VARCHAR NOT NULL,
    prefill_stated BOOLEAN NOT NULL,
    source_note VARCHAR NOT NULL
);
COMMENT ON TABLE server_semantics IS 'One row per engine and range of vLLM versions in which a server''s own times mean the same. Fixed: no source fills it.';
COMMENT ON COLUMN server_semantics.engine IS 'V0 or V1, as server_setting.engine_version has it.';
COMMENT ON COLUMN server_semantics.from_version IS 'First version of the range: minor * 1000 + patch, so 0.16.0 is 16000.';
COMMENT ON COLUMN server_semantics.until_version IS 'First version after the range.';
COMMENT ON COLUMN server_semantics.arrival_includes_tokenize IS 'Whether chat template and tokenization come after the arrival, so that TTFT and end-to-end time hold them.';
COMMENT ON COLUMN server_semantics.queue_starts IS 'Where queue_s begins. arrival: it holds every wait since then. engine_dequeue: when the engine takes the request from its input, after the step that was running; that wait is in no metric.';
COMMENT ON COLUMN server_semantics.prefill_stated IS 'Whether spans hold prefill, decode and inference times; where not, prefill is TTFT less queue.';
COMMENT ON COLUMN server_semantics.source_note IS 'Where that is set in vLLM, and what it leaves out.';

INSERT INTO server_semantics VALUES
('V0', 0, 6002, FALSE, 'arrival', FALSE, 'AsyncLLMEngine.add_request sets the arrival after tokenization; queue is first scheduled less arrival. Spans from 0.5.1.'),
('V0', 6002, 11001, FALSE, 'arrival', FALSE, 'MQLLMEngine sets the arrival in the engine process when it reads the request between steps: the wait for the running step is before it (#9952). Without frontend multiprocessing as before 0.6.2.'),
('V1', 6004, 8000, FALSE, 'engine_dequeue', FALSE, 'process_inputs in the API process sets the arrival after tokenization. No spans; 0.7.3 counted from the latest scheduling, so preempted waiting is in queue (#13169).'),
('V1', 8000, 10002, FALSE, 'engine_dequeue', FALSE, 'As before; queue ends at the first scheduling, preempted waiting is in prefill or decode. No spans (#17794).'),
('V1', 10002, 17000, FALSE, 'engine_dequeue', TRUE, 'As before, with spans. 0.15 was not read.'),
('V1', 17000, 1000000, TRUE, 'engine_dequeue', TRUE, 'The renderer sets the arrival before chat template and tokenization. Up to 0.33, the last that was read.');
