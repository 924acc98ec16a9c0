/*
title = "Running requests get almost no tokens while prompts are prefilled"
belief = "Generation is slow, so the GPU or the kernel is slow (or the engine hangs)."
cause = "long-prompt-starvation"
severity = "warning"
needs = ["engine_sample"]
missing = ["engine stats lines with prompt and generation throughput (do not run with --disable-log-stats)", "times of single requests (--otlp-traces-endpoint), since pauses shorter than the step between stats lines do not show in them"]
message = "In {measured_samples_count} samples each running request got {measured_rate_tps} while prompts ran ({measured_prompt_tokens} prompt tokens against {measured_generation_tokens} generated, about {measured_prompt_length_tokens} per prompt); at best it was {measured_best_rate_tps}. {engine_text}"
verdict = "Decoding starves while prompts are prefilled: each running request gets {measured_rate_tps}; {first_change}, a faster GPU comes later."

[params]
max_rate_tps = 4.0
min_prompt_ratio = 80.0
min_prompt_tokens = 1000.0
min_samples_count = 3
min_answer_tokens = 8.0
max_dent_ratio = 0.5

[[remedy]]
kind = "config"
text = "Turn on --enable-chunked-prefill (V0; V1 has it on), so that prompts and decoding share a step."
moves = "TPOT, gaps in streams"
next_limit = "TTFT of the long prompts"

[[remedy]]
kind = "config"
text = "Set --long-prefill-token-threshold, so that a long prompt takes only a part of each step."
moves = "TPOT, gaps in streams"
next_limit = "TTFT of the long prompts"

[[remedy]]
kind = "config"
text = "Lower --max-num-batched-tokens to 512, so that each step is shorter."
moves = "TPOT, gaps in streams"
next_limit = "TTFT of the long prompts; short requests then wait in the queue"

[[remedy]]
kind = "architecture"
text = "A lane of its own for long prompts (another replica, or prefill apart from decode)."
moves = "TTFT and TPOT of the short requests"
next_limit = "utilisation of the lanes"
---
## What people assume
Few tokens per second mean a slow GPU, or a hang.

## What the data shows
Prompt and generation throughput exclude each other: while prompt tokens are computed, the running requests get (nearly)
none. V0 without chunked prefill schedules prompts first; V1 mixes them, but a step takes as long as its prompt chunk.

## How it is detected
A sample starves where at least 2 requests run and each gets fewer than `max_rate_tps` tokens/s (slower than people read).
Over the starved samples and the one after each (prompts are counted when they are done), prompt tokens outnumber
generated ones by `min_prompt_ratio`, and the prompts are long: `min_prompt_tokens` or more for each request that began to
run. At least `min_samples_count` such samples. Where access lines show answers of fewer than `min_answer_tokens` tokens,
there is no decoding to starve.  Clear only where no sample with prompts of that length gave each running request less than
`max_dent_ratio` of the best rate: a mean over ten seconds that is halved can hide five seconds without a token, and then
nothing is decided.

## What to do
Bound what one step gives to prompts. Fires as a warning: the lines show rates, no request's own gaps.

## Known limits
Prompt lengths are an upper estimate: requests that end as others begin hide in the running count. A file that samples
less often than a prompt takes shows nothing.
*/
WITH sample AS (
    SELECT
        limited.*,
        running_count - coalesce(lag(running_count) OVER line, 0) AS begun_count,
        coalesce(epoch(sample_ts - lag(sample_ts) OVER line), epoch(lead(sample_ts) OVER line - sample_ts)) AS interval_s,
        lag(running_count) OVER line AS earlier_running_count
    FROM binding_limit AS limited
    WHERE running_count IS NOT NULL AND generation_tps IS NOT NULL AND prompt_tps IS NOT NULL
    WINDOW line AS (PARTITION BY source_id, engine_index ORDER BY line_no, sample_ts)
),

marked AS (
    SELECT
        *,
        running_count >= 2 AND generation_tps < $max_rate_tps * running_count AS is_starved,
        running_count >= 2 AND earlier_running_count >= 1 AND prompt_tps > 0
        AND generation_tps / running_count < $max_dent_ratio * max(generation_tps / nullif(running_count, 0)) OVER (PARTITION BY run_id)
            AS is_dented,
        generation_tps / nullif(running_count, 0) AS rate_tps,
        CASE WHEN interval_s BETWEEN 0.5 AND 60 THEN interval_s ELSE 10 END AS length_s
    FROM sample
),

stretched AS (
    SELECT
        *,
        coalesce(lag(is_starved) OVER line, FALSE) AND NOT is_starved AS is_after
    FROM marked
    WINDOW line AS (PARTITION BY source_id, engine_index ORDER BY line_no, sample_ts)
),

