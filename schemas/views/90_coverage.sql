-- sqlfluff:max_line_length:300
CREATE VIEW coverage AS
WITH run AS (
    SELECT DISTINCT run_id FROM source
),

stage_basis AS (
    SELECT
        run_id,
        stage AS subject,
        basis,
        count(*) AS of_count,
        count(*) FILTER (WHERE provenance = 'observed') AS observed_count,
        count(*) FILTER (WHERE provenance = 'derived') AS derived_count,
        count(*) FILTER (WHERE provenance = 'within') AS within_count,
        count(*) FILTER (WHERE provenance IN ('within', 'unknown')) AS open_count
    FROM request_stage
    WHERE stage <> 'unaccounted'
    GROUP BY run_id, stage, basis
),

stage AS (
    SELECT
        run_id,
        subject,
        sum(of_count)::BIGINT AS of_count,
        sum(observed_count)::BIGINT AS observed_count,
        sum(derived_count)::BIGINT AS derived_count,
        sum(within_count)::BIGINT AS within_count,
        -- The commonest, and of two as common ones always the same.
        arg_max(basis, (open_count, basis)) FILTER (WHERE open_count > 0) AS why
    FROM stage_basis
    GROUP BY run_id, subject
),

counted AS (
    -- Per source: how many rows it has, and in how many of them each subject is known.
    SELECT
        run_id,
        source_id,
        count(*) AS of_count,
        unnest([
            {'subject': 'client TTFT', 'known_count': count(client_ttft_s)},
            {'subject': 'client plan', 'known_count': count(coalesce(client_planned_s, epoch(client_planned_ts), client_wait_s))},
            {'subject': 'cached tokens', 'known_count': count(cached_input_tokens)},
            {'subject': 'HTTP status', 'known_count': count(http_status)}
        ]) AS shown
    FROM client_request
    GROUP BY run_id, source_id
    UNION ALL
    SELECT
        run_id,
        source_id,
        count(*) AS of_count,
        unnest([
            {'subject': 'client chunks', 'known_count': count(chunk_offset_s)}
        ]) AS shown
    FROM client_stream
    GROUP BY run_id, source_id
    UNION ALL
    SELECT
        run_id,
        source_id,
        count(*) AS of_count,
        unnest([
            {'subject': 'lifecycle', 'known_count': count(event)}
        ]) AS shown
    FROM request_event
    GROUP BY run_id, source_id
    UNION ALL
    SELECT
        run_id,
        source_id,
        count(*) AS of_count,
        unnest([
            {'subject': 'server times', 'known_count': count(coalesce(queue_s, prefill_s, ttft_s))},
            {'subject': 'cached tokens', 'known_count': count(cached_input_tokens)}
        ]) AS shown
    FROM server_request
    GROUP BY run_id, source_id
    UNION ALL
    SELECT
        run_id,
        source_id,
        count(*) AS of_count,
        unnest([
            {'subject': 'queue length', 'known_count': count(waiting_count)},
            {'subject': 'KV cache', 'known_count': count(kv_cache_usage_ratio)},
            {'subject': 'preemptions', 'known_count': count(preemption_count)},
            {'subject': 'prefix cache', 'known_count': count(prefix_cache_hit_ratio)}
        ]) AS shown
    FROM engine_sample
    GROUP BY run_id, source_id
    UNION ALL
    SELECT
        run_id,
        source_id,
        count(*) AS of_count,
        unnest([
            {'subject': 'engine steps', 'known_count': count(elapsed_s)}
        ]) AS shown
    FROM engine_step
    GROUP BY run_id, source_id
    UNION ALL
    SELECT
        run_id,
        source_id,
        count(*) AS of_count,
        unnest([
            {'subject': 'settings', 'known_count': count(CASE WHEN basis = 'stated' THEN key END)}
        ]) AS shown
    FROM server_setting
    GROUP BY run_id, source_id
    UNION ALL
    SELECT
        run_id,
        source_id,
        count(*) AS of_count,
        unnest([
            {'subject': 'GPU busy', 'known_count': count(coalesce(sm_ratio, gr_active_ratio))},
            {'subject': 'GPU power', 'known_count': count(power_w)},
            {'subject': 'GPU clocks', 'known_count': count(sm_clock_mhz)},
            {'subject': 'GPU memory traffic', 'known_count': count(dram_active_ratio)},
            {'subject': 'GPU tensor cores', 'known_count': count(tensor_active_ratio)}
        ]) AS shown
    FROM gpu_sample
    GROUP BY run_id, source_id
    UNION ALL
    SELECT
        run_id,
        source_id,
        count(*) AS of_count,
        unnest([
            {'subject': 'HTTP status', 'known_count': count(status)}
        ]) AS shown
    FROM access_line
    GROUP BY run_id, source_id
    UNION ALL
    SELECT
        run_id,
        source_id,
        count(*) AS of_count,
        unnest([
            {'subject': 'host load', 'known_count': count(coalesce(cpu_ratio, load_1m))}
        ]) AS shown
    FROM host_sample
    GROUP BY run_id, source_id
),

