"""The chunks of streamed answers on the clock of their sends: a column per thing that a TTFT or a time per token is made of."""

from __future__ import annotations

from itertools import accumulate, chain
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from tracelens.formats.base import Clock
from tracelens.formats.client.client_chunks import UNSAID, Chunks, chunks_of, number_lists
from tracelens.formats.json_lines import number
from tracelens.formats.stamps import PER_SECOND

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tracelens.formats.client.client_lines import Lines

_CHUNK_SCHEMA: Final[Mapping[str, Any]] = {
    "chunk_kind": pl.String,
    "scale_s": pl.Float64,
    "base_s": pl.Float64,
    "content_count": pl.Int64,
    "kinds_known": pl.Boolean,
    **dict.fromkeys(("first_role", "first_content", "last_content"), pl.Int64),
}
"""Of each stream: its kinds, seconds of a unit of its times, what is taken off them, and the places of some chunks."""


def chunks_of_lines(
    lines: Lines, times: Mapping[str, Sequence[Any]], clock: Clock, since_send: bool
) -> list[Chunks | None]:
    """The chunks of each line; `since_send`: times that are no epochs count from the send, not from the file's zero."""
    on_send = since_send or clock is not Clock.RELATIVE
    found = [chunks_of(line.values, line.places, on_send) for line in lines.lines]
    gaps, units = lines.raw("chunk_gaps"), lines.units("chunk_gaps")
    for at in [place for place, steps in enumerate(gaps) if found[place] is None and isinstance(steps, list)]:
        found[at] = _from_gaps(gaps[at], units[at], _ttft_s(times, at))
    return found


def _ttft_s(times: Mapping[str, Sequence[Any]], at: int) -> float | None:
    """The TTFT of one line, as `client_times.after_send` has it for all."""
    told, sent, first = (times[name][at] for name in ("span_ttft", "at_sent", "at_first_token"))
    if told is not None or sent is None or first is None or first < sent:
        return told  # type: ignore[no-any-return]
    return (first - sent) / 1_000_000  # type: ignore[no-any-return]


def _from_gaps(gaps: list[Any], unit: str | None, ttft_s: float | None) -> Chunks | None:
    """Chunks from a list of gaps: the TTFT, then one gap after the other."""
    steps = list(map(number, gaps))
    if ttft_s is None or any(step is None or step < 0 for step in steps):
        return None
    per_second = PER_SECOND[unit or "s"]
    moments = list(accumulate(chain((ttft_s,), (step / per_second for step in steps if step is not None))))
    return Chunks(moments, UNSAID * len(moments), 1.0, None)


def stream_columns(
    streams: Sequence[Chunks | None],
    sent_us: Sequence[int | None],
    clock: Clock,
    output_tokens: Sequence[int | None],
) -> pl.DataFrame:
    """`_CHUNK_SCHEMA`, ``times`` as the lines have them, ``has_chunks``, and ``first_role_s``, ``first_content_s``, ``last_content_s`` from the send."""
    rows = [
        (None,) * len(_CHUNK_SCHEMA)
        if chunks is None
        else _stream(chunks, _base_s(chunks, sent, clock), count)
        for chunks, sent, count in zip(streams, sent_us, output_tokens, strict=True)
    ]
    columns = dict(zip(_CHUNK_SCHEMA, zip(*rows, strict=True), strict=True)) if rows else {}
    times = number_lists([None if chunks is None else chunks.times for chunks in streams])
    return (
        pl.DataFrame(columns, schema=_CHUNK_SCHEMA)
        .with_columns(times.alias("times"), has_chunks=pl.col("chunk_kind").is_not_null())
        .with_columns(
            _offset_s(name).alias(f"{name}_s") for name in ("first_role", "first_content", "last_content")
        )
    )


def _base_s(chunks: Chunks, sent_us: int | None, clock: Clock) -> float | None:
    """The send on the clock of the chunks, which has to be the file's; zero where their times count from the send."""
    if chunks.clock is None:
        return 0.0
    return sent_us / 1_000_000 if sent_us is not None and chunks.clock is clock else None


def _stream(chunks: Chunks, base_s: float | None, output_tokens: int | None) -> tuple[Any, ...]:
    """One row of `_CHUNK_SCHEMA`."""
    return (
        chunks.kinds,
        chunks.scale_s,
        base_s,
        chunks.content_count,
        base_s is not None and chunks.kinds_known,
        chunks.first_role(),
        chunks.first_content(),
        chunks.last_content(output_tokens),
    )


def _offset_s(place: str) -> pl.Expr:
    """Send to one chunk, seconds; NULL when unknown or below zero."""
    moment = pl.col("times").list.get(pl.col(place), null_on_oob=True) * pl.col("scale_s")
    offset = (moment - pl.col("base_s")).round(9)
    return pl.when(offset >= 0).then(offset)


def stream_rows(columns: pl.DataFrame) -> pl.DataFrame:
    """Rows of `client_stream`: offsets from the send, for all chunks of all lines at once; one below zero is NULL."""
    element = pl.element()
    offsets = pl.col("times") * pl.col("scale_s") - pl.col("base_s")
    kept = offsets.list.eval(pl.when(element >= 0).then(element).cast(pl.Float32))
    return columns.filter(pl.col("base_s").is_not_null()).select(
        "line_no", "client_id", kept.alias("chunk_offset_s"), "chunk_kind"
    )
