/*
The files in the case: format, lines, what was not understood, and from where their time was taken.
[params]
run = ""
*/
SELECT
    run_id,
    path,
    format,
    variant,
    side,
    line_count,
    understood_count,
    skipped_count,
    record_count,
    first_ts,
    last_ts,
    time_basis,
    source_id
FROM source
WHERE ($run = '' OR run_id = $run)
ORDER BY run_id ASC, source_id ASC
