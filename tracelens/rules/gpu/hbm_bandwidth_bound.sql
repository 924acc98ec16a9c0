/*
title = "Decoding waits for device memory, not for compute"
belief = "GPU utilisation is above 90 %, compute is saturated: more GPUs, more tensor parallelism."
cause = "hbm-bandwidth-bound"
severity = "warning"
needs = ["gpu_load"]
missing = ["DRAM and tensor activity: dcgmi dmon -e 1002,1003,1004,1005 (SMACT, SMOCC, TENSO, DRAMA), or nvidia-smi dmon --gpm-metrics with dram and mmaact; at least utilization.memory and power with its limit"]
message = "{subject}: while utilisation is {measured_util_ratio}, memory is active {measured_memory_ratio} of the time ({measured_basis}){measured_beside}, over {measured_sample_count} busy readings."
verdict = "Decode is limited by memory bandwidth ({measured_basis} {measured_memory_ratio}): get more tokens out of every sweep over the weights (larger batches, quantised weights or KV) before adding tensor parallelism."

[params]
min_dram_ratio = 0.5
max_tensor_ratio = 0.35
min_mem_ratio = 0.5
min_power_ratio = 0.35
max_power_ratio = 0.85

[[remedy]]
kind = "config"
text = "Batch more requests per step (raise --max-num-seqs while KV allows), use FP8 or INT4 weights and an FP8 KV cache, speculative decoding at small batches."
moves = "tokens per second and TPOT"
next_limit = "KV cache, then compute"

[[remedy]]
kind = "architecture"
text = "Mixture of experts: gather enough tokens per expert (larger batches, expert parallelism over a fast interconnect) rather than splitting each matrix further."
moves = "tokens per second"
next_limit = "the interconnect"

[[remedy]]
kind = "hardware"
text = "Only after that: a card with more bytes per second, not more FLOPS."
moves = "TPOT"
next_limit = "compute"
---
## What people assume
That a utilisation near 100 % means that the arithmetic units are the limit.

## What the data shows
Each decode step reads the weights and the KV cache once and computes little with them. DRAM activity tops out near 0.8; tensor activity stays low; power stays well below the limit.

## How it is detected
Over busy readings. With DRAM activity: its median is at least `min_dram_ratio` (the counter also sees the gaps between kernels, so 0.5 is over half of what can be reached) and tensor activity at most `max_tensor_ratio`. Without it only the share of time in which memory was touched (`utilization.memory`), at least `min_mem_ratio`, with power between `min_power_ratio` and `max_power_ratio` of the limit or a limit not known: low confidence, because that share is no bandwidth. DRAM activity of zero beside touched memory is a broken counter.

## What to do
Compare tokens per second at two batch sizes.

## Known limits
It names the limit of a phase, which may be reasonable use. Prefill looks the other way round.
*/
WITH judged AS (
    SELECT
        *,
        busy_dram_p50_ratio > 0 OR (busy_dram_p50_ratio = 0 AND coalesce(busy_mem_p50_ratio, 0) <= 0.2) AS has_dram,
        CASE
            WHEN busy_dram_p50_ratio > 0
                THEN busy_dram_p50_ratio >= $min_dram_ratio AND coalesce(busy_tensor_p50_ratio, 0) <= $max_tensor_ratio
            WHEN busy_mem_p50_ratio IS NOT NULL AND busy_count >= 5
                THEN
                    busy_mem_p50_ratio >= $min_mem_ratio
                    AND coalesce(busy_power_p50_ratio, 0.5) BETWEEN $min_power_ratio AND $max_power_ratio
        END AS is_bound
    FROM gpu_load
),

counted AS (
    SELECT
        run_id,
        count(*) AS gpu_count,
        sum(util_count) AS util_count,
        count(*) FILTER (WHERE busy_count > 0 AND is_bound IS NULL) AS open_count,
        count(*) FILTER (WHERE is_bound) AS bound_count,
        bool_and(has_dram) FILTER (WHERE is_bound) AS has_dram,
        string_agg(gpu, ', ' ORDER BY gpu) FILTER (WHERE is_bound) AS gpus,
        quantile_cont(busy_util_p50_ratio, 0.5) FILTER (WHERE is_bound) AS util_ratio,
        quantile_cont(coalesce(busy_dram_p50_ratio, busy_mem_p50_ratio), 0.5) FILTER (WHERE is_bound) AS memory_ratio,
        quantile_cont(busy_tensor_p50_ratio, 0.5) FILTER (WHERE is_bound) AS tensor_ratio,
        quantile_cont(busy_power_p50_ratio, 0.5) FILTER (WHERE is_bound) AS power_ratio,
        sum(busy_count) FILTER (WHERE is_bound) AS busy_count,
        min(first_ts) AS from_ts,
        max(last_ts) AS to_ts,
        flatten(list(evidence ORDER BY is_bound DESC NULLS LAST, gpu ASC))[:5] AS evidence
    FROM judged
    GROUP BY run_id
)

SELECT
    run_id,
    CASE WHEN bound_count > 0 THEN gpus ELSE '' END AS subject,
    CASE
        WHEN bound_count > 0 AND bound_count >= 0.5 * (gpu_count - open_count) THEN 'fired'
        WHEN util_count = 0 OR open_count > 0 THEN 'not_evaluated'
        ELSE 'clear'
    END AS outcome,
    CASE WHEN has_dram AND busy_count >= 30 THEN 'high' WHEN has_dram THEN 'medium' ELSE 'low' END AS confidence,
    coalesce(least(memory_ratio / 0.8, 1.0) * 0.8, 0.0) AS weight,
    from_ts,
    to_ts,
    evidence,
    util_ratio AS measured_util_ratio,
    memory_ratio AS measured_memory_ratio,
    CASE WHEN has_dram THEN 'DRAM activity' ELSE 'utilization.memory, no share of bandwidth' END AS measured_basis,
    coalesce(format(', tensor cores {:.0f} %', 100 * tensor_ratio), '')
    || coalesce(format(', power {:.0f} % of the limit', 100 * power_ratio), '') AS measured_beside,
    tensor_ratio AS measured_tensor_ratio,
    power_ratio AS measured_power_ratio,
    busy_count AS measured_sample_count,
    CASE WHEN has_dram THEN $min_dram_ratio ELSE $min_mem_ratio END AS threshold_memory_ratio
FROM counted
