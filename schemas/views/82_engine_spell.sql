CREATE VIEW _engine_spell AS
WITH seat AS (
    SELECT
        run_id,
        amount AS seat_count
    FROM run_setting
    WHERE key = 'max_num_seqs'
)

SELECT
    run_id,
    greatest(
        lag(sample_ts, 1, sample_ts) OVER (PARTITION BY source_id, engine_index ORDER BY sample_ts, line_no)
        + INTERVAL 1 MILLISECOND,
        sample_ts - INTERVAL 15 SECOND
    ) AS since_ts,
    sample_ts AS until_ts,
    0 AS is_scrape,
    waits_for,
    waiting_count,
    running_count,
    seat_count,
    kv_cache_usage_ratio,
    prompt_tps,
    generation_tps
FROM binding_limit
WHERE sample_ts IS NOT NULL
UNION ALL
SELECT
    s.run_id,
    s.sample_ts AS since_ts,
    least(
        lead(s.sample_ts, 1, s.sample_ts) OVER (PARTITION BY s.source_id, s.engine_index ORDER BY s.sample_ts, s.line_no)
        - INTERVAL 1 MILLISECOND,
        s.sample_ts + INTERVAL 15 SECOND
    ) AS until_ts,
    1 AS is_scrape,
    _waits_for(
        s.waiting_count, s.running_count, s.deferred_count, s.preemption_count, s.kv_cache_usage_ratio, s.prompt_tps,
        s.generation_tps, seat.seat_count * coalesce(s.engine_count, 1)
    ) AS waits_for,
    s.waiting_count,
    s.running_count,
    (seat.seat_count * coalesce(s.engine_count, 1))::BIGINT AS seat_count,
    s.kv_cache_usage_ratio,
    NULL AS prompt_tps,
    NULL AS generation_tps
FROM engine_sample AS s
LEFT JOIN seat ON s.run_id = seat.run_id
WHERE
    s.sample_ts IS NOT NULL AND s.waiting_count IS NOT NULL
    AND s.source_id IN (SELECT m.source_id FROM metric_sample AS m WHERE m.scrape_index IS NOT NULL);

COMMENT ON VIEW _engine_spell IS 'One row per stats line and per scrape of an engine: from when to when it speaks, 15 s at most. A stats line speaks for the time before it, a scrape for the time until the next.';
