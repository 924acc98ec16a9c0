/*
Requests that were in the server at the same time as one request, longest shared time first, and what each was doing
when that one arrived. Times are the server's where it saw the request, else the client's: see clock.
[params]
request = ""
run = ""
top = 5
*/
WITH placed AS (
    SELECT
        *,
        CASE WHEN arrival_basis <> 'client sent' AND e2e_s IS NOT NULL THEN 'server' ELSE 'client' END AS clock,
        CASE WHEN arrival_basis <> 'client sent' THEN arrival_ts END AS server_from_ts
    FROM request
    WHERE $run IN ('', run_id)
),

timed AS (
    SELECT
        placed.run_id,
        placed.request_id,
        placed.status,
        me.clock,
        placed.input_tokens,
        placed.output_tokens,
        coalesce(placed.client_ttft_s, placed.ttft_s) AS ttft_s,
        placed.queue_s,
        CASE me.clock WHEN 'server' THEN placed.server_from_ts ELSE placed.client_sent_ts END AS from_ts,
        CASE me.clock
            WHEN 'server' THEN placed.server_from_ts + to_microseconds((placed.e2e_s * 1e6)::BIGINT)
            ELSE placed.client_sent_ts + to_microseconds((placed.client_e2e_s * 1e6)::BIGINT)
        END AS to_ts,
        CASE me.clock
            WHEN 'server'
                THEN placed.server_from_ts + to_microseconds((coalesce(placed.ttft_s - placed.prefill_s, placed.ttft_s) * 1e6)::BIGINT)
        END AS prefill_ts,
        CASE me.clock
            WHEN 'server' THEN placed.server_from_ts + to_microseconds((placed.ttft_s * 1e6)::BIGINT)
            ELSE placed.client_first_chunk_ts
        END AS first_token_ts
    FROM placed
    INNER JOIN placed AS me ON placed.run_id = me.run_id AND me.request_id = $request
),

paired AS (
    SELECT
        other.*,
        me.from_ts AS my_from_ts,
        greatest(other.from_ts, me.from_ts) AS shared_from_ts,
        least(other.to_ts, me.to_ts) AS shared_to_ts
    FROM timed AS other
    INNER JOIN timed AS me
        ON
            other.run_id = me.run_id AND me.request_id = $request AND other.request_id <> me.request_id
            AND other.from_ts < me.to_ts AND other.to_ts > me.from_ts
)

SELECT
    run_id,
    request_id,
    status,
    from_ts,
    to_ts,
    epoch(shared_to_ts - shared_from_ts) AS shared_s,
    CASE
        WHEN from_ts > my_from_ts THEN 'not there yet'
        WHEN my_from_ts >= first_token_ts THEN 'decode'
        WHEN my_from_ts >= prefill_ts THEN 'prefill'
        WHEN my_from_ts < first_token_ts THEN 'waiting'
        ELSE 'not known'
    END AS was_doing,
    ttft_s,
    queue_s,
    input_tokens,
    output_tokens,
    clock
FROM paired
ORDER BY run_id ASC, shared_s DESC, request_id ASC
LIMIT $top
