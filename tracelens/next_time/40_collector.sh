# for: server times, queue, prefill, decode, network_in
# An OpenTelemetry collector that writes the server's spans into a file.
collect_spans() {
  cat > "$folder/collector.yaml" <<'YAML'
receivers:
  otlp:
    protocols:
      grpc:
        endpoint: 127.0.0.1:4317
exporters:
  file:
    path: otel_spans.jsonl
service:
  pipelines:
    traces:
      receivers: [otlp]
      exporters: [file]
YAML
  (cd "$folder" && otelcol-contrib --config collector.yaml > collector.log 2>&1)
}
if command -v otelcol-contrib > /dev/null; then loops+=(collect_spans); else echo "no otelcol-contrib here: spans are not recorded" >&2; fi
