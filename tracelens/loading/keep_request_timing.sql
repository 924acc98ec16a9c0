-- The number of each request's row, how it stands among those of its run, and its id among all.  The window functions run over few
-- columns, not over all.
UPDATE _request_timing_row
SET
    request_no = _request_timing_row.rowid + 1,
    ttft_percentile_ratio = placed.ttft_percentile_ratio,
    id_place = placed.id_place
FROM (
    SELECT
        timed_row,
        CASE WHEN ttft_s IS NOT NULL THEN cume_dist() OVER (PARTITION BY run_id, ttft_s IS NULL ORDER BY ttft_s) END
            AS ttft_percentile_ratio,
        row_number() OVER (ORDER BY run_id, request_id) AS id_place
    FROM (
        SELECT
            rowid AS timed_row,
            run_id,
            request_id,
            coalesce(client_ttft_s, ttft_s) AS ttft_s
        FROM _request_timing_row
    )
) AS placed
WHERE _request_timing_row.rowid = placed.timed_row;
