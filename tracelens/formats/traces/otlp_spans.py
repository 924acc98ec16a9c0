"""Spans as OTLP JSON, one export request a line: what the OpenTelemetry Collector's file exporter writes.

What a span says is in `spans`, what shapes a line may have in `span_shapes`.
"""

from __future__ import annotations

import re
from typing import Any, Final

import polars as pl

from tracelens.formats.base import Chunk, Claim, Clock, Format, Head, Parsed, Side
from tracelens.formats.json_lines import decode, read_objects, refusals, text_of
from tracelens.formats.traces.span_shapes import RESOURCES, scope_names, spans_in
from tracelens.formats.traces.spans import frame, requests_of

NO_SPANS: Final = "no spans in it"

_NAMES: Final = RESOURCES[:2]
_BEGIN: Final = re.compile(r"[\ufeff \t]*\{\s*\"resource_?[sS]pans\"\s*:\s*\[\s*\{")


def sniff(head: Head) -> Claim | None:
    """Claim a file whose first line is an object with ``resourceSpans``."""
    first = head.first
    if not first.lstrip("\ufeff \t").startswith("{") or not any(f'"{name}"' in first for name in _NAMES):
        return None
    try:
        value = decode(first.lstrip("\ufeff"))
    except ValueError:
        # An export of some hundred spans is longer than what is seen of a file.
        cut = not head.complete and len(head.lines) == 1 and _BEGIN.match(first)
        return Claim("first line longer than the part seen", Clock.UTC) if cut else None
    if not isinstance(value, dict) or not any(isinstance(value.get(name), list) for name in _NAMES):
        return None
    return Claim(next(filter(None, map(text_of, scope_names(value))), "no scope"), Clock.UTC)


def parse(chunk: Chunk) -> Parsed:
    """One row per span of a request; a line may hold many spans."""
    objects = read_objects(chunk.lines)
    rows: list[dict[str, Any]] = []
    empty: dict[int, str] = {}
    for line_no, export in objects:
        found = spans_in(export)
        if found is None:
            empty[line_no] = NO_SPANS
        else:
            rows.extend({"line_no": line_no, **row} for row in requests_of(found))
    issues = pl.concat([objects.issues, refusals(chunk.lines, empty)]).sort("line_no")
    requests = frame(rows)
    stamps = requests.select("line_no", stamp="arrival_ts").drop_nulls("stamp")
    return Parsed({"server_request": requests}, issues, chunk.lines.height - issues.height, stamps)


FORMAT: Final = Format(
    name="otlp_spans",
    title="OpenTelemetry spans (OTLP JSON lines)",
    side=Side.SERVER,
    fills=("server_request",),
    sniff=sniff,
    parse=parse,
    versions="vLLM 0.5.1 to 0.33, SGLang 0.5; OpenTelemetry Collector file exporter",
    complete="Real spans of 0.32, forms of 0.5.1 to 0.33. Spans of start-up, gateways and clients are understood and say nothing of requests.",
    record="vllm serve --otlp-traces-endpoint grpc://HOST:4317, and a collector with the file exporter",
    sample="v0.28_by_hand.jsonl",
)
