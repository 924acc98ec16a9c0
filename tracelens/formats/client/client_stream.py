"""Client logs of one JSON object per request: the form that tracelens asks for, and what people write without being asked.

The form is ``schemas/inputs/client_stream.schema.json``; the names that are understood beside it stand in `client_keys`.
What a whole file has in common is settled once, from its beginning: the clock of its instants, and whether chunk
times that are no epochs count from the send or from the file's own zero.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

import polars as pl

from tracelens.formats.base import Chunk, Claim, Clock, Format, Head, Parsed, Side
from tracelens.formats.client.client_chunks import chunks_of
from tracelens.formats.client.client_keys import FOREIGN, INSTANTS, LISTS, SPANS
from tracelens.formats.client.client_rows import Line, Read, line_of, read_line
from tracelens.formats.client.client_tables import (
    MEASURED_SCHEMA,
    TEXT_SCHEMA,
    frame,
    requests_frame,
    stamps_of,
)
from tracelens.formats.client.client_times import same
from tracelens.formats.json_lines import objects_in, read_objects, refusals, seconds
from tracelens.formats.prompt_blocks import prompt_blocks
from tracelens.formats.stamps import PER_SECOND, instant

if TYPE_CHECKING:
    from collections.abc import Sequence

NO_REQUEST: Final = "no request in it"

_STREAM_SCHEMA: Final = {
    "line_no": pl.Int64,
    "client_id": pl.String,
    "times": pl.List(pl.Float64),
    "scale_s": pl.Float64,
    "base_s": pl.Float64,
    "chunk_kind": pl.String,
}
_PROMPT_SCHEMA: Final = dict.fromkeys(("request_id", "text", "ids"), pl.String) | {"line_no": pl.Int64}


def sniff(head: Head) -> Claim | None:
    """Lines of JSON objects, at least half of them a request by their keys, none with a key of another format."""
    found = objects_in(head.lines)
    if found is None or any(not FOREIGN.isdisjoint(each) for each in found):
        return None
    lines = [line for line in map(line_of, found) if line.plan.is_telling]
    if len(lines) * 2 < len(found):
        return None
    clock = _clock_of(lines)
    since_send = clock is not Clock.RELATIVE or _chunks_since_send(lines)
    return Claim(_variant(lines, clock, since_send), clock, {"chunks_since_send": since_send})


def _clock_of(lines: Sequence[Line]) -> Clock:
    """Find the clock that most instants of the file's beginning keep."""
    seen: Counter[Clock] = Counter()
    for line in lines:
        for thing in ("sent", "end", "planned", "first_token", "first_content"):
            found = instant(line.raw(thing), line.places[thing].unit) if thing in line.places else None
            seen.update(() if found is None else (found[1],))
    return seen.most_common(1)[0][0] if seen else Clock.NONE


def _chunks_since_send(lines: Sequence[Line]) -> bool:
    """Whether chunk times count from the send, in a file whose own clock starts anywhere.

    A chunk before its send is impossible on the file's clock.  Where a TTFT stands beside the chunks it decides.
    Where nothing does (one burst at zero, where both are the same), times are on the clock of the send.
    """
    votes: Counter[bool] = Counter()
    for line in lines:
        chunks = chunks_of(line.values, line.places, since_send=False)
        sent = instant(line.raw("sent"), line.places["sent"].unit) if "sent" in line.places else None
        first = None if chunks is None else chunks.seconds_at(0)
        if first is None or sent is None or sent[0] == 0:
            continue
        since_zero = first - sent[0] / 1_000_000
        if since_zero < 0:
            return True
        votes.update(_vote(line, first, since_zero))
    return votes[True] > votes[False]


def _vote(line: Line, since_send: float, since_zero: float) -> tuple[bool, ...]:
    place = line.places.get("ttft")
    told = None if place is None else seconds(line.values[place.key], 1.0 / PER_SECOND[place.unit or "s"])
    if told is None or same(since_send, since_zero):
        return ()
    return (True,) if same(told, since_send) else (False,) if same(told, since_zero) else ()


