-- Sources of a server's side that a host or its orchestrator wrote about the server, not the server itself.
CREATE MACRO _is_of_host(format) AS
format IN ('kernel_log', 'pod_description');

-- Words of errors after which an engine makes no further step: the device, a collective or the memory failed it.
CREATE MACRO _is_fatal(message) AS
regexp_matches(
    message,
    'CUDA error|HIP error|out of memory|OutOfMemoryError|AcceleratorError|NCCL error|DistBackendError|nccl\w*Error'
    || '|CUBLAS_STATUS_|CUDNN_STATUS_|device-side assert|illegal memory access|unspecified launch failure'
    || '|uncorrectable ECC|Dumping input data for|WorkerProc hit an exception|memory pressure \(OOM\)'
);

-- Words of Ray when it ends a worker since the host's memory runs out.
CREATE MACRO _is_of_host_memory(message) AS
regexp_matches(message, 'node running low on memory|memory pressure \(OOM\)');

-- Words of errors of which the memory of the GPU is the cause.
CREATE MACRO _is_of_memory(message) AS
NOT _is_of_host_memory(message)
AND regexp_matches(
    message,
    'CUDA out of memory|HIP out of memory|OutOfMemoryError|CUDA error: out of memory|CUBLAS_STATUS_ALLOC_FAILED|ALLOC_FAILED'
    || '|No available memory for the cache blocks|tokens that can be stored in KV cache|larger than the available KV cache memory'
    || '|[Ff]ree memory on device|[Nn]ot enough memory|(?:Prefill|Decode) out of memory\. Try'
);

-- Words of errors that refuse one request and leave the engine alone.
CREATE MACRO _is_of_request(message) AS
regexp_matches(
    message,
    'maximum context length|maximum model length|[Bb]ad ?[Rr]equest|[Vv]alidation|HTTPException|chat template'
    || '|[Cc]onversation roles|NotFoundError|does not exist|JSONDecodeError|too long|longer than|must have|must be'
    || '|is not supported|tool choice|tool parser|CancelledError'
    || '|ClientDisconnect|[Cc]onnection ?(Reset|reset|closed)|[Uu]nauthorized|KeyboardInterrupt|BrokenPipe'
);

-- Words of warnings and errors that KV blocks did not come from another engine or a cache outside.
CREATE MACRO _is_of_kv_transfer(message) AS
regexp_matches(
    message,
    '(?i)(?:NIXL|Mooncake|\bKV\b|KVCache)[ \w]{0,30}(?:transfer|handshake|load)[ \w]{0,20}(?:fail|timeout|timed out)'
    || '|NIXL_ERR_|nixl\w+Error|Sync batch data transfer timeout'
    || '|KVTransferError|(?:prefill|decode) transfer failed|fail to receive KV Cache transfer'
);

CREATE VIEW _serving_line AS
SELECT
    run_id,
    source_id,
    line_no,
    sample_ts AS serving_ts
FROM engine_sample
WHERE prompt_tps > 0 OR generation_tps > 0
UNION ALL
SELECT
    run_id,
    source_id,
    line_no,
    NULL AS serving_ts
FROM access_line
WHERE method = 'POST' AND status BETWEEN 200 AND 299;
COMMENT ON VIEW _serving_line IS 'One row per line that shows that an engine serves: a stats line with tokens, or a POST that was answered.';

-- One row per run whose engine failed: the first line that says so, or the first error of it after which nothing was served.
-- `is_stated`: a line says that it died.  `is_start`: it had not served before.
CREATE VIEW _engine_failure AS
-- A host's own log goes back for months, a pod tells of its container before: what they say counts for the time of the server's
-- log, with some hours where no zone is known, or where it may be the log of the next container.
WITH told_by_host AS (
    SELECT
        host.source_id,
        min(server.first_ts)
        - CASE WHEN host.clock = 'utc' AND host.format = 'kernel_log' THEN INTERVAL 1 MINUTE ELSE INTERVAL 14 HOURS END AS from_ts,
        max(server.last_ts) + CASE WHEN host.clock = 'utc' THEN INTERVAL 15 MINUTES ELSE INTERVAL 14 HOURS END AS to_ts
    FROM source AS host
    INNER JOIN source AS server ON host.run_id = server.run_id AND server.side = 'server' AND NOT _is_of_host(server.format)
    WHERE _is_of_host(host.format)
    GROUP BY host.source_id, host.clock, host.format
),

