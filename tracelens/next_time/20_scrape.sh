# for: queue length, KV cache, preemptions, prefix cache, queue, prefill, server times
# The server's counters and histograms, every 5 s: preemptions and exact prefix-cache hits stand nowhere else.
scrape_metrics() {
  while :; do
    printf '# scrape_ts %s\n' "$(date -u +%s.%3N)"
    curl --silent --fail --max-time 4 "$base_url/metrics" || printf '# scrape failed\n'
    sleep 5
  done >> "$folder/metrics.prom"
}
loops+=(scrape_metrics)
