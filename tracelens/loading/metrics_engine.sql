-- Samples of the engine out of one source's scrapes: gauges as they are, counters as what they grew by.
--
-- 1. Values of vLLM's own metrics.  `server` tells the targets of a Prometheus apart.  Where a renamed metric stands under
--    both names, the newer one counts.  AIPerf's aggregates (label over) are no scrapes.
CREATE OR REPLACE TEMP TABLE engine_value AS
WITH named AS (
    SELECT
        m.scrape_index,
        m.line_no,
        m.sample_ts,
        m.error_s,
        spelling.metric,
        spelling.kind,
        spelling.rank,
        m.labels,
        m.measured
    FROM metric_sample AS m
    INNER JOIN metric_spelling AS spelling ON m.name = spelling.name AND spelling.part = 'value'
    WHERE m.source_id = $source
        AND m.measured IS NOT NULL
        AND NOT contains(m.labels, '"over":')
        AND spelling.metric IN (
            'requests_running', 'requests_waiting', 'requests_swapped', 'requests_waiting_by_reason', 'kv_cache_usage_ratio',
            'cpu_kv_cache_usage_ratio', 'prefix_cache_hit_ratio', 'prompt_throughput_tps', 'generation_throughput_tps', 'preemptions',
            'prompt_tokens', 'generation_tokens', 'prefix_cache_queries', 'prefix_cache_hits', 'external_prefix_cache_queries',
            'external_prefix_cache_hits', 'mm_cache_queries', 'mm_cache_hits'
        )
),

labelled AS (
    SELECT
        labels,
        concat_ws(' ', labels ->> 'instance', labels ->> 'pod', labels ->> 'model_name') AS server,
        labels ->> 'instance' AS instance,
        try_cast(labels ->> 'engine' AS INTEGER) AS engine,
        labels ->> 'reason' AS reason
    FROM (SELECT DISTINCT labels FROM named)
),

engine AS (
    SELECT
        server,
        engine,
        CASE
            WHEN count(DISTINCT server) OVER () > 1 THEN dense_rank() OVER (ORDER BY server ASC, engine ASC NULLS FIRST) - 1
            ELSE coalesce(engine, 0)
        END::INTEGER AS engine_index
    FROM labelled
    GROUP BY server, engine
)

SELECT
    named.scrape_index,
    named.line_no,
    named.sample_ts,
    named.error_s,
    named.metric,
    named.kind,
    named.measured,
    labelled.reason,
    labelled.instance AS process,
    engine.engine_index
FROM named
INNER JOIN labelled ON named.labels = labelled.labels
INNER JOIN engine ON labelled.server = engine.server AND labelled.engine IS NOT DISTINCT FROM engine.engine
QUALIFY named.rank = min(named.rank) OVER (PARTITION BY named.metric, labelled.server);

-- 2. What the counters grew by from scrape to scrape.  Where any of an engine's counters drops, the server began anew between
--    the two, and all of them grew by what they show now; what was counted between the scrape and the end is lost.
CREATE OR REPLACE TEMP TABLE engine_growth AS
WITH summed AS (
    SELECT
        engine_index,
        scrape_index,
        metric,
        sum(measured) AS measured
    FROM engine_value
    WHERE kind = 'counter'
    GROUP BY engine_index, scrape_index, metric
),

beginning AS (
    SELECT
        engine_index,
        min(scrape_index) AS first_index
    FROM engine_value
    GROUP BY engine_index
),

step AS (
    SELECT
        summed.*,
        coalesce(
            lag(summed.measured) OVER (PARTITION BY summed.engine_index, summed.metric ORDER BY summed.scrape_index),
            -- V0 writes a counter when it first counts: missing in an earlier scrape, it was 0.
            CASE WHEN summed.scrape_index > beginning.first_index THEN 0 END
        ) AS earlier
    FROM summed
    INNER JOIN beginning ON summed.engine_index = beginning.engine_index
),

judged AS (
    SELECT
        *,
        coalesce(bool_or(measured < earlier) OVER (PARTITION BY engine_index, scrape_index), FALSE) AS is_new
    FROM step
)

SELECT
    engine_index,
    scrape_index,
    metric,
    -- NULL at the first scrape: nothing says what went before.
    CASE WHEN earlier IS NULL THEN NULL WHEN is_new THEN measured ELSE measured - earlier END AS grown,
    sum(CASE WHEN earlier IS NULL THEN 0 WHEN is_new THEN measured ELSE measured - earlier END)
        OVER (PARTITION BY engine_index, metric ORDER BY scrape_index) AS so_far
FROM judged;

-- 3. One row per scrape and engine.  As in vLLM's own stats lines, rates are means over about ten seconds where scrapes
--    are closer together than that; else since the scrape before.
INSERT INTO engine_sample BY NAME
WITH scrape AS (
    SELECT
        engine_index,
        scrape_index,
        min(line_no) AS line_no,
        min(sample_ts) AS sample_ts,
        max(error_s) AS error_s,
        min(process) AS process,
        max(measured) FILTER (WHERE metric = 'requests_running') AS running,
        max(measured) FILTER (WHERE metric = 'requests_waiting') AS waiting,
        sum(measured) FILTER (WHERE metric = 'requests_waiting_by_reason' AND reason = 'deferred') AS deferred,
        max(measured) FILTER (WHERE metric = 'requests_swapped') AS swapped,
        max(measured) FILTER (WHERE metric = 'kv_cache_usage_ratio') AS kv_ratio,
        max(measured) FILTER (WHERE metric = 'cpu_kv_cache_usage_ratio') AS cpu_kv_ratio,
        max(measured) FILTER (WHERE metric = 'prefix_cache_hit_ratio' AND measured >= 0) AS hit_ratio,
        max(measured) FILTER (WHERE metric = 'prompt_throughput_tps') AS prompt_tps,
        max(measured) FILTER (WHERE metric = 'generation_throughput_tps') AS generation_tps
    FROM engine_value
    GROUP BY engine_index, scrape_index
),

