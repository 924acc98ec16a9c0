/*
title = "The server says that it runs on a slower path"
belief = "Quantisation, or a large card, must be fast; the engine has a bug."
cause = "slow-kernel-path"
severity = "info"
needs = ["log_event"]
missing = ["the server's log from its start on, with warnings"]
message = "At its start the server says that it is slower than it could be: {paths}."
verdict = "No measure shows a fault, but the server itself says that it is slower than it could be: {paths}."

[params]
max_running_count = 8
max_seat_tps = 30.0

[[remedy]]
kind = "config"
text = "Tune the kernels for this GPU and shape (benchmarks/kernels/benchmark_moe.py of vLLM, or a release that has the file), use a quantisation that the GPU computes in (INT8 or AWQ with Marlin before Hopper and Ada), and leave CUDA graphs on."
moves = "TPOT, prefill speed"
next_limit = "memory bandwidth"

[[remedy]]
kind = "config"
text = "On a CPU that was not meant: use the image or wheel for the GPU and let the container see it (nvidia-smi inside it, --gpus all); on one that was: bind the threads to one NUMA node (VLLM_CPU_OMP_THREADS_BIND), and take a smaller or a quantised model."
moves = "TPOT, prefill speed"
next_limit = "memory bandwidth of the host"
---
## What people assume
That the fastest code there is runs.
## What the data shows
Some warnings of the start are about speed: no tuned configuration of a kernel for this GPU, weights in a type that this GPU cannot compute in, a
kernel that is not optimised, CUDA graphs switched off or a CPU for a device while a token of a few requests takes long.
## How it is detected
The words of such a warning, or --enforce-eager, or a CPU for a device, where at most `max_running_count` requests run and each gets less than `max_seat_tps` tokens/s while no prompt is computed.
## What to do
Compare with and without it under the same load: what it costs is between nothing and a factor of five.
## Known limits
How much it costs is in no log: this is information only.
*/
WITH warned AS (
    SELECT
        run_id,
        source_id,
        line_no,
        CASE
            WHEN message LIKE '%kernel config. Performance might be sub-optimal%'
                THEN 'no tuned configuration of the FP8 kernel for this GPU'
            WHEN message LIKE '%MoE config%Performance might be sub-optimal%'
                THEN 'no tuned configuration of the MoE kernel for this GPU'
            WHEN message LIKE '%does not have native support for FP%'
                THEN 'this GPU does not compute in the type of the weights (Marlin unpacks them)'
            WHEN message LIKE '%quantization is not fully optimized yet%'
                THEN 'the kernel of this quantisation is not optimised'
        END AS path
    FROM log_event
    WHERE kind = 'warning'
),

decoding AS (
    -- Runs in which a few requests get their tokens slowly.
    SELECT run_id
    FROM engine_state
    WHERE running_count > 0 AND generation_tps > 0 AND coalesce(prompt_tps, 0) = 0
    GROUP BY run_id
    HAVING median(running_count) <= $max_running_count AND median(generation_tps / running_count) < $max_seat_tps
),

chosen AS (
    SELECT
        setting.run_id,
        setting.source_id,
        setting.line_no,
        CASE setting.key
            WHEN 'platform' THEN 'it computes on the CPU, not on a GPU'
            ELSE 'CUDA graphs are off (--enforce-eager)'
        END AS path
    FROM run_setting AS setting
    INNER JOIN decoding ON setting.run_id = decoding.run_id
    WHERE
        setting.is_stated
        AND (setting.key, lower(setting.value)) IN (('enforce_eager', 'true'), ('platform', 'cpu'))
),

told AS (
    SELECT
        run_id,
        path,
        min(_line_key(source_id, line_no)) AS first_line,
        arg_min({'source_id': source_id, 'line_no': line_no}, _ranked(line_no, source_id, line_no)) AS evidence
    FROM (
        SELECT * FROM warned WHERE path IS NOT NULL
        UNION ALL BY NAME
        SELECT * FROM chosen
    )
    GROUP BY run_id, path
),

listed AS (
    SELECT
        run_id,
        string_agg(path, '; ' ORDER BY first_line, path) AS paths,
        count(*) AS path_count,
        list(evidence ORDER BY first_line, path) AS evidence
    FROM told
    GROUP BY run_id
)

SELECT
    runs.run_id,
    '' AS subject,
    CASE WHEN listed.run_id IS NOT NULL THEN 'fired' WHEN runs.has_log THEN 'clear' ELSE 'not_evaluated' END AS outcome,
    'low' AS confidence,
    CASE WHEN listed.run_id IS NOT NULL THEN 0.1 ELSE 0.0 END AS weight,
    NULL::TIMESTAMP AS from_ts,
    NULL::TIMESTAMP AS to_ts,
    coalesce(listed.evidence, []) AS evidence,
    coalesce(listed.paths, '') AS paths,
    coalesce(listed.path_count, 0) AS measured_path_count
FROM (
    SELECT
        run_id,
        bool_or(format = 'vllm_log') AS has_log
    FROM source
    GROUP BY run_id
) AS runs
LEFT JOIN listed ON runs.run_id = listed.run_id
