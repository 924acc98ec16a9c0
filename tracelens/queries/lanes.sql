/*
A run, or a window of it, cut into equal pieces of time of a second or more: what the engine, the GPUs and the clients did in each, and what
the queue waited for. A stats line speaks for the time since the line before it, a scrape until the next one, at most 15 s; where both
speak, the scrape says what ran and waited: it may come every second. A NULL is a piece in which no source says it. bound_by is the commonest limit among them
with requests waiting: seats, kv, prefill, stalled, deferred or unknown; 'none' where nothing waited. The highest of each column stands beside every piece.
[params]
run = ""
pieces = 60
since = ""
until = ""
*/
WITH sized AS (
    SELECT *
    FROM _lane_window($run, $pieces, $since, $until)
),

piece AS (
    SELECT
        *,
        unnest(range(piece_count)) AS place
    FROM sized
),

engine AS (
    SELECT
        said.*,
        unnest(range(
            greatest(floor(epoch(said.since_ts - sized.from_ts) / sized.piece_s)::BIGINT, 0),
            least(floor(epoch(said.until_ts - sized.from_ts) / sized.piece_s)::BIGINT, sized.piece_count - 1) + 1
        )) AS place
    FROM _engine_spell AS said
    INNER JOIN sized ON said.run_id = sized.run_id
    WHERE said.until_ts >= sized.from_ts AND said.since_ts < sized.to_ts
),

gauged AS (
    SELECT
        run_id,
        place,
        is_scrape,
        coalesce(mode(waits_for ORDER BY waits_for) FILTER (WHERE waits_for <> 'none'), 'none') AS bound_by,
        max(waiting_count) AS waiting_count,
        max(running_count) AS running_count,
        max(seat_count) AS seat_count,
        max(kv_cache_usage_ratio) AS kv_cache_usage_ratio
    FROM engine
    GROUP BY run_id, place, is_scrape
),

bound AS (
    -- Scrapes of a version that has no gauge of the cache leave it to the lines.
    SELECT * REPLACE (coalesce(kv_cache_usage_ratio, max(kv_cache_usage_ratio) OVER said) AS kv_cache_usage_ratio)
    FROM gauged
    WINDOW said AS (PARTITION BY run_id, place)
    QUALIFY is_scrape = max(is_scrape) OVER said
),

rated AS (
    SELECT
        run_id,
        place,
        avg(prompt_tps) AS prompt_tps,
        avg(generation_tps) AS generation_tps
    FROM engine
    GROUP BY run_id, place
),

flowed AS (
    SELECT
        sized.run_id,
        floor(epoch(w.window_ts - sized.from_ts) / sized.piece_s)::BIGINT AS place,
        sum(w.arrival_count) AS arrival_count,
        sum(w.completion_count) AS completion_count,
        avg(w.sm_ratio) AS sm_ratio,
        avg(w.dram_active_ratio) AS dram_active_ratio,
        avg(w.power_w) AS power_w
    FROM time_window AS w
    INNER JOIN sized ON w.run_id = sized.run_id
    WHERE w.window_ts >= sized.from_ts AND w.window_ts < sized.to_ts
    GROUP BY ALL
)

SELECT
    piece.run_id,
    piece.place,
    piece.from_ts + to_microseconds((piece.place * piece.piece_s * 1e6)::BIGINT) AS from_ts,
    piece.from_ts + to_microseconds(((piece.place + 1) * piece.piece_s * 1e6)::BIGINT) AS to_ts,
    bound.waiting_count,
    bound.running_count,
    bound.seat_count,
    bound.kv_cache_usage_ratio,
    rated.prompt_tps,
    rated.generation_tps,
    flowed.arrival_count::BIGINT AS arrival_count,
    flowed.completion_count::BIGINT AS completion_count,
    flowed.sm_ratio,
    flowed.dram_active_ratio,
    flowed.power_w,
    bound.bound_by,
    max(bound.waiting_count) OVER whole AS waiting_highest_count,
    max(bound.running_count) OVER whole AS running_highest_count,
    max(bound.seat_count) OVER whole AS seat_highest_count,
    max(bound.kv_cache_usage_ratio) OVER whole AS kv_cache_usage_highest_ratio,
    max(rated.prompt_tps) OVER whole AS prompt_highest_tps,
    max(rated.generation_tps) OVER whole AS generation_highest_tps,
    (max(flowed.arrival_count) OVER whole)::BIGINT AS arrival_highest_count,
    (max(flowed.completion_count) OVER whole)::BIGINT AS completion_highest_count,
    max(flowed.sm_ratio) OVER whole AS sm_highest_ratio,
    max(flowed.dram_active_ratio) OVER whole AS dram_active_highest_ratio,
    max(flowed.power_w) OVER whole AS power_highest_w
FROM piece
LEFT JOIN flowed ON piece.run_id = flowed.run_id AND piece.place = flowed.place
LEFT JOIN bound ON piece.run_id = bound.run_id AND piece.place = bound.place
LEFT JOIN rated ON piece.run_id = rated.run_id AND piece.place = rated.place
WINDOW whole AS (PARTITION BY piece.run_id)
ORDER BY piece.run_id ASC, piece.place ASC
