# for: client TTFT, client chunks, client plan, client_wait, network_in, tokenize, stream_out, decode
# One streamed request, every chunk stamped: bash record.sh client MODEL "a prompt"
send_one() {
  python3 - "$base_url" "$1" "$2" <<'PYTHON' >> "$folder/client.jsonl"
import json, sys, time, urllib.request as http, uuid
url, model, prompt = sys.argv[1:]
name, chunks, planned = str(uuid.uuid4()), [], time.time()
body = {"model": model, "messages": [{"role": "user", "content": prompt}],
        "stream": True, "stream_options": {"include_usage": True}}
headers = {"Content-Type": "application/json", "X-Request-Id": name}
ask, sent = http.Request(url + "/v1/chat/completions", json.dumps(body).encode(), headers), time.time()
with http.urlopen(ask) as answer:
    begun = time.time()
    for part in (json.loads(line[6:]) for line in answer if line.startswith(b"data: {")):
        delta = (part.get("choices") or [{}])[0].get("delta") or {}
        kinds = {"u": part.get("usage"), "c": delta.get("content"), "t": delta.get("reasoning"), "r": delta.get("role")}
        chunks.append((time.time(), next((kind for kind, there in kinds.items() if there), "e"), part))
print(json.dumps({"request_id": name, "response_id": part["id"], "planned_at": planned, "sent_at": sent, "headers_at": begun,
                  "finished_at": time.time(), "status": 200, "stream": True, "chunk_at": [at for at, _, _ in chunks],
                  "chunk_kind": "".join(kind for _, kind, _ in chunks), "usage": part.get("usage")}))
PYTHON
}
