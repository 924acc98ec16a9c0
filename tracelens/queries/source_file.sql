/*
One file of the case as it was when it was read: what it takes to find it again, and to see whether it is still the same.
[params]
path = ""
run = ""
*/
SELECT
    run_id,
    path,
    format,
    sha256,
    size_bytes,
    line_count,
    options
FROM source
WHERE path = $path AND ($run = '' OR run_id = $run)
ORDER BY run_id ASC, source_id ASC
