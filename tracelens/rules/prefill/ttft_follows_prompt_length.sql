/*
title = "TTFT follows the length of the prompt"
belief = "Same number of tokens out, same latency."
cause = "prompt-length"
severity = "info"
needs = ["prompt_length_curve"]
missing = ["prompt tokens and TTFT per request (spans: --otlp-traces-endpoint; or a streaming client that notes usage.prompt_tokens)", "prompts of different lengths"]
message = "Every 1000 prompt tokens cost {measured_slope_s} of TTFT (95 % interval {measured_slope_low_s} to {measured_slope_high_s}); {intercept_text}; length explains {measured_explained_ratio} of the spread over {measured_request_count} requests."
verdict = "TTFT grows by {measured_slope_s} per 1000 prompt tokens: compare requests of the same prompt length before comparing anything else."

[params]
min_explained_ratio = 0.5
min_request_count = 10

[[remedy]]
kind = "config"
text = "Report TTFT by classes of prompt length; limit prompt length where the longest class breaks the SLO."
moves = "what TTFT is compared with"
next_limit = "prefill speed"
---
## What people assume
That equal output means equal latency.

## What the data shows
Prefill computes every prompt token before the first output token; a prompt four times as long waits about four times as long.

## How it is detected
A straight line of TTFT over prompt length by least squares: its slope is above zero with its whole 95 % interval, and it explains at least `min_explained_ratio` of the spread, over at least `min_request_count` requests. Where it meets the axis is told with its own error; below zero is no cost but a bend in the line.

## What to do
Nothing is wrong. Keep slope and intercept as the reference of this server.

## Known limits
A queue or batch-mates hide the line. The interval assumes normal errors.
*/
SELECT
    run_id,
    '' AS subject,
    CASE
        WHEN sample_count < $min_request_count OR slope_s_per_1k_tokens IS NULL THEN 'not_evaluated'
        WHEN slope_low_s > 0 AND r2 >= $min_explained_ratio THEN 'fired'
        -- A client's TTFT holds the way and its own waits, which hide the line.
        WHEN measured_at = 'client' THEN 'not_evaluated'
        ELSE 'clear'
    END AS outcome,
    CASE WHEN sample_count >= 30 THEN 'high' ELSE 'medium' END AS confidence,
    coalesce(r2, 0.0) AS weight,
    NULL::TIMESTAMP AS from_ts,
    NULL::TIMESTAMP AS to_ts,
    []::STRUCT(source_id INTEGER, line_no BIGINT)[] AS evidence,
    CASE
        WHEN intercept_s > intercept_error_s
            THEN format('what does not depend on the length takes {:.2f} s (± {:.2f} s)', intercept_s, intercept_error_s)
        WHEN intercept_s >= -intercept_error_s THEN format('the line passes through zero within its error (± {:.2f} s)', intercept_error_s)
        ELSE 'the line would be below zero at an empty prompt, so that short prompts cost less per token than long ones'
    END AS intercept_text,
    slope_s_per_1k_tokens AS measured_slope_s,
    slope_low_s AS measured_slope_low_s,
    slope_high_s AS measured_slope_high_s,
    intercept_s AS measured_intercept_s,
    r2 AS measured_explained_ratio,
    sample_count AS measured_request_count,
    $min_explained_ratio AS threshold_explained_ratio
FROM prompt_length_curve
