/*
title = "Requests wait in the API server, before the engine"
belief = "TTFT is seconds, so the engine or the GPU is overloaded."
cause = "api-server-congestion"
severity = "critical"
needs = []
missing = ["spans of the requests and client stamps with headers (--otlp-traces-endpoint, a streaming client)", "engine stats lines beside a client file with send times", "scrapes of /metrics (process_cpu_seconds_total), or pidstat 1 or top -b -d 1 on the host"]
message = "{form}."
verdict = "Requests wait in front of the engine ({form}): give the API server more processes or less text to render; seats, cache and GPUs are not the limit."

[params]
min_front_end_ratio = 0.5
min_front_end_s = 0.2
min_request_count = 10
min_in_flight_times_ratio = 2.0
min_pinned_ratio = 0.8
min_front_end_cores = 0.6
max_idle_cores = 0.5
min_cpu_sample_count = 10

[[remedy]]
kind = "config"
text = "Limit the size of request bodies in front of the server, so that prompts which are rejected anyway are not tokenized; then raise --api-server-count."
moves = "tokenize stage"
next_limit = "CPU cores of the host"

[[remedy]]
kind = "architecture"
text = "Tokenize and render media outside of the server (own process or own hosts) where prompts are long."
moves = "tokenize stage"
next_limit = "engine queue"
---
## What people assume
A long time to first token is engine or GPU time.
## What the data shows
The API server's process renders templates, tokenizes and prepares media for all requests; while it is busy, requests wait that the
engine has not heard of: Running and Waiting are low, and so is the queue.
## How it is detected
With spans: the tokenize stage (arrival to headers) is at least `min_front_end_ratio` of all time to first token, so more than all waits in the
engine, and `min_front_end_s` in the median, over `min_request_count` requests or more.  Without: the mean number in flight
at the client (Little's law) is at least `min_in_flight_times_ratio` times the most that any stats line shows as running or waiting.
Or, from scrapes or a log of the host's processes: the process uses `min_front_end_cores` of a core or more in the median sample in
which it did anything (one core is all that its Python code can use; with a small model and ordinary load it used 0.1, with bodies that
are rendered only to be refused 0.7), while no request waited in the engine in the median.  Below `max_idle_cores` in nine
samples of ten it is not the limit.
## What to do
Look at the CPU of the API server process first.
## Known limits
Without spans a limit inside the client (connection pool) can look the same: where the engine holds one and the same number in
`min_pinned_ratio` of the lines or more, that is taken for such a limit, and nothing fires; else confidence is medium at most.
Several API servers behind one port are several processes: one that is busy is enough.
*/
WITH stage AS (
    SELECT
        run_id,
        tokenize_s,
        whole_s - CASE WHEN frame = 'end' THEN coalesce(decode_stage_s, 0) ELSE 0 END AS ttft_s
    FROM _request_timing
    WHERE tokenize_s IS NOT NULL
),

staged AS (
    SELECT
        run_id,
        count(tokenize_s) AS staged_count,
        sum(tokenize_s) / nullif(sum(ttft_s) FILTER (WHERE tokenize_s IS NOT NULL), 0) AS front_end_ratio,
        median(tokenize_s) AS front_end_s
    FROM stage
    GROUP BY run_id
),

-- Little's law at the client: mean number in flight = sum of the times over the length of the test.
sent AS (
    SELECT
        run_id,
        source_id,
        line_no,
        coalesce(epoch(client_sent_ts), client_sent_s) AS sent_s,
        coalesce(epoch(client_sent_ts), client_sent_s) + client_e2e_s AS end_s,
        client_e2e_s
    FROM client_request
    WHERE client_e2e_s > 0 AND is_secondary IS NULL
),

flight AS (
    SELECT
        run_id,
        sum(client_e2e_s) / nullif(max(end_s) - min(sent_s), 0) AS in_flight_count,
        count(*) AS sent_count,
        arg_min(source_id, line_no) AS source_id,
        min(line_no) AS line_no,
        arg_max(line_no, (client_e2e_s, -line_no)) AS slowest_line
    FROM sent
    WHERE sent_s IS NOT NULL
    GROUP BY run_id
),

moment AS (
    SELECT
        run_id,
        source_id,
        max(line_no) AS line_no,
        sample_ts,
        sum(running_count) + sum(coalesce(waiting_count, 0)) AS held_count,
        max(sum(running_count) + sum(coalesce(waiting_count, 0))) OVER (PARTITION BY run_id) AS largest_count
    FROM engine_state
    WHERE running_count IS NOT NULL
    GROUP BY run_id, source_id, sample_ts, CASE WHEN sample_ts IS NULL THEN line_no END
),

held AS (
    SELECT
        run_id,
        count(*) AS sample_count,
        max(held_count) AS held_count,
        count(*) FILTER (WHERE held_count = largest_count) / count(*) AS pinned_ratio,
        min(sample_ts) AS from_ts,
        max(sample_ts) AS to_ts,
        any_value(source_id) AS source_id,
        arg_max(line_no, (held_count, -line_no)) AS fullest_line
    FROM moment
    GROUP BY run_id
),

