/*
How many requests shared the server with one request: in all, by what they were doing when it arrived, and how many
got their first token while it waited for its own. NULL where times are not known; a client cannot tell prefill from
waiting.
[params]
request = ""
run = ""
*/
SELECT
    other.run_id,
    other.clock,
    other.my_from_ts AS from_ts,
    other.my_to_ts AS to_ts,
    CASE
        WHEN other.my_to_ts IS NOT NULL
            THEN count(other.request_id) FILTER (WHERE other.from_ts < other.my_to_ts AND other.to_ts > other.my_from_ts)
    END AS overlapping_count,
    CASE
        WHEN other.my_from_ts IS NOT NULL
            THEN count(other.request_id) FILTER (
                    WHERE other.from_ts <= other.my_from_ts AND other.my_from_ts < coalesce(other.prefill_ts, other.first_token_ts)
                )
    END AS waiting_count,
    CASE
        WHEN other.my_from_ts IS NOT NULL AND other.clock = 'server'
            THEN count(other.request_id) FILTER (WHERE other.my_from_ts >= other.prefill_ts AND other.my_from_ts < other.first_token_ts)
    END AS prefill_count,
    CASE
        WHEN other.my_from_ts IS NOT NULL
            THEN count(other.request_id) FILTER (WHERE other.my_from_ts >= other.first_token_ts AND other.my_from_ts < other.to_ts)
    END AS decode_count,
    CASE
        WHEN other.my_from_ts IS NOT NULL
            THEN count(other.request_id) FILTER (
                    WHERE other.from_ts <= other.my_from_ts AND other.my_from_ts < other.to_ts AND other.first_token_ts IS NULL
                )
    END AS unknown_state_count,
    CASE
        WHEN other.my_first_token_ts IS NOT NULL
            THEN count(other.request_id) FILTER (
                    WHERE other.first_token_ts > other.my_from_ts AND other.first_token_ts < other.my_first_token_ts
                )
    END AS served_meanwhile_count,
    any_value(stay.request_count - stay.known_count) - (other.my_to_ts IS NULL)::BIGINT AS unplaced_count
FROM _beside($request, $run) AS other
INNER JOIN _run_measure AS stay ON other.run_id = stay.run_id AND stay.measure = 'stay, ' || other.clock
GROUP BY other.run_id, other.clock, other.my_from_ts, other.my_to_ts, other.my_first_token_ts
ORDER BY other.run_id
