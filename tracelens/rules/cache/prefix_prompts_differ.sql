/*
title = "Long prompts that look alike do not share their beginning"
belief = "Prefix caching is on, so the system prompt is free; a time stamp in it is harmless."
cause = "prefix-cache-miss-prompts-differ"
severity = "critical"
needs = ["source"]
missing = ["cached tokens per request (client: usage.prompt_tokens_details with --enable-prompt-tokens-details; server: spans)", "prompt lengths per request", "prompt texts or their hashes: where two prompts part (--enable-log-requests with VLLM_LOGGING_LEVEL=DEBUG)"]
message = "Prompts of {measured_prompt_tokens_count} tokens (median), {measured_request_count} of them, {measured_sign}; only {measured_hit_ratio} of their tokens came from the prefix cache, which is on."
verdict = "Prompts of about {measured_prompt_tokens_count} tokens are computed anew each time ({measured_hit_ratio} from the cache): find what changes near their beginning (time stamp, id, hint, tool list) and move it to the end."

[params]
max_hit_ratio = 0.05
min_prompt_tokens = 1000
max_spread_ratio = 0.25
min_request_count = 5
tokens_per_char = 0.25
stats_interval_s = 10.0
min_gap_ratio = 0.3

[[remedy]]
kind = "config"
text = "Make the beginning of the prompt the same bytes for every request: fixed system prompt and tools first, then the history, and what changes (time, user, retrieved text) last."
moves = "prefill"
next_limit = "the size of the KV cache that must keep the prefix"

[[remedy]]
kind = "config"
text = "Round or drop time stamps; sort tool definitions; check that the chat template adds no date."
moves = "prefill"
next_limit = "block size: only whole blocks are shared"
---
## What people assume
That a shared system prompt is computed once, whatever stands before or in it.

## What the data shows
The cache compares prompts block by block from the first token. One token that differs near the front makes every later block a miss.

## How it is detected
Caching is not off, and tokens from the cache are at most `max_hit_ratio` of the prompt tokens over at least `min_request_count` requests of at least `min_prompt_tokens` tokens (shorter prompts are cheap). That the prompts should have shared something is shown by one of: the prompts themselves, where a log or client file has them (ingest keeps fingerprints of their blocks, no text): their passages came before, but not from the beginning on, by at least `min_gap_ratio` of the prompt, and the position at which they part is said; or, where no prompt is known, lengths within `max_spread_ratio` of each other though not all equal (equal ones are a generator's), a long system prompt or a conversation's turns noted by the client, or hashes of the beginning that differ. Where no request says what it took from the cache, the log's window of the last 1000 requests must be above zero (the cache does work) and never above `max_hit_ratio`, and prompt length is throughput times interval over requests: low confidence.

## What to do
Diff the first characters of two prompts.

## Known limits
Prompts of like length may be different texts on purpose. A log window that is exactly zero says nothing of the prompts: see the structural rule. 10 to 20 % in the log's window can stand for no hit at all, and for a broken cache neither.
*/
WITH setting AS (
    SELECT
        run_id,
        bool_or(key = 'enable_prefix_caching' AND lower(value) = 'false') AS is_off,
        bool_or(key = 'mamba_cache_mode')
        OR bool_or(
            key = 'architecture'
            AND regexp_matches(value, '(?i)mamba|jamba|bamba|zamba|qwen3_?next|qwen3_?5|falcon_?h1|nemotron_?h|hybrid|lfm2')
        ) AS is_hybrid
    FROM run_setting
    GROUP BY run_id
),