def _variant(lines: Sequence[Line], clock: Clock, since_send: bool) -> str:
    """Say what the file has, for people."""
    things = {thing for line in lines for thing in line.places if line.raw(thing) not in (None, "", [])}
    if things & set(LISTS):
        what = (
            "chunk times"
            if clock is Clock.UTC
            else f"chunk times since {'the send' if since_send else 'the zero of the file'}"
        )
        what += ", kinds not said" if not things & {"chunk_kinds", "chunks"} else ""
    elif things & (set(INSTANTS) | set(SPANS)):
        what = "durations, no chunk times"
    else:
        what = "tokens, no times"
    return what


def parse(chunk: Chunk) -> Parsed:
    """Read requests, their chunks, what the server said of itself in the answer, and, if asked for, texts."""
    objects = read_objects(chunk.lines)
    since_send = bool(chunk.claim.settings.get("chunks_since_send", True))
    read: list[tuple[int, Read]] = []
    empty: dict[int, str] = {}
    for line_no, values in objects:
        found = read_line(values, chunk.claim.clock, since_send)
        if found is None:
            empty[line_no] = NO_REQUEST
        else:
            read.append((line_no, found))
    requests = requests_frame([{"line_no": line_no, **each.request} for line_no, each in read])
    tables = {
        "client_request": requests,
        "client_stream": _streams(read),
        "server_request": frame(
            [{"line_no": n, **r.measured} for n, r in read if r.measured is not None], MEASURED_SCHEMA
        ),
    }
    if chunk.prompt_key:
        tables["prompt_block"] = prompt_blocks(_prompts(read), chunk.prompt_key)
    if chunk.keep_text:
        tables["request_text"] = _text_rows(read)
    issues = pl.concat([objects.issues, refusals(chunk.lines, empty)]).sort("line_no")
    return Parsed(tables, issues, chunk.lines.height - issues.height, stamps_of(requests))


def _streams(read: Sequence[tuple[int, Read]]) -> pl.DataFrame:
    """Offsets from the send, for all chunks of all lines at once; an offset below zero is NULL."""
    rows = [
        {
            "line_no": line_no,
            "client_id": each.request["client_id"],
            "times": each.arrivals.chunks.times,
            "scale_s": each.arrivals.chunks.scale_s,
            "base_s": each.arrivals.base_s,
            "chunk_kind": each.arrivals.chunks.kinds,
        }
        for line_no, each in read
        if each.arrivals is not None and each.arrivals.base_s is not None
    ]
    element = pl.element()
    offsets = pl.col("times") * pl.col("scale_s") - pl.col("base_s")
    kept = offsets.list.eval(pl.when(element >= 0).then(element).cast(pl.Float32))
    return frame(rows, _STREAM_SCHEMA).select(
        "line_no", "client_id", kept.alias("chunk_offset_s"), "chunk_kind"
    )


def _text_rows(read: Sequence[tuple[int, Read]]) -> pl.DataFrame:
    rows = [
        {
            "line_no": line_no,
            "request_id": each.request["response_id"] or each.request["client_id"],
            "kind": kind,
            "content": content,
        }
        for line_no, each in read
        for kind, content in each.texts.items()
    ]
    return frame(rows, TEXT_SCHEMA)


def _prompts(read: Sequence[tuple[int, Read]]) -> pl.DataFrame:
    """Prompts as the lines have them (a conversation as its JSON), for fingerprints only."""
    rows = [
        {
            "line_no": line_no,
            "request_id": each.request["response_id"] or each.request["client_id"],
            "text": each.texts["prompt"].replace("\n", "\\n"),
        }
        for line_no, each in read
        if "prompt" in each.texts
    ]
    return frame(rows, _PROMPT_SCHEMA)


FORMAT: Final = Format(
    name="client_stream",
    title="client log, one JSON object per request",
    side=Side.CLIENT,
    fills=("client_request", "client_stream", "server_request", "request_text", "prompt_block"),
    sniff=sniff,
    parse=parse,
    versions="schemas/inputs/client_stream.schema.json, and home-made logs",
    complete="Any JSON lines with times of requests; keys are known by their names (docs/formats.md).",
    record="one JSON object per request: schemas/inputs/client_stream.schema.json",
    sample="home_made_chunks_with_kinds.jsonl",
)