signal AS (
    SELECT
        counted.run_id,
        counted.shown.subject AS subject,
        -- Sources that cannot show it do not count as rows without it.
        coalesce(sum(counted.of_count) FILTER (WHERE counted.shown.known_count > 0), sum(counted.of_count))::BIGINT AS of_count,
        sum(counted.shown.known_count)::BIGINT AS observed_count,
        list(source.path ORDER BY counted.shown.known_count DESC, source.path ASC) FILTER (WHERE counted.shown.known_count > 0) AS paths
    FROM counted
    INNER JOIN source ON counted.source_id = source.source_id
    GROUP BY counted.run_id, counted.shown.subject
),

version AS (
    SELECT
        run_id,
        any_value(value) FILTER (WHERE key = 'vllm_version') AS vllm_version,
        max(amount) FILTER (WHERE key = 'api_server_count')::BIGINT AS api_servers,
        bool_or(lower(value) = 'true') FILTER (WHERE key = 'disable_log_stats') AS stats_off
    FROM run_setting
    GROUP BY run_id
),

versioned AS (
    SELECT
        *,
        _version_code(vllm_version) AS version_code
    FROM version
),

-- Several API servers show in a log by their labels, where no settings were printed.
labelled AS (
    SELECT
        run_id,
        count(DISTINCT process) FILTER (WHERE regexp_matches(process, '^(?i:ApiServer)_\d+')) AS api_server_labels,
        bool_and(level NOT IN ('INFO', 'DEBUG')) AS is_quiet
    FROM (
        SELECT
            run_id,
            process,
            level
        FROM log_event
        UNION ALL
        SELECT
            run_id,
            process,
            NULL AS level
        FROM access_line
    )
    GROUP BY run_id
),

asked AS (
    SELECT
        run.run_id,
        question.*,
        coalesce(signal.paths, []) AS paths,
        coalesce(stage.of_count, signal.of_count, 0) AS of_count,
        coalesce(stage.observed_count, signal.observed_count, 0) AS observed_count,
        coalesce(stage.derived_count, 0) AS derived_count,
        coalesce(stage.within_count, 0) AS within_count,
        stage.why,
        versioned.vllm_version,
        versioned.version_code,
        coalesce(versioned.stats_off, FALSE) AS stats_off,
        greatest(coalesce(versioned.api_servers, 0), coalesce(labelled.api_server_labels, 0)) AS api_server_count,
        coalesce(labelled.is_quiet, FALSE) AS is_quiet
    FROM run
    CROSS JOIN coverage_question AS question
    LEFT JOIN stage ON run.run_id = stage.run_id AND question.subject = stage.subject
    LEFT JOIN signal ON run.run_id = signal.run_id AND question.subject = signal.subject
    LEFT JOIN versioned ON run.run_id = versioned.run_id
    LEFT JOIN labelled ON run.run_id = labelled.run_id
),

