/*
How many requests shared the server with one request: in all, by what they were doing when it arrived, and how many
got their first token while it waited for its own. NULL where times are not known; a client cannot tell prefill from
waiting.
[params]
request = ""
run = ""
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
        me.clock,
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
)

SELECT
    me.run_id,
    me.clock,
    me.from_ts,
    me.to_ts,
    CASE
        WHEN me.to_ts IS NOT NULL
            THEN count(other.request_id) FILTER (WHERE other.from_ts < me.to_ts AND other.to_ts > me.from_ts)
    END AS overlapping_count,
    CASE
        WHEN me.from_ts IS NOT NULL
            THEN count(other.request_id) FILTER (
                    WHERE other.from_ts <= me.from_ts AND me.from_ts < coalesce(other.prefill_ts, other.first_token_ts)
                )
    END AS waiting_count,
    CASE
        WHEN me.from_ts IS NOT NULL AND me.clock = 'server'
            THEN count(other.request_id) FILTER (WHERE me.from_ts >= other.prefill_ts AND me.from_ts < other.first_token_ts)
    END AS prefill_count,
    CASE
        WHEN me.from_ts IS NOT NULL
            THEN count(other.request_id) FILTER (WHERE me.from_ts >= other.first_token_ts AND me.from_ts < other.to_ts)
    END AS decode_count,
    CASE
        WHEN me.from_ts IS NOT NULL
            THEN count(other.request_id) FILTER (
                    WHERE other.from_ts <= me.from_ts AND me.from_ts < other.to_ts AND other.first_token_ts IS NULL
                )
    END AS unknown_state_count,
    CASE
        WHEN me.first_token_ts IS NOT NULL
            THEN count(other.request_id) FILTER (WHERE other.first_token_ts > me.from_ts AND other.first_token_ts < me.first_token_ts)
    END AS served_meanwhile_count,
    count(other.request_id) FILTER (WHERE other.from_ts IS NULL OR other.to_ts IS NULL) AS unplaced_count
FROM timed AS me
LEFT JOIN timed AS other ON me.run_id = other.run_id AND me.request_id <> other.request_id
WHERE me.request_id = $request
GROUP BY me.run_id, me.clock, me.from_ts, me.to_ts, me.first_token_ts
ORDER BY me.run_id
