/*
What each run's server ran with: the last stated value of every setting, else the version's default.
[params]
run = ""
*/
SELECT
    run_id,
    key,
    value,
    basis,
    is_stated,
    source_id,
    line_no
FROM run_setting
WHERE ($run = '' OR run_id = $run)
ORDER BY run_id ASC, key ASC