prompt AS (
    SELECT
        r.run_id,
        r.arrival_ts,
        coalesce(r.client_source_id, r.server_source_id) AS source_id,
        coalesce(r.client_line_no, r.server_line_no) AS line_no,
        r.cached_input_tokens,
        coalesce(r.input_tokens, sent.input_char_count * $tokens_per_char) AS input_tokens,
        source.format IN ('vllm_bench', 'sglang_bench', 'aiperf', 'genai_perf', 'guidellm', 'inference_perf', 'llmperf', 'evalscope')
            AS is_generated,
        note.system_char_count * $tokens_per_char AS system_tokens,
        note.beginning_hash,
        note.turn,
        r.prefill_s / nullif(coalesce(r.ttft_s, r.client_ttft_s), 0) AS prefill_ratio
    FROM request AS r
    LEFT JOIN _prompt_note AS note ON r.client_source_id = note.source_id AND r.client_line_no = note.line_no
    LEFT JOIN client_request AS sent
        ON
            r.client_source_id = sent.source_id AND r.client_line_no = sent.line_no
            AND sent.input_char_count IS NOT NULL AND sent.input_tokens IS NULL
    LEFT JOIN source ON r.client_source_id = source.source_id
    WHERE r.cached_input_tokens IS NOT NULL
),

measured AS (
    SELECT
        run_id,
        count(*) AS request_count,
        sum(cached_input_tokens) / nullif(sum(coalesce(input_tokens, system_tokens)), 0) AS hit_ratio,
        quantile_cont(coalesce(input_tokens, system_tokens), 0.5) AS prompt_tokens,
        quantile_cont(input_tokens, [0.1, 0.5, 0.9]) AS tokens,
        (tokens[3] - tokens[1]) / nullif(tokens[2], 0) AS spread_ratio,
        bool_or(coalesce(is_generated, FALSE)) AS is_generated,
        quantile_cont(system_tokens, 0.5) AS system_tokens,
        count(DISTINCT turn) AS turn_count,
        count(beginning_hash) AS hash_count,
        count(DISTINCT beginning_hash) AS distinct_hash_count,
        quantile_cont(prefill_ratio, 0.5) AS prefill_ratio,
        min(arrival_ts) AS from_ts,
        max(arrival_ts) AS to_ts,
        _lines(min(_line_key(source_id, line_no), 5)) AS evidence
    FROM prompt
    GROUP BY run_id
),

sampled AS (
    SELECT
        run_id,
        source_id,
        line_no,
        sample_ts,
        prefix_cache_hit_ratio,
        prompt_tps * least(
            $stats_interval_s,
            coalesce(epoch(sample_ts - lag(sample_ts) OVER (PARTITION BY source_id, engine_index ORDER BY line_no)), $stats_interval_s)
        ) AS prompt_tokens
    FROM engine_state
    WHERE prefix_cache_hit_ratio IS NOT NULL AND prompt_tps IS NOT NULL
),

-- The prompts themselves, by their fingerprints: of several sources the one with the most.
shared AS (
    SELECT
        run_id,
        evidence,
        prompt_count,
        attainable_ratio,
        CASE
            WHEN repeated_ratio - attainable_ratio >= $min_gap_ratio
                THEN format(
                        'which part after {:,} {} although {:.0f} % of their passages came before', parts_after::BIGINT, unit,
                        repeated_ratio * 100
                    )
        END AS sign,
        prompt_length_p50 * CASE unit WHEN 'characters' THEN $tokens_per_char ELSE 1 END AS prompt_tokens
    FROM prefix_sharing
    WHERE prompt_count >= $min_request_count
    QUALIFY row_number() OVER (PARTITION BY run_id ORDER BY prompt_count DESC, source_id ASC) = 1
),

logged AS (
    SELECT
        sampled.run_id,
        any_value(passed.request_count) AS request_count,
        count(*) FILTER (WHERE prompt_tokens > 0) AS sample_count,
        max(prefix_cache_hit_ratio) AS hit_ratio,
        sum(prompt_tokens) / nullif(any_value(passed.request_count), 0) AS prompt_tokens,
        min(sample_ts) AS from_ts,
        max(sample_ts) AS to_ts,
        min({'source_id': source_id, 'line_no': line_no}, 5) AS evidence
    FROM sampled
    LEFT JOIN _logged_request_count AS passed ON sampled.run_id = passed.run_id
    GROUP BY sampled.run_id
),