switch AS (
    SELECT
        asked.run_id,
        asked.subject,
        string_agg(known.argument, ' or ' ORDER BY known.argument DESC) FILTER (
            WHERE coalesce(asked.version_code, 999999) >= known.from_version
            AND coalesce(asked.version_code, 999999) < known.until_version
        ) AS arguments,
        arg_min(
            format('vLLM 0.{} and later: {}', known.from_version // 1000, known.argument), known.from_version
        ) FILTER (WHERE asked.version_code < known.from_version) AS later_arguments
    FROM asked
    INNER JOIN server_switch AS known ON asked.server_subject = known.subject
    GROUP BY asked.run_id, asked.subject
)

SELECT
    asked.run_id,
    asked.subject_index,
    asked.subject,
    asked.side,
    asked.question,
    CASE
        WHEN asked.of_count = 0 THEN 'closed'
        WHEN asked.observed_count > 0 AND asked.observed_count >= asked.derived_count THEN 'observed'
        WHEN asked.derived_count > 0 THEN 'derived'
        WHEN asked.within_count > 0 THEN 'within'
        ELSE 'closed'
    END AS state,
    asked.observed_count,
    asked.derived_count,
    asked.of_count,
    asked.paths AS opened_by,
    CASE
        WHEN asked.subject = 'queue length' AND asked.of_count = 0 AND asked.stats_off
            THEN 'no stats lines: the server ran with --disable-log-stats'
        WHEN asked.subject = 'queue length' AND asked.of_count = 0 AND asked.api_server_count > 1
            THEN format('no stats lines: {} API servers (--api-server-count above 1), and then vLLM 0.10.2 and later writes none', asked.api_server_count)
        WHEN asked.subject = 'queue length' AND asked.of_count = 0 AND asked.is_quiet
            THEN 'no stats lines: nothing below WARNING stands in the log (VLLM_LOGGING_LEVEL)'
        ELSE asked.why
    END AS why,
    CASE
        WHEN asked.subject = 'queue length' AND asked.stats_off THEN 'run without --disable-log-stats'
        WHEN asked.subject = 'queue length' AND asked.api_server_count > 1 THEN 'scrape /metrics; or --api-server-count 1'
        WHEN asked.subject = 'lifecycle' AND asked.version_code < 10001 THEN 'run without --disable-log-requests'
        WHEN asked.subject IN ('queue', 'prefill', 'decode', 'server times') AND switch.arguments IS NULL
            THEN 'scrape /metrics (means and intervals; this version writes no spans)'
        ELSE concat_ws('; ', coalesce(switch.arguments, switch.later_arguments), asked.switch)
    END AS switch_on,
    asked.server_subject,
    asked.vllm_version
FROM asked
LEFT JOIN switch ON asked.run_id = switch.run_id AND asked.subject = switch.subject;

COMMENT ON VIEW coverage IS 'One row per run and question: whether its sources answer it, which of them do, and what to switch on where they do not.';
COMMENT ON COLUMN coverage.run_id IS 'Run.';
COMMENT ON COLUMN coverage.subject_index IS 'Place in the order of subjects: the stages of a request first.';
COMMENT ON COLUMN coverage.subject IS 'A stage of a request, or what else can be known of a run.';
COMMENT ON COLUMN coverage.side IS 'Whose files show it: stage, client, server, engine, gpu or host.';
COMMENT ON COLUMN coverage.question IS 'The question that it answers.';
COMMENT ON COLUMN coverage.state IS 'observed: a source states it. derived: a subtraction, a second clock or an assumption was needed. within: it is inside another stage. closed: nobody recorded it.';
COMMENT ON COLUMN coverage.observed_count IS 'Requests (for a stage) or rows in which it is observed.';
COMMENT ON COLUMN coverage.derived_count IS 'Requests in which it is derived.';
COMMENT ON COLUMN coverage.of_count IS 'Requests or rows of all.';
COMMENT ON COLUMN coverage.opened_by IS 'Paths of the sources that show it; empty for a stage, which is made from several.';
COMMENT ON COLUMN coverage.why IS 'Why it is not observed, where that is known.';
COMMENT ON COLUMN coverage.switch_on IS 'What records it: an argument that the run''s version of vLLM knows, or a command.';
COMMENT ON COLUMN coverage.server_subject IS 'server_switch.subject of the server arguments that record it.';
COMMENT ON COLUMN coverage.vllm_version IS 'Version that the run''s server stated; NULL where it did not, and then the newest is meant.';
