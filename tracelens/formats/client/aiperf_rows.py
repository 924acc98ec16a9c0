"""One line of AIPerf's records, or of its raw ones; what the fields mean stands in `aiperf`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tracelens.formats.base import Claim, Clock
from tracelens.formats.client.client_outcomes import Ending, error_text, http_status_of
from tracelens.formats.client.stream_messages import Message, answer_of, message_of
from tracelens.formats.client.tool_requests import (
    NO_USAGE,
    Moments,
    content_count,
    content_ends,
    from_nanos,
    in_seconds,
    measured_row,
    plus,
    stream_row,
)
from tracelens.formats.client.tool_tables import Seen
from tracelens.formats.json_lines import count, dump, number, text_of

if TYPE_CHECKING:
    from collections.abc import Mapping

_PER_UNIT: Final = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "sec": 1.0}
_CANCELLED: Final = 499
_NOTED: Final = (
    "session_num", "x_correlation_id", "conversation_id", "turn_index", "worker_id", "benchmark_phase",
    "cancellation_time_ns",
)  # fmt: skip
_NOTED_METRICS: Final = (
    "http_req_blocked",
    "http_req_connecting",
    "http_req_connection_reused",
    "time_to_first_output_token",
)


def of_record(line_no: int, values: Mapping[str, Any], claim: Claim) -> Seen | None:
    """A line of ``profile_export.jsonl``; None when it is none."""
    metadata, metrics = values.get("metadata"), values.get("metrics")
    if not isinstance(metadata, dict) or not isinstance(metrics, dict):
        return None
    sent = from_nanos(metadata.get("request_start_ns"))
    ttft_s, gaps_s = _span(metrics, "time_to_first_token"), _gaps(metrics)
    offsets = _offsets(ttft_s, gaps_s)
    at = Moments(
        planned=from_nanos(metadata.get("credit_issued_ns")),
        sent=sent,
        headers=from_nanos(metadata.get("request_ack_ns")),
        first_byte=_first_byte(values, sent),
        first=plus(sent, ttft_s),
        last=plus(sent, offsets[-1]) if offsets else None,
        end=_end(metadata, sent),
    )
    ending = _ending(metadata, values.get("error"))
    tokens = _tokens(metrics)
    suspect = (
        ending["status"] == "ok"
        and bool(claim.settings.get("usage"))
        and tokens["output_tokens_basis"] != "usage"
    )
    request = (
        _names(line_no, metadata, at)
        | tokens
        | ending
        | {
            "client_reported_ttft_s": ttft_s,
            "client_ttft_kind": None if ttft_s is None else "content",
            "client_tpot_s": at.tpot_s(tokens["output_tokens"]),
            "chunk_count": len(offsets) or None,
            "streamed": True if ttft_s is not None else False if ending["status"] == "ok" else None,
            "status": "unknown" if suspect else ending["status"],
            "other": _other(metadata, metrics, {"suspect": NO_USAGE} if suspect else {}),
        }
    )
    kinds = _kinds(offsets, _span(metrics, "time_to_first_output_token"))
    return Seen(request, stream_row(line_no, request["client_id"], offsets, kinds))


def of_raw(line_no: int, values: Mapping[str, Any]) -> Seen | None:
    """A line of ``profile_export_raw.jsonl``: every message with its own monotonic stamp."""
    metadata, responses = values.get("metadata"), values.get("responses")
    if not isinstance(metadata, dict) or not isinstance(responses, list):
        return None
    start = from_nanos(values.get("start_perf_ns"))
    arrivals = [pair for each in responses if isinstance(each, dict) for pair in _packets(each)]
    messages = [message for _, message in arrivals]
    kinds = "".join(message.letter for message in messages)
    offsets = [None if start is None or t is None else in_seconds(t - start) for t, _ in arrivals]
    sent, places = from_nanos(metadata.get("request_start_ns")), content_ends(kinds)
    first, last = (None if place is None else plus(sent, offsets[place]) for place in places)
    at = Moments(
        planned=from_nanos(metadata.get("credit_issued_ns")),
        sent=sent,
        headers=from_nanos(metadata.get("request_ack_ns")),
        first_byte=plus(sent, offsets[0]) if offsets else None,
        first=first,
        last=last,
        end=_end(metadata, sent),
    )
    answer = answer_of(messages)
    streamed = _asked_to_stream(values.get("payload"), len(messages))
    at = at if streamed is not False else Moments(at.planned, at.sent, at.headers, end=at.end)
    http_status = http_status_of(values.get("status"))
    ending = _ending(metadata, values.get("error") or answer.error, http_status)
    tokens = answer.tokens()
    ttft_s = at.row(Clock.UTC)["client_ttft_s"]
    request = _names(line_no, metadata, at) | tokens | ending | {
        "response_id": answer.response_id,
        "model": answer.model,
        "finish_reason": answer.finish_reason,
        "client_reported_ttft_s": ttft_s,
        "client_ttft_kind": None if ttft_s is None else "content",
        "client_tpot_s": at.tpot_s(tokens["output_tokens"]),
        "chunk_count": content_count(kinds) if streamed else None,
        "streamed": streamed,
        "other": _other(metadata, {}, {}),
    }  # fmt: skip
    stream = stream_row(line_no, request["client_id"], offsets, kinds) if streamed else None
    return Seen(request, stream, measured_row(line_no, request, answer.metrics), (("output", answer.text),))


def _packets(response: Mapping[str, Any]) -> list[tuple[int | None, Message]]:
    """Messages of one read with its stamp: ``data`` packets and comments, or a whole answer as text."""
    stamp = from_nanos(response.get("perf_ns"))
    packets = response.get("packets")
    if not isinstance(packets, list):
        text = response.get("text")
        return [(stamp, message_of(text))] if isinstance(text, str) else []
    found: list[tuple[int | None, Message]] = []
    for packet in packets:
        if not isinstance(packet, dict):
            continue
        name, value = packet.get("name"), packet.get("value")
        if name == "comment":
            found.append((stamp, Message("k")))
        elif name == "data" and isinstance(value, str):
            found.append((stamp, message_of(value)))
    return found


def _asked_to_stream(payload: Any, message_count: int) -> bool | None:
    asked = payload.get("stream") if isinstance(payload, dict) else None
    if message_count == 0:
        return None
    return asked if isinstance(asked, bool) else message_count > 1


def _names(line_no: int, metadata: Mapping[str, Any], at: Moments) -> dict[str, Any]:
    phase = text_of(metadata.get("benchmark_phase"))
    return {
        "line_no": line_no,
        "client_id": text_of(metadata.get("x_request_id")),
        "label": phase,
    } | at.row(Clock.UTC)


def _end(metadata: Mapping[str, Any], sent: int | None) -> int | None:
    """The end; one equal to the start was never measured."""
    end = from_nanos(metadata.get("request_end_ns"))
    return None if end == sent else end


def _ending(metadata: Mapping[str, Any], error: Any, http_status: int | None = None) -> dict[str, Any]:
    code = http_status_of(error.get("code")) if isinstance(error, dict) else None
    cancelled = metadata.get("was_cancelled") is True or code == _CANCELLED
    told = _error(error)
    word = "aborted" if cancelled else "error" if told is not None else "ok"
    kept = http_status if http_status is not None else code if not cancelled else None
    return {
        "http_status": kept,
        "error": told,
        "status": Ending(http_status=kept, word=word, error=None if cancelled else told).status(),
    }


def _error(error: Any) -> str | None:
    """An error's type and message; its code has a column of its own."""
    if not isinstance(error, dict):
        return error_text(error)
    said = [text for key in ("type", "message") if (text := text_of(error.get(key)))]
    return error_text(": ".join(said)) or error_text(error)


