/*
title = "Requests pile up on some data-parallel ranks or replicas while others are nearly idle"
belief = "The server is full: all ranks and replicas share the load, so add more."
cause = "dp-rank-imbalance"
severity = "critical"
needs = ["engine_sample"]
missing = ["stats lines of each engine (one line per rank; with several API servers use --api-server-count 1 for the stats), at least 3 rounds", "of replicas: the log of each from its start, which names its model, or one log of all with their names"]
message = "{heavy_engines} held {measured_heavy_requests_count} requests{each} on average (running and waiting), the median of the others {measured_median_requests_count}, in {measured_rounds_count} rounds of stats lines from {measured_engine_count} engines."
verdict = "{heavy_engines} {hold} {measured_excess_ratio} of all requests beyond a fair share while others have room: change how requests are spread over them (balance by running and waiting, drop sticky routing), more replicas would not help."

[params]
min_times_ratio = 2.0
min_spread_count = 3.0
min_rounds_ratio = 0.66
min_rounds_count = 3

[[remedy]]
kind = "config"
text = "Balance by queue length: the internal load balancer of vLLM (one API server in front of all ranks), or least-requests instead of round robin or session affinity at the outer one."
moves = "queue on the loaded ranks"
next_limit = "prefix-cache hits, which affinity was meant to raise"

[[remedy]]
kind = "architecture"
text = "Keep affinity for prefix hits, with a ceiling: send a request elsewhere when its rank waits and another has room."
moves = "queue, tail of TTFT"
next_limit = "evenly full ranks"
---
## What people assume
Data parallelism spreads requests evenly.

## What the data shows
Each rank has its own scheduler, seats and KV cache. A request that is sent to a full rank waits, however empty the others
are.

## How it is detected
The requests in each engine (running + waiting) are compared with the median of the other engines of the same log, round by round,
and those of a server of one engine with the median of the other servers of the run that state the same model, in every ten
seconds. Where a file of several servers names no model, those whose names differ in a number or in a pod's last letters alone
(`vllm-1`, `vllm-2`) are taken for servers of one, at medium confidence at most. Heavy is
an engine that has `min_times_ratio` times that median and exceeds it by `min_spread_count` standard deviations of a
Poisson count, widened for how many engines are compared (sqrt(2 ln n)), in `min_rounds_ratio` of the rounds and on
average, over at least `min_rounds_count` rounds.

## What to do
Look at the balancer in front of the ranks before adding any.

## Known limits
A rank with longer requests is heavy with an equal count of them: not seen here. Servers whose files name no model, and servers that
hand requests to one another (prefill and decode apart), are not compared.
*/
WITH counted_sample AS (
    SELECT
        run_id,
        source_id,
        line_no,
        sample_ts,
        engine_index,
        running_count + waiting_count AS request_count
    FROM engine_state
    WHERE engine_index IS NOT NULL AND coalesce(engine_count, 1) = 1 AND running_count IS NOT NULL AND waiting_count IS NOT NULL
),

-- What each log of one engine says of its server.
stated AS (
    SELECT
        source.source_id,
        source.path,
        any_value(setting.value) FILTER (WHERE setting.key = 'model') AS model,
        count(*) FILTER (WHERE setting.key IN ('kv_transfer_config', 'disaggregation_mode')) AS role_count
    FROM source
    LEFT JOIN server_setting AS setting ON source.source_id = setting.source_id
    WHERE
        source.source_id IN (
            SELECT counted_sample.source_id FROM counted_sample
            GROUP BY counted_sample.source_id
            HAVING count(DISTINCT counted_sample.engine_index) = 1
        )
    GROUP BY source.source_id, source.path
),

-- Servers that do the same: they state one model; or none of a file states any, and an orchestrator made them of one template:
-- "vllm-1" and "vllm-2", "vllm-7d9f8b6c5d-x2x9z" and "vllm-7d9f8b6c5d-k4m2p".
replica AS (
    SELECT
        source_id,
        'server ' || regexp_extract(path, '[^/!]+$') AS name,
        CASE
            WHEN model IS NOT NULL THEN 'model ' || model
            WHEN regexp_matches(path, '![^/!]+$')
                THEN 'file ' || regexp_replace(path, '(?:-\d{1,4}|-[0-9a-z]{5})$', '')
        END AS peers,
        model IS NOT NULL AS is_stated
    FROM stated
    WHERE role_count = 0
),

