"""One line of a client log as one row of `client_request`, and what goes with it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import orjson

from tracelens.formats.base import Clock
from tracelens.formats.client.client_chunks import Chunks, chunks_of
from tracelens.formats.client.client_keys import NESTED, Place, Plan, plan
from tracelens.formats.client.client_outcomes import Ending, error_text, http_status_of, word_of
from tracelens.formats.client.client_times import Arrivals, Times, arrivals_of, first_token, times_of
from tracelens.formats.json_lines import count, dump, hex_id, number, text_of
from tracelens.formats.notes import is_note
from tracelens.formats.stamps import PER_SECOND

if TYPE_CHECKING:
    from collections.abc import Mapping


_TRACEPARENT: Final = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}", re.IGNORECASE)
_SERVER_IDS: Final = ("chatcmpl-", "cmpl-", "resp_")
_FAILED: Final = 400


@dataclass(frozen=True, slots=True)
class Line:
    """One object of the file with the meaning of its keys."""

    values: Mapping[str, Any]
    plan: Plan

    def raw(self, thing: str) -> Any:
        """Return the value of a thing, None when the line has no key for it."""
        place = self.plan.places.get(thing)
        return None if place is None else self.values[place.key]

    @property
    def places(self) -> Mapping[str, Place]:
        """Where each thing stands."""
        return self.plan.places


@dataclass(frozen=True, slots=True)
class Read:
    """What one line gave: a row of `client_request`, its chunks, its row of `server_request`, its texts by kind."""

    request: dict[str, Any]
    arrivals: Arrivals | None
    measured: dict[str, Any] | None
    texts: Mapping[str, str]


def flat(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """Put the keys of inner objects (``usage``, ``timings``) beside those of the line, which win."""
    inner = [values[key] for key in NESTED if isinstance(values.get(key), dict)]
    if not inner:
        return values
    merged: dict[str, Any] = {}
    for each in inner:
        merged |= each
    details = merged.pop("prompt_tokens_details", None)
    if isinstance(details, dict) and "cached_tokens" in details:
        merged["cached_tokens"] = details["cached_tokens"]
    return merged | {
        key: value for key, value in values.items() if key not in NESTED or not isinstance(value, dict)
    }


def line_of(values: Mapping[str, Any]) -> Line:
    """Find out what the keys of a line's object mean."""
    merged = flat(values)
    return Line(merged, plan(tuple(merged)))


def read_line(values: Mapping[str, Any], clock: Clock, since_send: bool) -> Read | None:
    """One line; None when there is no request in it."""
    line = line_of(values)
    if not line.plan.is_telling:
        return None
    times = times_of(line.values, line.places, clock)
    chunks = chunks_of(line.values, line.places, since_send or clock is not Clock.RELATIVE)
    arrivals = _from_gaps(line, times) if chunks is None else arrivals_of(chunks, times, clock)
    request = _names(line) | _tokens(line) | _ending(line, times)
    request["streamed"] = _streamed(line, arrivals, request["http_status"])
    request["chunk_count"] = (
        count(line.raw("chunk_count")) if arrivals is None else arrivals.chunks.content_count
    )
    request |= _timing(times, arrivals, request, clock)
    request["other"] = _others(line)
    return Read(request, arrivals, _measured(line, request), _texts(line, chunks))


def _from_gaps(line: Line, times: Times) -> Arrivals | None:
    """Chunks from a list of gaps: the TTFT, then one gap after the other."""
    gaps, start = line.raw("chunk_gaps"), times.after_send("ttft")
    if not isinstance(gaps, list) or start is None:
        return None
    unit = line.places["chunk_gaps"].unit
    per_second = PER_SECOND[unit or "s"]
    steps = [number(gap) for gap in gaps]
    at, moments = start, [start]
    for step in steps:
        if step is None or step < 0:
            return None
        at += step / per_second
        moments.append(at)
    return Arrivals(Chunks(moments, "?" * len(moments), 1.0, None), 0.0)


def _names(line: Line) -> dict[str, Any]:
    client_id, response_id = text_of(line.raw("client_id")), text_of(line.raw("response_id"))
    if response_id is None and client_id is not None and client_id.startswith(_SERVER_IDS):
        response_id = client_id
    trace = line.raw("trace_id")
    parent = _TRACEPARENT.fullmatch(trace) if isinstance(trace, str) else None
    return {
        "client_id": client_id,
        "response_id": response_id,
        "trace_id": hex_id(parent[1] if parent else trace),
        "attempt": count(line.raw("attempt")),
        "label": text_of(line.raw("label")),
        "model": text_of(line.raw("model")),
    }


def _tokens(line: Line) -> dict[str, Any]:
    """Token counts.  ``completion_tokens`` is the word of the server's usage; of other words nobody knows who counted."""
    counted = count(line.raw("completion_tokens"))
    basis = "usage" if counted is not None else None
    if counted is None:
        counted = count(line.raw("output_tokens"))
    stated = line.raw("output_tokens_basis")
    return {
        "input_tokens": count(line.raw("prompt_tokens")),
        "cached_input_tokens": count(line.raw("cached_tokens")),
        "output_tokens": counted,
        "output_tokens_basis": stated if stated in ("usage", "client", "requested", "chunks") else basis,
        "max_tokens": count(line.raw("max_tokens")),
        "input_char_count": count(line.raw("prompt_chars")),
    }


