CREATE TABLE engine_sample (
    run_id VARCHAR NOT NULL,
    source_id INTEGER NOT NULL,
    line_no BIGINT NOT NULL,
    sample_ts TIMESTAMP,
    error_s DOUBLE,
    engine_index INTEGER,
    engine_count INTEGER,
    process VARCHAR,
    level VARCHAR,
    prompt_tps DOUBLE,
    generation_tps DOUBLE,
    running_count BIGINT,
    waiting_count BIGINT,
    deferred_count BIGINT,
    swapped_count BIGINT,
    preemption_count BIGINT,
    kv_cache_usage_ratio DOUBLE,
    cpu_kv_cache_usage_ratio DOUBLE,
    prefix_cache_hit_ratio DOUBLE,
    external_prefix_cache_hit_ratio DOUBLE,
    mm_cache_hit_ratio DOUBLE,
    other VARCHAR
);
COMMENT ON TABLE engine_sample IS 'One row per engine stats line or scrape. Throughputs are means since the line before, of a scrape over about ten seconds or since the scrape before; the counts and KV usage are the state after the last engine step and stay frozen while an engine hangs.';
COMMENT ON COLUMN engine_sample.run_id IS 'Run of the source.';
COMMENT ON COLUMN engine_sample.source_id IS 'Source that stated it.';
COMMENT ON COLUMN engine_sample.line_no IS 'Line of it, from 1; of a scrape the first line that states it.';
COMMENT ON COLUMN engine_sample.sample_ts IS 'Stamp of the line, UTC; NULL where the line has none.';
COMMENT ON COLUMN engine_sample.error_s IS 'Resolution of the stamp, seconds.';
COMMENT ON COLUMN engine_sample.engine_index IS 'Index of the engine (data-parallel rank), 0 where there is one. Of several servers in one Prometheus answer: numbered through, process names the server.';
COMMENT ON COLUMN engine_sample.engine_count IS 'How many engines the line adds up; 1 for a line of one engine.';
COMMENT ON COLUMN engine_sample.process IS 'Process that wrote the line.';
COMMENT ON COLUMN engine_sample.level IS 'Log level: an idle interval is logged at DEBUG, so silence can mean idle.';
COMMENT ON COLUMN engine_sample.prompt_tps IS 'Prompt tokens per second. V1 counts a prompt when its first token appears; vLLM 0.16 and later count only tokens computed here.';
COMMENT ON COLUMN engine_sample.generation_tps IS 'Generated tokens per second.';
COMMENT ON COLUMN engine_sample.running_count IS 'Requests in the running batch.';
COMMENT ON COLUMN engine_sample.waiting_count IS 'Requests in the scheduler''s queue (V0: Pending); includes deferred ones.';
COMMENT ON COLUMN engine_sample.deferred_count IS 'Waiting requests that are held back by something else than capacity.';
COMMENT ON COLUMN engine_sample.swapped_count IS 'Requests swapped out to host memory (V0).';
COMMENT ON COLUMN engine_sample.preemption_count IS 'Preemptions in the interval; of a scrape since the one before.';
COMMENT ON COLUMN engine_sample.kv_cache_usage_ratio IS 'KV-cache blocks in use, 0 to 1 (the log prints per cent). The device''s cache, whatever the device is.';
COMMENT ON COLUMN engine_sample.cpu_kv_cache_usage_ratio IS 'Swap space in use, 0 to 1 (V0).';
COMMENT ON COLUMN engine_sample.prefix_cache_hit_ratio IS 'Prefix-cache hits, 0 to 1, over the server''s own long window (V1: the last 1000 requests), not over the interval; of a scrape over its interval, by the counters.';
COMMENT ON COLUMN engine_sample.external_prefix_cache_hit_ratio IS 'Hits in an external KV store, 0 to 1.';
COMMENT ON COLUMN engine_sample.mm_cache_hit_ratio IS 'Hits in the multi-modal cache, 0 to 1.';
COMMENT ON COLUMN engine_sample.other IS 'Parts of the line that no column holds, as a JSON object: a new vLLM release never loses a number.';

