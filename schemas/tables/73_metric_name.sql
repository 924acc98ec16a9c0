-- sqlfluff:max_line_length:260
CREATE TABLE metric_name (
    metric VARCHAR NOT NULL,
    spelling VARCHAR NOT NULL,
    kind VARCHAR NOT NULL,
    engine VARCHAR NOT NULL,
    from_version INTEGER NOT NULL,
    until_version INTEGER NOT NULL,
    rank INTEGER NOT NULL,
    meaning VARCHAR NOT NULL
);
COMMENT ON TABLE metric_name IS 'One row per metric of vLLM, name that it has had, and engine: what was called what, from which version to which. Fixed: no source fills it.';
COMMENT ON COLUMN metric_name.metric IS 'What it measures; the same for an old and a new name.';
COMMENT ON COLUMN metric_name.spelling IS 'The name as vLLM declares it, without vllm: and without _total.';
COMMENT ON COLUMN metric_name.kind IS 'gauge, counter or histogram.';
COMMENT ON COLUMN metric_name.engine IS 'V0, V1 or both.';
COMMENT ON COLUMN metric_name.from_version IS 'First version that was read with it: minor * 1000 + patch, so 0.16.0 is 16000; 0 where it was there before.';
COMMENT ON COLUMN metric_name.until_version IS 'First version without it; 1000000 where the last that was read has it.';
COMMENT ON COLUMN metric_name.rank IS 'Of several names in one scrape the lowest counts, so that a renamed metric is not counted twice.';
COMMENT ON COLUMN metric_name.meaning IS 'Where it begins and ends, and what is wrong with it in which version.';