def _metric(metrics: Mapping[str, Any], name: str) -> tuple[Any, str | None]:
    entry = metrics.get(name)
    if not isinstance(entry, dict):
        return None, None
    return entry.get("value"), text_of(entry.get("unit"))


def _span(metrics: Mapping[str, Any], name: str) -> float | None:
    """A duration in seconds, by the unit that stands beside it."""
    value, unit = _metric(metrics, name)
    amount = number(value)
    per_unit = _PER_UNIT.get(unit or "")
    return None if amount is None or per_unit is None or amount < 0 else amount * per_unit


def _gaps(metrics: Mapping[str, Any]) -> list[float]:
    """Gaps between chunks in seconds, all or none."""
    value, unit = _metric(metrics, "inter_chunk_latency")
    per_unit = _PER_UNIT.get(unit or "")
    known = [number(gap) for gap in value] if isinstance(value, list) and per_unit else []
    gaps = [gap * (per_unit or 0.0) for gap in known if gap is not None and gap >= 0]
    return gaps if len(gaps) == len(known) else []


def _offsets(ttft_s: float | None, gaps_s: list[float]) -> list[float]:
    """Send to each chunk: the TTFT, then one gap after the other."""
    if ttft_s is None:
        return []
    offsets = [ttft_s]
    for gap in gaps_s:
        offsets.append(offsets[-1] + gap)
    return offsets


def _kinds(offsets: list[float], first_output_s: float | None) -> str:
    """Chunks before the first output token are reasoning."""
    if first_output_s is None:
        return "c" * len(offsets)
    return "".join("t" if at < first_output_s - 1e-6 else "c" for at in offsets)


def _first_byte(values: Mapping[str, Any], sent: int | None) -> int | None:
    """First byte of the body, which only ``--export-http-trace`` keeps; on the same clock as the rest."""
    trace = values.get("trace_data")
    if not isinstance(trace, dict):
        return None
    stamp = from_nanos(trace.get("response_receive_start_ns"))
    return None if stamp is None or sent is None or stamp < sent else stamp


def _tokens(metrics: Mapping[str, Any]) -> dict[str, Any]:
    """The server's usage where it is, else the client's count."""
    used = count(_metric(metrics, "usage_completion_tokens")[0])
    counted = count(_metric(metrics, "output_sequence_length")[0])
    prompt = count(_metric(metrics, "usage_prompt_tokens")[0])
    return {
        "input_tokens": prompt if prompt is not None else count(_metric(metrics, "input_sequence_length")[0]),
        "output_tokens": used if used is not None else counted,
        "output_tokens_basis": "usage" if used is not None else "client" if counted is not None else None,
    }


def _other(metadata: Mapping[str, Any], metrics: Mapping[str, Any], more: Mapping[str, Any]) -> str | None:
    kept = {name: metadata[name] for name in _NOTED if isinstance(metadata.get(name), str | int)}
    for name in _NOTED_METRICS:
        value, unit = _metric(metrics, name)
        if number(value) is not None:
            kept[f"{name}_{unit}"] = value
    return dump({**kept, **more})
