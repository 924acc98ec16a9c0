/*
title = "The GPU's memory does not hold what the engine was told to hold"
belief = "The model is too big for this card, so a bigger one is needed."
cause = "engine-dead"
severity = "critical"
needs = []
missing = ["the server's log from its first line, stderr included"]
message = "{lead}: {reason}."
verdict = "{lead} ({reason}): {first_step}."

[[remedy]]
kind = "config"
text = "Look with nvidia-smi at what else holds memory on that GPU and end it: an old server or a notebook takes it from the cache first."
moves = "free memory of the GPU"
next_limit = "what the weights and a step need"

[[remedy]]
kind = "config"
text = "Lower --max-model-len to what requests really use, then --max-num-seqs and --max-num-batched-tokens, of which the memory of a step is made."
moves = "memory of a step, and the cache that one request needs"
next_limit = "longest request; waiting requests"

[[remedy]]
kind = "architecture"
text = "An FP8 KV cache (--kv-cache-dtype fp8), quantised weights, or the weights spread over more GPUs of the host (tensor parallelism)."
moves = "memory for each token, or for the weights on each GPU"
next_limit = "accuracy; the link between the GPUs"

[[remedy]]
kind = "hardware"
text = "GPUs with more memory, where the quantised weights alone do not fit."
moves = "memory"
next_limit = "cost"
---
## What people assume
The card is too small for the model.
## What the data shows
The memory was short by what the log says: of the weights, of a step, or of the KV cache that the longest request needs.  Mostly
a limit that nobody needs (a context of 128k) or another process takes it.
## How it is detected
The engine failed, at its start or later (engine.dead says how that is known), and an error in the minute before it is of memory: CUDA out of memory, no
blocks for the KV cache, a longest request that the cache cannot hold, or less free memory than the share it was given.
## What to do
First what else holds the memory, then the limits, then smaller weights or more GPUs.  The share --gpu-memory-utilization is raised where the cache
got no blocks and the GPU is otherwise free, and lowered where a step ran out of memory.
## Known limits
The memory of the host (a process that is killed) is another thing; its log just ends.
*/
SELECT
    runs.run_id,
    '' AS subject,
    CASE
        WHEN f.is_of_memory THEN 'fired'
        WHEN runs.has_log THEN 'clear'
        ELSE 'not_evaluated'
    END AS outcome,
    CASE WHEN f.is_stated OR f.is_start THEN 'high' ELSE 'medium' END AS confidence,
    CASE WHEN f.is_of_memory THEN 0.96 ELSE 0.0 END AS weight,
    f.event_ts AS from_ts,
    f.event_ts AS to_ts,
    coalesce(f.evidence, []) AS evidence,
    coalesce(f.reason, '') AS reason,
    CASE
        WHEN f.is_start THEN 'The engine did not start, since the GPU''s memory was too small for it'
        ELSE 'The engine failed while it served, since the GPU''s memory ran out'
    END AS lead,
    CASE
        WHEN regexp_matches(f.reason, 'stored in KV cache|available KV cache memory')
            THEN 'lower --max-model-len to what requests use; the message says what fits'
        WHEN f.reason LIKE '%No available memory for the cache blocks%'
            THEN 'weights and activations left nothing for the KV cache: look what else is on the GPU, then raise --gpu-memory-utilization'
        WHEN regexp_matches(f.reason, '[Ff]ree memory on device')
            THEN 'another process holds memory of that GPU (nvidia-smi): end it, or lower --gpu-memory-utilization'
        WHEN runs.is_other
            THEN 'lower the limit that the message names (--max-batch-prefill-tokens, --mem-fraction-static), or what a step may hold'
        WHEN f.is_start
            THEN 'see what else is on it, then lower --max-model-len and --max-num-seqs; weights too big need quantisation or more GPUs'
        ELSE 'lower --gpu-memory-utilization a little, so that a step has room, or --max-num-batched-tokens, so that it needs less'
    END AS first_step
FROM (
    SELECT
        run_id,
        bool_or(format IN ('vllm_log', 'tgi_log', 'sglang_log')) AS has_log,
        bool_or(format IN ('tgi_log', 'sglang_log')) AS is_other
    FROM source
    GROUP BY run_id
) AS runs
LEFT JOIN _engine_failure AS f ON runs.run_id = f.run_id