suspect AS (
    SELECT
        log_event.*,
        kind = 'dead' AS is_stated
    FROM log_event
    LEFT JOIN told_by_host ON log_event.source_id = told_by_host.source_id
    WHERE
        (kind = 'dead' AND coalesce(event_ts BETWEEN told_by_host.from_ts AND told_by_host.to_ts, TRUE))
        OR (
            kind IN ('error', 'oom', 'traceback') AND coalesce(level, 'ERROR') IN ('ERROR', 'CRITICAL')
            AND (
                _is_fatal(message) OR _is_of_memory(message)
                -- A traceback of an engine's own process.
                OR (
                    regexp_matches(coalesce(process, ''), '^(Engine|Worker|Vllm|Ray|ModelRunner)')
                    AND message LIKE '%Traceback%' AND NOT _is_of_request(message) AND NOT _is_of_kv_transfer(message)
                )
                -- One that came out of the engine's loop.
                OR (
                    regexp_matches(message, 'run_engine_loop|run_busy_loop|run_engine_core|event_loop_(normal|overlap)')
                    AND message LIKE '%Traceback%'
                )
                -- The server's own process ended with an exception that nobody caught.
                OR (
                    level IS NULL AND message LIKE '%Traceback (most recent call last)%'
                    AND regexp_matches(message, 'in <module>|run_server|run_mp_engine|from_engine_args')
                    AND NOT regexp_matches(message, 'starlette|uvicorn.protocols|openai\.|requests\.exceptions|httpx|aiohttp')
                )
            )
        )
),

-- Of the sources with such a line: all that shows that their engine serves, and that it was ready, or asked for something.
living AS (
    SELECT *
    FROM _serving_line
    WHERE source_id IN (SELECT suspect.source_id FROM suspect)
),

asked AS (
    SELECT
        shown.source_id,
        shown.line_no
    FROM (
        SELECT
            source_id,
            line_no
        FROM engine_sample
        WHERE prompt_tps > 0 OR generation_tps > 0 OR running_count > 0 OR waiting_count > 0
        UNION ALL
        SELECT
            source_id,
            line_no
        FROM access_line
        WHERE method = 'POST'
        UNION ALL
        SELECT
            source_id,
            line_no
        FROM request_event
        UNION ALL
        SELECT
            source_id,
            line_no
        FROM log_event
        WHERE message LIKE '%Application startup complete%'
    ) AS shown
    WHERE shown.source_id IN (SELECT suspect.source_id FROM suspect)
),

bound AS (
    SELECT
        suspect.*,
        min(fresh.line_no) AS next_start_line,
        max(before.line_no) AS earlier_start_line
    FROM suspect
    LEFT JOIN log_event AS fresh
        ON suspect.source_id = fresh.source_id AND fresh.kind = 'start' AND suspect.last_line_no < fresh.line_no
    LEFT JOIN log_event AS before
        ON suspect.source_id = before.source_id AND before.kind = 'start' AND suspect.line_no > before.line_no
    GROUP BY ALL
),

failure AS (
    SELECT
        bound.*,
        NOT EXISTS (
            SELECT 1
            FROM asked
            WHERE asked.source_id = bound.source_id AND asked.line_no BETWEEN coalesce(bound.earlier_start_line, 0) AND bound.line_no
        ) AS is_unasked
    FROM bound
    WHERE
        NOT EXISTS (
            SELECT 1
            FROM log_event AS ordered
            WHERE
                ordered.source_id = bound.source_id
                AND ordered.line_no BETWEEN bound.line_no - 25 AND bound.line_no
                AND (ordered.kind = 'stop' OR ordered.message LIKE '%KeyboardInterrupt%')
        )
        AND (
            bound.is_stated
            OR NOT EXISTS (
                SELECT 1
                FROM living
                WHERE
                    living.source_id = bound.source_id AND living.line_no > bound.last_line_no
                    AND living.line_no < coalesce(bound.next_start_line, living.line_no + 1)
                    -- The stats line of the interval in which it failed still counts tokens.
                    AND coalesce(living.serving_ts > bound.event_ts + INTERVAL 12 SECONDS, TRUE)
            )
        )
),

first_failure AS (
    SELECT *
    FROM failure
    QUALIFY row_number() OVER (PARTITION BY run_id ORDER BY is_stated DESC, event_ts ASC NULLS LAST, source_id ASC, line_no ASC) = 1
),

