/*
Lines that were not understood, by source and reason, with the first of them.
[params]
run = ""
*/
SELECT
    issue.run_id,
    source.path,
    issue.reason,
    count(*) AS issue_count,
    min(issue.line_no) AS first_line_no,
    arg_min(issue.excerpt, issue.line_no) AS first_excerpt
FROM ingest_issue AS issue
INNER JOIN source ON issue.source_id = source.source_id
WHERE ($run = '' OR issue.run_id = $run)
GROUP BY issue.run_id, source.source_id, source.path, issue.reason
ORDER BY issue.run_id ASC, issue_count DESC, source.path ASC, issue.reason ASC
