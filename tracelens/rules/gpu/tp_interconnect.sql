/*
title = "Tensor-parallel ranks wait for each other over a slow link"
belief = "A second GPU doubles throughput; vLLM underuses the GPUs, or they are power capped."
cause = "tp-imbalance-or-pcie"
severity = "warning"
needs = ["source"]
missing = ["utilisation per GPU (nvidia-smi --query-gpu=timestamp,index,utilization.gpu,power.draw,power.limit --format=csv -l 1), with PCIe traffic (nvidia-smi dmon -s pucvmet -o DT)", "the start-up lines of the server (tensor_parallel_size, custom all-reduce, peer access) and nvidia-smi topo -m", "tokens per second of one GPU alone"]
message = "Tensor parallelism over {rank_text} GPUs; {measured_link}; {measured_gpus}."
verdict = "The {rank_text} tensor-parallel ranks {wait_text} for each other ({measured_link}): measure one GPU alone, and use pipeline or data parallelism over this link before blaming power or the engine."

[params]
max_util_ratio = 0.8
min_spread_ratio = 0.2
min_pcie_bps = 8e9
max_lane_count = 4
max_alone_lane_count = 1

[[remedy]]
kind = "config"
text = "Compare tensor parallelism with one GPU per replica (data parallel) or pipeline parallelism; enable peer access where the platform has it (IOMMU and ACS off, P2P driver)."
moves = "tokens per second, TPOT"
next_limit = "memory of one GPU"

[[remedy]]
kind = "hardware"
text = "NVLink, or slots with more PCIe lanes, if the model does not fit otherwise."
moves = "TPOT"
next_limit = "memory bandwidth"
---
## What people assume
That ranks add up.

## What the data shows
Every layer ends in an all-reduce. Without peer access it goes through host memory; all ranks then idle for the same time, or one rank shows more utilisation than its peer while power shows the opposite.

## How it is detected
At least two ranks and a slow link (a line that peer access or custom all-reduce is not there, or the setting that switches it off, a matrix of links in which no two GPUs meet but through the CPU, or a GPU that uses `max_lane_count` of its PCIe lanes or fewer), and on the GPUs one of: none of the ranks is busy (median utilisation below `max_util_ratio`) while requests run and none waits, or the ranks differ by `min_spread_ratio` for long, or PCIe carries more than `min_pcie_bps`. A spread as large as twice that counts without a word on the link. Without GPU readings a slow link is only information, but for a GPU on `max_alone_lane_count` lane: no all-reduce is quick over that.

## What to do
One rank alone, same model or a smaller one, as the reference.

## Known limits
Low utilisation of all ranks is host overhead where the link is fast. PCIe counters sample 20 ms at a time: a low value proves nothing.
*/
WITH layout AS (
    SELECT
        run_id,
        max(amount) FILTER (WHERE key = 'tensor_parallel_size') AS rank_count,
        bool_or(key = 'disable_custom_all_reduce' AND lower(value) = 'true' AND is_stated) AS is_switched_off,
        -- Of a matrix of links, the best one between any two GPUs.
        max(value) FILTER (WHERE key = 'gpu_link' AND regexp_matches(value, '^(PHB|NODE|SYS)')) AS slow_link,
        bool_or(key = 'platform' AND value = 'cpu') AS is_cpu,
        arg_min({'source_id': source_id, 'line_no': line_no}, _ranked(line_no, source_id, line_no), 2) FILTER (
            WHERE key IN ('tensor_parallel_size', 'gpu_link')
        ) AS evidence
    FROM run_setting
    GROUP BY run_id
),

width AS (
    -- Of GPUs that do not use all their PCIe lanes: how many they use.
    SELECT
        run_id,
        source_id,
        line_no,
        try_cast(regexp_extract(other, '"pcie.link.width.current":"?([0-9]+)', 1) AS INTEGER) AS lane_count,
        regexp_extract(other, '"pcie.link.width.max":"?([0-9]+)', 1) AS most_text
    FROM gpu_sample
    WHERE other LIKE '%"pcie.link.width.current"%'
    UNION ALL
    SELECT
        run_id,
        source_id,
        line_no,
        try_cast(regexp_extract(value, '^x([0-9]+)', 1) AS INTEGER) AS lane_count,
        regexp_extract(value, ' of x([0-9]+)', 1) AS most_text
    FROM server_setting
    WHERE key = 'pcie_link'
),

lane AS (
    SELECT
        run_id,
        min(lane_count) AS lane_count,
        arg_min(most_text, (lane_count, source_id, line_no)) AS most_text,
        arg_min({'source_id': source_id, 'line_no': line_no}, (lane_count, source_id, line_no), 2) AS evidence
    FROM width
    WHERE lane_count <= $max_lane_count AND lane_count < coalesce(try_cast(most_text AS INTEGER), 99)
    GROUP BY run_id
),

link AS (
    SELECT
        run_id,
        bool_or(message LIKE '%more than two PCIe-only GPUs%') AS is_of_many,
        arg_min({'source_id': source_id, 'line_no': line_no}, _ranked(line_no, source_id, line_no), 2) AS evidence
    FROM log_event
    WHERE
        regexp_matches(
            message, '(?i)lacks GPU P2P|P2P (is )?(disabled|not supported)|NCCL_P2P_DISABLE=1|custom all.?reduce is disabled because'
        )
    GROUP BY run_id
),

flow AS (
    SELECT
        run_id,
        max(running_count) AS running_count,
        quantile_cont(waiting_count, 0.5) AS waiting_count
    FROM engine_state
    GROUP BY run_id
),