CREATE TABLE engine_step (
    run_id VARCHAR NOT NULL,
    source_id INTEGER NOT NULL,
    line_no BIGINT NOT NULL,
    step_ts TIMESTAMP,
    error_s DOUBLE,
    engine_index INTEGER,
    step_index BIGINT,
    elapsed_s DOUBLE,
    context_requests BIGINT,
    context_tokens BIGINT,
    generation_requests BIGINT,
    generation_tokens BIGINT,
    kv_cache_usage_ratio DOUBLE,
    dummy BOOLEAN
);
COMMENT ON TABLE engine_step IS 'One row per engine iteration (vLLM 0.14 and later with --enable-logging-iteration-details).';
COMMENT ON COLUMN engine_step.run_id IS 'Run of the source.';
COMMENT ON COLUMN engine_step.source_id IS 'Source that stated it.';
COMMENT ON COLUMN engine_step.line_no IS 'Line of it, from 1.';
COMMENT ON COLUMN engine_step.step_ts IS 'Stamp of the line, UTC: the end of the step.';
COMMENT ON COLUMN engine_step.error_s IS 'Resolution of the stamp, seconds.';
COMMENT ON COLUMN engine_step.engine_index IS 'Index of the engine.';
COMMENT ON COLUMN engine_step.step_index IS 'Number of the iteration, from 0 per engine; gaps are lost lines.';
COMMENT ON COLUMN engine_step.elapsed_s IS 'Duration of the step, seconds.';
COMMENT ON COLUMN engine_step.context_requests IS 'Requests in prefill (no output token yet).';
COMMENT ON COLUMN engine_step.context_tokens IS 'Prompt tokens in the step.';
COMMENT ON COLUMN engine_step.generation_requests IS 'Requests in decode.';
COMMENT ON COLUMN engine_step.generation_tokens IS 'Tokens generated in the step.';
COMMENT ON COLUMN engine_step.kv_cache_usage_ratio IS 'KV-cache usage after the step, 0 to 1 (vLLM 0.26 and later).';
COMMENT ON COLUMN engine_step.dummy IS 'A step without work, run to keep data-parallel ranks in pace.';

CREATE TABLE metric_sample (
    run_id VARCHAR NOT NULL,
    source_id INTEGER NOT NULL,
    line_no BIGINT NOT NULL,
    sample_ts TIMESTAMP,
    error_s DOUBLE,
    scrape_index BIGINT,
    name VARCHAR NOT NULL,
    labels VARCHAR,
    measured DOUBLE
);
COMMENT ON TABLE metric_sample IS 'One row per scraped metric value. Counters run since the server''s start and begin at 0 again with it: metric_rate has what they grew by.';
COMMENT ON COLUMN metric_sample.run_id IS 'Run of the source.';
COMMENT ON COLUMN metric_sample.source_id IS 'Source that stated it.';
COMMENT ON COLUMN metric_sample.line_no IS 'Line of it, from 1; the number of the value in the order of time where a JSON document holds it.';
COMMENT ON COLUMN metric_sample.sample_ts IS 'Time of the scrape, UTC; NULL where the file has none.';
COMMENT ON COLUMN metric_sample.error_s IS 'Resolution of that time, seconds.';
COMMENT ON COLUMN metric_sample.scrape_index IS 'Number of the scrape in its source, from 0, in the order of time: there also where the file has no time. NULL for a number that a server log states beside its stats line.';
COMMENT ON COLUMN metric_sample.name IS 'Name of the metric, as scraped; empty where a query took it away. metric_spelling says what it means.';
COMMENT ON COLUMN metric_sample.labels IS 'Labels as a JSON object, sorted by name: with the name they are the series.';
COMMENT ON COLUMN metric_sample.measured IS 'The value; NULL for NaN, infinities and DCGM''s numbers for "no value". A ratio that vLLM calls _perc is from 0 to 1.';