-- What is compared with what: the ranks of a log in their rounds, replicas in each ten seconds.
sample AS (
    SELECT
        *,
        source_id::VARCHAR AS peers,
        'engine ' || engine_index AS name,
        TRUE AS is_stated,
        row_number() OVER (PARTITION BY source_id, engine_index ORDER BY line_no, sample_ts) AS round_index
    FROM counted_sample
    UNION ALL
    SELECT
        counted_sample.*,
        replica.peers,
        replica.name,
        replica.is_stated,
        (epoch(counted_sample.sample_ts) // 10)::BIGINT AS round_index
    FROM counted_sample
    INNER JOIN replica ON counted_sample.source_id = replica.source_id
    WHERE counted_sample.sample_ts IS NOT NULL AND replica.peers IS NOT NULL
    QUALIFY
        row_number() OVER (
            PARTITION BY counted_sample.source_id, epoch(counted_sample.sample_ts) // 10 ORDER BY counted_sample.line_no
        ) = 1
),

compared AS (
    SELECT
        one.run_id,
        one.source_id,
        one.line_no,
        one.sample_ts,
        one.peers,
        one.name,
        one.is_stated,
        one.round_index,
        one.request_count,
        median(other.request_count) AS median_count,
        count(*) AS other_count
    FROM sample AS one
    INNER JOIN sample AS other
        ON
            one.run_id = other.run_id
            AND one.peers = other.peers
            AND one.round_index = other.round_index
            AND (one.source_id <> other.source_id OR one.engine_index <> other.engine_index)
    GROUP BY ALL
),

marked AS (
    SELECT
        *,
        request_count >= $min_times_ratio * median_count
        AND request_count
        >= median_count + $min_spread_count * sqrt(greatest(median_count, 1)) * sqrt(2 * ln(other_count + 1)) AS is_heavy
    FROM compared
),

engine AS (
    SELECT
        run_id,
        source_id,
        name,
        is_stated,
        count(*) AS round_count,
        count(*) FILTER (WHERE is_heavy) AS heavy_count,
        avg(request_count) AS mean_count,
        avg(median_count) AS median_count,
        max(other_count) + 1 AS engine_count,
        min(sample_ts) AS from_ts,
        max(sample_ts) AS to_ts,
        count(*) FILTER (WHERE is_heavy) >= greatest($min_rounds_count, $min_rounds_ratio * count(*)) AS is_heavy,
        arg_min({'source_id': source_id, 'line_no': line_no}, _ranked(line_no, source_id, line_no), 2) FILTER (WHERE is_heavy) AS evidence
    FROM marked
    GROUP BY run_id, source_id, peers, name, is_stated
),

counted AS (
    SELECT
        run_id,
        max(engine_count) AS engine_count,
        max(round_count) AS round_count,
        bool_and(is_stated) AS is_stated,
        count(*) FILTER (WHERE is_heavy) AS heavy_engine_count,
        string_agg(name, ', ' ORDER BY name) FILTER (WHERE is_heavy) AS heavy_text,
        avg(mean_count) FILTER (WHERE is_heavy) AS heavy_mean,
        avg(median_count) FILTER (WHERE is_heavy) AS median_mean,
        sum(mean_count - median_count) FILTER (WHERE is_heavy) / nullif(sum(mean_count), 0) AS excess_ratio,
        min(from_ts) AS from_ts,
        max(to_ts) AS to_ts,
        flatten(list(evidence ORDER BY mean_count DESC) FILTER (WHERE is_heavy))[:5] AS evidence
    FROM engine
    GROUP BY run_id
)

SELECT
    run_id,
    '' AS subject,
    CASE
        WHEN heavy_engine_count > 0 THEN 'fired'
        WHEN round_count < $min_rounds_count THEN 'not_evaluated'
        ELSE 'clear'
    END AS outcome,
    CASE WHEN round_count >= 10 AND is_stated THEN 'high' WHEN round_count >= 3 THEN 'medium' ELSE 'low' END AS confidence,
    coalesce(excess_ratio, 0) AS weight,
    from_ts,
    to_ts,
    coalesce(evidence, []) AS evidence,
    upper(heavy_text[1]) || heavy_text[2:] AS heavy_engines,
    CASE WHEN heavy_engine_count > 1 THEN ' each' ELSE '' END AS each,
    CASE WHEN heavy_engine_count > 1 THEN 'hold' ELSE 'holds' END AS hold,
    engine_count AS measured_engine_count,
    round_count AS measured_rounds_count,
    round(heavy_mean) AS measured_heavy_requests_count,
    round(median_mean) AS measured_median_requests_count,
    excess_ratio AS measured_excess_ratio,
    $min_times_ratio AS threshold_times_ratio
FROM counted
