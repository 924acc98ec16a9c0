"""``curl --trace-time --trace-ascii FILE`` of a streamed answer: the one capture by curl that has the send.

    12:51:04.286673 => Send header, 169 bytes (0xa9)
    0000: POST /v1/chat/completions HTTP/1.1
    12:51:04.287385 <= Recv header, 17 bytes (0x11)
    12:51:04.348193 <= Recv data, 242 bytes (0xf2)
    0004: data: {"id":"chatcmpl-...","object"
    0044: :"chat.completion.chunk",...}..

Stamps are times of day of the client's zone; the ``Date`` header of the answer gives the date, and the zone too (whole quarter
hours between the two).  Sent is the first ``Send header`` of a request.  The dump breaks lines after 64 characters and at line
ends, and writes other control characters and bytes beyond ASCII as dots: kinds of chunks, ids and usage are right, texts may not be, so
none is kept.  Events that came in one read have one time.  ``--trace`` (hexadecimal) is not read.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final

from tracelens.formats.base import Chunk, Claim, Clock, Format, Head, Parsed, Side
from tracelens.formats.client.sse_events import Event, event_of
from tracelens.formats.client.sse_streams import Stream, tables_of
from tracelens.formats.client.stamped_lines import DAY_US, day_instant, since_midnight
from tracelens.formats.json_lines import refusals

NO_TRACE: Final = "no line of a curl trace"

_MARK: Final = re.compile(r"(\d\d:\d\d:\d\d\.\d{6}) (==|=>|<=) (Info:|Send|Recv)(?: (header|data|SSL data))?")
_DUMP: Final = re.compile(r"[0-9a-f]{4,8}: ?(.*)")
_DATE: Final = re.compile(r"[Dd]ate: (\w{3}, \d{2} \w{3} \d{4} \d\d:\d\d:\d\d) GMT")
_STATUS: Final = re.compile(r"HTTP/[\d.]+ (\d{3})")
_ROW_CHARS: Final = 64
_QUARTER_US: Final = 900_000_000
_ZERO: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(slots=True)
class _Block:
    """One trace entry: its time, direction and kind, and the dump below it as lines of text."""

    line_no: int
    at: str
    what: str
    rows: list[str] = field(default_factory=list)

    def texts(self) -> list[str]:
        """Lines of the dump put together again: a row of 64 characters goes on in the next one."""
        joined: list[str] = []
        goes_on = False
        for row in self.rows:
            if goes_on:
                joined[-1] += row
            else:
                joined.append(row)
            goes_on = len(row) == _ROW_CHARS
        return joined


def sniff(head: Head) -> Claim | None:
    """Claim a file of trace entries with stamps and dumps."""
    lines = [line for line in head.lines if line.strip()]
    marks = sum(1 for line in lines if _MARK.match(line))
    dumps = sum(1 for line in lines if _DUMP.match(line))
    if marks < 2 or not dumps or (marks + dumps) * 10 < len(lines) * 9:  # noqa: PLR2004
        return None
    dated = any(_DATE.search(line) for line in lines)
    stamps = "times of day, date and zone from the server's Date header" if dated else ""
    return Claim("trace-ascii", Clock.UTC if dated else Clock.DAYLESS, {"dated": dated}, stamps)


def parse(chunk: Chunk) -> Parsed:
    """One row of `client_request` per request sent."""
    blocks: list[_Block] = []
    refused: dict[int, str] = {}
    for line_no, line in zip(chunk.lines["line_no"].to_list(), chunk.lines["text"].to_list(), strict=True):
        text = (line or "").rstrip("\r")
        mark, row = _MARK.match(text), _DUMP.match(text)
        if mark is not None:
            blocks.append(_Block(line_no, mark[1], f"{mark[3]} {mark[4]}"))
        elif row is not None and blocks:
            blocks[-1].rows.append(row[1])
        elif text.strip():
            refused[line_no] = NO_TRACE
    dated = bool(chunk.claim.settings.get("dated"))
    offset = _offset(blocks) if dated else None
    streams = _streams(blocks, offset, dated)
    tables = tables_of(streams, chunk.claim.clock, keep_text=False)
    issues = refusals(chunk.lines, refused)
    stamps = tables["client_request"].select("line_no", stamp="client_sent_ts").drop_nulls("stamp")
    return Parsed(tables, issues, chunk.lines.height - issues.height, stamps)


def _offset(blocks: list[_Block]) -> int | None:
    """Microseconds to add to a time of day (since midnight) for an instant: from the first answer's Date header."""
    for block in blocks:
        found = next((match for row in block.rows if (match := _DATE.match(row))), None)
        at = since_midnight(block.at)
        if found is None or at is None:
            continue
        try:
            date = datetime.strptime(found[1], "%a, %d %b %Y %H:%M:%S").replace(tzinfo=UTC)
        except ValueError:
            continue
        told = (date - _ZERO) // timedelta(microseconds=1)
        return round((told - at) / _QUARTER_US) * _QUARTER_US
    return None


def _streams(blocks: list[_Block], offset: int | None, dated: bool) -> list[Stream]:
    streams: list[Stream] = []
    days, before = 0, 0
    for block in blocks:
        at = since_midnight(block.at)
        days += DAY_US if at is not None and at < before - DAY_US // 2 else 0
        before = before if at is None else at
        zero = offset if dated else (day_instant("00:00:00") or 0)
        _take(streams, block, None if at is None or zero is None else zero + days + at)
    return streams


def _take(streams: list[Stream], block: _Block, at_us: int | None) -> None:
    if block.what == "Send header":
        streams.append(Stream(block.line_no, sent_us=at_us))
    elif streams and block.what == "Recv header":
        _header(streams[-1], block, at_us)
    elif streams and block.what == "Recv data":
        for event in _events(block):
            streams[-1].add(event, at_us)
        streams[-1].heard(at_us)


def _header(stream: Stream, block: _Block, at_us: int | None) -> None:
    status = next((match for row in block.rows if (match := _STATUS.match(row))), None)
    if status is not None:
        stream.http_status, stream.headers_us = int(status[1]), at_us


def _events(block: _Block) -> list[Event]:
    found: list[Event] = []
    for text in block.texts():
        if text.startswith("data:"):
            # The line's own end is written as a dot, too.
            event = event_of(text[5:].rstrip("."))
            found += [event] if event is not None else []
        elif text.startswith(":"):
            found.append(Event("k"))
    return found


FORMAT: Final = Format(
    name="curl_trace",
    title="curl --trace-time --trace-ascii of a streamed answer",
    side=Side.CLIENT,
    fills=("client_request", "client_stream", "server_request"),
    sniff=sniff,
    parse=parse,
    whole=True,
    versions="curl 7.88",
    complete="A real trace of HTTP/1.1. Traces in hexadecimal (--trace) are not read.",
    record="curl -N --trace-time --trace-ascii trace.txt ...",
    sample="curl_7.88.1_trace_ascii.txt",
)
