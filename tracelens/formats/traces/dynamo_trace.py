"""Request traces of NVIDIA Dynamo: JSON lines with the schema ``dynamo.request.trace.v1`` (``DYN_REQUEST_TRACE``).

Read in ``lib/llm/src/request_trace`` and ``lib/llm/src/protocols/common/timing.rs`` of Dynamo 1.x.  File sinks wrap each
object as ``{"timestamp": ..., "event": {...}}``.  Of the event types only ``request_end`` is a request; tools and payloads
are understood and read over (payloads hold prompts and answers).

What its times are: all are taken in Dynamo's front end.  ``prefill_wait_time_ms`` ends when the router sends the request to
a worker, and ``prefill_time_ms`` begins there, so the wait in the engine's queue is inside the latter.  Neither is a
stage of the engine: both are kept in ``other``, and queue and prefill stay unknown.  ``ttft_ms`` and ``total_time_ms``
begin when the front end received the request.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from tracelens.formats.base import Chunk, Claim, Clock, Format, Head, Parsed, Side
from tracelens.formats.json_lines import count, dump, number, objects_in, seconds, text_of
from tracelens.formats.stamps import instant_on
from tracelens.formats.traces.request_lines import parse_lines

SCHEMA_NAME: Final = "dynamo.request.trace.v1"
NO_EVENT: Final = "no event of dynamo.request.trace.v1"

_PER_MS: Final = 1e-3
_OTHERS: Final = (
    "prefill_wait_time_ms", "prefill_time_ms", "avg_itl_ms", "kv_hit_rate", "kv_transfer_estimated_latency_ms",
    "queue_depth",
)  # fmt: skip
_WORKER: Final = ("prefill_worker_id", "prefill_dp_rank", "decode_worker_id", "decode_dp_rank")


def sniff(head: Head) -> Claim | None:
    """Claim JSON lines of which at least half have the schema's name."""
    if not any(SCHEMA_NAME in line for line in head.lines):
        return None
    found = objects_in(head.lines)
    if found is None or sum(event_of(each) is not None for each in found) * 2 < len(found):
        return None
    return Claim(SCHEMA_NAME, Clock.UTC)


def event_of(values: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the event of a line, bare or as a file sink wraps it; None where there is none."""
    inner = values.get("event")
    event = inner if isinstance(inner, dict) else values
    return event if event.get("schema") == SCHEMA_NAME else None


def parse(chunk: Chunk) -> Parsed:
    """One row per request that ended."""
    return parse_lines(chunk, _read)


def _read(values: Mapping[str, Any]) -> dict[str, Any] | str | None:
    event = event_of(values)
    if event is None:
        return NO_EVENT
    told = event.get("request")
    if event.get("event_type") != "request_end" or not isinstance(told, dict):
        return None
    replay = told.get("replay")
    counted = count(told.get("input_tokens"))
    if counted is None and isinstance(replay, dict):
        counted = count(replay.get("input_length"))
    return {
        "request_id": text_of(told.get("x_request_id")) or text_of(told.get("request_id")),
        "measured_by": "log",
        "service": "dynamo",
        "arrival_ts": instant_on(Clock.UTC, told.get("request_received_ms"), "ms"),
        "ttft_s": seconds(told.get("ttft_ms"), _PER_MS),
        "e2e_s": seconds(told.get("total_time_ms"), _PER_MS),
        "input_tokens": counted,
        "cached_input_tokens": count(told.get("cached_tokens")),
        "output_tokens": count(told.get("output_tokens")),
        "finish_reason": _finish_reason(told.get("finish_reason_metadata")),
        "other": dump(_others(told)),
    }


def _finish_reason(told: Any) -> str | None:
    return text_of(told.get("finish_reason")) if isinstance(told, dict) else None


def _others(told: Mapping[str, Any]) -> dict[str, Any]:
    """Numbers without a column, the worker's, and Dynamo's own id where the caller's was taken."""
    worker = told.get("worker")
    places: Mapping[str, Any] = worker if isinstance(worker, dict) else {}
    numbers = {name: number(told.get(name)) for name in _OTHERS} | {
        name: number(places.get(name)) for name in _WORKER
    }
    own = text_of(told.get("request_id")) if "x_request_id" in told else None
    names = {"dynamo_request_id": own, "model": text_of(told.get("model"))}
    return {name: value for name, value in (numbers | names).items() if value is not None}


FORMAT: Final = Format(
    name="dynamo_trace",
    title="request traces of NVIDIA Dynamo",
    side=Side.SERVER,
    fills=("server_request",),
    sniff=sniff,
    parse=parse,
    versions="dynamo.request.trace.v1 (Dynamo 1.x)",
    complete="Made from Dynamo's source. Queue and prefill of the engine are not in it; tool and payload events are read over.",
    record="DYN_REQUEST_TRACE=1 DYN_REQUEST_TRACE_SINKS=jsonl DYN_REQUEST_TRACE_OUTPUT_PATH=trace.jsonl for the front end",
    sample="request_trace_v1.jsonl",
)
