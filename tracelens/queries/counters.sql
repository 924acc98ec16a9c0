/*
Engine and GPU over time as counters: one row per sample and counter. track is the engine or the GPU that it belongs to.
[params]
run = ""
*/
WITH engine AS (
    SELECT
        run_id,
        sample_ts,
        'engine ' || coalesce(engine_index, 0) AS track,
        unnest([
            {'counter': 'running requests', 'amount': running_count::DOUBLE},
            {'counter': 'waiting requests', 'amount': waiting_count::DOUBLE},
            {'counter': 'KV cache usage, %', 'amount': kv_cache_usage_ratio * 100},
            {'counter': 'prompt tokens/s', 'amount': prompt_tps},
            {'counter': 'generated tokens/s', 'amount': generation_tps},
            {'counter': 'preemptions', 'amount': preemption_count::DOUBLE}
        ]) AS one
    FROM engine_sample
    WHERE ($run = '' OR run_id = $run)
),

gpu AS (
    SELECT
        run_id,
        sample_ts,
        concat_ws(' ', nullif(host, ''), 'GPU', gpu_index) AS track,
        unnest([
            {'counter': 'utilisation, %', 'amount': sm_ratio * 100},
            {'counter': 'memory traffic (DRAM active), %', 'amount': dram_active_ratio * 100},
            {'counter': 'tensor cores active, %', 'amount': tensor_active_ratio * 100},
            {'counter': 'power, W', 'amount': power_w},
            {'counter': 'SM clock, MHz', 'amount': sm_clock_mhz::DOUBLE},
            {'counter': 'memory used, GiB', 'amount': memory_used_bytes / 1073741824}
        ]) AS one
    FROM gpu_sample
    WHERE ($run = '' OR run_id = $run)
)

SELECT
    run_id,
    track,
    one.counter AS counter,
    epoch_us(sample_ts) AS sample_us,
    one.amount AS amount
FROM (
    SELECT * FROM engine
    UNION ALL
    SELECT * FROM gpu
)
WHERE sample_ts IS NOT NULL AND one.amount IS NOT NULL
ORDER BY run_id ASC, track ASC, counter ASC, sample_us ASC
