-- sqlfluff:max_line_length:300
CREATE TABLE server_switch (
    subject VARCHAR NOT NULL,
    argument VARCHAR NOT NULL,
    from_version INTEGER NOT NULL,
    until_version INTEGER NOT NULL,
    note VARCHAR NOT NULL
);
COMMENT ON TABLE server_switch IS 'One row per vLLM server argument that records something, and the versions that know it. Fixed: no source fills it.';
COMMENT ON COLUMN server_switch.subject IS 'What it records, as coverage.subject has it.';
COMMENT ON COLUMN server_switch.argument IS 'The argument of vllm serve.';
COMMENT ON COLUMN server_switch.from_version IS 'First version that has it: minor * 1000 + patch, so 0.16.0 is 16000.';
COMMENT ON COLUMN server_switch.until_version IS 'First version that has it no more.';
COMMENT ON COLUMN server_switch.note IS 'What it gives, what it costs, what it excludes.';

INSERT INTO server_switch VALUES
('lifecycle', '--enable-log-requests', 10001, 1000000, 'When each request came (Received, Added) and was aborted; one or two lines per request. Up to 0.10.0 these lines are on unless --disable-log-requests.'),
('server times', '--otlp-traces-endpoint grpc://127.0.0.1:4317', 5001, 7000, 'One span per finished request with its queue time and TTFT (V0). Needs the OpenTelemetry packages in the server''s environment. Aborted requests leave no span.'),
('server times', '--otlp-traces-endpoint grpc://127.0.0.1:4317', 10002, 1000000, 'One span per finished request with its queue, prefill and decode times. Needs the OpenTelemetry packages in the server''s environment. Aborted requests leave no span.'),
('server times', '--enable-per-request-metrics', 25000, 1000000, 'Queue, prefill and decode times in each response (in streams in the usage chunk). What it calls time_to_first_token_ms starts when the request is scheduled: it is the prefill.'),
('cached tokens', '--enable-prompt-tokens-details', 6004, 1000000, 'usage.prompt_tokens_details.cached_tokens in each response: which prompts hit the prefix cache.'),
('engine steps', '--enable-logging-iteration-details', 14000, 1000000, 'One line per engine step: elapsed time, prefill and decode tokens in it. Shows the wait for a running step, which no metric holds.'),
('KV blocks', '--kv-cache-metrics', 12000, 1000000, 'How long KV-cache blocks live and lie idle before they are evicted (a sample of 1 %), in /metrics.'),
('achieved FLOPS', '--enable-mfu-metrics', 14000, 1000000, 'Achieved TFLOP/s and GB/s per GPU beside the stats lines: compute-bound or bandwidth-bound.');
