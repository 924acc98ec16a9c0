/*
title = "Tokenizing or detokenizing takes the time"
belief = "Decode is slow, so the GPU is."
cause = "tokenizer-cost"
severity = "critical"
needs = []
missing = ["spans of the requests and client stamps with headers (--otlp-traces-endpoint, a streaming client)", "times of single tokenizer calls in the log, or a profile of the API server (py-spy record)"]
message = "{form}."
verdict = "The tokenizer is the limit ({form}): use the fast tokenizer of the model, or fewer tokens per call; the GPU waits for it."

[params]
min_busy_ratio = 0.5
min_front_end_s = 0.2
min_length_r2 = 0.7
min_request_count = 10

[[remedy]]
kind = "config"
text = "Use the fast (Rust) tokenizer (--tokenizer-mode auto, a tokenizer.json beside the model), and a release without the slow path; skip detokenization where the client wants ids."
moves = "time per output token, or the tokenize stage"
next_limit = "decode on the GPU"
---
## What people assume
Few tokens per second mean a slow GPU.
## What the data shows
A call of the tokenizer costs milliseconds per token and runs on one core: at so many tokens per second that core is busy.
## How it is detected
Lines that say what a tokenizer call costs: cost per call times tokens per second is the share of one core, and it is at least
`min_busy_ratio` (a core that is busy half of the time is the pace of a serial stage).  Or, from spans: the tokenize stage is at least that share of
all time to first token and `min_front_end_s` in the median, and prompt length explains it (r2 at least `min_length_r2`) over
`min_request_count` requests: a congested front end follows the load instead.
## What to do
Change the tokenizer, not the GPU.
## Known limits
Without such lines and without spans a slow detokenizer looks like any slow decode: not evaluated.
*/
WITH call AS (
    SELECT
        run_id,
        source_id,
        line_no,
        event_ts,
        try_cast(regexp_extract(message, '(\d+(?:\.\d+)?(?:e-\d+)?) ?(?:s|sec|secs|seconds|ms|us|µs)\b', 1) AS DOUBLE)
        * CASE
            WHEN regexp_matches(message, '\d ?ms\b') THEN 1e-3
            WHEN regexp_matches(message, '\d ?[uµ]s\b') THEN 1e-6
            ELSE 1.0
        END AS cost_s
    FROM log_event
    WHERE message ILIKE '%tokeniz%' AND kind NOT IN ('start', 'dead', 'traceback')
),

called AS (
    SELECT
        run_id,
        median(cost_s) AS call_s,
        count(*) AS call_count,
        min(event_ts) AS from_ts,
        max(event_ts) AS to_ts,
        arg_min({'source_id': source_id, 'line_no': line_no}, _ranked(line_no, source_id, line_no), 3) AS evidence
    FROM call
    WHERE cost_s > 0
    GROUP BY run_id
),

flow AS (
    SELECT
        run_id,
        median(generation_tps) AS generation_tps
    FROM engine_state
    WHERE running_count > 0
    GROUP BY run_id
),

stage AS (
    SELECT
        run_id,
        tokenize_s,
        whole_s - CASE WHEN frame = 'end' THEN coalesce(decode_stage_s, 0) ELSE 0 END AS ttft_s,
        input_tokens
    FROM _request_timing
    WHERE tokenize_s IS NOT NULL
),

staged AS (
    SELECT
        run_id,
        count(*) AS staged_count,
        sum(tokenize_s) / nullif(sum(ttft_s), 0) AS front_end_ratio,
        median(tokenize_s) AS front_end_s,
        regr_r2(tokenize_s, input_tokens) AS length_r2,
        regr_slope(tokenize_s, input_tokens) AS slope
    FROM stage
    WHERE tokenize_s IS NOT NULL
    GROUP BY run_id
),

judged AS (
    SELECT
        runs.run_id,
        called.call_s,
        called.call_count,
        called.call_s * flow.generation_tps AS busy_ratio,
        staged.front_end_ratio,
        staged.front_end_s,
        called.from_ts,
        called.to_ts,
        coalesce(called.evidence, []) AS evidence,
        called.call_s * flow.generation_tps IS NOT NULL AS has_calls,
        coalesce(staged.staged_count >= $min_request_count, FALSE) AS has_stages,
        coalesce(called.call_s * flow.generation_tps >= $min_busy_ratio, FALSE) AS by_calls,
        coalesce(
            staged.staged_count >= $min_request_count AND staged.front_end_ratio >= $min_busy_ratio
            AND staged.front_end_s >= $min_front_end_s AND staged.slope > 0 AND staged.length_r2 >= $min_length_r2,
            FALSE
        ) AS by_stages
    FROM (SELECT DISTINCT run_id FROM source) AS runs
    LEFT JOIN called ON runs.run_id = called.run_id
    LEFT JOIN flow ON runs.run_id = flow.run_id
    LEFT JOIN staged ON runs.run_id = staged.run_id
)

SELECT
    run_id,
    '' AS subject,
    CASE WHEN by_calls OR by_stages THEN 'fired' WHEN has_calls OR has_stages THEN 'clear' ELSE 'not_evaluated' END AS outcome,
    CASE WHEN by_calls AND call_count >= 30 THEN 'high' ELSE 'medium' END AS confidence,
    CASE WHEN by_calls THEN least(busy_ratio, 1.0) WHEN by_stages THEN front_end_ratio ELSE 0.0 END AS weight,
    from_ts,
    to_ts,
    evidence,
    CASE
        WHEN
            by_calls
            THEN 'a call costs '
                || round(1000 * call_s, 1)
                || ' ms (median); at the measured pace that is '
                || round(100 * busy_ratio)::INTEGER
                || ' % of one core'
        WHEN by_stages THEN 'tokenizing takes ' || round(front_end_s, 2) || ' s (median) and grows with the prompt'
        ELSE 'tokenizing is a small part of the time'
    END AS form,
    call_s AS measured_call_s,
    busy_ratio AS measured_busy_ratio,
    front_end_ratio AS measured_front_end_ratio,
    $min_busy_ratio AS threshold_busy_ratio
FROM judged
