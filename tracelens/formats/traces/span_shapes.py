"""The JSON shapes that spans come in, each made the same `Span`.

OTLP            ``resourceSpans`` with ``scopeSpans`` (``instrumentationLibrarySpans`` before 2022): collector files,
                Jaeger 2's ``/api/v3/traces`` (in ``result``), Tempo (``batches``, or ``trace`` around it).  Names are in
                camelCase or snake_case, 64-bit integers are strings or numbers, ids hex of any case or base64.
Jaeger          ``data[].spans`` of the UI's download and ``/api/traces``: microseconds, typed ``tags``, leading zeros of ids dropped.
console         the OpenTelemetry SDK's console exporter: one pretty-printed object per span, ISO 8601 times, ids with ``0x``.
Zipkin          version 2: an array of spans, microseconds, ``tags`` with texts only.

Sources: opentelemetry-proto ("JSON Protobuf encoding"), opentelemetry-sdk 1.45 (Python), Jaeger 1.60, Zipkin API v2.
"""

from __future__ import annotations

import base64
import binascii
import re
from typing import TYPE_CHECKING, Any, Final

from tracelens.formats.base import Clock
from tracelens.formats.json_lines import hex_id, number, seconds, text_of
from tracelens.formats.stamps import LARGEST, instant_on, is_epoch, to_us
from tracelens.formats.traces.spans import Span

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

RESOURCES: Final = ("resourceSpans", "resource_spans", "batches")
_SCOPES: Final = (
    "scopeSpans", "scope_spans", "instrumentationLibrarySpans", "instrumentation_library_spans",
)  # fmt: skip
_WRAPPERS: Final = ("trace", "result")
_NUMBER_KINDS: Final = ("intValue", "int_value", "doubleValue", "double_value")
_ARRAY_KINDS: Final = ("arrayValue", "array_value")
_HEX: Final = re.compile(r"[0-9a-fA-F]{1,32}")
_BASE64: Final = re.compile(r"[A-Za-z0-9+/_-]{22}(==)?")
_US_PER_S: Final = 1_000_000


def spans_in(document: Any) -> list[Span] | None:
    """Return the spans of a decoded document; None where it has none of the shapes."""
    if isinstance(document, list):
        return _listed(document)
    if not isinstance(document, dict):
        return None
    for wrapper in _WRAPPERS:
        inner = document.get(wrapper)
        if isinstance(inner, dict) and _first(inner, RESOURCES) is not None:
            return list(_otlp(inner))
    if isinstance(_first(document, RESOURCES), list):
        return list(_otlp(document))
    if isinstance(document.get("data"), list) or isinstance(document.get("spans"), list):
        return _jaeger(document)
    return _single(document)


def _listed(document: list[Any]) -> list[Span] | None:
    """Return an array's spans: of Zipkin, of the console exporter, or whole documents."""
    parts = [spans_in(each) for each in document if isinstance(each, dict)]
    found = [part for part in parts if part is not None]
    return [span for part in found for span in part] if found else None


def _single(span: Mapping[str, Any]) -> list[Span] | None:
    """Return an object that is itself one span."""
    if isinstance(span.get("context"), dict) and "trace_id" in span["context"]:
        return [_console(span)]
    if "operationName" in span and "traceID" in span:
        return [_jaeger_span(span, {})]
    return [_zipkin(span)] if "traceId" in span and "localEndpoint" in span else None


