/*
title = "The prefix cache cannot hit, whatever the prompts are"
belief = "Prefix caching is broken, or our prompts differ."
cause = "prefix-cache-structural"
severity = "warning"
needs = ["source"]
missing = ["cached tokens per request, or counters vllm:prefix_cache_queries and vllm:prefix_cache_hits over time", "the start-up lines of the server log (architecture, cache mode, block size)", "whether two prompts are equal: their texts or hashes"]
message = "Exactly 0 % of the prompt tokens came from the prefix cache over {measured_request_count} requests of about {measured_prompt_tokens_count} tokens, and the server shows why it may never hit: {measured_sign}."
verdict = "The prefix cache hits nothing because of how it is built here ({measured_sign}), not because of the prompts; change the cache mode or the block size before anyone rewrites prompts."

[params]
min_prompt_tokens = 1000
min_request_count = 5
max_block_ratio = 0.5
stats_interval_s = 10.0
min_shared_ratio = 0.5

[[remedy]]
kind = "config"
text = "Hybrid models: try the other cache mode (--mamba-cache-mode all), or a smaller --max-num-batched-tokens so that long prompts leave entries at a block's end."
moves = "prefill"
next_limit = "KV memory of the state snapshots"

[[remedy]]
kind = "config"
text = "Use a smaller --block-size than the shared prefix; drop per-request switches that bypass the cache (prompt_logprobs, cache_salt, a new LoRA each time)."
moves = "prefill"
next_limit = "the share of the prompt that is equal"
---
## What people assume
That zero hits mean different prompts.

## What the data shows
Only whole blocks are shared, and hybrid models keep their state only at some block ends; some requests bypass the cache. Then equal prompts hit nothing either.

## How it is detected
The hit rate is exactly zero in every stats line in which prompts were computed, or no request of at least `min_request_count` took a token from the cache; prompts are at least `min_prompt_tokens` long; and a structural reason stands in the log or the client: a hybrid architecture or Mamba cache mode, blocks of at least `max_block_ratio` of a prompt, a warning that the cache is not supported or skipped, prompts that begin alike by their fingerprints (at least `min_shared_ratio` of their blocks came before, from the beginning on), or beginnings whose hashes are equal.

## What to do
Send one prompt twice, alone, and look at the counters.

## Known limits
Whether prompts share anything is not in a server log; without a structural sign nothing is said.
*/
WITH setting AS (
    SELECT
        run_id,
        bool_or(key = 'enable_prefix_caching' AND lower(value) = 'false') AS is_off,
        max(amount) FILTER (WHERE key = 'block_size') AS block_tokens,
        any_value(value) FILTER (WHERE key = 'mamba_cache_mode') AS mamba_cache_mode,
        any_value(value) FILTER (
            WHERE key = 'architecture'
            AND regexp_matches(value, '(?i)mamba|jamba|bamba|zamba|qwen3_?next|qwen3_?5|falcon_?h1|nemotron_?h|hybrid|lfm2')
        ) AS hybrid_architecture,
        arg_min({'source_id': source_id, 'line_no': line_no}, _ranked(line_no, source_id, line_no), 2) FILTER (
            WHERE key IN ('mamba_cache_mode', 'architecture', 'block_size') AND is_stated
        ) AS evidence
    FROM run_setting
    GROUP BY run_id
),

refusal AS (
    SELECT
        run_id,
        any_value(left(message, 120)) AS message
    FROM log_event
    WHERE
        length(message) < 1000
        AND regexp_matches(
            message,
            '(?i)prefix.cach\w*[^.]{0,80}(not (yet )?support|unsupported|incompatible|skip|bypass)'
            || '|(not (yet )?support|unsupported|incompatible|skip|bypass)\w*[^.]{0,60}prefix.cach'
        )
    GROUP BY run_id
),

asked AS (
    SELECT
        r.run_id,
        r.arrival_ts,
        r.input_tokens,
        r.cached_input_tokens,
        coalesce(r.client_source_id, r.server_source_id) AS source_id,
        coalesce(r.client_line_no, r.server_line_no) AS line_no,
        note.beginning_hash
    FROM request AS r
    LEFT JOIN _prompt_note AS note ON r.client_source_id = note.source_id AND r.client_line_no = note.line_no
    WHERE r.cached_input_tokens IS NOT NULL
),

