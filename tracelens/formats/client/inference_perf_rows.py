"""One request of inference-perf's report; what the fields mean stands in `inference_perf`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tracelens.formats.base import Clock
from tracelens.formats.client.client_outcomes import Ending, error_text
from tracelens.formats.client.guidellm_rows import inner
from tracelens.formats.client.stream_messages import Answer, answer_of, message_of, messages_in
from tracelens.formats.client.tool_requests import (
    Moments,
    between,
    from_seconds,
    measured_row,
    stream_row,
)
from tracelens.formats.client.tool_tables import Seen
from tracelens.formats.json_lines import count, decode, text_of

if TYPE_CHECKING:
    from collections.abc import Mapping

_TELLING: Final = ('"error"', '"metrics"')


def seen_of(place: int, entry: Mapping[str, Any], keep_text: bool) -> Seen | None:
    """One element of the report; None when it is no request.  All messages are decoded only to keep their text."""
    if "start_time" not in entry or "end_time" not in entry:
        return None
    asked, info = _asked(entry), inner(entry, "info")
    answered = inner(info, "response_metrics")
    answer = _answer(entry, answered, keep_text)
    times = _times(answered)
    streamed = asked.get("stream") is True if answered or answer.response_id else None
    at = Moments(
        sent=from_seconds(entry.get("start_time")),
        first=times[0] if times and streamed else None,
        last=times[-1] if times and streamed else None,
        end=from_seconds(entry.get("end_time")),
    )
    ttft_s, tokens = between(at.sent, at.first), _tokens(info, answered)
    row = at.row(Clock.RELATIVE) | tokens | _ending(entry, answer) | {
        "line_no": place,
        "response_id": answer.response_id,
        "model": text_of(asked.get("model")),
        "finish_reason": answer.finish_reason,
        "label": text_of(info.get("lora_adapter")),
        "client_reported_ttft_s": ttft_s,
        "client_ttft_kind": None if ttft_s is None else "content",
        "client_tpot_s": at.tpot_s(tokens["output_tokens"]),
        "streamed": streamed,
        "max_tokens": count(asked.get("max_tokens", asked.get("max_completion_tokens"))),
        "input_char_count": len(asked["prompt"]) if isinstance(asked.get("prompt"), str) else None,
        "chunk_count": len(times) or None if streamed else None,
        "attempt": None if (retries := count(info.get("retries_attempted"))) is None else retries + 1,
    }  # fmt: skip
    offsets = [between(at.sent, moment) for moment in times] if streamed else []
    texts = (("prompt", _text(asked.get("prompt"))), ("output", answer.text))
    return Seen(
        row,
        stream_row(place, None, offsets, "c" * len(offsets)),
        measured_row(place, row, answer.metrics),
        texts,
    )


def _asked(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    """The body that was sent, which the report keeps as text."""
    body = entry.get("request")
    try:
        asked = decode(body) if isinstance(body, str) else None
    except ValueError:
        return {}
    return asked if isinstance(asked, dict) else {}


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _answer(entry: Mapping[str, Any], answered: Mapping[str, Any], keep_text: bool) -> Answer:
    """What the messages say: of an answer that went well the first and the last one, else the whole response."""
    chunks, response = answered.get("response_chunks"), entry.get("response")
    text = response if isinstance(response, str) else ""
    if isinstance(chunks, list) and chunks and not any(mark in text for mark in _TELLING):
        telling = chunks if keep_text else (chunks[0], chunks[-1])
        return answer_of([message_of(each) for each in telling if isinstance(each, str)])
    return answer_of(messages_in(text))


def _times(answered: Mapping[str, Any]) -> list[int]:
    """Arrivals of messages with content, nanoseconds; all or none."""
    stated = answered.get("chunk_times")
    times = [from_seconds(each) for each in stated] if isinstance(stated, list) else []
    known = [each for each in times if each is not None]
    return known if len(known) == len(times) else []


def _tokens(info: Mapping[str, Any], answered: Mapping[str, Any]) -> dict[str, Any]:
    usage = inner(answered, "server_usage")
    used = count(usage.get("completion_tokens"))
    counted = count(answered.get("output_tokens"))
    prompt = count(usage.get("prompt_tokens"))
    own = count(inner(info, "request_metrics", "text").get("input_tokens", info.get("input_tokens"))) or None
    return {
        "input_tokens": prompt if prompt is not None else own,
        "output_tokens": used if used is not None else counted,
        "output_tokens_basis": "usage" if used is not None else "client" if counted is not None else None,
    }


def _ending(entry: Mapping[str, Any], answer: Answer) -> dict[str, Any]:
    stated = entry.get("error")
    kind = text_of(stated.get("error_type")) if isinstance(stated, dict) else None
    message = error_text(stated.get("error_msg")) if isinstance(stated, dict) else error_text(stated)
    code = (kind or "").removeprefix("HTTP Error ")
    http_status = int(code) if code.isdigit() and len(code) == 3 else None  # noqa: PLR2004
    told = ": ".join(part for part in (kind, message) if part) or None
    error = told or answer.error
    status = Ending(http_status=http_status, word="error" if error else "ok", error=error).status()
    return {"status": status, "error": error_text(error), "http_status": http_status}