INSERT INTO metric_name VALUES
('requests_running', 'num_requests_running', 'gauge', 'both', 0, 1000000, 1, 'Requests in the running batch, after the last engine step.'),
('requests_waiting', 'num_requests_waiting', 'gauge', 'both', 0, 1000000, 1, 'Requests in the schedulers queue, deferred ones included.'),
('requests_swapped', 'num_requests_swapped', 'gauge', 'V0', 0, 9001, 1, 'Requests swapped to host memory.'),
('requests_waiting_by_reason', 'num_requests_waiting_by_reason', 'gauge', 'V1', 20000, 1000000, 1, 'Label reason: capacity or deferred; the two add up to the waiting ones.'),
('requests_kv_fetch', 'num_requests_kv_fetch_by_stage', 'gauge', 'V1', 32000, 1000000, 1, 'Label stage; on the consumer of disaggregated prefill only.'),
('kv_cache_usage_ratio', 'kv_cache_usage_perc', 'gauge', 'V1', 9002, 1000000, 1, '0 to 1 in spite of its name.'),
('kv_cache_usage_ratio', 'gpu_cache_usage_perc', 'gauge', 'V0', 0, 11001, 2, '0 to 1 in spite of its name. Stays 0 on a CPU build.'),
('kv_cache_usage_ratio', 'gpu_cache_usage_perc', 'gauge', 'V1', 7003, 12000, 2, 'The old name beside the new one since 0.9.2; hidden from 0.11.0 on.'),
('cpu_kv_cache_usage_ratio', 'cpu_cache_usage_perc', 'gauge', 'V0', 0, 9001, 1, 'Swap space in use, 0 to 1.'),
('prefix_cache_hit_ratio', 'gpu_prefix_cache_hit_rate', 'gauge', 'V0', 0, 9001, 1, 'Hits over the servers own window, 0 to 1; below 0 where caching is off.'),
('prompt_throughput_tps', 'avg_prompt_throughput_toks_per_s', 'gauge', 'V0', 0, 7000, 1, 'Mean since the stats line before.'),
('generation_throughput_tps', 'avg_generation_throughput_toks_per_s', 'gauge', 'V0', 0, 7000, 1, 'Mean since the stats line before.'),
('cache_config', 'cache_config_info', 'gauge', 'V0', 5005, 11001, 1, 'Always 1: the labels are settings.'),
('cache_config', 'cache_config_info', 'gauge', 'V1', 8000, 1000000, 1, 'Always 1: the labels are settings.'),
('lora_requests', 'lora_requests_info', 'gauge', 'both', 6004, 1000000, 1, 'The value is the time in seconds since 1970, the labels are the adapters.'),
('engine_sleep_state', 'engine_sleep_state', 'gauge', 'V1', 11001, 1000000, 1, 'Label sleep_state: 1 in the state that holds.'),
('preemptions', 'num_preemptions', 'counter', 'V0', 4003, 11001, 1, 'Preemptions since the start.'),
('preemptions', 'num_preemptions', 'counter', 'V1', 8000, 1000000, 1, 'Preemptions since the start.'),
('prompt_tokens', 'prompt_tokens', 'counter', 'V0', 3000, 11001, 1, 'Prompt tokens computed; V0 counts a preempted prompt again.'),
('prompt_tokens', 'prompt_tokens', 'counter', 'V1', 7003, 1000000, 1, 'Prompt tokens, counted when the first token of the answer appears.'),
('generation_tokens', 'generation_tokens', 'counter', 'both', 3000, 1000000, 1, 'Generated tokens.'),
('prompt_tokens_by_source', 'prompt_tokens_by_source', 'counter', 'V1', 16000, 1000000, 1, 'Label source: local_compute, local_cache_hit, external_kv_transfer.'),
('prompt_tokens_cached', 'prompt_tokens_cached', 'counter', 'V1', 16000, 1000000, 1, 'Prompt tokens that a cache held.'),
('prompt_tokens_recomputed', 'prompt_tokens_recomputed', 'counter', 'V1', 16000, 20000, 1, 'Prompt tokens computed again.'),
('prefix_cache_queries', 'prefix_cache_queries', 'counter', 'V1', 9002, 1000000, 1, 'Tokens looked up in the prefix cache; counted again when an allocation fails (#39566).'),
('prefix_cache_queries', 'gpu_prefix_cache_queries', 'counter', 'V1', 7003, 11003, 2, 'The old name; early help texts say blocks and mean tokens.'),
('prefix_cache_hits', 'prefix_cache_hits', 'counter', 'V1', 9002, 1000000, 1, 'Tokens found there. Up to 0.11.0 recomputed tokens count as hits (#25787).'),
('prefix_cache_hits', 'gpu_prefix_cache_hits', 'counter', 'V1', 7003, 11003, 2, 'The old name.'),
('external_prefix_cache_queries', 'external_prefix_cache_queries', 'counter', 'V1', 11001, 1000000, 1, 'Tokens looked up in an external KV store.'),
('external_prefix_cache_hits', 'external_prefix_cache_hits', 'counter', 'V1', 11001, 1000000, 1, 'Tokens found there.'),
('mm_cache_queries', 'mm_cache_queries', 'counter', 'V1', 11001, 1000000, 1, 'Look-ups in the multi-modal cache.'),
('mm_cache_hits', 'mm_cache_hits', 'counter', 'V1', 11001, 1000000, 1, 'Hits there.'),
('requests_finished', 'request_success', 'counter', 'both', 4002, 1000000, 1, 'Label finished_reason. Aborted requests are not counted, in spite of the reason abort.'),
('admission_rejections', 'admission_rejections', 'counter', 'V1', 32000, 1000000, 1, 'Label reason: requests refused before the queue.'),
('requests_corrupted', 'corrupted_requests', 'counter', 'V1', 11001, 1000000, 1, 'Requests with NaN in their logits.'),
('spec_decode_drafts', 'spec_decode_num_drafts', 'counter', 'V1', 8003, 1000000, 1, 'Speculative drafts.'),
('spec_decode_draft_tokens', 'spec_decode_num_draft_tokens', 'counter', 'both', 8003, 1000000, 1, 'Tokens drafted.'),
('spec_decode_accepted_tokens', 'spec_decode_num_accepted_tokens', 'counter', 'both', 8003, 1000000, 1, 'Drafted tokens that were accepted.'),
('ttft_s', 'time_to_first_token_seconds', 'histogram', 'both', 3000, 1000000, 1, 'Arrival to first token. Tokenization is in it since 0.17. 0.5.1 to 0.5.3 measured about 0 (#6337); V0 observes it again after a preemption.'),
('itl_s', 'inter_token_latency_seconds', 'histogram', 'V1', 10002, 1000000, 1, 'Gap from one engine output of a request to the next, not a mean per request.'),
('itl_s', 'time_per_output_token_seconds', 'histogram', 'both', 3000, 16000, 2, 'The old name of inter_token_latency_seconds; hidden from 0.12 on.'),
('tpot_s', 'request_time_per_output_token_seconds', 'histogram', 'V1', 11000, 1000000, 1, 'Mean gap per request; 0 for answers of one token.'),
('e2e_s', 'e2e_request_latency_seconds', 'histogram', 'both', 3000, 1000000, 1, 'Arrival to last token, of requests that finished.'),
('queue_s', 'request_queue_time_seconds', 'histogram', 'V0', 6004, 11001, 1, 'Arrival to first scheduled.'),
('queue_s', 'request_queue_time_seconds', 'histogram', 'V1', 7003, 1000000, 1, 'Taken in by the engine to first scheduled: the wait for a running step is not in it.'),
('queue_s', 'time_in_queue_requests', 'histogram', 'V0', 6004, 9001, 2, 'The same as request_queue_time_seconds (#14135).'),
('prefill_s', 'request_prefill_time_seconds', 'histogram', 'V0', 6004, 11001, 1, 'First scheduled to first token.'),
('prefill_s', 'request_prefill_time_seconds', 'histogram', 'V1', 7003, 1000000, 1, 'First scheduled to first token, preempted time in it.'),
('decode_s', 'request_decode_time_seconds', 'histogram', 'V0', 6004, 11001, 1, 'First to last token.'),
('decode_s', 'request_decode_time_seconds', 'histogram', 'V1', 7003, 1000000, 1, 'First to last token, preempted time in it.'),
('inference_s', 'request_inference_time_seconds', 'histogram', 'V0', 6004, 11001, 1, 'First scheduled to last token.'),
('inference_s', 'request_inference_time_seconds', 'histogram', 'V1', 7003, 1000000, 1, 'First scheduled to last token.'),
('model_forward_ms', 'model_forward_time_milliseconds', 'histogram', 'V0', 6004, 9001, 1, 'Milliseconds, and doubtful (#14135).'),
('model_execute_ms', 'model_execute_time_milliseconds', 'histogram', 'V0', 6004, 9001, 1, 'Milliseconds, and doubtful (#14135).'),
('input_tokens', 'request_prompt_tokens', 'histogram', 'both', 4002, 1000000, 1, 'Prompt tokens per request.'),
('output_tokens', 'request_generation_tokens', 'histogram', 'both', 4002, 1000000, 1, 'Generated tokens per request.'),
('computed_input_tokens', 'request_prefill_kv_computed_tokens', 'histogram', 'V1', 13000, 1000000, 1, 'Prompt tokens per request less cached ones.'),
('step_tokens', 'iteration_tokens_total', 'histogram', 'both', 6004, 1000000, 1, 'Tokens per engine step: a histogram, although its name ends like a counters.'),
('max_output_tokens', 'request_params_max_tokens', 'histogram', 'both', 6004, 1000000, 1, 'max_tokens per request.'),
('sequences', 'request_params_n', 'histogram', 'both', 4002, 1000000, 1, 'n per request.'),
('preemptions_per_request', 'request_num_preemptions', 'histogram', 'V1', 30000, 1000000, 1, 'Preemptions per request.');

