-- What a queue waits for, by the gauges and rates of one moment.
CREATE MACRO _waits_for(waiting, running, deferred, preempted, kv_ratio, prompt_tps, generation_tps, seats) AS
CASE
    WHEN waiting IS NULL OR running IS NULL THEN 'unknown'
    WHEN waiting = 0 THEN 'none'
    -- The first of several scrapes has no rate at all: that is no standstill.
    WHEN coalesce(prompt_tps, generation_tps) IS NOT NULL AND coalesce(prompt_tps, 0) = 0 AND coalesce(generation_tps, 0) = 0
        THEN 'stalled'
    WHEN deferred >= waiting THEN 'deferred'
    WHEN kv_ratio >= _full_kv_ratio() OR preempted > 0 THEN 'kv'
    WHEN running >= _full_seats_ratio() * seats THEN 'seats'
    WHEN prompt_tps > 0 THEN 'prefill'
    ELSE 'unknown'
END;

CREATE VIEW binding_limit AS
WITH seat AS (
    SELECT
        run_id,
        amount AS seat_count,
        is_stated
    FROM run_setting
    WHERE key = 'max_num_seqs'
),

sample AS (
    SELECT
        s.run_id,
        s.source_id,
        s.line_no,
        s.sample_ts,
        s.engine_index,
        -- A prefill batch of SGLang counts those that ran before it, without the requests that it adds.
        s.running_count + CASE
            WHEN s.other LIKE '{"batch":"prefill"%' THEN coalesce(try_cast(regexp_extract(s.other, '"#new-seq":([0-9]+)', 1) AS BIGINT), 0)
            ELSE 0
        END AS running_count,
        s.waiting_count,
        s.deferred_count,
        s.preemption_count,
        s.kv_cache_usage_ratio,
        s.prompt_tps,
        s.generation_tps,
        -- A prefill batch of SGLang is itself the word that prompts are being computed; below the smallest chunk that it takes by
        -- default another limit cut the batch.
        s.other LIKE '{"batch":"prefill"%'
        AND coalesce(try_cast(regexp_extract(s.other, '"#new-token":([0-9]+)', 1) AS BIGINT), 0) >= 2048 AS is_full_prefill,
        -- Prompts come computed from another engine: the few tokens that this one computes are not what others wait for.
        coalesce(s.external_prefix_cache_hit_ratio >= 0.5, FALSE) AS has_remote_kv,
        (seat.seat_count * coalesce(s.engine_count, 1))::BIGINT AS seat_count,
        seat.is_stated AS seat_is_stated
    FROM engine_state AS s
    LEFT JOIN seat ON s.run_id = seat.run_id
)

SELECT
    * EXCLUDE (local_limit, is_full_prefill),
    CASE
        WHEN has_remote_kv AND local_limit = 'prefill' THEN 'unknown'
        WHEN is_full_prefill AND local_limit = 'unknown' AND waiting_count > 0 THEN 'prefill'
        ELSE local_limit
    END AS waits_for
FROM (
    SELECT
        *,
        _waits_for(
            waiting_count, running_count, deferred_count, preemption_count, kv_cache_usage_ratio, prompt_tps, generation_tps, seat_count
        ) AS local_limit
    FROM sample
);

COMMENT ON VIEW binding_limit IS 'One row per engine stats line or scrape: what the queue waits for at that moment. A queue is a symptom; this names its cause.';
COMMENT ON COLUMN binding_limit.run_id IS 'Run.';
COMMENT ON COLUMN binding_limit.source_id IS 'Source of the stats line.';
COMMENT ON COLUMN binding_limit.line_no IS 'Line of it.';
COMMENT ON COLUMN binding_limit.sample_ts IS 'Its time, UTC.';
COMMENT ON COLUMN binding_limit.engine_index IS 'Engine.';
COMMENT ON COLUMN binding_limit.running_count IS 'Requests running, those of a prefill batch included.';
COMMENT ON COLUMN binding_limit.waiting_count IS 'Requests waiting, deferred ones included.';
COMMENT ON COLUMN binding_limit.deferred_count IS 'Requests held back by something else than capacity.';
COMMENT ON COLUMN binding_limit.preemption_count IS 'Preemptions in the interval.';
COMMENT ON COLUMN binding_limit.kv_cache_usage_ratio IS 'KV-cache usage, 0 to 1.';
COMMENT ON COLUMN binding_limit.prompt_tps IS 'Prompt tokens per second in the interval.';
COMMENT ON COLUMN binding_limit.generation_tps IS 'Generated tokens per second in the interval.';
COMMENT ON COLUMN binding_limit.has_remote_kv IS 'Whether half of what prompts asked for or more came from a cache outside (another engine''s prefill).';
COMMENT ON COLUMN binding_limit.seat_count IS 'Seats (max_num_seqs): stated, or the version''s default; NULL where neither is known.';
COMMENT ON COLUMN binding_limit.seat_is_stated IS 'Whether the seats are stated.';
COMMENT ON COLUMN binding_limit.waits_for IS 'none (nothing waits), stalled (no token flows), deferred, kv (0.9 of the cache or preemptions), seats (0.98 of them taken), prefill (neither, and prompts are being computed, of an SGLang log 2048 tokens or more in a batch: token budget or prefill speed) or unknown.';
