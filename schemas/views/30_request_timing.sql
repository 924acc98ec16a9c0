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
        CASE WHEN version_count = 1 THEN _version_code(vllm_version) END AS version_code
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
WITH linked AS (
    -- The offset of the two clocks as this request was sent, and as its first content came.
    SELECT
        r.*,
        r.arrival_basis IN ('span', 'request log') AS has_arrival,
        meaning.arrival_includes_tokenize,
        meaning.queue_starts,
        coalesce(link.is_one_host, FALSE) AS is_one_host,
        _lowest_offset(link.corners, epoch(r.client_sent_ts - link.middle_ts)) AS lowest_s,
        _highest_offset(link.corners, epoch(r.client_sent_ts - link.middle_ts)) AS highest_s,
        _lowest_offset(link.corners, epoch(r.client_first_chunk_ts - link.middle_ts)) AS lowest_out_s,
        _highest_offset(link.corners, epoch(r.client_first_chunk_ts - link.middle_ts)) AS highest_out_s
    FROM request AS r
    LEFT JOIN _server_meaning AS meaning ON r.run_id = meaning.run_id
    LEFT JOIN _clock_line AS link
        ON
            r.run_id = link.run_id AND r.client_source_id = link.client_source_id
            AND r.server_source_id = link.server_source_id AND link.is_known
            AND r.arrival_basis IN ('span', 'request log')
),

chosen AS (
    SELECT
        * EXCLUDE (highest_s, lowest_out_s, highest_out_s),
        CASE WHEN is_one_host THEN 0.0 ELSE (lowest_s + highest_s) / 2 END AS offset_s,
        CASE WHEN is_one_host THEN 0.0 ELSE (lowest_out_s + highest_out_s) / 2 END AS offset_out_s,
        CASE
            WHEN is_one_host THEN 0.0
            WHEN lowest_s IS NOT NULL THEN greatest(highest_s - lowest_s, highest_out_s - lowest_out_s) / 2
        END AS offset_error_s
    FROM linked
),

crossed AS (
    -- Stamps of two clocks against each other.  way_back_s is the shortest way back that any request of the file took.
    SELECT
        * EXCLUDE (lowest_s, offset_s, offset_out_s, is_one_host),
        offset_s - lowest_s AS way_back_s,
        epoch(arrival_ts - client_sent_ts) - offset_s AS way_in_s,
        epoch(client_first_chunk_ts - arrival_ts) - ttft_s + offset_out_s AS way_out_s,
        epoch(client_headers_ts - arrival_ts) + offset_s AS headers_after_arrival_s,
        ttft_s - queue_s - prefill_s AS rest_s,
        CASE
            WHEN client_ttft_s IS NOT NULL THEN 'client'
            WHEN ttft_s IS NOT NULL THEN 'server'
            WHEN coalesce(client_e2e_s, e2e_s) IS NOT NULL THEN 'end'
            ELSE 'none'
        END AS frame
    FROM chosen
),

headed AS (
    SELECT
        *,
        -- A request that does not nest at this offset was joined to the wrong one, or its clocks were set.
        least(way_in_s, way_out_s) < -offset_error_s - 0.001 AS is_contradicted,
        -- Between arrival and queue: front end and tokenization, then the wait for the running engine step.
        CASE
            WHEN
                streamed AND arrival_includes_tokenize AND rest_s >= 0
                AND headers_after_arrival_s - way_back_s >= -offset_error_s
                AND rest_s >= 2 * offset_error_s
                THEN least(rest_s, greatest(0.0, headers_after_arrival_s - greatest(way_back_s, 0.0)))
        END AS tokenize_by_headers_s
    FROM crossed
),

split AS (
    SELECT
        *,
        -- When it was scheduled, where only step lines can say what it waited for until then.
        CASE
            WHEN
                rest_s > 0.05 AND has_arrival AND tokenize_by_headers_s IS NULL
                AND coalesce(arrival_includes_tokenize, TRUE) AND coalesce(queue_starts, '') <> 'arrival'
                THEN _later(arrival_ts, rest_s)
        END AS scheduled_ts
    FROM headed
),

logged_second AS (
    SELECT
        run_id,
        date_trunc('second', step_ts) AS second_ts,
        list({'step_ts': step_ts, 'elapsed_s': elapsed_s}) AS steps
    FROM (
        SELECT
            run_id,
            step_ts,
            max(elapsed_s) AS elapsed_s
        FROM engine_step
        WHERE step_ts IS NOT NULL AND elapsed_s IS NOT NULL
        GROUP BY run_id, step_ts
    )
    GROUP BY run_id, second_ts
),