used AS (
    SELECT
        run_id,
        count(*) AS cpu_sample_count,
        median(cpu_cores) FILTER (WHERE cpu_cores > 0.05) AS front_end_cores,
        quantile_cont(cpu_cores, 0.9) AS most_cores,
        min(sample_ts) AS from_ts,
        max(sample_ts) AS to_ts,
        arg_max({'source_id': source_id, 'line_no': line_no}, _ranked(cpu_cores, -source_id, -line_no), 3) AS evidence
    FROM _front_end_cpu
    GROUP BY run_id
),

queue AS (
    SELECT
        run_id,
        median(waiting_count) AS waiting_count
    FROM engine_state
    GROUP BY run_id
),

judged AS (
    SELECT
        runs.run_id,
        staged.front_end_ratio,
        staged.front_end_s,
        staged.staged_count,
        flight.in_flight_count,
        held.held_count,
        flight.sent_count,
        coalesce(held.from_ts, used.from_ts) AS from_ts,
        coalesce(held.to_ts, used.to_ts) AS to_ts,
        used.front_end_cores,
        coalesce(staged.staged_count >= $min_request_count, FALSE) AS has_stages,
        coalesce(flight.sent_count >= $min_request_count AND held.sample_count >= 3, FALSE) AS has_counts,
        coalesce(
            staged.staged_count >= $min_request_count AND staged.front_end_ratio >= $min_front_end_ratio
            AND staged.front_end_s >= $min_front_end_s,
            FALSE
        ) AS by_stages,
        -- Where stages are known, they say whether it is the front end; counts alone cannot tell it from the client's own pool.
        coalesce(
            flight.sent_count >= $min_request_count AND held.sample_count >= 3 AND coalesce(staged.staged_count, 0) < $min_request_count
            AND flight.in_flight_count >= $min_in_flight_times_ratio * held.held_count
            AND flight.in_flight_count - held.held_count >= $min_request_count
            AND held.pinned_ratio < $min_pinned_ratio,
            FALSE
        ) AS by_counts,
        coalesce(
            used.cpu_sample_count >= $min_cpu_sample_count AND coalesce(staged.staged_count, 0) < $min_request_count
            AND used.front_end_cores >= $min_front_end_cores AND queue.waiting_count = 0,
            FALSE
        ) AS by_cpu,
        coalesce(used.cpu_sample_count >= $min_cpu_sample_count AND used.most_cores < $max_idle_cores, FALSE) AS is_idle,
        list_concat(
            [
                {'source_id': held.source_id, 'line_no': held.fullest_line},
                {'source_id': flight.source_id, 'line_no': flight.slowest_line},
                {'source_id': flight.source_id, 'line_no': flight.line_no}
            ],
            used.evidence
        ) AS evidence
    FROM (SELECT DISTINCT run_id FROM source) AS runs
    LEFT JOIN staged ON runs.run_id = staged.run_id
    LEFT JOIN flight ON runs.run_id = flight.run_id
    LEFT JOIN held ON runs.run_id = held.run_id
    LEFT JOIN used ON runs.run_id = used.run_id
    LEFT JOIN queue ON runs.run_id = queue.run_id
)

SELECT
    run_id,
    '' AS subject,
    CASE
        WHEN by_stages OR by_counts OR by_cpu THEN 'fired'
        WHEN has_stages OR is_idle OR (has_counts AND in_flight_count < $min_in_flight_times_ratio * held_count) THEN 'clear'
        ELSE 'not_evaluated'
    END AS outcome,
    CASE WHEN by_stages AND staged_count >= 30 THEN 'high' ELSE 'medium' END AS confidence,
    CASE
        WHEN by_stages THEN 0.97 * front_end_ratio
        WHEN by_counts THEN 0.97 * (1 - held_count / in_flight_count)
        WHEN by_cpu THEN 0.97 * least(front_end_cores, 1.0)
        ELSE 0.0
    END AS weight,
    from_ts,
    to_ts,
    evidence,
    CASE
        WHEN
            by_stages
            THEN 'rendering and tokenizing took '
                || round(front_end_s, 2)
                || ' s (median), '
                || round(100 * front_end_ratio)::INTEGER
                || ' % of all time to first token'
        WHEN
            by_counts
            THEN round(in_flight_count)::INTEGER
                || ' requests were in flight at the client on average, and at most '
                || held_count
                || ' of them running or waiting in the engine'
        WHEN
            by_cpu
            THEN 'the API server''s process used '
                || round(front_end_cores, 2)
                || ' of a core (median while it worked), and no request waited in the engine'
        WHEN
            has_stages
            THEN 'rendering and tokenizing took ' || round(100 * coalesce(front_end_ratio, 0))::INTEGER || ' % of all time to first token'
        WHEN is_idle THEN 'the API server''s process used less than ' || $max_idle_cores || ' of a core'
        ELSE 'the client had no more requests in flight than the engine shows'
    END AS form,
    front_end_ratio AS measured_front_end_ratio,
    front_end_s AS measured_front_end_s,
    in_flight_count AS measured_in_flight_count,
    held_count AS measured_held_count,
    front_end_cores AS measured_front_end_cores,
    $min_front_end_ratio AS threshold_front_end_ratio
FROM judged
