/*
What the server ran with, whether a line says so or the version's default was taken, and the line.
[params]
run = ""
*/
SELECT
    setting.run_id,
    setting.key,
    setting.value,
    setting.basis,
    source.path,
    setting.line_no
FROM server_setting AS setting
INNER JOIN source ON setting.source_id = source.source_id
WHERE ($run = '' OR setting.run_id = $run)
ORDER BY setting.run_id ASC, setting.key ASC, setting.source_id ASC, setting.line_no ASC
