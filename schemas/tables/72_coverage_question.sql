-- sqlfluff:max_line_length:300
CREATE TABLE coverage_question (
    subject_index INTEGER NOT NULL,
    subject VARCHAR NOT NULL,
    side VARCHAR NOT NULL,
    question VARCHAR NOT NULL,
    server_subject VARCHAR,
    switch VARCHAR
);
COMMENT ON TABLE coverage_question IS 'One row per question that files of an incident can answer. Fixed: no source fills it.';
COMMENT ON COLUMN coverage_question.subject_index IS 'Place in the order of subjects.';
COMMENT ON COLUMN coverage_question.subject IS 'A stage of a request, or what else can be known of a run.';
COMMENT ON COLUMN coverage_question.side IS 'Whose files show it: stage, client, server, engine, gpu or host.';
COMMENT ON COLUMN coverage_question.question IS 'The question.';
COMMENT ON COLUMN coverage_question.server_subject IS 'server_switch.subject of the server arguments that record it.';
COMMENT ON COLUMN coverage_question.switch IS 'What else records it.';

INSERT INTO coverage_question VALUES
(0, 'client_wait', 'stage', 'Did the load generator itself hold requests back?', NULL, 'a client that stamps when each request was due and when it was sent'),
(1, 'network_in', 'stage', 'How long did requests travel to the server?', NULL, 'a client that stamps each send, with ids that the server has too (X-Request-Id, traceparent)'),
(2, 'tokenize', 'stage', 'How long did chat template and tokenization take?', NULL, 'a client that stamps the arrival of the response headers'),
(3, 'step_wait', 'stage', 'How long did requests wait for a running engine step?', 'engine steps', NULL),
(4, 'queue', 'stage', 'How long did each request wait in the scheduler''s queue?', 'server times', NULL),
(5, 'kv_alloc', 'stage', 'How long did requests wait for KV blocks?', NULL, 'nothing in vLLM: it is inside queue and prefill; preemptions bound it'),
(6, 'prefill', 'stage', 'How long did the prefill of each request take?', 'server times', NULL),
(7, 'sample', 'stage', 'How long did sampling take?', NULL, 'nothing in vLLM: it is inside prefill'),
(8, 'stream_out', 'stage', 'How long did the first token travel back?', NULL, 'a streaming client that stamps every chunk, with ids that the server has too'),
(9, 'decode', 'stage', 'How fast came the tokens after the first?', 'server times', 'a streaming client that stamps every chunk'),
(20, 'client TTFT', 'client', 'What TTFT did users see?', NULL, 'a streaming client that stamps the send and the first chunk with content'),
(21, 'client chunks', 'client', 'Did streams stall or come in bursts?', NULL, 'a streaming client that stamps every chunk'),
(22, 'client plan', 'client', 'Was the load sent when it was due (coordinated omission)?', NULL, 'a client that stamps when each request was due and when it was sent'),
(30, 'lifecycle', 'server', 'When did each request come, and was it aborted?', 'lifecycle', NULL),
(31, 'server times', 'server', 'What did the server measure of each request?', 'server times', NULL),
(32, 'cached tokens', 'server', 'Which prompts hit the prefix cache?', 'cached tokens', NULL),
(33, 'HTTP status', 'server', 'How many requests failed, and how?', NULL, 'the server''s access lines (without --disable-uvicorn-access-log), or a client log'),
(34, 'settings', 'server', 'With which settings did the server run?', NULL, 'the server log from its first line'),
(40, 'queue length', 'engine', 'How many requests ran and waited?', NULL, 'stats lines (on unless --disable-log-stats), or a scrape of /metrics'),
(41, 'KV cache', 'engine', 'Was the KV cache full?', NULL, 'stats lines, or a scrape of /metrics'),
(42, 'preemptions', 'engine', 'Were requests preempted?', NULL, 'a scrape of /metrics'),
(43, 'prefix cache', 'engine', 'Does the prefix cache work?', NULL, 'stats lines, or a scrape of /metrics (its counters are exact)'),
(44, 'engine steps', 'engine', 'What did each engine step do?', 'engine steps', NULL),
(50, 'GPU busy', 'gpu', 'Was a GPU idle?', NULL, 'nvidia-smi dmon -s pucvmet -o DT'),
(51, 'GPU power', 'gpu', 'Did the GPUs work, or only spin?', NULL, 'nvidia-smi dmon -s pucvmet -o DT'),
(52, 'GPU clocks', 'gpu', 'Were the clocks held down?', NULL, 'nvidia-smi dmon -s pucvmet -o DT'),
(53, 'GPU memory traffic', 'gpu', 'Was memory bandwidth the limit?', NULL, 'dcgmi dmon -e 1002,1004,1005, or nvidia-smi dmon --gpm-metrics'),
(60, 'host load', 'host', 'Did the host''s CPUs hold the server up?', NULL, 'pidstat -u -r 1, vmstat -t 1, and the container''s /sys/fs/cgroup/cpu.stat'),
(54, 'GPU tensor cores', 'gpu', 'Were the tensor cores the limit?', NULL, 'dcgmi dmon -e 1002,1004,1005, or nvidia-smi dmon --gpm-metrics');
