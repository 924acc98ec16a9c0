/*
Where prompts part, how much of them could come from a prefix cache, and how much did; for each source that has prompts.
Nothing of their text is kept: ingest leaves keyed fingerprints of their blocks.
[params]
run = ""
*/
SELECT * EXCLUDE (evidence)
FROM prefix_sharing
WHERE ($run = '' OR run_id = $run)
ORDER BY run_id ASC, source_id ASC
