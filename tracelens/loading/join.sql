-- Client, server log, span: the views of one request meet here.  Run after every ingest, over the whole run; join_2 (files
-- without ids) and join_3 (clocks without a zero) follow it.

-- 1. Internal ids back to external ones.  vLLM 0.14 and later add a dash and 8 hex digits, n > 1 puts "K_" in front.
--    An id is only ever shortened to one that some source wrote in full; an id that is known itself stays as it is.
CREATE OR REPLACE TEMP TABLE external_id AS
SELECT DISTINCT logged_id AS request_id
FROM request_event
WHERE run_id = $run AND event IN ('received', 'finished', 'failed')
UNION
SELECT request_id
FROM server_request
WHERE run_id = $run AND request_id IS NOT NULL
UNION
SELECT response_id
FROM client_request
WHERE run_id = $run AND response_id IS NOT NULL
UNION
-- What the server makes of an id that the client sends (X-Request-Id): all that an aborted request leaves of it.
SELECT unnest(['chatcmpl-' || client_id, 'cmpl-' || client_id || '-0', client_id])
FROM (
    SELECT unnest([client_id, gateway_id]) AS client_id
    FROM client_request
    WHERE run_id = $run
)
WHERE client_id IS NOT NULL;

CREATE OR REPLACE TEMP TABLE shortened AS
WITH internal AS (
    SELECT DISTINCT logged_id
    FROM request_event
    WHERE run_id = $run AND event NOT IN ('received', 'finished', 'failed') AND request_id = logged_id
        AND logged_id NOT IN (SELECT external_id.request_id FROM external_id)
),

candidate AS (
    SELECT
        logged_id,
        unnest([
            regexp_replace(logged_id, '-[0-9a-f]{8}$', ''),
            regexp_replace(logged_id, '^\d+_', ''),
            regexp_replace(regexp_replace(logged_id, '^\d+_', ''), '-[0-9a-f]{8}$', '')
        ]) AS request_id,
        unnest([1, 2, 3]) AS attempt
    FROM internal
    UNION ALL
    -- The Rust front end gives the engine's id beside its own.
    SELECT
        internal.logged_id,
        finished.request_id,
        0 AS attempt
    FROM internal
    INNER JOIN request_event AS finished
        ON internal.logged_id = finished.engine_id AND finished.run_id = $run
)

SELECT
    candidate.logged_id,
    arg_min(candidate.request_id, candidate.attempt) AS request_id
FROM candidate
INNER JOIN external_id ON candidate.request_id = external_id.request_id
GROUP BY candidate.logged_id;

UPDATE request_event
SET request_id = shortened.request_id
FROM shortened
WHERE request_event.run_id = $run
    AND request_event.logged_id = shortened.logged_id
    AND request_event.request_id <> shortened.request_id;

--    An id that is used again in a later file of the run (a rotated log, a server started anew) is another request, where a
--    start of the server or the end of the first one lies between.  What overlaps in time is one request, told by two files.
CREATE OR REPLACE TEMP TABLE told_by_several AS
WITH based AS (
    SELECT
        source_id,
        request_id,
        -- The number behind an id is ours, unless the line itself has it.
        CASE
            WHEN contains(logged_id, regexp_extract(request_id, '#\d+$')) THEN request_id
            ELSE regexp_replace(request_id, '#\d+$', '')
        END AS base_id,
        event,
        event_ts
    FROM request_event
    WHERE run_id = $run
        AND (SELECT count(DISTINCT told.source_id) > 1 FROM request_event AS told WHERE told.run_id = $run)
),

part AS (
    SELECT
        base_id,
        source_id,
        request_id,
        min(event_ts) AS first_ts,
        max(event_ts) AS last_ts,
        min(event_ts) FILTER (WHERE event IN ('received', 'added')) AS begin_ts,
        bool_or(event IN ('finished', 'aborted', 'failed')) AS has_ended
    FROM based
    GROUP BY base_id, source_id, request_id
)

SELECT
    *,
    coalesce(try_cast(regexp_extract(substr(request_id, length(base_id) + 1), '\d+') AS INTEGER), 1) AS life_no
