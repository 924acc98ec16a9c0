"""Spans in JSON documents: downloads of the Jaeger UI, answers of Tempo, the console exporter's output, Zipkin.

The documents may follow one another, with other lines between them, as when the console exporter writes into a log.
What a span says is in `spans`, what shapes a document may have in `span_shapes`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from tracelens.formats.base import Chunk, Claim, Clock, Format, Head, Parsed, Side
from tracelens.formats.json_documents import read_documents
from tracelens.formats.json_lines import refusals
from tracelens.formats.traces import otlp_spans
from tracelens.formats.traces.span_shapes import spans_in
from tracelens.formats.traces.spans import frame, requests_of

_HEAD_CHARS: Final = 60_000
_INDENTED: Final = re.compile(r"\s|[\[\]{}]|$")
_MIN_SHARE: Final = 0.3
"""Share of the lines that must belong to documents."""
_SERVER_LINE: Final = re.compile(
    r"\b(?:DEBUG|INFO|WARNING|ERROR|CRITICAL):? +\d\d-\d\d \d\d:|throughput|(?:Prefill|Decode) batch|server_args|text_generation"
    r"|\b(?:vllm|sglang)\b|\" HTTP/1\.[01]\" \d{3}",
    re.IGNORECASE,
)
"""A line of an inference server's log: a log with some spans in it stays that server's log."""

_SHAPES: Final[Mapping[str, tuple[re.Pattern[str], ...]]] = {
    "Jaeger": (re.compile(r'"traceID"\s*:\s*"'), re.compile(r'"operationName"\s*:\s*"')),
    "Tempo": (re.compile(r'\A\s*\{\s*"(?:trace"\s*:\s*\{\s*"resource_?[sS]pans|batches)"\s*:\s*\[\s*\{'),),
    "OTLP document": (re.compile(r'\A\s*\{\s*(?:"result"\s*:\s*\{\s*)?"resource_?[sS]pans"\s*:\s*\['),),
    "console exporter": (
        re.compile(r'"context"\s*:\s*\{\s*"trace_id"\s*:\s*"0x'),
        re.compile(r'"start_time"\s*:\s*"\d{4}-'),
    ),
    "Zipkin": (
        re.compile(r"\A\s*\["),
        re.compile(r'"traceId"\s*:\s*"'),
        re.compile(r'"localEndpoint"\s*:\s*\{'),
    ),
}
"""What the beginning of each kind of document holds."""


def sniff(head: Head) -> Claim | None:
    """Claim a file of documents in one of the shapes, unless it has one OTLP export a line."""
    lines = [line for line in (*head.lines, *head.sampled) if line.strip()]
    others = [line for line in lines if not _INDENTED.match(line)]
    if len(lines) - len(others) < max(1, _MIN_SHARE * len(lines)) or any(map(_SERVER_LINE.search, others)):
        return None
    begin = "\n".join(head.lines).lstrip("\ufeff")[:_HEAD_CHARS]
    shape = next((name for name, signs in _SHAPES.items() if all(sign.search(begin) for sign in signs)), None)
    if shape is None or otlp_spans.sniff(head) is not None:
        return None
    return Claim(shape, Clock.UTC)


def parse(chunk: Chunk) -> Parsed:
    """One row per span of a request, with the number of the line on which its document begins."""
    read = read_documents(chunk.lines)
    line_nos = chunk.lines["line_no"].to_list()
    refused = {line_nos[place]: reason for place, reason in read.refused.items()}
    rows: list[dict[str, Any]] = []
    for document in read.found:
        found = spans_in(document.value)
        if found is None:
            refused |= dict.fromkeys(line_nos[document.first : document.last + 1], otlp_spans.NO_SPANS)
        else:
            rows.extend({"line_no": line_nos[document.first], **row} for row in requests_of(found))
    issues = refusals(chunk.lines, refused).sort("line_no")
    requests = frame(rows)
    stamps = requests.select("line_no", stamp="arrival_ts").drop_nulls("stamp")
    return Parsed({"server_request": requests}, issues, chunk.lines.height - issues.height, stamps)


FORMAT: Final = Format(
    name="span_documents",
    title="spans as JSON documents (Jaeger, Tempo, console exporter, Zipkin)",
    side=Side.SERVER,
    fills=("server_request",),
    sniff=sniff,
    parse=parse,
    whole=True,
    versions="Jaeger 1 and 2, Tempo 2, opentelemetry-sdk 1.45, Zipkin API v2; vLLM 0.5.1 to 0.33, SGLang 0.5",
    complete="Shapes of Jaeger, Tempo, the SDK's console exporter and Zipkin with spans of vLLM and SGLang; written by hand, and real spans put into them by tests. Journey events of vLLM forks are left out.",
    record="curl http://JAEGER:16686/api/traces/TRACE_ID > trace.json, or the ConsoleSpanExporter of the OpenTelemetry SDK",
    sample="jaeger_ui_download.json",
)
