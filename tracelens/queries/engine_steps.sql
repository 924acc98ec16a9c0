/*
Every engine step, with its beginning and length in microseconds since 1970, UTC. A step line is stamped at the step's end.
[params]
run = ""
*/
SELECT
    run_id,
    coalesce(engine_index, 0) AS engine_index,
    epoch_us(step_ts) - (elapsed_s * 1e6)::BIGINT AS start_us,
    greatest((elapsed_s * 1e6)::BIGINT, 1) AS length_us,
    step_index,
    context_requests,
    context_tokens,
    generation_requests,
    generation_tokens,
    kv_cache_usage_ratio
FROM engine_step
WHERE ($run = '' OR run_id = $run) AND step_ts IS NOT NULL AND elapsed_s IS NOT NULL
ORDER BY run_id ASC, engine_index ASC, start_us ASC
