-- How each request stands among those of its run.  The window function runs over three columns, not over all.
UPDATE _request_timing_row
SET ttft_percentile_ratio = placed.ttft_percentile_ratio
FROM (
    SELECT
        rowid AS placed_row,
        cume_dist() OVER (PARTITION BY run_id ORDER BY coalesce(client_ttft_s, ttft_s)) AS ttft_percentile_ratio
    FROM _request_timing_row
    WHERE coalesce(client_ttft_s, ttft_s) IS NOT NULL
) AS placed
WHERE _request_timing_row.rowid = placed.placed_row;
