-- When a request was there, from arrival to end on the server's clock, how far that may be off, and how it was found: what stands
-- beside server and GPU samples.
CREATE MACRO _request_window(wanted, wanted_run) AS TABLE
    WITH best_line AS (
        SELECT
            client_source_id,
            middle_ts,
            is_one_host,
            corners
        FROM _clock_line
        WHERE is_known
        QUALIFY row_number() OVER (PARTITION BY client_source_id ORDER BY high_s - low_s ASC, server_source_id ASC) = 1
    ),

    begun AS (
        SELECT
            r.run_id,
            r.request_id,
            r.arrival_ts,
            coalesce(r.e2e_s, r.client_e2e_s, r.client_ttft_s, r.ttft_s, 0) AS length_s,
            coalesce(r.arrival_basis = 'client sent', FALSE) AS by_client,
            line.client_source_id IS NOT NULL AS has_line,
            CASE
                WHEN line.is_one_host THEN [0.0, 0.0]
                ELSE [
                        _lowest_offset(line.corners, epoch(r.arrival_ts - line.middle_ts)),
                        _highest_offset(line.corners, epoch(r.arrival_ts - line.middle_ts))
                    ]
            END AS offsets_s
        FROM _request_called(wanted, wanted_run) AS r
        LEFT JOIN best_line AS line ON r.client_source_id = line.client_source_id AND r.arrival_basis = 'client sent'
        WHERE r.arrival_ts IS NOT NULL
    ),

    moved AS (
        SELECT
            *,
            CASE WHEN by_client AND has_line THEN (offsets_s[1] + offsets_s[2]) / 2 ELSE 0.0 END AS offset_s
        FROM begun
    )

    SELECT
        run_id,
        request_id,
        _later(arrival_ts, offset_s) AS from_ts,
        _later(arrival_ts, offset_s + length_s) AS to_ts,
        CASE WHEN NOT by_client THEN 0.0 WHEN has_line THEN (offsets_s[2] - offsets_s[1]) / 2 END AS clock_error_s,
        CASE
            WHEN NOT by_client THEN 'server''s stamps'
            WHEN has_line THEN format('client''s stamps, moved by {:.3f} s to the server''s clock', offset_s)
            ELSE 'client''s stamps: how far the server''s clock is ahead of them is not known'
        END AS clock_basis
    FROM moved;

-- How far each GPU log's stamps are behind the server's clock.
CREATE VIEW _gpu_clock AS
SELECT
    run_id,
    source_id,
    coalesce((low_s + high_s) / 2, 0.0) AS offset_s,
    CASE WHEN low_s IS NOT NULL THEN (high_s - low_s) / 2 END AS error_s,
    CASE
        WHEN is_needed THEN verdict
        ELSE 'GPU stamps taken as they are'
    END AS clock_basis
FROM gpu_alignment;
COMMENT ON VIEW _gpu_clock IS 'One row per GPU log: seconds to add to its stamps to lay them beside the server''s.';
