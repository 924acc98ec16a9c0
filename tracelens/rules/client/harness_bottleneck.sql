/*
title = "The load generator is the bottleneck, not the server"
belief = "The benchmark shows seconds of TTFT, so the server is slow."
cause = "client-harness-bottleneck"
severity = "critical"
needs = ["client_request", "engine_sample"]
missing = ["engine stats lines of the same time (do not run with --disable-log-stats)", "planned and actual send time per request", "the same requests from a second, independent client (curl, another tool)"]
message = "The engine is nearly idle ({measured_running_count} running at most, waiting in {measured_waiting_ratio} of the samples), yet {measured_sign}."
verdict = "The load generator is the limit: {measured_sign} while the engine has at most {measured_running_count} requests and nothing waits; use more client processes or another tool before tuning the server."

[params]
max_waiting_ratio = 0.1
max_seat_ratio = 0.5
min_lag_s = 0.5
min_lag_ratio = 0.5
min_tool_ratio = 3.0
min_tool_difference_s = 0.2
max_length_ratio = 1.5

[[remedy]]
kind = "config"
text = "Spread the load over several client processes, drop per-chunk work (JSON, tokenizing, printing) from the event loop, and log planned against actual send times."
moves = "measured TTFT"
next_limit = "the server's own queue"

[[remedy]]
kind = "config"
text = "Check with a second client (curl with time_starttransfer, another harness) at the same time."
moves = "trust in the measurement"
---
## What people assume
That a client measures the server.

## What the data shows
An event loop that is busy with parsing sends late and stamps late. The engine meanwhile has nothing to do.

## How it is detected
Nothing waits in the engine (in at most `max_waiting_ratio` of the samples) and it runs at most `max_seat_ratio` of its seats. With that, one of: requests are sent at least `min_lag_s` after they were planned, and that is `min_lag_ratio` of TTFT, at the median; or of two tools that sent prompts of like length (within `max_length_ratio`) one reports `min_tool_ratio` times the median TTFT of the other, and `min_tool_difference_s` more.

## What to do
A second client, then more client processes.

## Known limits
A pool limit or a slow front end look alike where only one client's file is there: in flight at the client far above running plus waiting. Then nothing is said here.
*/
WITH idle AS (
    SELECT
        e.run_id,
        max(e.running_count) AS running_count,
        avg((e.waiting_count > 0)::INTEGER) AS waiting_ratio,
        max(s.amount) AS seat_count
    FROM engine_state AS e
    LEFT JOIN run_setting AS s ON e.run_id = s.run_id AND s.key = 'max_num_seqs'
    WHERE e.running_count IS NOT NULL AND e.waiting_count IS NOT NULL
    GROUP BY e.run_id
),

sent AS (
    SELECT
        run_id,
        source_id,
        line_no,
        client_sent_ts,
        client_wait_s,
        input_tokens,
        coalesce(client_ttft_s, client_reported_ttft_s) AS ttft_s,
        -- Reading JSON takes long: only where one of the keys can be in it.
        CASE
            WHEN
                contains(other, '"client"') OR contains(other, '"tool"') OR contains(other, '"harness"') OR contains(other, '"loadgen"')
                OR contains(other, '"generator"') OR contains(other, '"lib')
                THEN other
        END AS noted,
        coalesce(
            json_extract_string(noted, '$.client'),
            json_extract_string(noted, '$.tool'),
            json_extract_string(noted, '$.harness'),
            json_extract_string(noted, '$.loadgen'),
            json_extract_string(noted, '$.generator'),
            json_extract_string(noted, '$.lib'),
            json_extract_string(noted, '$.library'),
            'file ' || source_id
        ) AS tool
    FROM client_request
    WHERE is_secondary IS NULL
),

lag_of AS (
    SELECT
        run_id,
        count(client_wait_s) AS lag_count,
        quantile_cont(client_wait_s, 0.5) AS lag_s,
        quantile_cont(ttft_s, 0.5) AS ttft_s,
        min(client_sent_ts) AS from_ts,
        max(client_sent_ts) AS to_ts,
        _lines(arg_max(
            _line_key(source_id, line_no), _ranked(coalesce(client_wait_s, ttft_s, '-infinity'), source_id, line_no), 5
        )) AS evidence
    FROM sent
    GROUP BY run_id
),

tool AS (
    SELECT
        run_id,
        tool,
        count(ttft_s) AS request_count,
        quantile_cont(ttft_s, 0.5) AS ttft_s,
        quantile_cont(input_tokens, 0.5) AS input_tokens
    FROM sent
    WHERE ttft_s IS NOT NULL
    GROUP BY run_id, tool
),

pair AS (
    SELECT
        slow.run_id,
        slow.tool AS slow_tool,
        fast.tool AS fast_tool,
        slow.ttft_s AS slow_s,
        fast.ttft_s AS fast_s
    FROM tool AS slow
    INNER JOIN tool AS fast
        ON
            slow.run_id = fast.run_id
            AND slow.ttft_s >= $min_tool_ratio * fast.ttft_s
            AND slow.ttft_s >= fast.ttft_s + $min_tool_difference_s
            AND coalesce(slow.input_tokens <= $max_length_ratio * fast.input_tokens, TRUE)
    QUALIFY row_number() OVER (PARTITION BY slow.run_id ORDER BY slow.ttft_s - fast.ttft_s DESC) = 1
),

tools AS (
    SELECT
        run_id,
        count(*) AS tool_count
    FROM tool
    GROUP BY run_id
),

judged AS (
    SELECT
        idle.*,
        lag_of.* EXCLUDE (run_id),
        pair.* EXCLUDE (run_id),
        coalesce(tools.tool_count, 0) AS tool_count,
        waiting_ratio <= $max_waiting_ratio AND coalesce(running_count <= $max_seat_ratio * seat_count, TRUE) AS is_idle,
        coalesce(lag_s >= $min_lag_s AND lag_s >= $min_lag_ratio * coalesce(lag_of.ttft_s, 0), FALSE) AS is_late
    FROM idle
    INNER JOIN lag_of ON idle.run_id = lag_of.run_id
    LEFT JOIN pair ON idle.run_id = pair.run_id
    LEFT JOIN tools ON idle.run_id = tools.run_id
)

SELECT
    run_id,
    '' AS subject,
    CASE
        WHEN NOT is_idle THEN 'clear'
        WHEN is_late OR slow_tool IS NOT NULL THEN 'fired'
        WHEN lag_count >= 5 OR tool_count >= 2 THEN 'clear'
        ELSE 'not_evaluated'
    END AS outcome,
    CASE
        WHEN is_late AND slow_tool IS NOT NULL THEN 'high'
        WHEN lag_count >= 30 OR slow_tool IS NOT NULL THEN 'medium'
        ELSE 'low'
    END AS confidence,
    CASE
        WHEN slow_tool IS NOT NULL THEN 1.0 - fast_s / slow_s
        WHEN is_late THEN lag_s / (lag_s + coalesce(ttft_s, 0))
        ELSE 0.0
    END AS weight,
    from_ts,
    to_ts,
    evidence,
    running_count AS measured_running_count,
    waiting_ratio AS measured_waiting_ratio,
    CASE
        WHEN slow_tool IS NOT NULL
            THEN format('{} reports a TTFT of {:.2f} s where {} reports {:.2f} s', slow_tool, slow_s, fast_tool, fast_s)
        WHEN is_late THEN format('requests leave {:.2f} s after they were planned', lag_s)
    END AS measured_sign,
    $min_lag_s AS threshold_lag_s
FROM judged
