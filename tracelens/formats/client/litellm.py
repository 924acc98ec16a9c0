"""LiteLLM's standard logging payloads and spend rows, one JSON object a line.

A callback writes ``kwargs["standard_logging_object"]`` bare or under a key (``slp``); an export of ``LiteLLM_SpendLogs`` has the
same names with ISO 8601 times (UTC).  Read in LiteLLM 1.108: epoch seconds.

What its times are
- ``startTime`` is before LiteLLM's own work.  The row is the proxy's view (`seen_by` llm_gateway): sent is the arrival there.
- ``completionStartTime`` is the first chunk that the proxy made of the server's (it drops the role-only one); on pass-through
  endpoints it is the first byte, whatever that holds.  ``response_time`` is the time to it for streams, and the whole
  latency otherwise.  Where it is the end, the answer was not streamed and there is no TTFT.
- ``id`` is the server's id on success, LiteLLM's own call id on failure.
- A stream with an error in it, or one that was cut, is a failure here (most tools call it a success).

Messages, answers, keys and user names are never kept.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import polars as pl

from tracelens.formats.base import Chunk, Claim, Clock, Format, Head, Parsed, Side
from tracelens.formats.client.client_outcomes import Ending, error_text, http_status_of, word_of
from tracelens.formats.client.gateway_rows import gateway_frame
from tracelens.formats.client.gateway_values import instant_of, trace_of
from tracelens.formats.json_lines import count, dump, objects_in, read_objects, refusals, seconds, text_of

NO_PAYLOAD: Final = "no payload of LiteLLM"

_WRAPPERS: Final = ("slp", "standard_logging_object", "standard_logging_payload", "payload", "kwargs")
_US: Final = 1_000_000
_SECRET: Final = re.compile(r"\b(?:sk|pk|hf|key|Bearer)[-_ ][\w.*-]{6,}", re.IGNORECASE)
_SERVER_IDS: Final = ("chatcmpl-", "cmpl-", "resp_")


def sniff(head: Head) -> Claim | None:
    """Claim JSON lines of which at least half hold a payload."""
    if not any("completionStartTime" in line or "litellm_call_id" in line for line in head.lines):
        return None
    found = objects_in(head.lines)
    if found is None:
        return None
    payloads = [each for each in map(payload_of, found) if each is not None]
    if not payloads or len(payloads) * 2 < len(found):
        return None
    return Claim("standard logging payloads" if "litellm_call_id" in payloads[0] else "spend rows", Clock.UTC)


def payload_of(values: Mapping[str, Any], depth: int = 2) -> Mapping[str, Any] | None:
    """Return the payload of a line, bare or under one of its wrappers; None where there is none."""
    if (
        "startTime" in values
        and "endTime" in values
        and ("call_type" in values or "litellm_call_id" in values)
    ):
        return values
    inner = (values.get(name) for name in _WRAPPERS)
    found = (payload_of(each, depth - 1) for each in inner if depth and isinstance(each, dict))
    return next((each for each in found if each is not None), None)


def parse(chunk: Chunk) -> Parsed:
    """One row of `client_request` per call."""
    objects = read_objects(chunk.lines)
    rows: list[dict[str, Any]] = []
    refused: dict[int, str] = {}
    for line_no, values in objects:
        payload = payload_of(values)
        if payload is None:
            refused[line_no] = NO_PAYLOAD
        else:
            rows.append({"line_no": line_no, **_row(payload)})
    requests = gateway_frame(rows)
    issues = pl.concat([objects.issues, refusals(chunk.lines, refused)]).sort("line_no")
    stamps = requests.select("line_no", stamp="client_sent_ts").drop_nulls("stamp")
    return Parsed({"client_request": requests}, issues, chunk.lines.height - issues.height, stamps)


def _row(payload: Mapping[str, Any]) -> dict[str, Any]:
    return _names(payload) | _ending(payload) | _times(payload)


def _inner(payload: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    held = payload.get(name)
    return held if isinstance(held, dict) else {}


def _names(payload: Mapping[str, Any]) -> dict[str, Any]:
    call_id = text_of(payload.get("litellm_call_id")) or text_of(payload.get("request_id"))
    answer_id = text_of(payload.get("id")) or text_of(payload.get("request_id"))
    metadata = _inner(payload, "metadata")
    headers = {key.lower(): value for key, value in _inner(metadata, "requester_custom_headers").items()}
    return {
        "client_id": text_of(headers.get("x-request-id")) or call_id,
        "response_id": answer_id if answer_id != call_id or _is_servers(answer_id) else None,
        "gateway_id": call_id,
        "trace_id": trace_of(headers.get("traceparent")),
        "model": text_of(payload.get("model_group")) or text_of(payload.get("model")),
        "max_tokens": count(_inner(payload, "model_parameters").get("max_tokens")),
        "seen_by": "llm_gateway",
        "other": dump(_others(payload)),
    }


def _is_servers(answer_id: str | None) -> bool:
    return answer_id is not None and answer_id.startswith(_SERVER_IDS)


def _others(payload: Mapping[str, Any]) -> dict[str, Any]:
    """The proxy's own time and the upstream, which tell where the call went and what the proxy added."""
    hidden = _inner(payload, "hidden_params")
    found = {
        "litellm_overhead_time_ms": seconds(hidden.get("litellm_overhead_time_ms")),
        "cache_hit": payload.get("cache_hit") if isinstance(payload.get("cache_hit"), bool) else None,
        "upstream": _address(payload.get("api_base")),
        "call_type": text_of(payload.get("call_type")),
    }
    return {key: value for key, value in found.items() if value is not None}


