"""One request as a load generator kept it: the instants it stamped, and the row of `client_request` they make.

Instants are whole nanoseconds of the file's clock, so that neither epoch nor monotonic stamps lose digits.  An event
that nobody stamped is None; a span whose end lies before its start is NULL.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from tracelens.formats.base import Clock
from tracelens.formats.client.client_rows import measured_of, tpot_s
from tracelens.formats.client.tool_tables import Seen
from tracelens.formats.json_lines import dump, number
from tracelens.formats.stamps import is_epoch

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

NS: Final = 1_000_000_000
_LARGEST_S: Final = 1e10
NO_USAGE: Final = "success without usage, which other answers of the file have"
"""What `other` says of an answer that the tool calls a success: an error event inside the stream looks like this."""


@dataclass(frozen=True, slots=True)
class Moments:
    """When things happened to one request, nanoseconds of the file's clock; `first` and `last` are chunks with content."""

    planned: int | None = None
    sent: int | None = None
    headers: int | None = None
    first_byte: int | None = None
    first: int | None = None
    last: int | None = None
    end: int | None = None

    def row(self, clock: Clock) -> dict[str, Any]:
        """Columns of `client_request` that follow from these alone."""
        return _on_clock(self, clock) | {
            "client_wait_s": between(self.planned, self.sent),
            "client_headers_s": between(self.sent, self.headers),
            "client_first_byte_s": between(self.sent, self.first_byte),
            "client_ttft_s": between(self.sent, self.first),
            "client_e2e_s": between(self.sent, self.end),
        }

    def tpot_s(self, output_tokens: int | None) -> float | None:
        """First to last content over ``output_tokens - 1``, seconds."""
        return tpot_s(between(self.sent, self.first), between(self.sent, self.last), output_tokens)


def _on_clock(at: Moments, clock: Clock) -> dict[str, Any]:
    """Instants as microseconds since 1970, or as seconds of a clock whose zero is unknown."""
    if clock is Clock.RELATIVE:
        return {"client_planned_s": in_seconds(at.planned), "client_sent_s": in_seconds(at.sent)}
    if clock is not Clock.UTC:
        return {}
    names = {
        "client_planned_ts": at.planned,
        "client_sent_ts": at.sent,
        "client_headers_ts": at.headers,
        "client_first_byte_ts": at.first_byte,
        "client_first_chunk_ts": at.first,
        "client_last_chunk_ts": at.last,
        "client_end_ts": at.end,
    }
    return {name: _micros(moment) for name, moment in names.items()}


def _micros(moment: int | None) -> int | None:
    if moment is None:
        return None
    micros = (moment + 500) // 1000
    return micros if is_epoch(micros) else None


def in_seconds(moment: int | None) -> float | None:
    """Nanoseconds as seconds."""
    return None if moment is None else moment / NS


def between(start: int | None, end: int | None) -> float | None:
    """From one instant to another, seconds; None where one is not known or the end comes first."""
    return None if start is None or end is None or end < start else (end - start) / NS


def from_seconds(value: Any) -> int | None:
    """An instant in seconds as nanoseconds; None below zero (GuideLLM up to 0.3 writes -1 for "never")."""
    amount = number(value)
    return None if amount is None or not 0 <= amount < _LARGEST_S else round(amount * NS)


def from_nanos(value: Any) -> int | None:
    """An instant in nanoseconds."""
    amount = number(value)
    return int(amount) if amount is not None and 0 <= amount < _LARGEST_S * NS else None


def plus(start: int | None, span_s: float | None) -> int | None:
    """An instant and so many seconds; None where these are more than any run lasts."""
    return None if start is None or span_s is None or span_s >= _LARGEST_S else start + round(span_s * NS)


def stream_row(
    line_no: int, client_id: str | None, offsets_s: Sequence[float | None], kinds: str
) -> dict[str, Any] | None:
    """A row of `client_stream`; none where no chunk has a time, or a chunk comes before the send."""
    if not offsets_s or len(offsets_s) != len(kinds) or any(at is None or at < 0 for at in offsets_s):
        return None
    return {
        "line_no": line_no,
        "client_id": client_id,
        "chunk_offset_s": list(offsets_s),
        "chunk_kind": kinds,
    }


def content_count(kinds: str) -> int:
    """Chunks with text or reasoning."""
    return kinds.count("c") + kinds.count("t")


def content_ends(kinds: str) -> tuple[int | None, int | None]:
    """Places of the first and the last chunk with content."""
    places = [at for at, letter in enumerate(kinds) if letter in "ct"]
    return (places[0], places[-1]) if places else (None, None)


def measured_row(line_no: int, request: Mapping[str, Any], metrics: Any) -> dict[str, Any] | None:
    """A row of `server_request` from the metrics object of vLLM's answer; None where there is none."""
    found = measured_of(metrics, request)
    return None if found is None else {"line_no": line_no, **found}


def doubted(seen: Sequence[Seen]) -> list[Seen]:
    """The same requests; a success without usage in a file that has usage is not known to be one."""
    has_usage = any(each.request.get("output_tokens_basis") == "usage" for each in seen)
    return [_doubted(each) if has_usage and _is_bare(each.request) else each for each in seen]


def _is_bare(request: Mapping[str, Any]) -> bool:
    return request.get("status") == "ok" and request.get("output_tokens_basis") != "usage"


def _doubted(each: Seen) -> Seen:
    request = {**each.request, "status": "unknown", "other": dump({"suspect": NO_USAGE})}
    return Seen(request, each.stream, each.measured, each.texts)