measured AS (
    SELECT
        run_id,
        count(*) AS request_count,
        max(cached_input_tokens) AS cached_tokens,
        quantile_cont(input_tokens, 0.5) AS prompt_tokens,
        count(beginning_hash) AS hash_count,
        count(DISTINCT beginning_hash) AS distinct_hash_count,
        _lines(arg_min(_line_key(source_id, line_no), _ranked(arrival_ts, source_id, line_no), 3)) AS evidence
    FROM asked
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

shared AS (
    SELECT
        run_id,
        evidence,
        parts_after,
        unit,
        attainable_ratio
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
        sum(prompt_tokens) AS all_prompt_tokens,
        sum(prompt_tokens) / nullif(any_value(passed.request_count), 0) AS prompt_tokens,
        min(sample_ts) AS from_ts,
        max(sample_ts) AS to_ts,
        min({'source_id': source_id, 'line_no': line_no}, 3) AS evidence
    FROM sampled
    LEFT JOIN _logged_request_count AS passed ON sampled.run_id = passed.run_id
    GROUP BY sampled.run_id
),

judged AS (
    SELECT
        run.run_id,
        coalesce(setting.is_off, FALSE) AS is_off,
        coalesce(m.request_count, l.request_count) AS request_count,
        coalesce(m.prompt_tokens, l.prompt_tokens) AS prompt_tokens,
        CASE
            WHEN m.request_count >= $min_request_count THEN m.cached_tokens = 0
            WHEN l.sample_count >= $min_request_count THEN l.hit_ratio = 0
        END AS is_zero,
        m.request_count >= $min_request_count AS is_measured,
        coalesce(
            coalesce(m.prompt_tokens, l.prompt_tokens) >= $min_prompt_tokens,
            l.all_prompt_tokens >= 20 * $min_prompt_tokens,
            FALSE
        ) AS is_long,
        CASE
            WHEN shared.attainable_ratio >= $min_shared_ratio
                THEN format(
                        'the prompts begin alike for {:,} {}, so that {:.0f} % of them could have come from it',
                        shared.parts_after::BIGINT, shared.unit, shared.attainable_ratio * 100
                    )
            WHEN m.hash_count >= $min_request_count AND m.distinct_hash_count <= 0.2 * m.hash_count
                THEN 'the prompts'' beginnings are equal by their hashes'
            WHEN setting.mamba_cache_mode IS NOT NULL THEN 'a hybrid model with cache mode ' || setting.mamba_cache_mode
            WHEN setting.hybrid_architecture IS NOT NULL THEN 'a hybrid architecture, ' || setting.hybrid_architecture
            WHEN setting.block_tokens >= $max_block_ratio * coalesce(m.prompt_tokens, l.prompt_tokens)
                THEN format('blocks of {} tokens, of which only whole ones are shared', setting.block_tokens::BIGINT)
            WHEN refusal.message IS NOT NULL THEN 'the log says: ' || refusal.message
        END AS sign,
        l.from_ts,
        l.to_ts,
        list_concat(coalesce(setting.evidence, []), coalesce(shared.evidence[:2], []), coalesce(m.evidence, l.evidence, []))[:5] AS evidence
    FROM (SELECT DISTINCT run_id FROM source) AS run
    LEFT JOIN setting ON run.run_id = setting.run_id
    LEFT JOIN shared ON run.run_id = shared.run_id
    LEFT JOIN refusal ON run.run_id = refusal.run_id
    LEFT JOIN measured AS m ON run.run_id = m.run_id
    LEFT JOIN logged AS l ON run.run_id = l.run_id
)

SELECT
    run_id,
    '' AS subject,
    CASE
        WHEN is_off OR is_zero = FALSE THEN 'clear'
        WHEN is_zero AND is_long AND sign IS NOT NULL THEN 'fired'
        WHEN is_zero AND prompt_tokens < $min_prompt_tokens THEN 'clear'
        ELSE 'not_evaluated'
    END AS outcome,
    CASE
        WHEN is_measured AND request_count >= 30 THEN 'high'
        WHEN request_count >= $min_request_count THEN 'medium'
        ELSE 'low'
    END AS confidence,
    0.5 AS weight,
    from_ts,
    to_ts,
    evidence,
    request_count AS measured_request_count,
    round(prompt_tokens) AS measured_prompt_tokens_count,
    sign AS measured_sign
FROM judged