def _address(value: Any) -> str | None:
    """Host and path of a URL, without user names, passwords and queries."""
    found = re.match(r"https?://(?:[^/@]*@)?([^?#\s]{1,200})", value) if isinstance(value, str) else None
    return found[1] if found else None


def _ending(payload: Mapping[str, Any]) -> dict[str, Any]:
    told = _inner(payload, "error_information")
    error = error_text(payload.get("error_str")) or error_text(told.get("error_message"))
    http_status = http_status_of(told.get("error_code"))
    ending = Ending(http_status, word_of(payload.get("status")), error)
    failed = ending.status() != "ok"
    counted = {
        "input_tokens": count(payload.get("prompt_tokens")),
        "output_tokens": count(payload.get("completion_tokens")),
    }
    # A call that failed before it was answered counts 0 and 0, which nobody measured.
    if failed and not any(counted.values()):
        counted = dict.fromkeys(counted)
    return counted | {
        "status": ending.status(),
        "http_status": http_status,
        "error": None if error is None else _SECRET.sub("...", error),
        "output_tokens_basis": None if counted["output_tokens"] is None or failed else "usage",
        "cached_input_tokens": _cached(payload),
        "finish_reason": _finish_reason(payload.get("response")),
    }


def _cached(payload: Mapping[str, Any]) -> int | None:
    usage = _inner(_inner(payload, "metadata"), "usage_object")
    return count(_inner(usage, "prompt_tokens_details").get("cached_tokens"))


def _finish_reason(response: Any) -> str | None:
    choices = response.get("choices") if isinstance(response, dict) else None
    first = choices[0] if isinstance(choices, list) and choices else None
    return text_of(first.get("finish_reason")) if isinstance(first, dict) else None


def _times(payload: Mapping[str, Any]) -> dict[str, Any]:
    start, end = instant_of(payload.get("startTime")), instant_of(payload.get("endTime"))
    first = instant_of(payload.get("completionStartTime"))
    # The whole answer at once: nobody saw a first token.
    streamed = first is not None and end is not None and first < end
    stated = payload.get("stream")
    seen = _between(start, first) if streamed and stated is not False else None
    ttft = None if _is_passed_through(payload) else seen
    return {
        "client_sent_ts": start,
        "client_first_chunk_ts": first if ttft is not None else None,
        "client_end_ts": end,
        "client_ttft_s": ttft,
        "client_reported_ttft_s": seconds(payload.get("response_time")),
        "client_ttft_kind": _stops_at(ttft, seen, _between(start, end)),
        "client_e2e_s": _between(start, end),
        "streamed": None if first is None or end is None else streamed,
    }


def _is_passed_through(payload: Mapping[str, Any]) -> bool:
    return "pass_through" in str(payload.get("call_type"))


def _stops_at(ttft: float | None, seen: float | None, whole: float | None) -> str | None:
    if seen is not None:
        return "first_byte" if ttft is None else "content"
    return None if whole is None else "whole_response"


def _between(start: int | None, end: int | None) -> float | None:
    return None if start is None or end is None or end < start else (end - start) / _US


FORMAT: Final = Format(
    name="litellm",
    title="LiteLLM's logged calls (standard logging payload, spend rows)",
    side=Side.CLIENT,
    fills=("client_request",),
    sniff=sniff,
    parse=parse,
    versions="LiteLLM 1.108",
    complete="Real payloads of the proxy 1.108, streams, a plain call and failures. Pretty-printed files are not read.",
    record='a custom logger that writes kwargs["standard_logging_object"] as one line, or an export of LiteLLM_SpendLogs',
    sample="v1.108.7_standard_logging_payload.jsonl",
)
