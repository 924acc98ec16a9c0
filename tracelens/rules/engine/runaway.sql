/*
title = "A few requests generate without end"
belief = "The server hangs: a request gives no answer for minutes."
cause = "runaway-generation"
severity = "warning"
needs = []
missing = ["engine stats lines, or the output tokens and finish reasons of the requests (usage in the answers, --otlp-traces-endpoint)"]
message = "{who} {measured_output_tokens} tokens{each} in {measured_held_s}, at {measured_generation_tps} in all; nothing hangs."
verdict = "Nothing hangs: {who} {measured_output_tokens} tokens{each} so far, at a steady {measured_generation_tps}; cap max_tokens (or the thinking budget) and stream."

[params]
min_output_tokens = 2048
max_running_count = 8
max_alone_count = 2
max_spread_ratio = 0.2
min_times_median_ratio = 8.0

[[remedy]]
kind = "config"
text = "Set max_tokens (and a thinking budget, where the model reasons) in the requests, or a server-side default; stream, so that the client sees that tokens come."
moves = "end-to-end time of the long requests"
next_limit = "answers that end early"
---
## What people assume
No answer for minutes means that the server hangs.
## What the data shows
The engine decodes at full speed all the time for the same few requests: they have not met a stop.
## How it is detected
Stats lines: Running is constant and at most `max_running_count`, no prompt comes in, the generation throughput is steady
(spread at most `max_spread_ratio` of its mean) and the KV cache grows; tokens per seat reach `min_output_tokens`, more than
ordinary answers have; below four times that it is information where more than `max_alone_count` requests do so at once (a load of long answers
does), or the case holds waiting requests, errors, GPU readings or a client beside it.  Request rows: an answer of at least `min_output_tokens` that was cut at its length and is
`min_times_median_ratio` times the median.
## What to do
Cap the length, stream, and look at why no stop is found (template, repetition, thinking).
## Known limits
A workload of long answers looks the same: the rule says how long, not whether that was wanted.
*/
WITH spaced AS (
    SELECT
        s.run_id,
        s.source_id,
        s.engine_index,
        s.line_no,
        s.sample_ts,
        s.running_count,
        s.generation_tps,
        s.kv_cache_usage_ratio,
        epoch(s.sample_ts - lag(s.sample_ts) OVER engine) AS length_s,
        coalesce(
            s.running_count > 0
            AND s.running_count <= $max_running_count
            AND s.running_count = lag(s.running_count) OVER engine
            AND coalesce(s.prompt_tps, 0) = 0
            AND s.generation_tps > 0
            AND coalesce(s.kv_cache_usage_ratio >= lag(s.kv_cache_usage_ratio) OVER engine, TRUE),
            FALSE
        ) AS goes_on
    FROM engine_state AS s
    WINDOW engine AS (PARTITION BY s.source_id, s.engine_index ORDER BY s.line_no, s.sample_ts)
),

marked AS (
    SELECT
        *,
        count(CASE WHEN NOT goes_on THEN 1 END) OVER (PARTITION BY source_id, engine_index ORDER BY line_no, sample_ts) AS stretch
    FROM spaced
),

held AS (
    SELECT
        run_id,
        source_id,
        'log' AS seen_in,
        min(line_no) AS first_line,
        max(line_no) AS last_line,
        min(sample_ts) AS from_ts,
        max(sample_ts) AS to_ts,
        max(running_count) AS running_count,
        sum(coalesce(length_s, 5)) AS held_s,
        avg(generation_tps) AS generation_tps,
        sum(generation_tps * coalesce(length_s, 5)) / max(running_count) AS output_tokens
    FROM marked
    WHERE goes_on
    GROUP BY run_id, source_id, engine_index, stretch
    HAVING
        sum(generation_tps * coalesce(length_s, 5)) / max(running_count) >= $min_output_tokens
        AND count(*) >= 4
        AND coalesce(stddev_samp(generation_tps), 0) <= $max_spread_ratio * avg(generation_tps)
        AND coalesce(max(kv_cache_usage_ratio) > min(kv_cache_usage_ratio), TRUE)
),

