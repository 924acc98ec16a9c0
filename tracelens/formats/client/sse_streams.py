"""Events of captured streams as rows of `client_request`, `client_stream` and `server_request`.

A stream without the time of its send has no TTFT: what is left is the time per token, the ids and the usage.  Its chunks are
not kept either, since theirs are times from the send.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from tracelens.formats.base import Clock
from tracelens.formats.client.client_chunks import Chunks
from tracelens.formats.client.client_outcomes import Ending
from tracelens.formats.client.client_rows import measured_of, tpot_s
from tracelens.formats.client.client_tables import (
    MEASURED_SCHEMA,
    STREAM_SCHEMA,
    TEXT_SCHEMA,
    frame,
    requests_frame,
)
from tracelens.formats.client.sse_events import Event
from tracelens.formats.client.usage import usage_tokens

if TYPE_CHECKING:
    import polars as pl

_US: Final = 1_000_000
_INSTANTS: Final = ("sent", "headers", "first_byte", "first_chunk", "last_chunk", "end")


@dataclass(slots=True)
class Stream:
    """One captured answer while it is being read; instants are microseconds on the file's clock."""

    line_no: int
    sent_us: int | None = None
    headers_us: int | None = None
    end_us: int | None = None
    http_status: int | None = None
    events: list[Event] = field(default_factory=list)
    times_us: list[int | None] = field(default_factory=list)

    def add(self, event: Event, at_us: int | None) -> None:
        """Take one more event, which arrived at `at_us`."""
        self.events.append(event)
        self.times_us.append(at_us)
        self.heard(at_us)

    def heard(self, at_us: int | None) -> None:
        """Note that something of the answer arrived."""
        self.end_us = at_us if at_us is not None else self.end_us

    @property
    def is_over(self) -> bool:
        """Whether the end mark has come."""
        return any(event.kind == "D" for event in self.events)

    @property
    def response_id(self) -> str | None:
        """The id that the server gave the answer."""
        return next((event.response_id for event in self.events if event.response_id), None)

    def is_other(self, event: Event) -> bool:
        """Whether an event belongs to another answer than this one."""
        if self.is_over:
            return True
        return None not in (event.response_id, self.response_id) and event.response_id != self.response_id

    def last(self, name: str) -> Any:
        """Return the last value that the events have for a field."""
        return next(
            (found for event in reversed(self.events) if (found := getattr(event, name)) is not None), None
        )


def tables_of(streams: Sequence[Stream], clock: Clock, keep_text: bool) -> dict[str, pl.DataFrame]:
    """Rows of every stream with at least one event or a status."""
    kept = [stream for stream in streams if stream.events or stream.http_status is not None]
    requests = [_request(stream, clock) for stream in kept]
    measured = [
        {"line_no": stream.line_no, **found}
        for stream in kept
        if (found := measured_of(stream.last("metrics"), {"response_id": stream.response_id})) is not None
    ]
    tables = {
        "client_request": requests_frame(requests),
        "client_stream": frame(
            [_chunks(stream) for stream in kept if stream.sent_us is not None], STREAM_SCHEMA
        ),
        "server_request": frame(measured, MEASURED_SCHEMA),
    }
    if keep_text:
        tables["request_text"] = frame([_text(stream) for stream in kept if _said(stream)], TEXT_SCHEMA)
    return tables


def _kinds(stream: Stream) -> str:
    return "".join(event.kind for event in stream.events)


def _chunks(stream: Stream) -> dict[str, Any]:
    sent = stream.sent_us or 0
    offsets = [None if at is None or at < sent else (at - sent) / _US for at in stream.times_us]
    return {"line_no": stream.line_no, "chunk_offset_s": offsets, "chunk_kind": _kinds(stream)}


def _said(stream: Stream) -> str:
    return "".join(event.text for event in stream.events if event.text)


def _text(stream: Stream) -> dict[str, Any]:
    return {
        "line_no": stream.line_no,
        "request_id": stream.response_id,
        "kind": "output",
        "content": _said(stream),
    }


def _request(stream: Stream, clock: Clock) -> dict[str, Any]:
    chunks = Chunks(stream.times_us, _kinds(stream), 1 / _US, clock)
    tokens = usage_tokens(stream.last("usage") or {})
    error, finish_reason = stream.last("error"), stream.last("finish_reason")
    ending = Ending(stream.http_status, "ok" if stream.is_over else None, error, finish_reason)
    return {
        "line_no": stream.line_no,
        "response_id": stream.response_id,
        "model": stream.last("model"),
        **tokens,
        "finish_reason": finish_reason,
        "error": error,
        "status": ending.status(),
        "http_status": stream.http_status,
        "streamed": True if stream.events else None,
        # The tail of a stream has its tokens and none of its chunks.
        "chunk_count": (chunks.content_count or None)
        if tokens["output_tokens"] or not stream.events
        else chunks.content_count,
        **_times(stream, chunks, tokens["output_tokens"], clock),
    }


def _times(stream: Stream, chunks: Chunks, output_tokens: int | None, clock: Clock) -> dict[str, Any]:
    first, last = _at(stream, chunks.first_content()), _at(stream, chunks.last_content(output_tokens))
    moments = {
        "sent": stream.sent_us,
        "headers": stream.headers_us,
        "first_byte": _at(
            stream, next((at for at, event in enumerate(stream.events) if event.kind != "k"), None)
        ),
        "first_chunk": first,
        "last_chunk": last,
        "end": stream.end_us,
    }
    placed = {
        f"client_{name}_ts": moments[name] for name in _INSTANTS if clock not in (Clock.RELATIVE, Clock.NONE)
    }
    ttft = _between(stream.sent_us, first)
    return placed | {
        "client_headers_s": _between(stream.sent_us, stream.headers_us),
        "client_first_byte_s": _between(stream.sent_us, moments["first_byte"]),
        "client_ttft_s": ttft,
        "client_ttft_kind": None if ttft is None else "content",
        "client_e2e_s": _between(stream.sent_us, stream.end_us),
        "client_tpot_s": tpot_s(0.0, _between(first, last), output_tokens),
    }


def _at(stream: Stream, place: int | None) -> int | None:
    return None if place is None else stream.times_us[place]


def _between(start: int | None, end: int | None) -> float | None:
    return None if start is None or end is None or end < start else (end - start) / _US
