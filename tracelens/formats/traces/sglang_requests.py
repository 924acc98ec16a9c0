"""SGLang's logs of single requests: ``--log-requests --log-requests-format json``, and ``--export-metrics-to-file``.

    {"timestamp": "...", "event": "request.finished", "rid": "...", "obj": {...}, "out": {"meta_info": {...}}}
    {"request_parameters": "...", "id": "...", "e2e_latency": 1.2, "queue_time": 0.1, ...}

Read in ``python/sglang/srt/utils/request_logger.py``, ``observability/request_metrics_exporter.py`` and
``observability/req_time_stats.py`` of 0.5: epoch seconds and seconds.  ``obj`` and ``request_parameters`` hold the prompt and
are never read.  ``queue_time`` is a number without meaning where the scheduler gave no times (``--enable-metrics`` is off): it
counts only beside ``forward_entry_time``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from tracelens.formats.base import Chunk, Claim, Clock, Format, Head, Parsed, Side
from tracelens.formats.json_lines import count, dump, number, objects_in, seconds, text_of
from tracelens.formats.stamps import instant_on
from tracelens.formats.traces.request_lines import parse_lines

NO_REQUEST: Final = "no request of SGLang in it"

_US_PER_S: Final = 1_000_000
_FINISHED: Final = "request.finished"
_EVENTS: Final = ("request.received", "request.received.openai", _FINISHED)
_PREFILL_ENDS: Final = ("prefill_finished_time", "prefill_finished_ts", "first_token_generated_time")
_DECODE_ENDS: Final = ("decode_finished_ts", "scheduler_completion_time")
_OTHERS: Final = (
    "decode_throughput", "inference_time", "total_retractions", "num_retractions", "reasoning_tokens", "dp_rank",
    "prefill_launch_latency", "prefill_launch_delay", "spec_verify_ct",
)  # fmt: skip


def sniff(head: Head) -> Claim | None:
    """Claim JSON lines of which at least half are SGLang's word of a request."""
    found = objects_in(head.lines)
    if found is None or sum(_is_line(each) for each in found) * 2 < len(found):
        return None
    logged = any("event" in each for each in found)
    return Claim("request log" if logged else "exported request metrics", Clock.UTC)


def _is_line(values: Mapping[str, Any]) -> bool:
    if values.get("event") in _EVENTS:
        return "rid" in values or "obj" in values
    return "request_parameters" in values and "e2e_latency" in values


def parse(chunk: Chunk) -> Parsed:
    """One row per request that finished."""
    return parse_lines(chunk, _read)


def _read(values: Mapping[str, Any]) -> dict[str, Any] | str | None:
    if not _is_line(values):
        return NO_REQUEST
    if "event" not in values:
        return _request(values, text_of(values.get("id")))
    out = values.get("out")
    told = out.get("meta_info") if isinstance(out, dict) else None
    if values["event"] != _FINISHED or not isinstance(told, dict):
        return None
    return _request(told, text_of(values.get("rid")) or text_of(told.get("id")))


def _request(told: Mapping[str, Any], request_id: str | None) -> dict[str, Any]:
    received = _at(told, ("request_received_ts",))
    scheduled = _at(told, ("forward_entry_time",))
    first_token = _at(told, _PREFILL_ENDS)
    return {
        "request_id": request_id,
        "measured_by": "log",
        "service": "sglang",
        "arrival_ts": received,
        "queue_s": None if scheduled is None else seconds(told.get("queue_time")),
        "prefill_s": _between(scheduled, first_token),
        "decode_s": _between(first_token, _at(told, _DECODE_ENDS)),
        "ttft_s": _between(received, first_token),
        "e2e_s": seconds(told.get("e2e_latency")),
        "input_tokens": count(told.get("prompt_tokens")),
        "cached_input_tokens": count(told.get("cached_tokens")),
        "output_tokens": count(told.get("completion_tokens")),
        "preemption_count": count(told.get("total_retractions", told.get("num_retractions"))),
        "finish_reason": _finish_reason(told.get("finish_reason")),
        "other": dump({name: value for name in _OTHERS if (value := number(told.get(name))) is not None}),
    }


def _at(told: Mapping[str, Any], names: tuple[str, ...]) -> int | None:
    """Microseconds of the first of these instants that is there."""
    return next((found for name in names if (found := instant_on(Clock.UTC, told.get(name), "s"))), None)


def _between(start: int | None, end: int | None) -> float | None:
    return None if start is None or end is None or end < start else (end - start) / _US_PER_S


def _finish_reason(told: Any) -> str | None:
    return text_of(told.get("type")) if isinstance(told, dict) else text_of(told)


FORMAT: Final = Format(
    name="sglang_requests",
    title="SGLang's request log and exported request metrics (JSON lines)",
    side=Side.SERVER,
    fills=("server_request",),
    sniff=sniff,
    parse=parse,
    versions="sglang 0.5",
    complete="Made from SGLang's source and public threads. Prompts and answers in it are never read.",
    record="python -m sglang.launch_server ... --enable-metrics --log-requests --log-requests-format json, or --export-metrics-to-file",
    sample="log_requests_json.jsonl",
)
