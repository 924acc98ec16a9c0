"""OTLP spans as JSON lines: one ``llm_request`` per request with vLLM's own attributes, its stages as children.

Form: opentelemetry-proto, "JSON Protobuf encoding"; attributes as vLLM 0.32 writes them (``vllm/tracing``).  What a stage rests
on stands in ``tracelens.provenance`` and ``tracelens.basis``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import orjson

if TYPE_CHECKING:
    from tracelens.case import Case

    Row = Mapping[str, Any]

_ATTRIBUTES: Final[Mapping[str, str]] = {
    "request_id": "gen_ai.request.id",
    "input_tokens": "gen_ai.usage.prompt_tokens",
    "output_tokens": "gen_ai.usage.completion_tokens",
    "max_tokens": "gen_ai.request.max_tokens",
    "queue_s": "gen_ai.latency.time_in_queue",
    "prefill_s": "gen_ai.latency.time_in_model_prefill",
    "decode_s": "gen_ai.latency.time_in_model_decode",
    "ttft_s": "gen_ai.latency.time_to_first_token",
    "e2e_s": "gen_ai.latency.e2e",
    "finish_reason": "gen_ai.response.finish_reason",
    "status": "tracelens.status",
    "client_ttft_s": "tracelens.client_ttft",
}
_PER_LINE: Final = 20
"""Requests in one line."""
_SERVER, _INTERNAL = 2, 1
_NS: Final = 1000


def spans(case: Case, run: str) -> Iterator[bytes]:
    """One export request a line; runs do not share a line."""
    rows = case.query("request_spans", run=run).dicts()
    for run_id in dict.fromkeys(row["run_id"] for row in rows):
        mine = [row for row in rows if row["run_id"] == run_id]
        for start in range(0, len(mine), _PER_LINE):
            yield orjson.dumps(_line(run_id, mine[start : start + _PER_LINE])) + b"\n"


def _line(run_id: str, rows: Sequence[Row]) -> Mapping[str, Any]:
    resource = {"attributes": _attributes({"service.name": "vllm", "tracelens.run": run_id})}
    scope = {"scope": {"name": "tracelens"}, "spans": [span for row in rows for span in _spans(row)]}
    return {"resourceSpans": [{"resource": resource, "scopeSpans": [scope]}]}


def _spans(row: Row) -> Iterator[Mapping[str, Any]]:
    trace_id = row["trace_id"] or _digest(row["run_id"], row["request_id"], size=16)
    span_id = _digest(row["run_id"], row["request_id"], "request", size=8)
    length_us = row["length_us"] if row["e2e_s"] is None else max(round(row["e2e_s"] * 1e6), 1)
    facts = {name: row[key] for key, name in _ATTRIBUTES.items()}
    yield _span((trace_id, span_id, ""), "llm_request", (row["arrival_us"], length_us), facts)
    for stage in row["stages"]:
        own = _digest(row["run_id"], row["request_id"], stage["stage"], size=8)
        told = {"tracelens.provenance": stage["provenance"], "tracelens.basis": stage["basis"]}
        times = (row["start_us"] + stage["from_us"], stage["length_us"])
        yield _span((trace_id, own, span_id), stage["stage"], times, told)


def _span(
    ids: tuple[str, str, str], name: str, times: tuple[int, int], facts: Mapping[str, Any]
) -> Mapping[str, Any]:
    trace_id, span_id, parent = ids
    start_us, length_us = times
    return {
        "traceId": trace_id,
        "spanId": span_id,
        **({"parentSpanId": parent} if parent else {}),
        "name": name,
        "kind": _INTERNAL if parent else _SERVER,
        "startTimeUnixNano": str(start_us * _NS),
        "endTimeUnixNano": str((start_us + length_us) * _NS),
        "attributes": _attributes(facts),
    }


def _attributes(facts: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [{"key": key, "value": _value(value)} for key, value in facts.items() if value is not None]


def _value(value: Any) -> Mapping[str, Any]:
    if isinstance(value, int):
        return {"intValue": str(value)}
    return {"doubleValue": value} if isinstance(value, float) else {"stringValue": str(value)}


def _digest(*parts: str, size: int) -> str:
    """An id that is the same at each export."""
    return hashlib.blake2b("\0".join(parts).encode(), digest_size=size).hexdigest()