trouble AS (
    SELECT
        first_failure.run_id,
        first_failure.source_id,
        e.line_no,
        trim(coalesce(
            nullif(
                regexp_extract(
                    e.message,
                    '(?:^|\n)\s*(?:what\(\):\s+)?'
                    || '((?:(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception)\b|CUDA error: |Fatal Python error: )[^\n]*)',
                    1
                ),
                ''
            ),
            -- A traceback that was pasted onto one line.
            nullif(
                regexp_extract(
                    e.message, 'aceback \(most recent call last\).*?((?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception): [^\n]*)', 1
                ),
                ''
            ),
            split_part(split_part(e.message, chr(10), 1), ' total-vm:', 1)
        )) AS said,
        regexp_matches(e.message, 'Error: |Exception: |CUDA error: |Fatal Python error: ') AS names_error,
        _is_of_memory(e.message) AS is_of_memory,
        regexp_matches(
            e.message,
            'failed to start|initiali[sz]|_init_|__init__|load_model|load_weights|profile_run|capture_model'
            || '|cache blocks|stored in KV cache|available KV cache memory|from_engine_args'
            || '|[Ff]ree memory on device|run_server|in <module>|[Ww]arm-?up'
        ) AS is_of_start
    FROM first_failure
    INNER JOIN log_event AS e
        ON
            first_failure.source_id = e.source_id
            AND e.line_no BETWEEN first_failure.line_no - 200 AND first_failure.last_line_no + 200
            AND e.kind IN ('error', 'traceback', 'oom', 'stall', 'dead', 'gpu')
            -- What is more than a minute older led to something else.
            AND coalesce(
                e.event_ts BETWEEN first_failure.event_ts - INTERVAL 60 SECONDS AND first_failure.event_ts + INTERVAL 10 SECONDS, TRUE
            )
            AND (first_failure.line_no = e.line_no OR _is_fatal(e.message) OR NOT _is_of_request(e.message))
),

told AS (
    SELECT
        run_id,
        coalesce(min_by(said, line_no) FILTER (WHERE names_error), min_by(said, line_no)) AS said,
        bool_or(is_of_memory) AS is_of_memory,
        bool_or(is_of_start) AS is_of_start,
        arg_min({'source_id': source_id, 'line_no': line_no}, _ranked(line_no, source_id, line_no), 4) AS evidence
    FROM trouble
    GROUP BY run_id
),

-- Long words of it end with a sentence, or a word: half a number would be a wrong one.
reason AS (
    SELECT
        *,
        CASE
            WHEN length(said) <= 160 THEN rtrim(said, '. ')
            ELSE coalesce(
                    nullif(regexp_extract(left(said, 160), '^(.*)[.] ', 1), ''),
                    regexp_replace(left(said, 157), '\s\S*$', '') || ' ...'
                )
        END AS reason
    FROM told
)

SELECT
    first_failure.run_id,
    first_failure.source_id,
    first_failure.line_no,
    first_failure.event_ts,
    first_failure.is_stated,
    first_failure.is_unasked
    AND (first_failure.earlier_start_line IS NOT NULL OR coalesce(reason.is_of_start, FALSE)) AS is_start,
    coalesce(reason.is_of_memory, FALSE) AS is_of_memory,
    coalesce(reason.reason, '') AS reason,
    coalesce(reason.evidence, []) AS evidence
FROM first_failure
LEFT JOIN reason ON first_failure.run_id = reason.run_id;
COMMENT ON VIEW _engine_failure IS 'One row per run whose engine failed or did not start.';
COMMENT ON COLUMN _engine_failure.run_id IS 'Run of the source.';
COMMENT ON COLUMN _engine_failure.source_id IS 'Source that says it.';
COMMENT ON COLUMN _engine_failure.line_no IS 'Line that says it, from 1.';
COMMENT ON COLUMN _engine_failure.event_ts IS 'When, UTC.';
COMMENT ON COLUMN _engine_failure.is_stated IS 'Whether a line says that the engine is gone; else an error of it is known, and that nothing was served after it.';
COMMENT ON COLUMN _engine_failure.is_start IS 'Whether it was before anything was asked of the engine.';
COMMENT ON COLUMN _engine_failure.is_of_memory IS 'Whether an error beside it is of the memory of the GPU.';
COMMENT ON COLUMN _engine_failure.reason IS 'The first error beside it.';
COMMENT ON COLUMN _engine_failure.evidence IS 'Lines of the errors beside it.';
