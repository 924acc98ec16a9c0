/*
title = "The GPU is idle between steps: the host sets the pace"
belief = "GPU utilisation is low, so raise concurrency until it is full."
cause = "host-overhead-bound"
severity = "warning"
needs = ["gpu_sample"]
missing = ["engine stats lines beside the GPU file, to know that work was there", "SM, tensor and DRAM activity (dcgmi dmon -e 1002,1003,1004,1005)"]
message = "{form}."
verdict = "The host sets the pace ({form}): cut the work per step on the CPU (CUDA graphs, asynchronous scheduling, several engines on one GPU); more requests or cards do not help."

[params]
max_sm_ratio = 0.4
min_sm_ratio = 0.05
max_active_ratio = 0.2
min_busy_ratio = 0.8
min_sample_count = 3

[[remedy]]
kind = "config"
text = "Leave CUDA graphs on (no --enforce-eager), use asynchronous scheduling and several decode steps per launch where the version has them, and keep sampling options that run on the CPU out of the requests."
moves = "time per output token"
next_limit = "memory bandwidth"

[[remedy]]
kind = "architecture"
text = "Run several replicas of a small model on one GPU."
moves = "tokens per second"
next_limit = "KV cache of each replica, CPU cores"
---
## What people assume
A GPU that is not full needs more requests.
## What the data shows
Requests run all the time, and the GPU runs kernels only part of it: between two steps it waits for the host.
## How it is detected
With stats lines: requests run in at least `min_busy_ratio` of them, and GPU utilisation (time with any kernel) has a median of at most
`max_sm_ratio`; decode without pauses shows above 0.8.  Without stats lines: kernels run between `min_sm_ratio` and `max_sm_ratio` of the time, so
there is work, and SM, tensor and DRAM activity are all at most `max_active_ratio`, so that nothing on the GPU is near its limit.
Both need `min_sample_count` samples.
## What to do
Make steps cheaper for the host.
## Known limits
Several GPUs that wait for each other look alike: the rule is for runs in which one GPU was seen, or which show the activity of the units.
Without stats lines low load looks alike too: confidence is low.
*/
WITH gpu AS (
    SELECT
        run_id,
        count(*) FILTER (WHERE sm_ratio IS NOT NULL) AS sample_count,
        count(DISTINCT coalesce(gpu_uuid, host || ' ' || gpu_index, gpu_index::VARCHAR)) AS gpu_count,
        median(sm_ratio) AS sm_ratio,
        median(sm_active_ratio) AS sm_active_ratio,
        median(dram_active_ratio) AS dram_active_ratio,
        median(tensor_active_ratio) AS tensor_active_ratio,
        median(power_w) AS power_w,
        min(sample_ts) AS from_ts,
        max(sample_ts) AS to_ts,
        _lines(min(_line_key(source_id, line_no), 3)) AS evidence
    FROM gpu_sample
    GROUP BY run_id
),

served AS (
    SELECT
        run_id,
        count(*) AS served_count,
        count(*) FILTER (WHERE running_count > 0 AND generation_tps > 0) / count(*) AS busy_ratio,
        median(running_count) AS running_count
    FROM engine_state
    WHERE running_count IS NOT NULL
    GROUP BY run_id
),

judged AS (
    SELECT
        gpu.*,
        served.busy_ratio,
        served.running_count,
        served.busy_ratio >= $min_busy_ratio AND served.served_count >= $min_sample_count AND gpu.gpu_count = 1 AS has_work,
        greatest(gpu.sm_active_ratio, gpu.dram_active_ratio, coalesce(gpu.tensor_active_ratio, 0)) AS active_ratio,
        served.run_id IS NULL
        AND gpu.sm_active_ratio IS NOT NULL
        AND gpu.dram_active_ratio IS NOT NULL
        AND gpu.sm_ratio >= $min_sm_ratio AS has_units
    FROM gpu
    LEFT JOIN served ON gpu.run_id = served.run_id
)

SELECT
    run_id,
    '' AS subject,
    CASE
        WHEN sample_count < $min_sample_count THEN 'not_evaluated'
        WHEN has_work AND sm_ratio <= $max_sm_ratio THEN 'fired'
        WHEN has_units AND sm_ratio <= $max_sm_ratio AND active_ratio <= $max_active_ratio THEN 'fired'
        WHEN has_work OR has_units THEN 'clear'
        ELSE 'not_evaluated'
    END AS outcome,
    CASE WHEN has_work AND sample_count >= 30 THEN 'high' WHEN has_work THEN 'medium' ELSE 'low' END AS confidence,
    CASE WHEN sm_ratio <= $max_sm_ratio THEN 1 - sm_ratio - 0.3 ELSE 0.0 END AS weight,
    from_ts,
    to_ts,
    evidence,
    CASE
        WHEN
            has_work
            THEN running_count::INTEGER
                || ' requests ran (median), and the GPU ran a kernel only '
                || round(100 * sm_ratio)::INTEGER
                || ' % of the time'
        WHEN
            has_units
            THEN 'kernels ran '
                || round(100 * sm_ratio)::INTEGER
                || ' % of the time, and no unit of the GPU was active more than '
                || round(100 * active_ratio, 1)
                || ' %'
        ELSE 'nothing shows whether there was work'
    END AS form,
    sm_ratio AS measured_sm_ratio,
    active_ratio AS measured_active_ratio,
    power_w AS measured_power_w,
    $max_sm_ratio AS threshold_sm_ratio
FROM judged
