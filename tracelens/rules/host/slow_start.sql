/*
title = "The engine takes long to start"
belief = "The server hangs at its start, or the first request takes minutes."
cause = "slow-startup"
severity = "warning"
needs = ["server_setting"]
missing = ["the server's log from its start on, at level INFO (Model loading took, torch.compile takes, Graph capturing finished, init engine)"]
message = "The engine took {measured_start_s} before it served: {parts}."
verdict = "The start took {measured_start_s}, most of it {largest}: {first_step}; what waited meanwhile says nothing of the speed of serving."

[params]
min_start_s = 300.0
min_bad_start_s = 1200.0

[[remedy]]
kind = "config"
text = "Keep the compile caches on a disk that outlives the container (VLLM_CACHE_ROOT, TRITON_CACHE_DIR), the weights on a disk near the GPU, and capture fewer graphs (lower --max-num-seqs, cudagraph_capture_sizes)."
moves = "time from start to the first answer"
next_limit = "reading the weights"
---
## What people assume
A server that does not answer yet hangs, or its first answers show its speed.
## What the data shows
The engine's own times of its start: loading the weights, compiling, capturing CUDA graphs, and all after the weights together.
## How it is detected
The log says how long the start took (weights, and init engine or its parts where that line is not there): `min_start_s` is told for
information, `min_bad_start_s` is a fault of its own.  An ordinary start takes one to three minutes; the largest models, read over a network, up to twenty.
## What to do
Look at the part that takes most.  Graphs are captured one for each batch size and, with LoRA, for each number of adapters; a
capture that takes hours while the GPU is idle is bound by the CPU.
## Known limits
With several workers the last one that speaks counts.  A start that does not end says no time: engine.hung knows its signs.
*/
WITH part AS (
    SELECT
        run_id,
        max(amount) FILTER (WHERE key = 'model_load_s') AS model_load_s,
        max(amount) FILTER (WHERE key = 'weights_load_s') AS weights_load_s,
        max(amount) FILTER (WHERE key = 'compilation_s') AS compilation_s,
        max(amount) FILTER (WHERE key = 'graph_capture_s') AS graph_capture_s,
        max(amount) FILTER (WHERE key = 'startup_s') AS startup_s,
        list({'source_id': source_id, 'line_no': line_no} ORDER BY source_id, line_no) AS evidence
    FROM run_setting
    WHERE key IN ('model_load_s', 'weights_load_s', 'compilation_s', 'graph_capture_s', 'startup_s') AND amount IS NOT NULL
    GROUP BY run_id
),

summed AS (
    SELECT
        *,
        coalesce(greatest(model_load_s, weights_load_s), 0) AS load_s,
        coalesce(compilation_s, 0) AS compile_s,
        coalesce(graph_capture_s, 0) AS capture_s,
        greatest(coalesce(startup_s, 0), coalesce(compilation_s, 0) + coalesce(graph_capture_s, 0)) AS init_s
    FROM part
),

judged AS (
    SELECT
        *,
        load_s + init_s AS start_s,
        CASE greatest(load_s, compile_s, capture_s)
            WHEN capture_s THEN 'capture'
            WHEN compile_s THEN 'compile'
            ELSE 'load'
        END AS largest_part
    FROM summed
)

SELECT
    runs.run_id,
    '' AS subject,
    CASE
        WHEN judged.run_id IS NULL THEN 'not_evaluated'
        WHEN judged.start_s >= $min_start_s THEN 'fired'
        ELSE 'clear'
    END AS outcome,
    'high' AS confidence,
    CASE WHEN judged.start_s < $min_bad_start_s THEN 'info' ELSE 'warning' END AS severity,
    0.4 AS weight,
    NULL::TIMESTAMP AS from_ts,
    NULL::TIMESTAMP AS to_ts,
    coalesce(judged.evidence, []) AS evidence,
    concat_ws(
        ', ',
        CASE WHEN load_s > 0 THEN format('{:.0f} s to load the weights', load_s) END,
        CASE WHEN compile_s > 0 THEN format('{:.0f} s to compile', compile_s) END,
        CASE WHEN capture_s > 0 THEN format('{:.0f} s to capture CUDA graphs', capture_s) END,
        CASE WHEN init_s > compile_s + capture_s THEN format('{:.0f} s in all after the weights', init_s) END
    ) AS parts,
    CASE largest_part
        WHEN 'capture' THEN 'to capture CUDA graphs'
        WHEN 'compile' THEN 'to compile'
        ELSE 'to load the weights'
    END AS largest,
    CASE largest_part
        WHEN 'capture'
            THEN 'capture fewer sizes (--max-num-seqs, cudagraph_capture_sizes, --max-loras), and look whether the host''s CPU is the limit'
        WHEN 'compile' THEN 'keep the compile cache on a disk that outlives the container (VLLM_CACHE_ROOT)'
        ELSE 'put the weights on a disk near the GPU'
    END AS first_step,
    start_s AS measured_start_s,
    $min_start_s AS threshold_start_s
FROM (SELECT DISTINCT run_id FROM source) AS runs
LEFT JOIN judged ON runs.run_id = judged.run_id