counted AS (
    SELECT
        run_id,
        count(*) FILTER (WHERE running_count > 0) AS busy_count,
        count(*) FILTER (WHERE is_starved) AS starved_count,
        sum(generation_tps) FILTER (WHERE is_starved) / sum(running_count) FILTER (WHERE is_starved) AS rate_tps,
        max(rate_tps) AS best_rate_tps,
        count(*) FILTER (WHERE is_dented AND prompt_tps * length_s >= $min_prompt_tokens * greatest(begun_count, 1)) AS dented_count,
        sum(prompt_tps * length_s) FILTER (WHERE is_starved OR is_after) AS prompt_tokens,
        sum(generation_tps * length_s) FILTER (WHERE is_starved) AS generation_tokens,
        sum(greatest(begun_count, 0)) FILTER (WHERE (is_starved OR is_after) AND earlier_running_count IS NOT NULL) AS begun_count,
        min(sample_ts) FILTER (WHERE is_starved) AS from_ts,
        max(sample_ts) FILTER (WHERE is_starved) AS to_ts,
        min({'source_id': source_id, 'line_no': line_no}, 5) FILTER (WHERE is_starved) AS evidence
    FROM stretched
    GROUP BY run_id
),

answered AS (
    SELECT
        access.run_id,
        any_value(made.generation_tokens) / count(*) AS answer_tokens
    FROM (
        SELECT
            run_id,
            sum(generation_tps * length_s) AS generation_tokens
        FROM marked
        GROUP BY run_id
    ) AS made
    INNER JOIN access_line AS access ON made.run_id = access.run_id AND access.method = 'POST' AND access.status = 200
    GROUP BY access.run_id
),

engine AS (
    SELECT
        run_id,
        bool_or(swapped_count IS NOT NULL OR cpu_kv_cache_usage_ratio IS NOT NULL) AS is_v0
    FROM engine_state
    GROUP BY run_id
),

judged AS (
    SELECT
        counted.*,
        engine.is_v0 AND NOT coalesce(chunked.value = 'True', FALSE) AS is_prefill_first,
        budget.amount AS budget_tokens,
        cap.amount > 0 AS is_capped,
        counted.prompt_tokens / nullif(counted.begun_count, 0) AS prompt_length_tokens,
        coalesce(answered.answer_tokens, $min_answer_tokens) AS answer_tokens
    FROM counted
    INNER JOIN engine ON counted.run_id = engine.run_id
    LEFT JOIN answered ON counted.run_id = answered.run_id
    LEFT JOIN run_setting AS chunked ON counted.run_id = chunked.run_id AND chunked.key = 'enable_chunked_prefill'
    LEFT JOIN run_setting AS cap ON counted.run_id = cap.run_id AND cap.key = 'long_prefill_token_threshold'
    LEFT JOIN run_setting AS budget ON counted.run_id = budget.run_id AND budget.key = 'max_num_batched_tokens'
)

SELECT
    run_id,
    '' AS subject,
    CASE
        WHEN
            starved_count >= $min_samples_count
            AND prompt_tokens > 0
            AND prompt_tokens >= $min_prompt_ratio * generation_tokens
            AND prompt_length_tokens >= $min_prompt_tokens
            AND answer_tokens >= $min_answer_tokens
            THEN 'fired'
        WHEN busy_count < $min_samples_count OR (dented_count > 0 AND answer_tokens >= $min_answer_tokens) THEN 'not_evaluated'
        ELSE 'clear'
    END AS outcome,
    CASE WHEN starved_count >= 4 AND best_rate_tps >= 4 * rate_tps THEN 'medium' ELSE 'low' END AS confidence,
    coalesce(least(1.0, starved_count / busy_count) * (1 - rate_tps / $max_rate_tps), 0) AS weight,
    from_ts,
    to_ts,
    coalesce(evidence, []) AS evidence,
    CASE
        WHEN is_prefill_first THEN 'V0 without chunked prefill schedules prompts before decoding.'
        WHEN budget_tokens IS NOT NULL THEN format('Up to {:.0f} prompt tokens fit into one step.', budget_tokens)
        ELSE ''
    END AS engine_text,
    CASE
        WHEN is_prefill_first THEN 'turn on chunked prefill (--enable-chunked-prefill)'
        WHEN is_capped THEN 'long prefills are capped already: give them a lane of their own'
        ELSE 'cap long prefills (--long-prefill-token-threshold) or give them a lane of their own'
    END AS first_change,
    coalesce(starved_count, 0) AS measured_samples_count,
    rate_tps AS measured_rate_tps,
    $max_rate_tps AS threshold_rate_tps,
    best_rate_tps AS measured_best_rate_tps,
    prompt_tokens AS measured_prompt_tokens,
    generation_tokens AS measured_generation_tokens,
    prompt_length_tokens AS measured_prompt_length_tokens,
    $min_prompt_tokens AS threshold_prompt_length_tokens
FROM judged
