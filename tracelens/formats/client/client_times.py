"""The times of one request as a client wrote them, and the TTFT that follows from them.

First byte, headers, role-only chunk and first content are four different times, and people call each of them TTFT.
`client_ttft_s` is only ever the first content, or a number of the tool's own that nothing contradicts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar

from tracelens.formats.base import Clock
from tracelens.formats.client.client_keys import INSTANTS, SPANS, Place
from tracelens.formats.json_lines import seconds
from tracelens.formats.stamps import PER_SECOND, instant_on

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tracelens.formats.client.client_chunks import Chunks

TWINS: Final[Mapping[str, str]] = {
    "headers_after": "headers",
    "first_byte_after": "first_byte",
    "content_after": "first_content",
    "ttft": "first_token",
    "e2e": "end",
}
"""A span and the instant it ends at."""

SAME_S: Final = 0.005
"""Two times of one request closer than this are one event (a read of the socket, a write of the log)."""

SAME_RATIO: Final = 0.01


@dataclass(frozen=True, slots=True)
class Times:
    """`instants_us` on the file's clock; `spans_s` from the send, both by the names of `client_keys`."""

    instants_us: Mapping[str, int]
    spans_s: Mapping[str, float]

    @property
    def sent_us(self) -> int | None:
        """When it was sent, microseconds on the file's clock."""
        return self.instants_us.get("sent")

    def after_send(self, span: str) -> float | None:
        """Return a span in seconds: as stated, else from its two instants; None when it would be below zero."""
        stated = self.spans_s.get(span)
        return stated if stated is not None else self.since_send(TWINS[span])

    def since_send(self, event: str) -> float | None:
        """Send to an instant, seconds; None when it would be below zero."""
        return self.between("sent", event)

    def between(self, start: str, end: str) -> float | None:
        """From one instant to another, seconds; None when it would be below zero."""
        if start not in self.instants_us or end not in self.instants_us:
            return None
        elapsed = self.instants_us[end] - self.instants_us[start]
        return elapsed / 1_000_000 if elapsed >= 0 else None

    def instant_of(self, event: str, after_s: float | None) -> int | None:
        """Return an instant: as stated, else the send plus a span."""
        return self.instants_us[event] if event in self.instants_us else self.plus(after_s)

    def plus(self, after_s: float | None) -> int | None:
        """Return the send plus a span, microseconds on the file's clock."""
        return None if self.sent_us is None or after_s is None else self.sent_us + round(after_s * 1_000_000)


def times_of(line: Mapping[str, Any], places: Mapping[str, Place], clock: Clock) -> Times:
    """Instants and spans of a line; a span that is an instant by its size is taken for one."""
    instants = {
        thing: instant_on(clock, line[places[thing].key], places[thing].unit)
        for thing in INSTANTS
        if thing in places
    }
    spans: dict[str, float | None] = {}
    for thing in SPANS:
        place = places.get(thing)
        if place is None:
            continue
        value = line[place.key]
        moment = (
            instant_on(clock, value, place.unit) if clock is not Clock.RELATIVE and thing in TWINS else None
        )
        if moment is None:
            spans[thing] = seconds(value, 1.0 / PER_SECOND[place.unit or "s"])
        else:
            instants.setdefault(TWINS[thing], moment)
    return Times(_known(instants), _known(spans))


_Number = TypeVar("_Number", int, float)


def _known(found: Mapping[str, _Number | None]) -> dict[str, _Number]:
    return {thing: value for thing, value in found.items() if value is not None}


@dataclass(frozen=True, slots=True)
class Arrivals:
    """Chunks of a stream on the send's clock: seconds from the send (`base_s` is what is taken off their times)."""

    chunks: Chunks
    base_s: float | None

    def offset_s(self, place: int | None) -> float | None:
        """Send to one chunk, seconds; None when unknown or below zero."""
        moment = self.chunks.seconds_at(place)
        if moment is None or self.base_s is None:
            return None
        offset = round(moment - self.base_s, 9)
        return offset if offset >= 0 else None


def arrivals_of(chunks: Chunks, times: Times, clock: Clock) -> Arrivals:
    """Chunks with the time of the send on the clock of theirs, which has to be the file's."""
    if chunks.clock is None:
        return Arrivals(chunks, 0.0)
    if times.sent_us is not None and chunks.clock is clock:
        return Arrivals(chunks, times.sent_us / 1_000_000)
    return Arrivals(chunks, None)


@dataclass(frozen=True, slots=True)
class FirstToken:
    """TTFT in seconds: to the first content, what the tool says, and what that stops at."""

    ttft_s: float | None = None
    reported_s: float | None = None
    kind: str | None = None


def first_token(
    times: Times, arrivals: Arrivals | None, streamed: bool | None, output_tokens: int | None
) -> FirstToken:
    """Settle the TTFT of a request."""
    told, content = times.after_send("ttft"), times.after_send("content_after")
    if streamed is False:
        return _not_streamed(times, told if told is not None else content)
    if arrivals is not None and arrivals.base_s is not None and arrivals.chunks.kinds_known:
        return _from_kinds(arrivals, told, content)
    if content is not None:
        agrees = told is None or same(told, content)
        return FirstToken(content, content if told is None else told, "content" if agrees else None)
    if told is not None:
        whole = streamed is None and (output_tokens or 0) > 1 and _is_whole(told, times)
        return FirstToken(None, told, "whole_response") if whole else FirstToken(told, told)
    if arrivals is not None:
        return FirstToken(arrivals.offset_s(arrivals.chunks.first_content()))
    first_byte = times.after_send("first_byte_after") if streamed else None
    return FirstToken(None, first_byte, None if first_byte is None else "first_byte")


def _not_streamed(times: Times, told: float | None) -> FirstToken:
    """Whoever did not stream saw no first token: what he calls TTFT is the whole answer, or its first byte."""
    first_byte = times.after_send("first_byte_after")
    reported = told if told is not None else first_byte
    if reported is None:
        return FirstToken()
    if _is_whole(reported, times) or (told is not None and times.after_send("e2e") is None):
        return FirstToken(None, reported, "whole_response")
    return FirstToken(None, reported, "first_byte" if told is None else None)


def _is_whole(reported: float, times: Times) -> bool:
    whole = times.after_send("e2e")
    return whole is not None and same(reported, whole)


def _from_kinds(arrivals: Arrivals, told: float | None, content: float | None) -> FirstToken:
    """Where the chunks say what they are, they decide; the tool's number is compared with them."""
    ttft = arrivals.offset_s(arrivals.chunks.first_content())
    if told is None:
        return FirstToken(ttft, content, None if ttft is None and content is None else "content")
    role = arrivals.offset_s(arrivals.chunks.first("r"))
    near = [
        (abs(told - at), kind)
        for at, kind in ((ttft, "content"), (role, "role"))
        if at is not None and same(told, at)
    ]
    return FirstToken(ttft, told, min(near)[1] if near else None)


def same(one: float, other: float) -> bool:
    """Whether two times of one request are the same event."""
    return abs(one - other) <= max(SAME_S, SAME_RATIO * max(one, other))
