/*
title = "The server's processes wait for a CPU"
belief = "The new version is slower, or the GPU is too small."
cause = "cpu-starved-host"
severity = "critical"
needs = []
missing = ["the host's CPU limits beside the log: nproc, OMP_NUM_THREADS, /sys/fs/cgroup/cpu.max and cpu.stat, one key=value a line; or kubectl describe pod", "a log of the host's CPUs (sar -u 1, vmstat -t 1, top -b) beside one of its GPUs"]
message = "{form}{pace}."
verdict = "The host's CPUs starve the server ({form}): set OMP_NUM_THREADS to the cores of the quota, then raise the quota; the GPU is not the limit."

[params]
min_times_ratio = 4.0
min_throttled_ratio = 0.25
max_seat_tps = 20.0
min_host_busy_ratio = 0.95
min_host_sample_count = 10

[[remedy]]
kind = "config"
text = "Set OMP_NUM_THREADS to the number of cores in the quota, at most; then give the pod as many cores as it has GPU workers plus two."
moves = "time per output token"
next_limit = "decode on the GPU"
---
## What people assume
Slow decode is the GPU's or the release's fault.
## What the data shows
The process takes the node's core count for its own and starts as many threads; the cgroup lets a few of them run at a time.
## How it is detected
Threads (OMP_NUM_THREADS, else the cores of the node) are at least `min_times_ratio` times the quota in cores: a factor of two is left for
hyper-threads, of which PyTorch counts one, and two for short bursts.  Or throttled periods are at least `min_throttled_ratio` of all.  Where stats
lines are there, decode per running request must be below `max_seat_tps` tokens/s, about reading speed times three: a
server that is faster than that is not starved.  Or all CPUs of a host with GPUs were busy for at least `min_host_busy_ratio` of the time in the
median of `min_host_sample_count` samples or more: whatever took them, a thread that launches kernels waits for its turn.
## What to do
Match threads and quota.
## Known limits
The limits are not in the server log: without notes of them, or a log of the host's CPUs, this rule decides nothing.  Idle CPUs of a host do not
show that a container's quota lets it have them, so they clear nothing.
*/
WITH told AS (
    SELECT
        run_id,
        max(amount) FILTER (WHERE key = 'host_cpu_count') AS host_cpu_count,
        max(amount) FILTER (WHERE key = 'omp_num_threads') AS omp_num_threads,
        coalesce(
            max(amount) FILTER (WHERE key = 'cpu_quota_cores'),
            max(amount) FILTER (WHERE key = 'cpu_cfs_quota_us') / nullif(max(amount) FILTER (WHERE key = 'cpu_cfs_period_us'), 0)
        ) AS quota_cores,
        max(amount) FILTER (WHERE key = 'cgroup_throttled_count')
        / nullif(max(amount) FILTER (WHERE key = 'cgroup_period_count'), 0) AS throttled_ratio,
        list({'source_id': source_id, 'line_no': line_no} ORDER BY line_no) FILTER (
            WHERE key IN ('host_cpu_count', 'omp_num_threads', 'cpu_quota_cores', 'cgroup_throttled_count')
        ) AS evidence
    FROM run_setting
    GROUP BY run_id
),

flow AS (
    SELECT
        run_id,
        median(generation_tps / running_count) AS seat_tps,
        min(sample_ts) AS from_ts,
        max(sample_ts) AS to_ts
    FROM engine_state
    WHERE running_count > 0 AND generation_tps > 0
    GROUP BY run_id
),

-- Where the engine computes on the CPUs, full ones are the work itself.
host AS (
    SELECT
        run_id,
        median(cpu_ratio) AS host_busy_ratio,
        min(sample_ts) AS from_ts,
        max(sample_ts) AS to_ts,
        arg_min({'source_id': source_id, 'line_no': line_no}, _ranked(line_no, source_id, line_no), 3) AS evidence
    FROM host_sample
    WHERE
        cpu_ratio IS NOT NULL
        AND (
            run_id IN (SELECT run_id FROM gpu_sample)
            OR run_id IN (SELECT run_id FROM run_setting WHERE key = 'platform' AND lower(value) <> 'cpu')
        )
    GROUP BY run_id
    HAVING count(*) >= $min_host_sample_count
),

judged AS (
    SELECT
        runs.run_id,
        told.quota_cores,
        coalesce(told.omp_num_threads, told.host_cpu_count) AS thread_count,
        told.throttled_ratio,
        flow.seat_tps,
        host.host_busy_ratio,
        coalesce(flow.from_ts, host.from_ts) AS from_ts,
        coalesce(flow.to_ts, host.to_ts) AS to_ts,
        list_concat(coalesce(told.evidence, []), coalesce(host.evidence, [])) AS evidence,
        coalesce(host.host_busy_ratio >= $min_host_busy_ratio, FALSE) AS is_full,
        coalesce(coalesce(told.omp_num_threads, told.host_cpu_count) >= $min_times_ratio * told.quota_cores, FALSE) AS has_too_many,
        coalesce(told.throttled_ratio >= $min_throttled_ratio, FALSE) AS is_throttled,
        coalesce(coalesce(told.omp_num_threads, told.host_cpu_count) / told.quota_cores, told.throttled_ratio) IS NOT NULL AS can_tell
    FROM (SELECT DISTINCT run_id FROM source) AS runs
    LEFT JOIN told ON runs.run_id = told.run_id
    LEFT JOIN flow ON runs.run_id = flow.run_id
    LEFT JOIN host ON runs.run_id = host.run_id
)

SELECT
    run_id,
    '' AS subject,
    CASE
        WHEN NOT (can_tell OR is_full) THEN 'not_evaluated'
        WHEN (has_too_many OR is_throttled OR is_full) AND coalesce(seat_tps < $max_seat_tps, TRUE) THEN 'fired'
        ELSE 'clear'
    END AS outcome,
    CASE WHEN seat_tps IS NULL THEN 'low' WHEN is_throttled AND has_too_many THEN 'high' ELSE 'medium' END AS confidence,
    CASE WHEN has_too_many OR is_throttled THEN 0.8 WHEN is_full THEN 0.5 ELSE 0.0 END AS weight,
    from_ts,
    to_ts,
    evidence,
    CASE
        WHEN has_too_many THEN round(thread_count)::INTEGER || ' threads share a quota of ' || quota_cores || ' cores'
        WHEN is_throttled THEN round(100 * throttled_ratio)::INTEGER || ' % of the periods were throttled'
        WHEN is_full THEN 'all CPUs of the host were busy ' || round(100 * host_busy_ratio)::INTEGER || ' % of the time'
        ELSE 'threads and quota match'
    END AS form,
    coalesce('; decode gives ' || round(seat_tps, 1) || ' tokens/s per running request', '') AS pace,
    seat_tps AS measured_seat_tps,
    thread_count / quota_cores AS measured_threads_per_core_ratio,
    throttled_ratio AS measured_throttled_ratio,
    host_busy_ratio AS measured_host_busy_ratio,
    $min_times_ratio AS threshold_threads_per_core_ratio
FROM judged
