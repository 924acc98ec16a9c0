CREATE VIEW clock_offset AS
SELECT
    run_id,
    client_source_id AS from_source_id,
    server_source_id AS to_source_id,
    low_s,
    high_s,
    CASE
        WHEN is_known AND is_one_host THEN 0.0
        WHEN is_known THEN (low_s + high_s) / 2
    END AS chosen_s,
    CASE
        WHEN is_known AND is_one_host THEN 0.0
        WHEN is_known THEN (high_s - low_s) / 2
    END AS error_s,
    CASE WHEN drift_low > 0 OR drift_high < 0 THEN (drift_low + drift_high) / 2 END AS drift,
    drift_low,
    drift_high,
    middle_ts,
    CASE
        WHEN low_s IS NULL OR high_s IS NULL THEN 'nesting gives one end only'
        WHEN NOT is_known THEN 'no offset fits all shared requests: wrong pairs, retries, or a clock that was set'
        WHEN placed_by_nesting THEN 'nesting (the client''s zero was placed by it)'
        WHEN is_one_host THEN 'one host: every API call came from a loopback address, and nesting agrees'
        ELSE 'nesting'
    END || CASE
        WHEN drift_low > 0 OR drift_high < 0
            THEN format(
                    '; the clocks drift apart by {:.1f} ppm ({:.1f} to {:.1f}), the offset is that of the middle',
                    5e5 * (drift_low + drift_high), 1e6 * drift_low, 1e6 * drift_high
                )
        ELSE ''
    END || CASE
        WHEN agreeing_count < pair_count
            THEN format('; {} of {} pairs contradict it (wrong pairs, retries)', pair_count - agreeing_count, pair_count)
        ELSE ''
    END AS basis,
    pair_count
FROM _clock_line
UNION ALL
SELECT
    run_id,
    source_id AS from_source_id,
    NULL AS to_source_id,
    low_s,
    high_s,
    (low_s + high_s) / 2 AS chosen_s,
    (high_s - low_s) / 2 AS error_s,
    NULL AS drift,
    NULL AS drift_low,
    NULL AS drift_high,
    NULL AS middle_ts,
    CASE
        WHEN is_needed THEN verdict
        ELSE 'samples of GPUs and hosts share no event with a server; their stamps are taken as they are (--gpu-tz)'
    END AS basis,
    0 AS pair_count
FROM gpu_alignment;

COMMENT ON VIEW clock_offset IS 'One row per pair of clocks: how far the second is ahead of the first, as an interval. Stamps are never rewritten.';
COMMENT ON COLUMN clock_offset.run_id IS 'Run.';
COMMENT ON COLUMN clock_offset.from_source_id IS 'Source of the client''s (or GPU''s) clock.';
COMMENT ON COLUMN clock_offset.to_source_id IS 'Source of the server''s clock.';
COMMENT ON COLUMN clock_offset.low_s IS 'Lower end of server clock less client clock at middle_ts, seconds.';
COMMENT ON COLUMN clock_offset.high_s IS 'Upper end, seconds. Below low_s where the shared requests contradict each other; where at least 8 in 10 of 10 or more agree, both ends are theirs.';
COMMENT ON COLUMN clock_offset.chosen_s IS 'The value that stages are computed with: 0 on one host, else the middle; NULL where there is none.';
COMMENT ON COLUMN clock_offset.error_s IS 'How far chosen_s may be off, seconds.';
COMMENT ON COLUMN clock_offset.drift IS 'How much the second clock gains on the first, seconds per second, where the shared requests force it: no constant offset fits them. NULL: none is needed.';
COMMENT ON COLUMN clock_offset.drift_low IS 'Lowest drift that the shared requests allow, seconds per second; NULL below a minute or 20 pairs, on one host, or where nothing bounds it. Beyond 200 ppm nothing is looked for.';
COMMENT ON COLUMN clock_offset.drift_high IS 'Highest drift that they allow.';
COMMENT ON COLUMN clock_offset.middle_ts IS 'Instant, on the first clock, at which low_s and high_s hold; elsewhere the drift counts.';
COMMENT ON COLUMN clock_offset.basis IS 'How it was found.';
COMMENT ON COLUMN clock_offset.pair_count IS 'Pairs of stamps behind it.';
