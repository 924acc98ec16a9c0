/*
title = "KV blocks from another engine come late or not at all"
belief = "Prefill and decode on engines of their own are faster, so the decoding engine must be too small."
cause = "kv-transfer-failed"
severity = "warning"
needs = []
missing = ["the log of the decoding and of the prefilling engine for the same time, with warnings (VLLM_LOGGING_LEVEL=DEBUG also says which request waits for remote KV)"]
message = "{lead}.{first_text}"
verdict = "{lead}: look at the path between the engines (network, RDMA, both logs at that minute) before seats, cache or cards."

[params]
min_waiting_s = 5.0
min_handed_count = 8
min_samples_count = 3

[[remedy]]
kind = "config"
text = "Read both engines' logs at the first failure, test the path between them alone (NIXL or Mooncake's own benchmark, UCX_LOG_LEVEL=info), and restart the pair where a connection is dead: not every connector connects again."
moves = "requests that wait for KV blocks, TTFT"
next_limit = "the bandwidth between the engines"

[[remedy]]
kind = "config"
text = "Where blocks expire before they are fetched, admit less at the decoding engine or give it more room; a longer expiry (VLLM_NIXL_ABORT_REQUEST_TIMEOUT) only hides its queue."
moves = "prompts that are computed twice"
next_limit = "KV cache of the decoding engine"
---
## What people assume
A request that waits at the decoding engine waits for seats or for cache.
## What the data shows
It waits for the KV blocks of its prompt, which another engine has computed: the transfer failed, timed out, or the blocks expired there before
anybody fetched them.
## How it is detected
Warnings and errors of a connector (NIXL, Mooncake, LMCache) that a transfer or a handshake failed or timed out; blocks that were released since nobody
fetched them in time; or the scheduler's word, step after step for `min_waiting_s`, that a request waits for remote KV.
Or batch lines of SGLang, at least `min_samples_count`, of which the median has `min_handed_count` requests or more between the two engines (#transferring-req,
#inflight-req, #transfer-req), and more than run and wait together.
## What to do
Look at the path first.  A request whose blocks do not come is computed anew or refused, as kv_load_failure_policy says.
## Known limits
A transfer that is only slow writes no line in a vLLM log: KV Transfer metrics count those that succeeded.
*/
WITH said AS (
    SELECT
        e.run_id,
        e.source_id,
        e.line_no,
        e.event_ts,
        split_part(e.message, chr(10), 1) AS line,
        e.message LIKE '%in WAITING_FOR_REMOTE_KVS state%' AS is_wait,
        e.message LIKE 'Releasing expired KV blocks%' AS is_expired,
        _is_of_kv_transfer(e.message) AS is_failed
    FROM log_event AS e
    INNER JOIN source ON e.source_id = source.source_id AND source.side = 'server'
    WHERE e.kind IN ('error', 'warning', 'notice')
),

waited AS (
    SELECT
        run_id,
        max(wait_s) AS wait_s
    FROM (
        SELECT
            run_id,
            epoch(max(event_ts) - min(event_ts)) AS wait_s
        FROM said
        WHERE is_wait
        GROUP BY run_id, source_id, split_part(line, ' ', 1)
    )
    GROUP BY run_id
),

counted AS (
    SELECT
        run_id,
        count(*) FILTER (WHERE is_failed) AS failed_count,
        count(*) FILTER (WHERE is_expired) AS expired_count,
        min(event_ts) AS from_ts,
        max(event_ts) AS to_ts,
        left(min_by(line, _line_key(source_id, line_no)), 160) AS first_line,
        arg_min({'source_id': source_id, 'line_no': line_no}, _ranked(line_no, source_id, line_no), 4) AS evidence
    FROM said
    WHERE is_wait OR is_expired OR is_failed
    GROUP BY run_id
),

-- What SGLang has prefilled, and the decoding engine has not got.
handed AS (
    SELECT
        run_id,
        median(handed_count) AS handed_count,
        min(sample_ts) AS from_ts,
        max(sample_ts) AS to_ts,
        arg_min({'source_id': source_id, 'line_no': line_no}, _ranked(line_no, source_id, line_no), 4) AS evidence
    FROM (
        SELECT
            *,
            try_cast(regexp_extract(other, '"#(?:transferring|inflight|transfer)-req":([0-9]+)', 1) AS BIGINT) AS handed_count
        FROM engine_state
        WHERE other LIKE '{"batch":%-req":%'
    )
    WHERE handed_count IS NOT NULL
    GROUP BY run_id
    HAVING
        count(*) >= $min_samples_count
        AND median(handed_count) >= $min_handed_count
        AND median(handed_count) > median(running_count + waiting_count)
),

known AS (
    SELECT
        coalesce(counted.run_id, handed.run_id) AS run_id,
        coalesce(counted.failed_count, 0) AS failed_count,
        coalesce(counted.expired_count, 0) AS expired_count,
        counted.first_line,
        coalesce(counted.from_ts, handed.from_ts) AS from_ts,
        coalesce(counted.to_ts, handed.to_ts) AS to_ts,
        list_concat(counted.evidence, handed.evidence) AS evidence,
        coalesce(waited.wait_s, 0) AS wait_s,
        handed.handed_count
    FROM counted
    FULL JOIN handed ON counted.run_id = handed.run_id
    LEFT JOIN waited ON counted.run_id = waited.run_id
),

judged AS (
    SELECT
        *,
        failed_count + expired_count > 0 OR wait_s >= $min_waiting_s OR handed_count IS NOT NULL AS is_bad
    FROM known
)

SELECT
    runs.run_id,
    '' AS subject,
    CASE WHEN is_bad THEN 'fired' WHEN runs.has_log THEN 'clear' ELSE 'not_evaluated' END AS outcome,
    CASE WHEN failed_count + expired_count >= 3 THEN 'high' ELSE 'medium' END AS confidence,
    CASE WHEN is_bad THEN 0.7 ELSE 0.0 END AS weight,
    judged.from_ts,
    judged.to_ts,
    coalesce(judged.evidence, []) AS evidence,
    concat_ws(
        '; ',
        CASE WHEN failed_count > 0 THEN format('KV transfers between engines failed (lines that say so: {})', failed_count) END,
        CASE WHEN expired_count > 0 THEN format('KV blocks expired before they were fetched (requests: {})', expired_count) END,
        CASE
            WHEN wait_s >= $min_waiting_s THEN format('KV blocks of another engine kept a request waiting for {:.0f} s or more', wait_s)
        END,
        CASE
            WHEN handed_count IS NOT NULL
                THEN format('{:.0f} requests (median) stand between the engine that prefills and the one that decodes', handed_count)
        END
    ) AS lead,
    coalesce(' The first line of it: ' || judged.first_line, '') AS first_text,
    failed_count AS measured_failed_count,
    expired_count AS measured_expired_count,
    wait_s AS measured_waiting_s,
    $min_waiting_s AS threshold_waiting_s,
    handed_count AS measured_handed_count,
    $min_handed_count AS threshold_handed_count
FROM (
    SELECT
        run_id,
        bool_or(format IN ('vllm_log', 'sglang_log')) AND run_id IN (SELECT log_event.run_id FROM log_event) AS has_log
    FROM source
    GROUP BY run_id
) AS runs
LEFT JOIN judged ON runs.run_id = judged.run_id
