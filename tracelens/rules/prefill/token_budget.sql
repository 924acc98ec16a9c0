/*
title = "The token budget of a step limits prefill"
belief = "Prefill is slow, so the GPU lacks compute."
cause = "max-num-batched-tokens-too-small"
severity = "warning"
needs = ["server_setting"]
missing = ["max_num_batched_tokens (the start of the server log) with engine stats lines, or step lines (--enable-logging-iteration-details)"]
message = "{how_text} The budget is {budget_text} tokens a step."
verdict = "Prefill is limited by the step budget of {budget_text} tokens: raise --max-num-batched-tokens (to 8192 where TPOT allows it) before thinking of compute."

[params]
full_step_ratio = 0.95
min_full_ratio = 0.5
small_budget_tokens = 2048.0
min_flat_ratio = 0.8

[[remedy]]
kind = "config"
text = "Raise --max-num-batched-tokens; with speculative decoding add what the draft tokens take from it."
moves = "prefill, TTFT of long prompts"
next_limit = "TPOT and gaps in streams: each step gets longer (--long-prefill-token-threshold bounds that)"
---
## What people assume
Slow prefill means too little compute.

## What the data shows
With chunked prefill a step takes at most --max-num-batched-tokens tokens, decoding ones included. A prompt then needs
length / budget steps, whatever the GPU could do in one.

## How it is detected
One of three. The server warns itself that the budget may give suboptimal performance. Or step lines: of the time in steps
with prompts, `min_full_ratio` is in steps filled to `full_step_ratio` of a budget, in a run in which requests wait. Or
stats lines: a stated budget below `small_budget_tokens` (the smallest default of V1), with three lines in a row in which at least 2 requests run, others wait, KV is free, and the prompt rate is flat (slowest at least
`min_flat_ratio` of the fastest) and non-zero: a ceiling. That last one is low in confidence.

## What to do
Raise the budget and watch TPOT. Where streams already stall during prefill, cap the long prefills at the same time.

## Known limits
A flat prompt rate can also be the compute's ceiling: only a run with another budget tells them apart.
*/
WITH warned AS (
    SELECT
        run_id,
        min(event_ts) AS from_ts,
        min({'source_id': source_id, 'line_no': line_no}, 5) AS evidence
    FROM log_event
    WHERE
        kind = 'warning'
        AND regexp_matches(message, 'max_num_(batched|scheduled)_tokens')
        AND regexp_matches(message, '(?i)suboptimal|too (small|low)|consider increasing')
    GROUP BY run_id
),

budget AS (
    SELECT
        run_id,
        min(amount) AS budget_tokens,
        bool_or(is_stated) AS is_stated
    FROM run_setting
    WHERE key IN ('max_num_batched_tokens', 'max_num_scheduled_tokens') AND amount > 0
    GROUP BY run_id
),

stepped AS (
    SELECT
        step.run_id,
        sum(step.elapsed_s) FILTER (
            WHERE step.context_tokens + step.generation_tokens >= $full_step_ratio * budget.budget_tokens
        ) / nullif(sum(step.elapsed_s), 0) AS full_ratio,
        count(*) AS step_count,
        min(step.step_ts) AS from_ts,
        arg_max({'source_id': step.source_id, 'line_no': step.line_no}, _ranked(step.elapsed_s, step.source_id, step.line_no), 5)
            AS evidence
    FROM engine_step AS step
    INNER JOIN budget ON step.run_id = budget.run_id
    WHERE step.context_tokens > 0 AND NOT coalesce(step.dummy, FALSE)
    GROUP BY step.run_id
),

flowing AS (
    SELECT
        *,
        running_count >= 2 AND prompt_tps > 0 AND waiting_count > 0 AND coalesce(kv_cache_usage_ratio, 0) < _full_kv_ratio()
        AND running_count < _full_seats_ratio() * coalesce(seat_count, 1e9) AS is_prefill
    FROM binding_limit
    WHERE prompt_tps IS NOT NULL
),