def _first(holder: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    return next((holder[name] for name in names if name in holder), None)


def _objects(value: Any) -> list[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def scope_names(export: Mapping[str, Any]) -> Iterator[Any]:
    """Names of the instrumentation scopes of an OTLP document."""
    for resource in _objects(_first(export, RESOURCES)):
        for scope in _objects(_first(resource, _SCOPES)):
            named = scope.get("scope", scope.get("instrumentationLibrary"))
            yield named.get("name") if isinstance(named, dict) else None


def _otlp(export: Mapping[str, Any]) -> Iterator[Span]:
    for resource in _objects(_first(export, RESOURCES)):
        about = resource.get("resource")
        service = text_of(_attributes(about).get("service.name")) if isinstance(about, dict) else None
        for scope in _objects(_first(resource, _SCOPES)):
            for span in _objects(scope.get("spans")):
                yield _otlp_span(span, service)


def _otlp_span(span: Mapping[str, Any], service: str | None) -> Span:
    start = _nanoseconds(_first(span, ("startTimeUnixNano", "start_time_unix_nano")))
    end = _nanoseconds(_first(span, ("endTimeUnixNano", "end_time_unix_nano")))
    return Span(
        text_of(span.get("name")),
        trace_id_of(_first(span, ("traceId", "trace_id"))),
        start,
        _between(start, end),
        _attributes(span),
        service,
    )


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
    if kind in _ARRAY_KINDS and isinstance(held, dict):
        return [_plain(each) for each in _objects(held.get("values")) if each]
    return held if isinstance(held, str | bool) else None


def _jaeger(document: Mapping[str, Any]) -> list[Span] | None:
    traces = [
        each for each in _objects(document.get("data", [document])) if isinstance(each.get("spans"), list)
    ]
    if not traces or not any("traceID" in each for each in traces):
        return None
    return [
        _jaeger_span(span, trace.get("processes")) for trace in traces for span in _objects(trace["spans"])
    ]


def _jaeger_span(span: Mapping[str, Any], processes: Any) -> Span:
    process = (
        processes.get(str(span.get("processID"))) if isinstance(processes, dict) else span.get("process")
    )
    tags = {
        each["key"]: _tag(each.get("value"))
        for each in _objects(span.get("tags"))
        if isinstance(each.get("key"), str)
    }
    return Span(
        text_of(span.get("operationName")),
        trace_id_of(span.get("traceID")),
        _microseconds(span.get("startTime")),
        seconds(span.get("duration"), 1 / _US_PER_S),
        tags,
        text_of(process.get("serviceName")) if isinstance(process, dict) else None,
    )


def _tag(value: Any) -> Any:
    return value if isinstance(value, str | bool | int | float) else None


def _console(span: Mapping[str, Any]) -> Span:
    start = instant_on(Clock.UTC, span.get("start_time"))
    end = instant_on(Clock.UTC, span.get("end_time"))
    resource = span.get("resource")
    about = resource.get("attributes") if isinstance(resource, dict) else None
    told = span.get("attributes")
    return Span(
        text_of(span.get("name")),
        trace_id_of(span["context"]["trace_id"]),
        start,
        _between(start, end),
        {key: _listed_tag(value) for key, value in told.items()} if isinstance(told, dict) else {},
        text_of(about.get("service.name")) if isinstance(about, dict) else None,
    )


def _listed_tag(value: Any) -> Any:
    return [_tag(each) for each in value] if isinstance(value, list) else _tag(value)


def _zipkin(span: Mapping[str, Any]) -> Span:
    endpoint, tags = span.get("localEndpoint"), span.get("tags")
    return Span(
        text_of(span.get("name")),
        trace_id_of(span.get("traceId")),
        _microseconds(span.get("timestamp")),
        seconds(span.get("duration"), 1 / _US_PER_S),
        {key: _tag(value) for key, value in tags.items()} if isinstance(tags, dict) else {},
        text_of(endpoint.get("serviceName")) if isinstance(endpoint, dict) else None,
    )


def trace_id_of(value: Any) -> str | None:
    """Return a trace id as 32 lower-case hex digits: from hex with or without ``0x`` and leading zeros, or from base64."""
    if not isinstance(value, str):
        return None
    bare = value.removeprefix("0x")
    if _HEX.fullmatch(bare):
        return hex_id(bare.rjust(32, "0"))
    return _from_base64(value) if _BASE64.fullmatch(value) else None


def _from_base64(value: str) -> str | None:
    try:
        return hex_id(
            base64.b64decode(value[:22] + "==", altchars=b"-_" if set(value) & set("-_") else None).hex()
        )
    except (binascii.Error, ValueError):
        return None


def _nanoseconds(value: Any) -> int | None:
    """Nanoseconds since 1970 as microseconds."""
    return _epoch(value, "ns")


def _microseconds(value: Any) -> int | None:
    return _epoch(value, "us")


def _epoch(value: Any, unit: str) -> int | None:
    amount = number(value)
    if amount is None or abs(amount) > LARGEST:
        return None
    found = to_us(amount, unit)
    return found if is_epoch(found) else None


def _between(start: int | None, end: int | None) -> float | None:
    return None if start is None or end is None or end < start else (end - start) / _US_PER_S