stepped AS (
    -- The longest step that ended within the second in which the request was scheduled.
    SELECT
        split.*,
        list_max(list_transform(
            list_filter(
                list_concat(this_second.steps, second_before.steps),
                LAMBDA s: s.step_ts BETWEEN _later(split.scheduled_ts, -1.05) AND _later(split.scheduled_ts, 0.05) -- noqa: RF01
            ),
            LAMBDA s: s.elapsed_s -- noqa: RF01
        )) AS blocking_step_s
    FROM split
    LEFT JOIN logged_second AS this_second
        ON
            split.run_id = this_second.run_id
            AND date_trunc('second', _later(split.scheduled_ts, 0.05)) = this_second.second_ts
    LEFT JOIN logged_second AS second_before
        ON
            split.run_id = second_before.run_id
            AND date_trunc('second', _later(split.scheduled_ts, -0.95)) = second_before.second_ts
),

whole AS (
    SELECT
        *,
        CASE frame
            WHEN 'client' THEN client_ttft_s
            WHEN 'server' THEN ttft_s
            WHEN 'end' THEN coalesce(client_e2e_s, e2e_s)
        END AS whole_s,
        CASE frame
            WHEN 'client' THEN coalesce(client_e2e_s - client_ttft_s, decode_s)
            WHEN 'server' THEN e2e_s - ttft_s
            WHEN 'end' THEN decode_s
        END AS after_first_token_s
    FROM stepped
),

pieced AS (
    SELECT
        *,
        -- A stage across two clocks is unknown where the offset's interval is wider than the stage itself.
        CASE
            WHEN frame = 'client' AND NOT coalesce(is_contradicted, FALSE) AND way_in_s >= greatest(2 * offset_error_s, 0) THEN way_in_s
        END AS network_in_s,
        CASE
            WHEN tokenize_by_headers_s IS NOT NULL THEN tokenize_by_headers_s
            WHEN arrival_includes_tokenize AND blocking_step_s < rest_s THEN rest_s - blocking_step_s
        END AS tokenize_s,
        CASE
            WHEN queue_starts = 'arrival' THEN NULL
            WHEN tokenize_by_headers_s IS NOT NULL THEN rest_s - tokenize_by_headers_s
            WHEN arrival_includes_tokenize = FALSE AND rest_s >= 0 THEN rest_s
            WHEN blocking_step_s IS NOT NULL THEN least(rest_s, blocking_step_s)
        END AS step_wait_s,
        CASE
            WHEN frame = 'client' AND NOT coalesce(is_contradicted, FALSE) AND way_out_s >= greatest(2 * offset_error_s, 0) THEN way_out_s
        END AS stream_out_s,
        CASE WHEN after_first_token_s >= 0 THEN after_first_token_s END AS decode_stage_s
    FROM whole
),

rested AS (
    SELECT
        *,
        whole_s
        - coalesce(network_in_s, 0)
        - coalesce(tokenize_s, 0)
        - coalesce(step_wait_s, 0)
        - coalesce(queue_s, 0)
        - coalesce(prefill_s, 0)
        - coalesce(stream_out_s, 0)
        - CASE WHEN frame = 'end' THEN coalesce(decode_stage_s, 0) ELSE 0 END AS over_s
    FROM pieced
)

SELECT
    * EXCLUDE (over_s),
    -- In a finished case the place of its row.
    (hash(request_id) >> 1)::BIGINT AS request_no,
    -- By which it is found (_request_called), and equal requests are put in order.  md5 is the same in every version of DuckDB.
    md5_number_lower(request_id) AS id_hash,
    -- Below a microsecond it is what differences of stamps are rounded by.
    CASE WHEN abs(over_s) < 1e-6 THEN 0.0 ELSE over_s END AS left_s
FROM rested;
COMMENT ON VIEW _request_timing IS 'One row per request: the pieces that request_stage is made of.';

-- The requests of an id, one in each run, without a look at the ids of all the others: a plain comparison would be made first, with each.
CREATE MACRO _request_called(wanted, wanted_run) AS TABLE
    SELECT *
    FROM _request_timing
    WHERE
        id_hash = md5_number_lower(wanted)
        AND coalesce(request_id = wanted, FALSE) AND (wanted_run = '' OR run_id = wanted_run);
