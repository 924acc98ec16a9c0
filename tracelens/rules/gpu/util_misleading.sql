/*
title = "The GPUs show 100 % utilisation and do no work"
belief = "GPU utilisation is 100 %, so the GPUs are busy and healthy."
cause = "gpu-util-misleading"
severity = "warning"
needs = ["gpu_load"]
missing = ["power and its limit per GPU (nvidia-smi --query-gpu=timestamp,index,utilization.gpu,power.draw,power.limit --format=csv -l 1), or memory activity (nvidia-smi dmon -s pucvmet -o DT)", "engine stats lines of the same time"]
message = "{subject}: utilisation {measured_util_ratio} {measured_sign} ({measured_sample_count} busy readings): kernels run, but they wait. {measured_tokens}"
verdict = "Utilisation of {measured_util_ratio} {measured_sign} is spinning, not work: look for what the ranks wait for (a collective, a peer, the host) instead of adding GPUs."

[params]
max_gap_ratio = 0.1
max_power_ratio = 0.4
max_memory_ratio = 0.3
max_spin_memory_ratio = 0.02

[[remedy]]
kind = "config"
text = "Find what the kernels wait for: py-spy dump of every worker, NCCL_DEBUG=INFO, and one run with NCCL_P2P_DISABLE=1 (IOMMU and ACS break peer access)."
moves = "tokens per second"
next_limit = "the interconnect"

[[remedy]]
kind = "config"
text = "Judge GPUs by tokens per second, power and DRAM activity; alarm on those, not on utilisation."
moves = "what is believed"
---
## What people assume
That utilisation is a share of what the GPU can do.

## What the data shows
It is the share of time in which any kernel ran. A collective that waits for a peer is one kernel that runs all the time, touches no memory and takes little power.

## How it is detected
Busy readings with a median utilisation no more than `max_gap_ratio` below 1 at no more than `max_power_ratio` of the power limit: spinning takes 15 to 40 %, decoding 45 % and more. Not where memory is active for more than `max_memory_ratio`, which is work. Without a power limit: memory touched in no more than `max_spin_memory_ratio` of the time while the engine gives no tokens. While tokens flow it is only information.

## What to do
Dump the stacks of all ranks.

## Known limits
A table of one moment shows one moment. A small model on a large GPU stays below 40 % too: then tokens flow.
*/
WITH flow AS (
    SELECT
        run_id,
        avg((coalesce(generation_tps, 0) > 0 OR coalesce(prompt_tps, 0) > 0)::INTEGER) AS flowing_ratio
    FROM engine_state
    WHERE generation_tps IS NOT NULL OR prompt_tps IS NOT NULL
    GROUP BY run_id
),

judged AS (
    SELECT
        gpu.*,
        flow.flowing_ratio,
        busy_count > 0 AND busy_util_p50_ratio >= 1 - $max_gap_ratio AS is_high,
        coalesce(greatest(busy_dram_p50_ratio, busy_mem_p50_ratio) > $max_memory_ratio, FALSE) AS is_at_memory,
        coalesce(busy_power_p50_ratio <= $max_power_ratio, FALSE)
        OR coalesce(
            busy_power_p50_ratio IS NULL AND busy_mem_p50_ratio <= $max_spin_memory_ratio
            AND flow.flowing_ratio = 0 AND busy_count >= 5,
            FALSE
        ) AS is_low,
        busy_power_p50_ratio IS NOT NULL OR greatest(busy_dram_p50_ratio, busy_mem_p50_ratio) IS NOT NULL AS is_decidable
    FROM gpu_load AS gpu
    LEFT JOIN flow ON gpu.run_id = flow.run_id
),

counted AS (
    SELECT
        run_id,
        sum(util_count) AS util_count,
        count(*) AS gpu_count,
        any_value(flowing_ratio) AS flowing_ratio,
        count(*) FILTER (WHERE is_high AND NOT is_decidable) AS open_count,
        count(*) FILTER (WHERE is_high AND is_low AND NOT is_at_memory) AS spinning_count,
        string_agg(gpu, ', ' ORDER BY gpu) FILTER (WHERE is_high AND is_low AND NOT is_at_memory) AS gpus,
        quantile_cont(busy_util_p50_ratio, 0.5) FILTER (WHERE is_high AND is_low AND NOT is_at_memory) AS util_ratio,
        quantile_cont(busy_power_p50_ratio, 0.5) FILTER (WHERE is_high AND is_low AND NOT is_at_memory) AS power_ratio,
        sum(busy_count) FILTER (WHERE is_high AND is_low AND NOT is_at_memory) AS busy_count,
        min(first_ts) AS from_ts,
        max(last_ts) AS to_ts,
        flatten(list(evidence ORDER BY is_high AND is_low DESC, gpu ASC))[:5] AS evidence
    FROM judged
    GROUP BY run_id
)

SELECT
    run_id,
    CASE WHEN spinning_count > 0 THEN gpus ELSE '' END AS subject,
    CASE
        WHEN util_count = 0 THEN 'not_evaluated'
        WHEN spinning_count > 0 THEN 'fired'
        WHEN open_count > 0 THEN 'not_evaluated'
        ELSE 'clear'
    END AS outcome,
    CASE
        WHEN busy_count >= 10 AND flowing_ratio = 0 THEN 'high'
        WHEN busy_count >= 2 OR flowing_ratio = 0 THEN 'medium'
        ELSE 'low'
    END AS confidence,
    coalesce(0.6 * spinning_count / gpu_count, 0.0) AS weight,
    from_ts,
    to_ts,
    evidence,
    CASE WHEN flowing_ratio >= 0.5 THEN 'info' ELSE 'warning' END AS severity,
    util_ratio AS measured_util_ratio,
    power_ratio AS measured_power_ratio,
    CASE
        WHEN power_ratio IS NULL THEN 'with memory untouched'
        ELSE format('at {:.0f} % of the power limit', 100 * power_ratio)
    END AS measured_sign,
    busy_count AS measured_sample_count,
    CASE
        WHEN flowing_ratio IS NULL THEN 'No stats line says whether tokens flow.'
        WHEN flowing_ratio = 0 THEN 'No token flows.'
        ELSE 'Tokens flow.'
    END AS measured_tokens,
    1 - $max_gap_ratio AS threshold_util_ratio,
    $max_power_ratio AS threshold_power_ratio
FROM counted