judged AS (
    SELECT
        run.run_id,
        coalesce(setting.is_off, FALSE) AS is_off,
        coalesce(setting.is_hybrid, FALSE) AS is_hybrid,
        coalesce(m.request_count >= $min_request_count AND m.hit_ratio IS NOT NULL, FALSE) AS is_measured,
        CASE
            WHEN shared.run_id IS NOT NULL THEN shared.sign
            WHEN m.hash_count >= $min_request_count AND m.distinct_hash_count >= 0.5 * m.hash_count
                THEN 'with beginnings whose hashes differ'
            WHEN m.hash_count >= $min_request_count THEN NULL
            WHEN m.system_tokens >= $min_prompt_tokens THEN 'with a long system prompt of their own'
            WHEN m.turn_count >= $min_request_count THEN 'turns of conversations'
            WHEN NOT m.is_generated AND m.spread_ratio > 0 AND m.spread_ratio <= $max_spread_ratio THEN 'nearly equal in length'
        END AS sign,
        -- Prompts that say nothing twice have nothing to share; those that begin alike are no case of prompts that differ.
        shared.run_id IS NOT NULL AND shared.sign IS NULL AS is_told_apart,
        shared.sign IS NOT NULL AS is_parted,
        shared.prompt_count,
        shared.prompt_tokens AS shared_prompt_tokens,
        coalesce(m.request_count, l.request_count, shared.prompt_count) AS request_count,
        m.hit_ratio,
        m.prompt_tokens,
        m.prefill_ratio,
        m.system_tokens IS NOT NULL OR m.hash_count > 0 OR shared.sign IS NOT NULL AS is_noted,
        l.hit_ratio AS window_ratio,
        l.prompt_tokens AS logged_prompt_tokens,
        l.sample_count >= $min_request_count AND l.request_count >= $min_request_count AS is_logged,
        coalesce(m.from_ts, l.from_ts) AS from_ts,
        coalesce(m.to_ts, l.to_ts) AS to_ts,
        CASE WHEN shared.sign IS NOT NULL THEN shared.evidence ELSE coalesce(m.evidence, l.evidence) END AS evidence
    FROM (SELECT DISTINCT run_id FROM source) AS run
    LEFT JOIN setting ON run.run_id = setting.run_id
    LEFT JOIN shared ON run.run_id = shared.run_id
    LEFT JOIN measured AS m ON run.run_id = m.run_id
    LEFT JOIN logged AS l ON run.run_id = l.run_id
)

SELECT
    run_id,
    '' AS subject,
    CASE
        WHEN is_off OR is_told_apart THEN 'clear'
        WHEN is_measured AND (hit_ratio > $max_hit_ratio OR prompt_tokens < $min_prompt_tokens) THEN 'clear'
        WHEN is_measured AND sign IS NOT NULL AND NOT (is_hybrid AND hit_ratio = 0) THEN 'fired'
        WHEN is_measured THEN 'not_evaluated'
        -- The prompts say it themselves: then the log's window may be zero as well.
        WHEN is_parted AND window_ratio <= $max_hit_ratio AND shared_prompt_tokens >= $min_prompt_tokens THEN 'fired'
        WHEN is_logged AND window_ratio > 0 AND window_ratio <= $max_hit_ratio AND logged_prompt_tokens >= $min_prompt_tokens THEN 'fired'
        ELSE 'not_evaluated'
    END AS outcome,
    CASE
        WHEN is_measured AND is_noted AND request_count >= 30 THEN 'high'
        WHEN is_measured OR is_parted THEN 'medium'
        ELSE 'low'
    END AS confidence,
    CASE WHEN prefill_ratio IS NULL THEN 0.5 ELSE least(prefill_ratio, 1.0) END AS weight,
    from_ts,
    to_ts,
    evidence,
    -- Without a measured share of TTFT, the prompts themselves, or a sign of the client's own, it is a suspicion.
    CASE WHEN is_parted OR (is_measured AND (is_noted OR prefill_ratio >= 0.5)) THEN 'critical' ELSE 'warning' END AS severity,
    request_count AS measured_request_count,
    -- A log may cut the prompts that it shows: what the engine computed per request is then more.
    round(coalesce(prompt_tokens, greatest(shared_prompt_tokens, logged_prompt_tokens))) AS measured_prompt_tokens_count,
    coalesce(hit_ratio, window_ratio) AS measured_hit_ratio,
    coalesce(sign, 'by the log''s own window') AS measured_sign,
    $max_hit_ratio AS threshold_hit_ratio
FROM judged