CREATE TABLE metric_spelling (
    name VARCHAR NOT NULL,
    metric VARCHAR NOT NULL,
    kind VARCHAR NOT NULL,
    part VARCHAR NOT NULL,
    rank INTEGER NOT NULL
);
COMMENT ON TABLE metric_spelling IS 'One row per name under which a scrape can hold a metric of vLLM: both prefixes, with and without _total, the parts of histograms. Fixed: no source fills it.';
COMMENT ON COLUMN metric_spelling.name IS 'As in metric_sample.name. OpenMetrics of a current prometheus_client has vllm_ for vllm:.';
COMMENT ON COLUMN metric_spelling.metric IS 'What it measures, as in metric_name.';
COMMENT ON COLUMN metric_spelling.kind IS 'gauge, counter or histogram.';
COMMENT ON COLUMN metric_spelling.part IS 'value; for a histogram bucket, sum or count; created: when the series began, seconds since 1970.';
COMMENT ON COLUMN metric_spelling.rank IS 'As in metric_name.';

INSERT INTO metric_spelling
WITH named AS (
    SELECT
        spelling,
        metric,
        kind,
        min(rank) AS rank
    FROM metric_name
    GROUP BY spelling, metric, kind
)

SELECT
    prefix.prefix || named.spelling || suffix.suffix AS name,
    named.metric,
    named.kind,
    suffix.part,
    named.rank
FROM named
CROSS JOIN (VALUES ('vllm:'), ('vllm_')) AS prefix (prefix)
INNER JOIN (
    VALUES
    ('gauge', '', 'value'),
    ('counter', '_total', 'value'),
    ('counter', '', 'value'),
    ('counter', '_created', 'created'),
    ('histogram', '_bucket', 'bucket'),
    ('histogram', '_sum', 'sum'),
    ('histogram', '_count', 'count'),
    ('histogram', '_created', 'created')
) AS suffix (kind, suffix, part) ON named.kind = suffix.kind;
