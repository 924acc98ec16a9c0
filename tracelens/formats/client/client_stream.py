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
from tracelens.formats.client.client_lines import Line, Lines, line_of, lines_of
from tracelens.formats.client.client_rows import measured_of, request_rows, said_by
from tracelens.formats.client.client_streams import chunks_of_lines, stream_rows
from tracelens.formats.client.client_tables import MEASURED_SCHEMA, REQUEST_SCHEMA, frame, stamps_of
from tracelens.formats.client.client_times import same, times_of
from tracelens.formats.json_lines import objects_in, read_objects, refusals, seconds
from tracelens.formats.prompt_blocks import fingerprints
from tracelens.formats.stamps import PER_SECOND, instant

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

NO_REQUEST: Final = "no request in it"


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
    objects, clock = read_objects(chunk.lines), chunk.claim.clock
    lines, others = lines_of(objects)
    times = times_of(lines, clock)
    streams = chunks_of_lines(lines, times, clock, bool(chunk.claim.settings.get("chunks_since_send", True)))
    rows = request_rows(lines, times, streams, clock)
    requests = rows.select(_written(name, rows) for name in REQUEST_SCHEMA)
    tables = {
        "client_request": requests,
        "client_stream": stream_rows(rows),
        "server_request": _measured(lines, requests),
    }
    if chunk.prompt_key or chunk.keep_text:
        said = said_by(lines, streams)
        named = requests.select("line_no", request_id=pl.coalesce("response_id", "client_id"))
        if chunk.prompt_key:
            prompts = zip(*named.get_columns(), said["prompt"], strict=True)
            tables["prompt_block"] = fingerprints(prompts, chunk.prompt_key)
        if chunk.keep_text:
            tables["request_text"] = _text_rows(named, said)
    issues = pl.concat([objects.issues, refusals(chunk.lines, dict.fromkeys(others, NO_REQUEST))]).sort(
        "line_no"
    )
    return Parsed(tables, issues, chunk.lines.height - issues.height, stamps_of(requests))


def _written(name: str, rows: pl.DataFrame) -> pl.Expr:
    """A column of `client_request`; NULL where no line of a file on this clock can have it."""
    kind = pl.Datetime("us") if name.endswith("_ts") else REQUEST_SCHEMA[name]
    return pl.col(name) if name in rows.columns else pl.lit(None, kind).alias(name)


def _measured(lines: Lines, requests: pl.DataFrame) -> pl.DataFrame:
    metrics = lines.raw("response_metrics")
    names = requests.select("line_no", "response_id", "trace_id").rows(named=True) if any(metrics) else ()
    found = [(row["line_no"], measured_of(each, row)) for row, each in zip(names, metrics, strict=False)]
    return frame([{"line_no": line_no, **row} for line_no, row in found if row is not None], MEASURED_SCHEMA)


def _text_rows(named: pl.DataFrame, said: Mapping[str, Sequence[str | None]]) -> pl.DataFrame:
    kinds = [
        named.with_columns(kind=pl.lit(kind), content=pl.Series(texts, dtype=pl.String))
        for kind, texts in said.items()
    ]
    return pl.concat(kinds).drop_nulls("content").sort("line_no", maintain_order=True)


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
