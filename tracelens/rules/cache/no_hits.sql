/*
title = "The prefix cache is on and hits nothing, by its own counters"
belief = "Prefix caching is switched on, so what prompts share is computed once."
cause = "prefix-cache-no-hits"
severity = "warning"
needs = ["metric_sample"]
missing = ["two scrapes or more under load with vllm:prefix_cache_queries and vllm:prefix_cache_hits"]
message = "{measured_hit_tokens_count} of {measured_query_tokens_count} prompt tokens that were looked up came from the prefix cache ({measured_query_tps}); {on_text}. {prefill_text}"
verdict = "The prefix cache is on and hits nothing of {measured_query_tps} looked up: send one prompt twice, then either make the beginning of the prompts the same bytes or look for what bypasses the cache."

[params]
max_hit_ratio = 0.01
min_query_tokens = 100000
min_query_tps = 2000.0
min_request_count = 5

[[remedy]]
kind = "config"
text = "Send one prompt twice, alone, and look at vllm:prefix_cache_hits. If the second one hits, the prompts differ: fixed system prompt and tools first, time stamps, ids and retrieved text last."
moves = "prefill"
next_limit = "the size of the KV cache that must keep the prefix"

[[remedy]]
kind = "config"
text = "If the second one does not hit either, something bypasses the cache: a hybrid model's cache mode, a block larger than the shared part, prompt_logprobs, a cache_salt per request."
moves = "prefill"
next_limit = "the share of the prompt that is equal"
---
## What people assume
That a switch that is on works.

## What the data shows
The counters are exact, unlike the log's hit rate, which is a mean over the last 1000 requests: tokens were looked up and none was found. All of them were computed.

## How it is detected
Between the first and the last scrape at least `min_query_tokens` tokens were looked up, `min_query_tps` of them a second (less is cheap to compute), and at most `max_hit_ratio` were found. Not where requests say themselves what they took from the cache (`min_request_count` of them): then the rules on prompts and structure decide.

## What to do
The two remedies in their order: the first tells which of the two it is.

## Known limits
Prompts that share nothing on purpose (single documents, embeddings) look the same. Counters of tokens say nothing of the prompts, so differing prompts and a cache that cannot hit are not told apart here.
*/
WITH grown AS (
    SELECT
        run_id,
        sum(increase) FILTER (WHERE metric = 'prefix_cache_queries') AS query_tokens,
        sum(increase) FILTER (WHERE metric = 'prefix_cache_hits') AS hit_tokens,
        epoch(max(to_ts) - min(from_ts)) AS length_s,
        min(from_ts) AS from_ts,
        max(to_ts) AS to_ts,
        list({'source_id': source_id, 'line_no': line_no} ORDER BY to_scrape_index DESC, line_no ASC)[:2] AS evidence
    FROM metric_rate
    WHERE metric IN ('prefix_cache_queries', 'prefix_cache_hits')
    GROUP BY run_id
),

setting AS (
    SELECT
        run_id,
        bool_or(lower(value) = 'false') AS is_off,
        bool_or(lower(value) = 'true' AND is_stated) AS is_on
    FROM run_setting
    WHERE key = 'enable_prefix_caching'
    GROUP BY run_id
),

told AS (
    SELECT run_id
    FROM request
    WHERE cached_input_tokens IS NOT NULL
    GROUP BY run_id
    HAVING count(*) >= $min_request_count
),

timed AS (
    SELECT
        run_id,
        max(mean_s) FILTER (WHERE metric = 'prefill_s') AS prefill_s,
        max(mean_s) FILTER (WHERE metric = 'ttft_s') AS ttft_s
    FROM metric_latency
    GROUP BY run_id
),

judged AS (
    SELECT
        runs.run_id,
        grown.* EXCLUDE (run_id),
        grown.query_tokens / nullif(grown.length_s, 0) AS query_tps,
        grown.hit_tokens / nullif(grown.query_tokens, 0) AS hit_ratio,
        coalesce(setting.is_off, FALSE) AS is_off,
        coalesce(setting.is_on, FALSE) AS is_on,
        told.run_id IS NOT NULL AS is_told,
        timed.prefill_s,
        timed.ttft_s
    FROM (SELECT DISTINCT run_id FROM source) AS runs
    LEFT JOIN grown ON runs.run_id = grown.run_id
    LEFT JOIN setting ON runs.run_id = setting.run_id
    LEFT JOIN told ON runs.run_id = told.run_id
    LEFT JOIN timed ON runs.run_id = timed.run_id
)

SELECT
    run_id,
    '' AS subject,
    CASE
        WHEN is_off THEN 'clear'
        WHEN hit_ratio > $max_hit_ratio THEN 'clear'
        WHEN coalesce(query_tokens, 0) < $min_query_tokens OR hit_tokens IS NULL OR is_told THEN 'not_evaluated'
        WHEN query_tps IS NULL THEN 'not_evaluated'
        WHEN query_tps < $min_query_tps THEN 'clear'
        ELSE 'fired'
    END AS outcome,
    CASE WHEN is_on THEN 'medium' ELSE 'low' END AS confidence,
    coalesce(least(prefill_s / nullif(ttft_s, 0), 1.0), 0.5) AS weight,
    from_ts,
    to_ts,
    coalesce(evidence, []) AS evidence,
    CASE
        WHEN is_told THEN ['nothing: the requests say what they took from the cache, and other rules judge that']
        WHEN query_tokens >= $min_query_tokens AND query_tps IS NULL THEN ['the time of each scrape (a line with date before it)']
    END AS missing,
    CASE
        WHEN is_on THEN 'caching is on (stated)'
        ELSE 'tokens are only looked up where caching is on'
    END AS on_text,
    CASE
        WHEN prefill_s IS NOT NULL AND ttft_s IS NOT NULL
            THEN format('Prefill is {:.2f} s of a mean TTFT of {:.2f} s.', prefill_s, ttft_s)
        WHEN ttft_s IS NOT NULL THEN format('The mean TTFT is {:.2f} s.', ttft_s)
        ELSE ''
    END AS prefill_text,
    hit_ratio AS measured_hit_ratio,
    $max_hit_ratio AS threshold_hit_ratio,
    hit_tokens::BIGINT AS measured_hit_tokens_count,
    query_tokens::BIGINT AS measured_query_tokens_count,
    round(query_tps) AS measured_query_tps,
    $min_query_tps AS threshold_query_tps
FROM judged