flat AS (
    -- The prompt rate of a line against the two before it: the same within min_flat_ratio, while requests wait.
    SELECT
        *,
        count(CASE WHEN is_prefill THEN 1 END) OVER three AS prefill_count,
        min(prompt_tps) OVER three / nullif(max(prompt_tps) OVER three, 0) AS flat_ratio
    FROM flowing
    WINDOW three AS (PARTITION BY source_id, engine_index ORDER BY line_no ROWS BETWEEN 2 PRECEDING AND CURRENT ROW)
),

levelled AS (
    SELECT
        run_id,
        bool_or(waiting_count > 0) AS has_queue,
        count(*) AS sample_count,
        max(flat_ratio) FILTER (WHERE prefill_count = 3) AS flat_ratio,
        min(sample_ts) FILTER (WHERE prefill_count = 3) AS from_ts,
        max(sample_ts) FILTER (WHERE prefill_count = 3) AS to_ts,
        arg_min({'source_id': source_id, 'line_no': line_no}, _ranked(line_no, source_id, line_no), 5) FILTER (WHERE prefill_count = 3)
            AS evidence
    FROM flat
    GROUP BY run_id
),

judged AS (
    SELECT
        run.run_id,
        budget.budget_tokens,
        warned.run_id IS NOT NULL AS is_warned,
        coalesce(stepped.full_ratio >= $min_full_ratio AND levelled.has_queue, FALSE) AS is_full,
        coalesce(
            budget.is_stated AND budget.budget_tokens < $small_budget_tokens AND levelled.flat_ratio >= $min_flat_ratio, FALSE
        ) AS is_flat,
        stepped.full_ratio,
        levelled.flat_ratio,
        stepped.step_count,
        levelled.sample_count,
        coalesce(warned.from_ts, levelled.from_ts, stepped.from_ts) AS from_ts,
        levelled.to_ts,
        coalesce(warned.evidence, levelled.evidence, stepped.evidence, []) AS evidence
    FROM (SELECT DISTINCT run_id FROM server_setting) AS run
    LEFT JOIN budget ON run.run_id = budget.run_id
    LEFT JOIN warned ON run.run_id = warned.run_id
    LEFT JOIN stepped ON run.run_id = stepped.run_id
    LEFT JOIN levelled ON run.run_id = levelled.run_id
)

SELECT
    run_id,
    '' AS subject,
    CASE
        WHEN is_warned OR is_full OR is_flat THEN 'fired'
        WHEN budget_tokens IS NULL OR (coalesce(step_count, 0) = 0 AND coalesce(sample_count, 0) < 3)
            THEN 'not_evaluated'
        ELSE 'clear'
    END AS outcome,
    CASE WHEN is_full AND step_count >= 30 THEN 'high' WHEN is_warned OR is_full THEN 'medium' ELSE 'low' END AS confidence,
    CASE WHEN is_full THEN full_ratio WHEN is_warned THEN 0.4 WHEN is_flat THEN 0.2 ELSE 0 END AS weight,
    from_ts,
    to_ts,
    evidence,
    CASE
        WHEN is_warned THEN 'The server warns that its step budget may give suboptimal performance.'
        WHEN is_full THEN format('{:.0f} % of the time in steps with prompts is in full ones while requests wait.', 100 * full_ratio)
        WHEN
            is_flat
            THEN format('While requests wait, the prompt rate is flat within {:.0f} % and the budget small.', 100 * (1 - flat_ratio))
        ELSE 'No sign that the step budget limits prefill.'
    END AS how_text,
    coalesce(format('{:.0f}', budget_tokens), 'an unknown number of') AS budget_text,
    budget_tokens AS measured_budget_tokens,
    $small_budget_tokens AS threshold_budget_tokens,
    full_ratio AS measured_full_ratio,
    $min_full_ratio AS threshold_full_ratio,
    flat_ratio AS measured_flat_ratio,
    $min_flat_ratio AS threshold_flat_ratio
FROM judged
