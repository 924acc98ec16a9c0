"""Spans of vLLM as OTLP JSON, one export request a line: what the OpenTelemetry Collector's file exporter writes.

vLLM emits one span ``llm_request`` per finished request (``--otlp-traces-endpoint``; V0 0.5.1 to 0.10.2, V1 from 0.10.2), and
from 0.16 spans of its start under other names.  Attributes are read in ``vllm/tracing`` and ``vllm/v1/engine/output_processor.py``
of 0.32 and ``vllm/engine/llm_engine.py`` of 0.9.1: seconds and tokens.  JSON form: opentelemetry-proto, "JSON Protobuf encoding";
64-bit integers may be strings or numbers, ids are hex of any case, ``instrumentationLibrarySpans`` is the name before 2022.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import polars as pl

from tracelens.formats.base import Chunk, Claim, Clock, Format, Head, Parsed, Side
from tracelens.formats.json_lines import (
    count,
    decode,
    dump,
    hex_id,
    number,
    read_objects,
    refusals,
    seconds,
    text_of,
)
from tracelens.formats.stamps import LARGEST, is_epoch, to_us

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

NO_SPANS: Final = "no spans in it"
REQUEST_SPAN: Final = "llm_request"

DURATIONS: Final[Mapping[str, str]] = {
    "gen_ai.latency.time_in_queue": "queue_s",
    "gen_ai.latency.time_in_model_prefill": "prefill_s",
    "gen_ai.latency.time_in_model_decode": "decode_s",
    "gen_ai.latency.time_in_model_inference": "inference_s",
    "gen_ai.latency.time_to_first_token": "ttft_s",
    "gen_ai.latency.e2e": "e2e_s",
}
COUNTS: Final[Mapping[str, str]] = {
    "gen_ai.usage.prompt_tokens": "input_tokens",
    "gen_ai.usage.completion_tokens": "output_tokens",
    "gen_ai.request.max_tokens": "max_tokens",
}
_REQUEST_ID: Final = "gen_ai.request.id"
_SEQUENCES: Final = ("gen_ai.request.n", "gen_ai.usage.num_sequences")
_FINISH_REASONS: Final = ("gen_ai.response.finish_reasons", "gen_ai.response.finish_reason")
_KEPT_APART: Final = frozenset((*DURATIONS, *COUNTS, _REQUEST_ID, *_SEQUENCES, *_FINISH_REASONS))
_ALSO_KEPT: Final = ("gen_ai.latency.", "gen_ai.request.", "gen_ai.usage.", "gen_ai.response.model")

_SCHEMA: Final[Mapping[str, Any]] = {
    "line_no": pl.Int64,
    **dict.fromkeys(
        ("request_id", "trace_id", "measured_by", "finish_reason", "service", "other"), pl.String
    ),
    "arrival_ts": pl.Int64,
    **dict.fromkeys(DURATIONS.values(), pl.Float64),
    **dict.fromkeys((*COUNTS.values(), "sequence_count"), pl.Int64),
}
_NUMBER_KINDS: Final = ("intValue", "doubleValue")


def sniff(head: Head) -> Claim | None:
    """Claim a file whose first line is an object with ``resourceSpans``."""
    first = head.first
    if not first.lstrip("\ufeff \t").startswith("{") or '"resourceSpans"' not in first:
        return None
    try:
        value = decode(first.lstrip("\ufeff"))
    except ValueError:
        return None
    if not isinstance(value, dict) or not isinstance(value.get("resourceSpans"), list):
        return None
    scope = next(filter(None, map(text_of, _scope_names(value))), "no scope")
    return Claim(scope, Clock.UTC)


def _scope_names(export: Mapping[str, Any]) -> Iterator[Any]:
    for resource in _objects(export.get("resourceSpans")):
        for scope in _scopes(resource):
            named = scope.get("scope", scope.get("instrumentationLibrary"))
            yield named.get("name") if isinstance(named, dict) else None


def parse(chunk: Chunk) -> Parsed:
    """One row per span ``llm_request``; a line may hold many spans."""
    objects = read_objects(chunk.lines)
    rows: list[dict[str, Any]] = []
    empty: dict[int, str] = {}
    for line_no, export in objects:
        if not isinstance(export.get("resourceSpans"), list):
            empty[line_no] = NO_SPANS
            continue
        rows.extend({"line_no": line_no, **row} for row in _requests(export))
    issues = pl.concat([objects.issues, refusals(chunk.lines, empty)]).sort("line_no")
    columns = {name: [row.get(name) for row in rows] for name in _SCHEMA}
    requests = pl.DataFrame(columns, schema=_SCHEMA).with_columns(
        pl.col("arrival_ts").cast(pl.Datetime("us"))
    )
    stamps = requests.select("line_no", stamp="arrival_ts").drop_nulls("stamp")
    return Parsed({"server_request": requests}, issues, chunk.lines.height - issues.height, stamps)


def _objects(value: Any) -> list[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _scopes(resource: Mapping[str, Any]) -> list[dict[str, Any]]:
    return _objects(resource.get("scopeSpans", resource.get("instrumentationLibrarySpans")))


def _requests(export: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for resource in _objects(export["resourceSpans"]):
        about = resource.get("resource")
        service = text_of(_attributes(about).get("service.name")) if isinstance(about, dict) else None
        for scope in _scopes(resource):
            for span in _objects(scope.get("spans")):
                if span.get("name") == REQUEST_SPAN:
                    yield _request(span) | {"service": service}


def _request(span: Mapping[str, Any]) -> dict[str, Any]:
    found = _attributes(span)
    return {
        "request_id": text_of(found.get(_REQUEST_ID)),
        "trace_id": hex_id(span.get("traceId")),
        "measured_by": "span",
        "arrival_ts": _instant(span.get("startTimeUnixNano")),
        **{column: seconds(found.get(name)) for name, column in DURATIONS.items()},
        **{column: count(found.get(name)) for name, column in COUNTS.items()},
        "sequence_count": next((count(found[name]) for name in _SEQUENCES if name in found), None),
        "finish_reason": next((_reason(found[name]) for name in _FINISH_REASONS if name in found), None),
        "other": dump({name: value for name, value in found.items() if _is_other(name)}),
    }


def _is_other(name: str) -> bool:
    return name not in _KEPT_APART and name.startswith(_ALSO_KEPT)


def _reason(value: Any) -> str | None:
    return text_of(value[0] if isinstance(value, list) and value else value)


def _instant(value: Any) -> int | None:
    """Nanoseconds since 1970 as microseconds."""
    amount = number(value)
    if amount is None or abs(amount) > LARGEST:
        return None
    found = to_us(amount, "ns")
    return found if is_epoch(found) else None


def _attributes(holder: Mapping[str, Any]) -> dict[str, Any]:
    """Attributes of a span or a resource as plain values."""
    pairs = ((each.get("key"), each.get("value")) for each in _objects(holder.get("attributes")))
    return {
        key: _plain(value)
        for key, value in pairs
        if isinstance(key, str) and isinstance(value, dict) and value
    }


def _plain(value: Mapping[str, Any]) -> Any:
    """Unwrap an ``AnyValue``: numbers may be strings, arrays hold further values."""
    kind, held = next(iter(value.items()))
    if kind in _NUMBER_KINDS:
        return number(held)
    if kind == "arrayValue" and isinstance(held, dict):
        return [_plain(each) for each in _objects(held.get("values")) if each]
    return held if isinstance(held, str | bool) else None


FORMAT: Final = Format(
    name="otlp_spans",
    title="OpenTelemetry spans (OTLP JSON lines)",
    side=Side.SERVER,
    fills=("server_request",),
    sniff=sniff,
    parse=parse,
    versions="vLLM 0.5.1 to 0.33; OpenTelemetry Collector file exporter",
    complete="Real spans of 0.32, forms of 0.5.1 to 0.33. Start-up spans are understood and say nothing of requests.",
    record="vllm serve --otlp-traces-endpoint grpc://HOST:4317, and a collector with the file exporter",
    sample="v0.28_by_hand.jsonl",
)
