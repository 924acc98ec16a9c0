/*
How far the server's clock is ahead of each other clock, as an interval, and how that was found.
[params]
run = ""
*/
SELECT
    link.run_id,
    clock.path AS from_path,
    server.path AS to_path,
    link.low_s,
    link.high_s,
    link.chosen_s,
    link.error_s,
    link.drift,
    link.drift_low,
    link.drift_high,
    link.middle_ts,
    link.pair_count,
    link.basis
FROM clock_offset AS link
INNER JOIN source AS clock ON link.from_source_id = clock.source_id
LEFT JOIN source AS server ON link.to_source_id = server.source_id
WHERE ($run = '' OR link.run_id = $run)
ORDER BY link.run_id ASC, link.from_source_id ASC, link.to_source_id ASC