def _ending(line: Line, times: Times) -> dict[str, Any]:
    status, success = line.raw("status"), line.raw("success")
    http_status = http_status_of(status)
    if http_status is None:
        http_status = http_status_of(line.raw("http_status"))
    word = word_of(status) or (word_of(success) if isinstance(success, bool) else None)
    finish_reason = text_of(line.raw("finish_reason"))
    arrived = times.after_send("e2e") is not None or "end" in times.instants_us
    ending = Ending(
        http_status, word, error_text(line.raw("error")), finish_reason, arrived and "error" in line.places
    )
    return {
        "http_status": http_status,
        "error": ending.error,
        "finish_reason": finish_reason,
        "status": ending.status(),
    }


def _streamed(line: Line, arrivals: Arrivals | None, http_status: int | None) -> bool | None:
    """Whether a stream was asked for and came.  Not known of a request that was refused: no answer came at all."""
    if http_status is not None and http_status >= _FAILED:
        return None
    stated = line.raw("stream")
    if isinstance(stated, bool):
        return stated
    return True if arrivals is not None and arrivals.chunks.content_count > 1 else None


def _timing(
    times: Times, arrivals: Arrivals | None, request: Mapping[str, Any], clock: Clock
) -> dict[str, Any]:
    streamed, output_tokens = request["streamed"], request["output_tokens"]
    first = first_token(times, arrivals, streamed, output_tokens)
    whole = times.after_send("e2e")
    last = _last_content(times, arrivals, output_tokens)
    moments = {
        "client_planned": times.instants_us.get("planned"),
        "client_sent": times.sent_us,
        "client_headers": times.instant_of("headers", times.after_send("headers_after")),
        "client_first_byte": times.instant_of("first_byte", times.after_send("first_byte_after")),
        "client_first_chunk": times.plus(first.ttft_s),
        "client_last_chunk": None if streamed is False else times.plus(last),
        "client_end": times.instant_of("end", whole) or times.instants_us.get("closed"),
    }
    wait = times.spans_s.get("wait")
    return _on_clock(moments, clock) | {
        "client_wait_s": wait if wait is not None else times.between("planned", "sent"),
        "client_headers_s": times.after_send("headers_after"),
        "client_first_byte_s": times.after_send("first_byte_after"),
        "client_ttft_s": first.ttft_s,
        "client_reported_ttft_s": first.reported_s,
        "client_ttft_kind": first.kind,
        "client_e2e_s": whole,
        "client_tpot_s": None if streamed is False else tpot_s(first.ttft_s, last, output_tokens),
    }


def _on_clock(moments: Mapping[str, int | None], clock: Clock) -> dict[str, Any]:
    """Instants as ``_ts`` where the zero is known (microseconds), else the two that the tables keep as seconds."""
    if clock is Clock.RELATIVE:
        kept = {name: moments[name] for name in ("client_planned", "client_sent")}
        return {f"{name}_s": None if moment is None else moment / 1_000_000 for name, moment in kept.items()}
    return {f"{name}_ts": moment for name, moment in moments.items()}


def _last_content(times: Times, arrivals: Arrivals | None, output_tokens: int | None) -> float | None:
    if arrivals is not None and arrivals.base_s is not None:
        return arrivals.offset_s(arrivals.chunks.last_content(output_tokens))
    return times.since_send("last_content")


def tpot_s(first_s: float | None, last_s: float | None, output_tokens: int | None) -> float | None:
    """First to last content over ``output_tokens - 1``, seconds; None for fewer than two tokens or one chunk."""
    if first_s is None or last_s is None or output_tokens is None or output_tokens < 2 or last_s < first_s:  # noqa: PLR2004
        return None
    return (last_s - first_s) / (output_tokens - 1)


def _others(line: Line) -> str | None:
    """Keys without a meaning here: numbers, switches and short texts, never what may be a prompt, an answer or a secret."""
    keys = [
        *line.plan.others,
        *(line.places[thing].key for thing in ("prompt_text", "output_text") if thing in line.places),
    ]
    return dump({key: line.values[key] for key in keys if is_note(key, line.values[key])})


def _measured(line: Line, request: Mapping[str, Any]) -> dict[str, Any] | None:
    return measured_of(line.raw("response_metrics"), request)


def measured_of(metrics: Any, request: Mapping[str, Any]) -> dict[str, Any] | None:
    """Read the metrics object of vLLM's answer (0.25 and later, ``--enable-per-request-metrics``) as a `server_request`.

    Its ``time_to_first_token_ms`` starts when the request is scheduled: it is the prefill, not the TTFT.
    """
    names = {
        "queue_time_ms": "queue_s",
        "time_to_first_token_ms": "prefill_s",
        "generation_time_ms": "decode_s",
    }
    if not isinstance(metrics, dict) or not any(name in metrics for name in names):
        return None
    durations = {column: _from_ms(metrics.get(name)) for name, column in names.items()}
    rest = {key: value for key, value in metrics.items() if key not in names and is_note(key, value)}
    names_of_it = {
        "request_id": request.get("response_id"),
        "trace_id": request.get("trace_id"),
        "measured_by": "response",
    }
    return names_of_it | durations | {"other": dump(rest)}


def _from_ms(value: Any) -> float | None:
    amount = number(value)
    return None if amount is None or amount < 0 else amount / 1000


def _texts(line: Line, chunks: Chunks | None) -> dict[str, str]:
    """Prompt and output as the line has them; the caller keeps them only when asked to."""
    prompt, output = line.raw("prompt_text"), line.raw("output_text")
    if output is None and chunks is not None:
        output = chunks.text
    found = {"prompt": prompt, "output": output}
    return {
        kind: value if isinstance(value, str) else orjson.dumps(value).decode()
        for kind, value in found.items()
        if value and not isinstance(value, bool | int | float)
    }
