/*
What lines of the sources say, in short. `places` are pairs of source and line: "1:297,1:301".
[params]
places = ""
*/
WITH place AS (
    SELECT DISTINCT
        try_cast(split_part(pair, ':', 1) AS INTEGER) AS source_id,
        try_cast(split_part(pair, ':', 2) AS BIGINT) AS line_no
    FROM (SELECT unnest(string_split($places, ',')) AS pair)
    WHERE pair <> ''
),

said AS (
    SELECT
        source_id,
        line_no,
        concat_ws(' ', level, message) AS says
    FROM log_event
    SEMI JOIN place ON log_event.source_id = place.source_id AND log_event.line_no = place.line_no
    UNION ALL
    SELECT
        source_id,
        line_no,
        concat_ws(
            ', ',
            'engine ' || engine_index,
            'running ' || running_count,
            'waiting ' || waiting_count,
            'deferred ' || nullif(deferred_count, 0),
            'preemptions ' || nullif(preemption_count, 0),
            format('KV cache {:.1f} %', 100 * kv_cache_usage_ratio),
            format('prompt {:.1f} tokens/s', prompt_tps),
            format('generation {:.1f} tokens/s', generation_tps),
            format('prefix hits {:.1f} %', 100 * prefix_cache_hit_ratio)
        ) AS says
    FROM engine_sample
    SEMI JOIN place ON engine_sample.source_id = place.source_id AND engine_sample.line_no = place.line_no
    UNION ALL
    SELECT
        source_id,
        line_no,
        concat_ws(
            ', ',
            format('step {:.3f} s', elapsed_s),
            'prefill of ' || context_requests || ' requests, ' || context_tokens || ' tokens',
            'decode of ' || generation_requests || ' requests'
        ) AS says
    FROM engine_step
    SEMI JOIN place ON engine_step.source_id = place.source_id AND engine_step.line_no = place.line_no
    UNION ALL
    SELECT
        source_id,
        line_no,
        concat_ws(' ', event::VARCHAR, logged_id, finish_reason, detail) AS says
    FROM request_event
    SEMI JOIN place ON request_event.source_id = place.source_id AND request_event.line_no = place.line_no
    UNION ALL
    SELECT
        source_id,
        line_no,
        string_agg(key || ' = ' || value, ', ' ORDER BY key) AS says
    FROM server_setting
    SEMI JOIN place ON server_setting.source_id = place.source_id AND server_setting.line_no = place.line_no
    WHERE basis = 'stated'
    GROUP BY source_id, line_no
    UNION ALL
    SELECT
        source_id,
        line_no,
        concat_ws(
            ', ',
            'GPU ' || gpu_index,
            format('sm {:.0f} %', 100 * sm_ratio),
            format('memory {:.0f} %', 100 * mem_ratio),
            format('DRAM {:.0f} %', 100 * dram_active_ratio),
            format('{:.0f} W', power_w) || coalesce(format(' of {:.0f} W', power_limit_w), ''),
            format('{:.0f} °C', temp_c),
            format('{:.0f} MHz', sm_clock_mhz),
            clock_reasons
        ) AS says
    FROM gpu_sample
    SEMI JOIN place ON gpu_sample.source_id = place.source_id AND gpu_sample.line_no = place.line_no
    UNION ALL
    SELECT
        source_id,
        line_no,
        concat_ws(
            ', ',
            client_id,
            format('TTFT {:.3f} s', client_ttft_s),
            format('end to end {:.3f} s', client_e2e_s),
            status::VARCHAR,
            'HTTP ' || http_status,
            error
        ) AS says
    FROM client_request
    SEMI JOIN place ON client_request.source_id = place.source_id AND client_request.line_no = place.line_no
    UNION ALL
    SELECT
        source_id,
        line_no,
        concat_ws(
            ', ',
            request_id,
            format('TTFT {:.3f} s', ttft_s),
            format('queue {:.4f} s', queue_s),
            format('prefill {:.3f} s', prefill_s),
            finish_reason
        ) AS says
    FROM server_request
    SEMI JOIN place ON server_request.source_id = place.source_id AND server_request.line_no = place.line_no
    UNION ALL
    SELECT
        source_id,
        line_no,
        concat_ws(' ', method, path, status) AS says
    FROM access_line
    SEMI JOIN place ON access_line.source_id = place.source_id AND access_line.line_no = place.line_no
)

SELECT
    source.path,
    said.source_id,
    said.line_no,
    left(string_agg(said.says, '; ' ORDER BY said.says), 400) AS says
FROM said
INNER JOIN source ON said.source_id = source.source_id
GROUP BY source.path, said.source_id, said.line_no
ORDER BY said.source_id ASC, said.line_no ASC