FROM part
QUALIFY count(DISTINCT source_id) OVER (PARTITION BY base_id) > 1
    AND count(first_ts) OVER (PARTITION BY base_id) = count(*) OVER (PARTITION BY base_id);

CREATE OR REPLACE TEMP TABLE numbered AS
WITH server_start AS (
    SELECT coalesce(list(event_ts), []) AS starts
    FROM log_event
    WHERE run_id = $run
        AND kind = 'start'
        AND regexp_matches(message, 'vLLM (?:API )?server version|Started server process')
        AND (SELECT count(*) > 0 FROM told_by_several)
),

beside AS (
    SELECT
        *,
        lag(source_id) OVER in_time AS passed_source_id,
        max(last_ts) OVER (in_time ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS passed_ts,
        lag(has_ended) OVER in_time AS passed_has_ended
    FROM told_by_several
    WINDOW in_time AS (PARTITION BY base_id ORDER BY first_ts, source_id, life_no)
),

told AS (
    SELECT
        beside.*,
        CASE
            WHEN beside.passed_source_id IS NULL THEN FALSE
            WHEN beside.passed_source_id = beside.source_id THEN TRUE
            ELSE
                coalesce(beside.begin_ts = beside.first_ts AND beside.begin_ts > beside.passed_ts, FALSE)
                AND (
                    beside.passed_has_ended
                    OR len(list_filter(
                        server_start.starts, LAMBDA s: s >= beside.passed_ts AND s <= beside.begin_ts
                    )) > 0
                )
        END AS is_again
    FROM beside
    CROSS JOIN server_start
)

SELECT
    source_id,
    request_id,
    base_id || CASE
        WHEN bool_or(is_again) OVER so_far
            THEN '#' || (1 + count(*) FILTER (WHERE is_again) OVER so_far)
        ELSE ''
    END AS new_id
FROM told
WINDOW so_far AS (PARTITION BY base_id ORDER BY first_ts, source_id, life_no);

UPDATE request_event
SET request_id = numbered.new_id
FROM numbered
WHERE request_event.run_id = $run
    AND request_event.source_id = numbered.source_id
    AND request_event.request_id = numbered.request_id
    AND numbered.new_id <> numbered.request_id;

-- 2. Client rows to server requests, by the surest key first.
CREATE OR REPLACE TEMP TABLE server_side AS
WITH client AS (
    SELECT count(*) > 0 AS is_there
    FROM client_request
    WHERE run_id = $run
)

SELECT DISTINCT event.request_id
FROM request_event AS event
CROSS JOIN client
WHERE event.run_id = $run AND client.is_there
UNION
SELECT request.request_id
FROM server_request AS request
CROSS JOIN client
WHERE request.run_id = $run AND request.request_id IS NOT NULL AND request.measured_by <> 'response' AND client.is_there;

CREATE OR REPLACE TEMP TABLE by_position AS
WITH file AS (
    SELECT
        source_id,
        max(position) AS last_position
    FROM client_request
    WHERE run_id = $run AND position IS NOT NULL AND response_id IS NULL
    GROUP BY source_id
),

numbered AS (
    SELECT
        request_id,
        CASE
            WHEN starts_with(request_id, 'cmpl-')
                THEN regexp_extract(request_id, '^cmpl-(.*?)(\d+)-0$', ['prefix', 'position'])
            ELSE regexp_extract(request_id, '^(?:chatcmpl-)?(.*?)(\d+)$', ['prefix', 'position'])
        END AS parts
    FROM server_side
    WHERE (SELECT count(*) > 0 FROM file)
),

counted AS (
    SELECT
        request_id,
        parts.prefix AS prefix,
        try_cast(parts.position AS BIGINT) AS position,
        count(*) OVER (PARTITION BY parts.prefix) AS prefix_count,
        max(try_cast(parts.position AS BIGINT)) OVER (PARTITION BY parts.prefix) AS last_position
    FROM numbered
    WHERE parts.position <> '' AND length(parts.position) < 9
)

SELECT
    file.source_id,
    counted.position,
    counted.request_id,
    count(DISTINCT counted.prefix) OVER (PARTITION BY file.source_id) AS candidates
FROM file
INNER JOIN counted
    ON file.last_position = counted.last_position AND counted.prefix_count = counted.last_position + 1;

-- What was only matched by lengths and times is matched anew.
UPDATE client_request
SET request_id = NULL
FROM client_link AS link
WHERE client_request.run_id = $run
    AND link.basis = 'lengths and times'
    AND client_request.source_id = link.source_id
    AND client_request.line_no = link.line_no;

DELETE FROM client_match WHERE run_id = $run;

DELETE FROM client_link WHERE run_id = $run;

INSERT INTO client_link
WITH by_trace AS (
    SELECT
        trace_id,
        any_value(request_id) AS request_id
    FROM server_request
    WHERE run_id = $run AND trace_id IS NOT NULL AND request_id IS NOT NULL AND measured_by = 'span'
    GROUP BY trace_id
    HAVING count(DISTINCT request_id) = 1
),

named AS (
    SELECT
        client.source_id,
        client.line_no,
        unnest([
            client.response_id,
            client.response_id || '-0',
            'chatcmpl-' || client.client_id,
            'cmpl-' || client.client_id || '-0',
            'cmpl-' || client.client_id,
            client.client_id,
            'chatcmpl-' || client.gateway_id,
            'cmpl-' || client.gateway_id || '-0',
            client.gateway_id
        ]) AS request_id,
        unnest([2, 3, 4, 5, 6, 7, 9, 10, 11]) AS attempt
    FROM client_request AS client
    WHERE client.run_id = $run
),

found AS (
    SELECT
        client.source_id,
        client.line_no,
        by_trace.request_id,
        1 AS attempt,
        'trace id' AS basis
    FROM client_request AS client
    INNER JOIN by_trace ON client.trace_id = by_trace.trace_id
    WHERE client.run_id = $run
    -- One trace can hold several requests (an agent's turns, retries): then it names none of them.
    -- A client and the gateways on the way all know the same trace.
    QUALIFY count(*) OVER (PARTITION BY client.trace_id, CASE WHEN client.seen_by IS NOT NULL THEN client.source_id END) = 1
    UNION ALL
    SELECT
        named.source_id,
        named.line_no,
        named.request_id,
        named.attempt,
        CASE
            WHEN named.attempt <= 3 THEN 'response id'
            WHEN named.attempt <= 7 THEN 'id sent by the client'
            ELSE 'id given by the gateway'
        END AS basis
    FROM named
    INNER JOIN server_side ON named.request_id = server_side.request_id
    UNION ALL
    SELECT
        client.source_id,
        client.line_no,
        by_position.request_id,
        8 AS attempt,
        'place in the order of sending' AS basis
    FROM client_request AS client
    INNER JOIN by_position
        ON client.source_id = by_position.source_id AND client.position = by_position.position
    WHERE client.run_id = $run AND by_position.candidates = 1
),

surest AS (
    SELECT
        found.*,
        CASE WHEN client.seen_by IS NOT NULL THEN client.source_id END AS gateway_source_id
    FROM found
    INNER JOIN client_request AS client ON found.source_id = client.source_id AND found.line_no = client.line_no
    QUALIFY row_number() OVER (PARTITION BY found.source_id, found.line_no ORDER BY found.attempt, found.request_id) = 1
)

-- An id that a client sent twice belongs to the first row that has it; the other rows stay by themselves.  A gateway's row
-- of the same request takes nothing from the client's: each is linked.
SELECT
    $run AS run_id,
    source_id,
    line_no,
    request_id,
    basis
FROM surest
QUALIFY row_number() OVER (PARTITION BY request_id, gateway_source_id ORDER BY attempt, source_id, line_no) = 1;

-- Gateways and clients of requests that no server source has: by the ids that both know.
INSERT INTO client_link
WITH unlinked AS (
    SELECT *
    FROM client_request
    WHERE run_id = $run
        AND NOT EXISTS (
            SELECT 1 FROM client_link AS link
            WHERE link.source_id = client_request.source_id AND link.line_no = client_request.line_no
        )
),

client_name AS (
    SELECT
        source_id,
        unnest([response_id, client_id]) AS name,
        coalesce(response_id, client_id) AS request_id
    FROM unlinked
    WHERE seen_by IS NULL
),

gateway_name AS (
    SELECT
        source_id,
        line_no,
        unnest([
            response_id, client_id, gateway_id,
            'chatcmpl-' || client_id, 'cmpl-' || client_id, 'chatcmpl-' || gateway_id, 'cmpl-' || gateway_id
        ]) AS name
    FROM unlinked
    WHERE seen_by IS NOT NULL
)

SELECT
    $run AS run_id,
    gateway_name.source_id,
    gateway_name.line_no,
    min(client_name.request_id) AS request_id,
    'id that client and gateway share' AS basis
FROM gateway_name
INNER JOIN client_name ON gateway_name.name = client_name.name
GROUP BY gateway_name.source_id, gateway_name.line_no;

UPDATE client_request
SET request_id = link.request_id
FROM client_link AS link
WHERE client_request.run_id = $run
    AND client_request.source_id = link.source_id
    AND client_request.line_no = link.line_no
    AND client_request.request_id IS DISTINCT FROM link.request_id;

-- A request is told once: by its client, else by the gateway that saw its first token, else by the first access log.  Where other
-- sources have requests and none of a gateway's lines was found among them, its lines and theirs cannot be told apart: they
-- are no requests of their own, but for those that were refused, which no server has.  Where some were found, the others
-- never reached the server, and stand by themselves.
UPDATE client_request
SET is_secondary = NULL
WHERE run_id = $run AND is_secondary;

UPDATE client_request
SET is_secondary = TRUE
FROM (
    WITH ranked AS (
        SELECT
            client.source_id,
            client.line_no,
            client.seen_by,
            client.status,
            coalesce(link.request_id, client.response_id, client.client_id) AS name,
            bool_or(link.request_id IS NOT NULL) OVER (PARTITION BY client.source_id) AS is_joined,
            CASE
                WHEN client.seen_by IS NULL THEN 0
                WHEN client.seen_by = 'llm_gateway' THEN client.source_id
                ELSE 1000000000 + client.source_id
            END AS preference
        FROM client_request AS client
        LEFT JOIN client_link AS link ON client.source_id = link.source_id AND client.line_no = link.line_no
        WHERE client.run_id = $run
            AND (SELECT count(*) > 0 FROM client_request WHERE run_id = $run AND seen_by IS NOT NULL)
    ),

    rival AS (
        SELECT
            (SELECT count(*) > 0 FROM server_side) AS has_server,
            (SELECT count(*) > 0 FROM ranked WHERE seen_by IS NULL) AS has_client
    ),

    judged AS (
        SELECT
            ranked.*,
            min(preference) OVER (PARTITION BY name) AS best,
            rival.has_client OR (rival.has_server AND ranked.status <> 'rejected') AS has_others
        FROM ranked
        CROSS JOIN rival
    )

    SELECT
        source_id,
        line_no
    FROM judged
    WHERE seen_by IS NOT NULL AND ((name IS NOT NULL AND preference > best) OR (has_others AND NOT is_joined))
) AS told
WHERE client_request.run_id = $run
    AND client_request.source_id = told.source_id
    AND client_request.line_no = told.line_no;

-- 3. V0 on the CPU prints its one cache as "CPU KV cache usage" and a GPU cache of 0.0 % that does not exist.
UPDATE engine_sample
SET kv_cache_usage_ratio = cpu_kv_cache_usage_ratio
WHERE run_id = $run
    AND cpu_kv_cache_usage_ratio IS NOT NULL
    AND source_id IN (
        SELECT server_setting.source_id
        FROM server_setting
        WHERE server_setting.run_id = $run AND server_setting.key = 'platform' AND server_setting.value = 'cpu'
    );

-- 4. --max-log-len cuts the lists of token ids, so their length is no token count.
UPDATE request_event
SET input_tokens = NULL, output_tokens = NULL, input_char_count = NULL
WHERE run_id = $run
    AND source_id IN (
        SELECT server_setting.source_id
        FROM server_setting
        WHERE server_setting.run_id = $run
            AND server_setting.key = 'max_log_len'
            AND server_setting.value NOT IN ('None', 'null')
    );
