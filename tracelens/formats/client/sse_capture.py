"""Raw captures of streamed answers: ``curl -N ... | ts '%.s'`` in its forms, and event streams without stamps.

    1795956664.555279 data: {"id":"chatcmpl-...","choices":[{"delta":{"role":"assistant","content":""}}]}     ts '%.s'
    0.018413 data: {...}                                                                                     ts -s '%.s'
    2026-11-29T12:51:04.900603 data: {...}                                                                   ts '%Y-%m-%dT%H:%M:%.S'
    12:51:04.900603 data: {...}                                                                              ts '%H:%M:%.S'
    data: {...}                                                                                              no stamps

``ts`` stamps the arrival of each line, so nothing tells when the request was sent and there is no TTFT (`sse_streams`).  Stamps
of whole seconds (``ts`` without a format) are left aside.  Several answers may follow one another.  Headers (``curl -i``) are read
for the status.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from tracelens.formats.base import Chunk, Claim, Clock, Format, Head, Parsed, Side, no_stamps
from tracelens.formats.client.sse_events import Event, event_of
from tracelens.formats.client.sse_streams import Stream, tables_of
from tracelens.formats.client.stamped_lines import day_instant
from tracelens.formats.json_lines import number, refusals
from tracelens.formats.stamps import instant

NO_EVENT: Final = "no event of a streamed answer"

_US: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Stamping:
    """How lines are stamped: a pattern for what stands before the line, and the clock of it."""

    name: str
    pattern: re.Pattern[str]
    clock: Clock


STAMPINGS: Final = (
    Stamping("epoch", re.compile(r"(\d{9,10}\.\d{1,9})(?: |$)"), Clock.UTC),
    Stamping("seconds since the start of ts", re.compile(r"(\d{1,8}\.\d{1,9})(?: |$)"), Clock.RELATIVE),
    Stamping(
        "ISO 8601 with zone",
        re.compile(r"(\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d\.\d+(?:Z|[+-]\d\d:?\d\d))(?: |$)"),
        Clock.UTC,
    ),
    Stamping("ISO 8601", re.compile(r"(\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d\.\d+)(?: |$)"), Clock.LOCAL),
    Stamping("time of day", re.compile(r"(\d\d:\d\d:\d\d\.\d{1,9})(?: |$)"), Clock.DAYLESS),
    Stamping("whole seconds", re.compile(r"((?:[A-Z][a-z]{2} [ \d]\d )?\d\d:\d\d:\d\d)(?: |$)"), Clock.NONE),
    Stamping("no stamps", re.compile(r"()"), Clock.NONE),
)
_FIELD: Final = re.compile(r"(?:data|event|id|retry):|:")
_DATA: Final = re.compile(r"data: ?(.*)")
_TELLING: Final = re.compile(
    r"data: ?\{.*\"(?:choices|object|type)\"\s*:\s*(?:\[|\"(?:chat\.completion|text_completion|response\.|message_|error))"
)
_HTTP: Final = re.compile(r"HTTP/[\d.]+ (\d{3})")
_HEADER: Final = re.compile(r"(?:HTTP/[\d.]+ \d{3}|[A-Za-z][\w-]{1,60}: ?)")


def sniff(head: Head) -> Claim | None:
    """Claim a file of which at least half of the lines are fields of an event stream of a language model."""
    lines = [line.lstrip("\ufeff") for line in head.lines]
    stamping = next((each for each in STAMPINGS if _telling(lines, each)), None)
    if stamping is None:
        return None
    rest = [text for text in (_split(line, stamping)[1] for line in lines) if text.strip()]
    if sum(1 for text in rest if _FIELD.match(text)) * 2 < len(rest):
        return None
    return Claim(stamping.name, stamping.clock, {"stamping": stamping.name})


def _telling(lines: list[str], stamping: Stamping) -> bool:
    return any(_TELLING.match(_split(line, stamping)[1]) for line in lines if stamping.pattern.match(line))


def _split(line: str, stamping: Stamping) -> tuple[str | None, str]:
    """Stamp and the rest of a line."""
    found = stamping.pattern.match(line)
    return (found[1], line[found.end() :]) if found else (None, line)


def _moment(stamp: str | None, stamping: Stamping) -> int | None:
    """Microseconds of a stamp on the file's clock."""
    if not stamp or stamping.clock is Clock.NONE:
        return None
    if stamping.clock is Clock.DAYLESS:
        return day_instant(stamp)
    if stamping.clock is Clock.RELATIVE:
        amount = number(stamp)
        return None if amount is None else round(amount * _US)
    found = instant(stamp)
    return found[0] if found is not None and found[1] is stamping.clock else None


def parse(chunk: Chunk) -> Parsed:
    """One row of `client_request` per answer; lines that are no field of an event stream are issues."""
    named = chunk.claim.settings.get("stamping")
    stamping = next((each for each in STAMPINGS if each.name == named), STAMPINGS[-1])
    streams: list[Stream] = []
    refused: dict[int, str] = {}
    for line_no, line in zip(chunk.lines["line_no"].to_list(), chunk.lines["text"].to_list(), strict=True):
        stamp, text = _split((line or "").lstrip("\ufeff").rstrip("\r"), stamping)
        if not _take(streams, line_no, _moment(stamp, stamping), text):
            refused[line_no] = NO_EVENT
    issues = refusals(chunk.lines, refused)
    tables = tables_of(streams, stamping.clock, chunk.keep_text)
    stamps = no_stamps()
    if stamping.clock not in (Clock.RELATIVE, Clock.NONE):
        stamps = tables["client_request"].select("line_no", stamp="client_end_ts").drop_nulls("stamp")
    return Parsed(tables, issues, chunk.lines.height - issues.height, stamps)


def _take(streams: list[Stream], line_no: int, at_us: int | None, text: str) -> bool:
    """Give one line to its stream; False where it is none."""
    data = _DATA.match(text)
    if data is not None:
        event = event_of(data[1])
        if event is not None:
            _stream_of(streams, line_no, event).add(event, at_us)
        return event is not None
    if text.startswith(":"):
        keep_alive = Event("k")
        _stream_of(streams, line_no, keep_alive).add(keep_alive, at_us)
        return True
    status = _HTTP.match(text)
    if status is not None:
        streams.append(Stream(line_no, headers_us=at_us, http_status=int(status[1])))
        return True
    if not text.strip():
        if streams and streams[-1].events:
            streams[-1].heard(at_us)
        return True
    in_headers = bool(streams) and streams[-1].http_status is not None and not streams[-1].events
    return (_HEADER if in_headers else _FIELD).match(text) is not None


def _stream_of(streams: list[Stream], line_no: int, event: Event) -> Stream:
    """Return the stream that an event belongs to: the open one, or a new one."""
    if not streams or streams[-1].is_other(event):
        streams.append(Stream(line_no))
    return streams[-1]


FORMAT: Final = Format(
    name="sse_capture",
    title="captured event streams (curl -N, with or without ts)",
    side=Side.CLIENT,
    fills=("client_request", "client_stream", "server_request", "request_text"),
    sniff=sniff,
    parse=parse,
    whole=True,
    versions="curl 7.88, moreutils ts 0.67; OpenAI chat, completions and Responses API, Anthropic messages",
    complete="Real captures. Without the time of the send there is no TTFT and no chunk times, but time per token, ids, usage and vLLM's metrics.",
    record="curl -N ... | ts '%.s' > capture.txt",
    sample="ts_epoch.txt",
)
