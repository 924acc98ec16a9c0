-- The span of a run, or a window of it, in equal pieces of a second or more: what lanes and what lies on them is cut by.
CREATE MACRO _lane_window(wanted_run, most_pieces, since, until) AS TABLE
    WITH span AS (
        SELECT
            run_id,
            coalesce(try_cast(nullif(since, '') AS TIMESTAMP), min(window_ts)) AS from_ts,
            coalesce(try_cast(nullif(until, '') AS TIMESTAMP), max(window_ts) + INTERVAL 1 SECOND) AS to_ts
        FROM time_window
        WHERE (wanted_run = '' OR run_id = wanted_run)
        GROUP BY run_id
    ),

    counted AS (
        SELECT
            *,
            least(most_pieces, greatest(ceil(epoch(to_ts - from_ts))::BIGINT, 1)) AS piece_count
        FROM span
    )

    SELECT
        *,
        greatest(epoch(to_ts - from_ts) / piece_count, 1e-3) AS piece_s
    FROM counted;