answer AS (
    SELECT
        run_id,
        coalesce(server_source_id, client_source_id) AS source_id,
        coalesce(server_line_no, client_line_no) AS line_no,
        arrival_ts,
        coalesce(e2e_s, client_e2e_s) AS held_s,
        output_tokens,
        coalesce(finish_reason = 'length', output_tokens >= max_tokens, FALSE) AS was_cut,
        median(output_tokens) OVER (PARTITION BY run_id) AS usual_output_tokens,
        count(output_tokens) OVER (PARTITION BY run_id) AS answer_count
    FROM request
),

long_answer AS (
    SELECT
        run_id,
        any_value(source_id) AS source_id,
        'requests' AS seen_in,
        min(line_no) AS first_line,
        max(line_no) AS last_line,
        min(arrival_ts) AS from_ts,
        max(arrival_ts) AS to_ts,
        count(*) AS running_count,
        median(held_s) AS held_s,
        sum(output_tokens) / sum(held_s) AS generation_tps,
        median(output_tokens) AS output_tokens
    FROM answer
    WHERE
        was_cut AND output_tokens >= $min_output_tokens
        AND output_tokens >= $min_times_median_ratio * usual_output_tokens AND answer_count >= 5
    GROUP BY run_id
),

worst AS (
    SELECT *
    FROM (
        SELECT * FROM held
        UNION ALL BY NAME
        SELECT * FROM long_answer
    )
    QUALIFY row_number() OVER (PARTITION BY run_id ORDER BY output_tokens DESC, first_line ASC) = 1
),

beside AS (
    -- Some thousand tokens are also what long answers have that somebody wants: where the case holds more than calm stats lines,
    -- it is about something else.
    SELECT run_id FROM engine_state WHERE waiting_count > 0 OR swapped_count > 0 OR preemption_count > 0
    UNION
    SELECT run_id FROM log_event WHERE kind IN ('dead', 'oom', 'stall', 'error', 'traceback', 'preemption', 'gpu')
    UNION
    SELECT run_id FROM gpu_sample
    UNION
    SELECT run_id FROM request WHERE coalesce(client_ttft_s, client_e2e_s) IS NOT NULL
),

able AS (
    SELECT run_id FROM engine_state GROUP BY run_id HAVING count(generation_tps) >= 4
    UNION
    SELECT run_id FROM request WHERE output_tokens IS NOT NULL
)

SELECT
    runs.run_id,
    '' AS subject,
    CASE WHEN worst.run_id IS NOT NULL THEN 'fired' WHEN able.run_id IS NOT NULL THEN 'clear' ELSE 'not_evaluated' END AS outcome,
    CASE
        WHEN worst.run_id IS NULL OR worst.output_tokens >= 4 * $min_output_tokens OR worst.seen_in = 'requests' THEN 'medium'
        ELSE 'low'
    END AS confidence,
    CASE
        WHEN
            (beside.run_id IS NOT NULL OR worst.running_count > $max_alone_count)
            AND worst.output_tokens < 4 * $min_output_tokens AND worst.seen_in = 'log'
            THEN 'info'
        ELSE 'warning'
    END AS severity,
    CASE WHEN worst.run_id IS NOT NULL THEN 0.7 ELSE 0.0 END AS weight,
    worst.from_ts,
    worst.to_ts,
    CASE
        WHEN worst.run_id IS NULL THEN []
        ELSE [
                {'source_id': worst.source_id, 'line_no': worst.first_line},
                {'source_id': worst.source_id, 'line_no': worst.last_line}
            ]
    END AS evidence,
    CASE WHEN worst.running_count = 1 THEN 'one request has generated' ELSE format('{} requests have generated', worst.running_count) END
        AS who,
    CASE WHEN worst.running_count = 1 THEN '' ELSE ' each' END AS each,
    worst.output_tokens AS measured_output_tokens,
    worst.running_count AS measured_running_count,
    worst.held_s AS measured_held_s,
    worst.generation_tps AS measured_generation_tps,
    $min_output_tokens AS threshold_output_tokens
FROM (SELECT DISTINCT run_id FROM source) AS runs
LEFT JOIN worst ON runs.run_id = worst.run_id
LEFT JOIN able ON runs.run_id = able.run_id
LEFT JOIN beside ON runs.run_id = beside.run_id
