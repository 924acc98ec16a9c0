/*
Each engine of a run beside the others, from its stats lines: how many requests it ran and kept waiting, how full its KV cache
was, how many tokens it made, and its part of all tokens and of all running requests. An even spread gives each engine the
same part (even_ratio); is_uneven where one makes half as much again, or more.
[params]
run = ""
*/
WITH summed AS (
    SELECT
        run_id,
        engine_index,
        count(*) AS sample_count,
        avg(running_count) AS running_mean_count,
        max(running_count) AS running_max_count,
        avg(waiting_count) AS waiting_mean_count,
        max(waiting_count) AS waiting_max_count,
        avg(kv_cache_usage_ratio) AS kv_cache_usage_mean_ratio,
        max(kv_cache_usage_ratio) AS kv_cache_usage_max_ratio,
        avg(prompt_tps) AS prompt_mean_tps,
        avg(generation_tps) AS generation_mean_tps,
        max(generation_tps) AS generation_max_tps,
        sum(preemption_count) AS preemption_count,
        avg(prefix_cache_hit_ratio) AS prefix_cache_hit_mean_ratio
    FROM engine_sample
    WHERE ($run = '' OR run_id = $run)
    GROUP BY run_id, engine_index
)

SELECT
    *,
    generation_mean_tps / nullif(sum(generation_mean_tps) OVER (PARTITION BY run_id), 0) AS generation_share_ratio,
    running_mean_count / nullif(sum(running_mean_count) OVER (PARTITION BY run_id), 0) AS running_share_ratio,
    1.0 / count(*) OVER (PARTITION BY run_id) AS even_ratio,
    (sum(sample_count) OVER (PARTITION BY run_id))::BIGINT AS run_sample_count,
    coalesce(generation_share_ratio >= 1.5 * even_ratio, FALSE) AS is_uneven
FROM summed
ORDER BY run_id ASC, engine_index ASC
