/*
title = "The server works at its prefill rate: long prompts, short answers"
belief = "The KV cache is nearly empty (or generation is low), so the server is badly set up."
cause = "prefill-bound"
severity = "info"
needs = ["engine_sample"]
missing = ["engine stats lines with prompt and generation throughput (do not run with --disable-log-stats)"]
message = "{measured_prompt_tps} of prompts against {measured_generation_tps} generated ({measured_prompt_ratio_text} to one), steady within {measured_steady_ratio} in {measured_samples_count} busy samples: prefill is the work, and its rate is the capacity."
verdict = "The server is at its prefill rate ({measured_prompt_tps} of prompts, {measured_generation_tps} generated): that is its capacity for these prompts, no fault; share prefixes or shorten prompts before adding hardware."

[params]
min_prompt_ratio = 40.0
min_steady_ratio = 0.7
min_samples_count = 5
min_rate_tps = 4.0

[[remedy]]
kind = "architecture"
text = "Compute fewer prompt tokens: fixed prefixes for the prefix cache, shorter contexts."
moves = "prefill"
next_limit = "decode"
---
## What people assume
Low KV usage or a low generation rate is waste that a setting would fix.

## What the data shows
Prompt tokens outnumber generated ones by far and come at a steady rate: the server computes prompts all the time.

## How it is detected
Over the busy samples the prompt rate is `min_prompt_ratio` times the generation rate; the tenth slowest sample has
`min_steady_ratio` of the tenth fastest (a ceiling, not a trickle with gaps); each running request still gets
`min_rate_tps` tokens/s (else prefill starves decoding, which is another finding); `min_samples_count` samples.

## What to do
Nothing is wrong. Fewer prompt tokens per request raise the capacity; a fuller KV cache does not.

## Known limits
A client that sends one request at a time with no pause looks the same from these lines: its rate is then its own, not the
server's ceiling.
*/
WITH counted AS (
    SELECT
        run_id,
        count(*) AS busy_count,
        avg(prompt_tps) AS prompt_mean,
        avg(generation_tps) AS generation_mean,
        avg(running_count) AS running_mean,
        quantile_cont(prompt_tps, 0.1) / nullif(quantile_cont(prompt_tps, 0.9), 0) AS steady_ratio,
        min(sample_ts) AS from_ts,
        max(sample_ts) AS to_ts,
        min({'source_id': source_id, 'line_no': line_no}, 5) AS evidence
    FROM binding_limit
    WHERE running_count > 0 AND prompt_tps IS NOT NULL AND generation_tps IS NOT NULL
    GROUP BY run_id
)

SELECT
    run_id,
    '' AS subject,
    CASE
        WHEN busy_count < $min_samples_count THEN 'not_evaluated'
        WHEN
            prompt_mean >= $min_prompt_ratio * generation_mean
            AND steady_ratio >= $min_steady_ratio
            AND generation_mean >= $min_rate_tps * running_mean
            THEN 'fired'
        ELSE 'clear'
    END AS outcome,
    CASE WHEN busy_count >= 10 THEN 'medium' ELSE 'low' END AS confidence,
    prompt_mean / (prompt_mean + 10 * generation_mean + 1) AS weight,
    from_ts,
    to_ts,
    evidence,
    format('{:.0f}', prompt_mean / greatest(generation_mean, 0.1)) AS measured_prompt_ratio_text,
    prompt_mean AS measured_prompt_tps,
    generation_mean AS measured_generation_tps,
    1 - steady_ratio AS measured_steady_ratio,
    busy_count AS measured_samples_count,
    $min_prompt_ratio AS threshold_prompt_ratio
FROM counted