gpu AS (
    SELECT
        l.run_id,
        count(*) FILTER (WHERE util_p50_ratio IS NOT NULL) AS gpu_count,
        sum(util_count) AS util_count,
        max(util_p50_ratio) AS max_util_ratio,
        max(util_p50_ratio) - min(util_p50_ratio) AS spread_ratio,
        min(first_ts) AS from_ts,
        max(last_ts) AS to_ts,
        flatten(list(evidence[:1] ORDER BY gpu))[:3] AS evidence
    FROM gpu_load AS l
    GROUP BY l.run_id
),

traffic AS (
    SELECT
        run_id,
        quantile_cont(greatest(pcie_rx_bps, pcie_tx_bps), 0.5) AS pcie_bps
    FROM gpu_sample
    WHERE coalesce(sm_ratio, gr_active_ratio) >= 0.1
    GROUP BY run_id
),

judged AS (
    SELECT
        run.run_id,
        coalesce(layout.rank_count, CASE WHEN link.is_of_many THEN 3 END, 0) AS rank_count,
        layout.rank_count IS NULL AS is_rank_count_low,
        coalesce(layout.is_cpu, FALSE) AS is_cpu,
        link.run_id IS NOT NULL OR coalesce(layout.is_switched_off, FALSE) OR layout.slow_link IS NOT NULL OR lane.run_id IS NOT NULL
            AS has_slow_link,
        layout.slow_link,
        lane.lane_count,
        lane.most_text,
        coalesce(lane.lane_count <= $max_alone_lane_count, FALSE) AS is_one_lane,
        coalesce(gpu.gpu_count, 0) AS gpu_count,
        gpu.max_util_ratio,
        gpu.spread_ratio,
        traffic.pcie_bps,
        coalesce(
            gpu.max_util_ratio < $max_util_ratio AND flow.running_count > 0 AND coalesce(flow.waiting_count, 0) = 0, FALSE
        ) AS is_half_busy,
        coalesce(gpu.spread_ratio >= $min_spread_ratio, FALSE) AS is_lopsided,
        coalesce(gpu.spread_ratio >= 2 * $min_spread_ratio AND gpu.util_count >= 10 * gpu.gpu_count, FALSE) AS is_very_lopsided,
        coalesce(traffic.pcie_bps >= $min_pcie_bps, FALSE) AS is_link_full,
        gpu.util_count,
        gpu.from_ts,
        gpu.to_ts,
        list_concat(coalesce(lane.evidence, link.evidence, layout.evidence, []), coalesce(gpu.evidence, []))[:5] AS evidence
    FROM (SELECT DISTINCT run_id FROM source) AS run
    LEFT JOIN layout ON run.run_id = layout.run_id
    LEFT JOIN link ON run.run_id = link.run_id
    LEFT JOIN lane ON run.run_id = lane.run_id
    LEFT JOIN flow ON run.run_id = flow.run_id
    LEFT JOIN gpu ON run.run_id = gpu.run_id
    LEFT JOIN traffic ON run.run_id = traffic.run_id
)

SELECT
    run_id,
    '' AS subject,
    CASE
        WHEN is_cpu OR rank_count = 1 THEN 'clear'
        WHEN rank_count >= 2 AND gpu_count >= 2 AND has_slow_link AND (is_half_busy OR is_lopsided OR is_link_full OR is_one_lane)
            THEN 'fired'
        WHEN rank_count >= 2 AND gpu_count >= 2 AND is_very_lopsided THEN 'fired'
        WHEN rank_count >= 2 AND has_slow_link AND gpu_count < 2 THEN 'fired'
        WHEN rank_count >= 2 AND gpu_count >= 2 THEN 'clear'
        ELSE 'not_evaluated'
    END AS outcome,
    CASE
        WHEN has_slow_link AND util_count >= 20 THEN 'high'
        WHEN has_slow_link AND gpu_count >= 2 THEN 'medium'
        ELSE 'low'
    END AS confidence,
    CASE WHEN max_util_ratio IS NULL THEN 0.3 ELSE least(1.0, greatest(1.0 - max_util_ratio, spread_ratio, 0.3)) END AS weight,
    from_ts,
    to_ts,
    evidence,
    CASE WHEN gpu_count < 2 AND NOT is_one_lane THEN 'info' ELSE 'warning' END AS severity,
    rank_count AS measured_rank_count,
    CASE WHEN gpu_count < 2 AND NOT is_one_lane THEN 'may wait' ELSE 'wait' END AS wait_text,
    CASE WHEN is_rank_count_low THEN format('{:.0f} or more', rank_count) ELSE format('{:.0f}', rank_count) END AS rank_text,
    CASE
        WHEN lane_count IS NOT NULL
            THEN format('a GPU uses {} of {} PCIe lanes', lane_count, CASE WHEN most_text = '' THEN 'its' ELSE most_text END)
        WHEN slow_link IS NOT NULL THEN format('the GPUs meet through the CPU at best ({})', slow_link)
        WHEN has_slow_link THEN 'peer access or custom all-reduce is off'
        ELSE 'nothing is said of the link'
    END AS measured_link,
    CASE
        WHEN gpu_count < 2 THEN 'no GPU readings'
        WHEN is_lopsided THEN format('their utilisation differs by {:.0f} points', 100 * spread_ratio)
        WHEN is_link_full THEN format('PCIe carries {:.1f} GB/s', pcie_bps / 1e9)
        ELSE format('none is busier than {:.0f} %', 100 * max_util_ratio)
    END AS measured_gpus,
    $max_util_ratio AS threshold_util_ratio
FROM judged
