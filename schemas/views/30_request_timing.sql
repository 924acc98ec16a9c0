CREATE VIEW _server_meaning AS
WITH stated AS (
    SELECT
        run_id,
        any_value(value) FILTER (WHERE key = 'vllm_version') AS vllm_version,
        count(DISTINCT value) FILTER (WHERE key = 'vllm_version') AS version_count,
        max(value) FILTER (WHERE key = 'engine_version') AS engine
    FROM server_setting
    WHERE key IN ('vllm_version', 'engine_version')
    GROUP BY run_id
),

coded AS (
    SELECT
        run_id,
        engine,
        CASE
            WHEN version_count = 1 AND regexp_matches(vllm_version, '^0\.\d+\.\d+') AND NOT starts_with(vllm_version, '0.1.dev')
                THEN
                    regexp_extract(vllm_version, '^0\.(\d+)\.(\d+)', 1)::INTEGER * 1000
                    + regexp_extract(vllm_version, '^0\.(\d+)\.(\d+)', 2)::INTEGER
        END AS version_code
    FROM stated
)

SELECT
    coded.run_id,
    any_value(meaning.arrival_includes_tokenize) AS arrival_includes_tokenize,
    any_value(meaning.queue_starts) AS queue_starts
FROM coded
INNER JOIN server_semantics AS meaning
    ON
        coded.version_code >= meaning.from_version
        AND coded.version_code < meaning.until_version
        AND meaning.engine = coalesce(coded.engine, CASE WHEN coded.version_code >= 11001 THEN 'V1' END)
GROUP BY coded.run_id;
COMMENT ON VIEW _server_meaning IS 'One row per run with one known vLLM version: what its own times mean.';

CREATE VIEW _request_timing AS
WITH offset_of AS (
    SELECT
        run_id,
        from_source_id,
        to_source_id,
        chosen_s,
        error_s
    FROM clock_offset
    WHERE chosen_s IS NOT NULL
),

crossed AS (
    SELECT
        r.*,
        meaning.arrival_includes_tokenize,
        meaning.queue_starts,
        link.error_s AS offset_error_s,
        epoch(r.arrival_ts - r.client_sent_ts) - link.chosen_s AS way_in_s,
        epoch(r.client_first_chunk_ts - r.arrival_ts) - r.ttft_s + link.chosen_s AS way_out_s,
        epoch(r.client_headers_ts - r.arrival_ts) + link.chosen_s AS headers_after_arrival_s
    FROM request AS r
    LEFT JOIN _server_meaning AS meaning ON r.run_id = meaning.run_id
    LEFT JOIN offset_of AS link
        ON
            r.run_id = link.run_id AND r.client_source_id = link.from_source_id
            AND r.server_source_id = link.to_source_id AND r.has_span
),

floored AS (
    SELECT
        *,
        min(way_out_s) OVER (PARTITION BY run_id, client_source_id) AS least_way_out_s
    FROM crossed
),

framed AS (
    SELECT
        *,
        CASE
            WHEN client_ttft_s IS NOT NULL THEN 'client'
            WHEN ttft_s IS NOT NULL THEN 'server'
            WHEN coalesce(client_e2e_s, e2e_s) IS NOT NULL THEN 'end'
            ELSE 'none'
        END AS frame,
        -- A stage across two clocks is unknown where the offset's interval is wider than the stage itself.
        CASE WHEN client_ttft_s IS NOT NULL AND way_in_s >= 0 AND way_in_s >= 2 * offset_error_s THEN way_in_s END AS network_in_s,
        CASE WHEN client_ttft_s IS NOT NULL AND way_out_s >= 0 AND way_out_s >= 2 * offset_error_s THEN way_out_s END AS stream_out_s,
        CASE WHEN has_span THEN ttft_s - queue_s - prefill_s END AS rest_s
    FROM floored
),

-- Between arrival and queue: front end and tokenization, then the wait for the running engine step.
split_by_headers AS (
    SELECT
        *,
        CASE
            WHEN
                streamed AND arrival_includes_tokenize AND rest_s >= 0
                AND headers_after_arrival_s - least_way_out_s >= -offset_error_s
                AND rest_s >= 2 * offset_error_s
                THEN least(rest_s, greatest(0.0, headers_after_arrival_s - greatest(least_way_out_s, 0.0)))
        END AS tokenize_by_headers_s
    FROM framed
),

step AS (
    -- The step that ended within the second in which the request was scheduled, where step lines exist.
    SELECT
        timing.run_id,
        timing.request_id,
        max(engine_step.elapsed_s) AS elapsed_s
    FROM split_by_headers AS timing
    INNER JOIN engine_step
        ON
            timing.run_id = engine_step.run_id
            AND engine_step.step_ts
            BETWEEN timing.arrival_ts + to_microseconds(((timing.rest_s - 1.05) * 1e6)::BIGINT)
            AND timing.arrival_ts + to_microseconds(((timing.rest_s + 0.05) * 1e6)::BIGINT)
    WHERE timing.rest_s > 0.05 AND timing.tokenize_by_headers_s IS NULL
    GROUP BY timing.run_id, timing.request_id
)

SELECT
    timing.*,
    CASE
        WHEN timing.queue_starts = 'arrival' THEN NULL
        WHEN timing.tokenize_by_headers_s IS NOT NULL THEN timing.rest_s - timing.tokenize_by_headers_s
        WHEN timing.arrival_includes_tokenize = FALSE AND timing.rest_s >= 0 THEN timing.rest_s
        WHEN step.elapsed_s IS NOT NULL THEN least(timing.rest_s, step.elapsed_s)
    END AS step_wait_s,
    CASE
        WHEN timing.tokenize_by_headers_s IS NOT NULL THEN timing.tokenize_by_headers_s
        WHEN timing.arrival_includes_tokenize AND step.elapsed_s < timing.rest_s THEN timing.rest_s - step.elapsed_s
    END AS tokenize_s,
    step.elapsed_s AS blocking_step_s,
    CASE timing.frame
        WHEN 'client' THEN timing.client_ttft_s
        WHEN 'server' THEN timing.ttft_s
        WHEN 'end' THEN coalesce(timing.client_e2e_s, timing.e2e_s)
    END AS whole_s,
    CASE timing.frame
        WHEN 'client' THEN timing.client_e2e_s - timing.client_ttft_s
        WHEN 'server' THEN timing.e2e_s - timing.ttft_s
    END AS after_first_token_s
FROM split_by_headers AS timing
LEFT JOIN step ON timing.run_id = step.run_id AND timing.request_id = step.request_id;
COMMENT ON VIEW _request_timing IS 'One row per request: the pieces that request_stage is made of.';