grown AS (
    SELECT
        engine_index,
        scrape_index,
        max(grown) FILTER (WHERE metric = 'preemptions') AS preemptions,
        max(so_far) FILTER (WHERE metric = 'prompt_tokens') AS prompt_tokens,
        max(so_far) FILTER (WHERE metric = 'generation_tokens') AS generation_tokens,
        max(so_far) FILTER (WHERE metric = 'prefix_cache_queries') AS queries,
        max(so_far) FILTER (WHERE metric = 'prefix_cache_hits') AS hits,
        max(so_far) FILTER (WHERE metric = 'external_prefix_cache_queries') AS external_queries,
        max(so_far) FILTER (WHERE metric = 'external_prefix_cache_hits') AS external_hits,
        max(so_far) FILTER (WHERE metric = 'mm_cache_queries') AS mm_queries,
        max(so_far) FILTER (WHERE metric = 'mm_cache_hits') AS mm_hits
    FROM engine_growth
    GROUP BY engine_index, scrape_index
),

joined AS (
    SELECT
        scrape.*,
        grown.* EXCLUDE (engine_index, scrape_index),
        first(scrape.scrape_index) OVER engine AS first_index,
        lag(scrape.scrape_index) OVER engine AS earlier_index,
        -- A cache of which nothing is ever in use while requests run is not the one they use (V0 on a CPU).
        max(scrape.kv_ratio) OVER whole = 0 AND count(*) FILTER (WHERE scrape.running > 0) OVER whole >= 3 AS is_other_cache
    FROM scrape
    LEFT JOIN grown ON scrape.engine_index = grown.engine_index AND scrape.scrape_index = grown.scrape_index
    WINDOW
        engine AS (PARTITION BY scrape.engine_index ORDER BY scrape.scrape_index),
        whole AS (PARTITION BY scrape.engine_index)
),

spaced AS (
    SELECT
        joined.*,
        coalesce(least(long_before.scrape_index, joined.earlier_index), joined.first_index) AS since_index
    FROM joined
    ASOF LEFT JOIN joined AS long_before
        ON
            joined.engine_index = long_before.engine_index
            AND joined.sample_ts - INTERVAL 9500 MILLISECONDS >= long_before.sample_ts
)

SELECT
    $run AS run_id,
    $source AS source_id,
    now.line_no,
    now.sample_ts,
    now.error_s,
    now.engine_index,
    1 AS engine_count,
    now.process,
    coalesce(
        (now.prompt_tokens - since.prompt_tokens) / nullif(epoch(now.sample_ts - since.sample_ts), 0), now.prompt_tps
    ) AS prompt_tps,
    coalesce(
        (now.generation_tokens - since.generation_tokens) / nullif(epoch(now.sample_ts - since.sample_ts), 0), now.generation_tps
    ) AS generation_tps,
    now.running::BIGINT AS running_count,
    now.waiting::BIGINT AS waiting_count,
    now.deferred::BIGINT AS deferred_count,
    now.swapped::BIGINT AS swapped_count,
    now.preemptions::BIGINT AS preemption_count,
    CASE WHEN NOT coalesce(now.is_other_cache, FALSE) THEN now.kv_ratio END AS kv_cache_usage_ratio,
    now.cpu_kv_ratio AS cpu_kv_cache_usage_ratio,
    coalesce((now.hits - since.hits) / nullif(now.queries - since.queries, 0), now.hit_ratio) AS prefix_cache_hit_ratio,
    (now.external_hits - since.external_hits) / nullif(now.external_queries - since.external_queries, 0)
        AS external_prefix_cache_hit_ratio,
    (now.mm_hits - since.mm_hits) / nullif(now.mm_queries - since.mm_queries, 0) AS mm_cache_hit_ratio
FROM spaced AS now
INNER JOIN joined AS since ON now.engine_index = since.engine_index AND now.since_index = since.scrape_index
ORDER BY now.scrape_index, now.engine_index;

-- 4. Settings that the labels of a metric state.  Only the last scrape counts; those that say nothing are left out.
INSERT INTO server_setting
WITH config AS (
    SELECT
        line_no,
        labels
    FROM metric_sample
    WHERE source_id = $source
        AND name IN (SELECT spelling.name FROM metric_spelling AS spelling WHERE spelling.metric = 'cache_config')
    QUALIFY row_number() OVER (ORDER BY scrape_index DESC, line_no ASC) = 1
),

known (label, key) AS (
    VALUES
    ('block_size', 'block_size'),
    ('num_gpu_blocks', 'gpu_blocks'),
    ('num_gpu_blocks_override', 'num_gpu_blocks_override'),
    ('enable_prefix_caching', 'enable_prefix_caching'),
    ('gpu_memory_utilization', 'gpu_memory_utilization'),
    ('cache_dtype', 'kv_cache_dtype'),
    ('kv_cache_size_tokens', 'kv_cache_tokens'),
    ('kv_cache_max_concurrency', 'max_concurrency'),
    ('swap_space', 'swap_space'),
    ('cpu_offload_gb', 'cpu_offload_gb'),
    ('sliding_window', 'sliding_window'),
    ('mamba_cache_mode', 'mamba_cache_mode')
)

SELECT
    $run AS run_id,
    $source AS source_id,
    config.line_no,
    known.key,
    config.labels ->> known.label AS value,
    'stated' AS basis
FROM config
CROSS JOIN known
WHERE lower(config.labels ->> known.label) NOT IN ('none', 'null', '')
ORDER BY known.key;
