/*
Mean wait in the queue between two stats lines, by Little's law: an estimate for logs without spans.
[params]
run = ""
*/
SELECT
    estimate.run_id,
    estimate.from_ts,
    estimate.to_ts,
    estimate.mean_waiting_count,
    estimate.throughput_rps,
    estimate.queue_wait_s,
    estimate.provenance,
    estimate.basis,
    source.path
FROM queue_wait_estimate AS estimate
INNER JOIN source ON estimate.source_id = source.source_id
WHERE ($run = '' OR estimate.run_id = $run)
ORDER BY estimate.run_id ASC, estimate.from_ts ASC, estimate.source_id ASC
