/*
Queue, prefill, decode, TTFT, gaps and end-to-end time by the server's own histograms: means, and the bucket of each percentile.
[params]
run = ""
*/
SELECT
    latency.run_id,
    latency.metric,
    latency.observed_count,
    latency.mean_s,
    latency.p50_low_s,
    latency.p50_high_s,
    latency.p90_low_s,
    latency.p90_high_s,
    latency.p99_low_s,
    latency.p99_high_s,
    latency.from_ts,
    latency.to_ts,
    latency.basis,
    source.path
FROM metric_latency AS latency
INNER JOIN source ON latency.source_id = source.source_id
WHERE ($run = '' OR latency.run_id = $run)
ORDER BY latency.run_id ASC, latency.source_id ASC, latency.metric ASC
