"""The times of requests as a client wrote them, and the TTFT that follows from them.

First byte, headers, role-only chunk and first content are four different times, and people call each of them TTFT.
`client_ttft_s` is only ever the first content, or a number of the tool's own that nothing contradicts.

Columns: an instant is microseconds on the file's clock (`at_sent`), a span is seconds from the send (`span_ttft`), both by the
names of `client_keys`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import polars as pl

from tracelens.formats.base import Clock
from tracelens.formats.client.client_keys import INSTANTS, SPANS
from tracelens.formats.json_lines import seconds
from tracelens.formats.stamps import PER_SECOND, instant_on

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tracelens.formats.client.client_lines import Lines

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
_LONGEST_S: Final = 1e12
"""A longer span after an instant is no instant."""

TIME_SCHEMA: Final[Mapping[str, Any]] = {
    **{f"at_{thing}": pl.Int64 for thing in INSTANTS},
    **{f"span_{thing}": pl.Float64 for thing in SPANS},
}


def times_of(lines: Lines, clock: Clock) -> dict[str, list[Any]]:
    """Instants and spans of some lines (`TIME_SCHEMA`); a span that is an instant by its size is taken for one."""
    columns: dict[str, list[Any]] = {}
    for thing in INSTANTS:
        columns[f"at_{thing}"] = _instants(lines, thing, clock)
    for thing in SPANS:
        if lines.lacks(thing):
            columns[f"span_{thing}"] = [None] * len(lines.lines)
            continue
        values, units = lines.raw(thing), lines.units(thing)
        if thing in TWINS and clock is not Clock.RELATIVE:
            twin = f"at_{TWINS[thing]}"
            moments = _instants(lines, thing, clock)
            values = [
                value if moment is None else None for value, moment in zip(values, moments, strict=True)
            ]
            stated = zip(columns[twin], moments, lines.has(TWINS[thing]), strict=True)
            columns[twin] = [own if has else moment for own, moment, has in stated]
        columns[f"span_{thing}"] = [
            None if value is None else seconds(value, 1.0 / PER_SECOND[unit or "s"])
            for value, unit in zip(values, units, strict=True)
        ]
    return columns


def _instants(lines: Lines, thing: str, clock: Clock) -> list[int | None]:
    if lines.lacks(thing):
        return [None] * len(lines.lines)
    return [
        None if value is None else instant_on(clock, value, unit)
        for value, unit in zip(lines.raw(thing), lines.units(thing), strict=True)
    ]


def in_seconds(micros: pl.Expr) -> pl.Expr:
    """Microseconds as seconds; rounded, since Polars divides by one number by multiplying with its inverse."""
    return (micros / 1_000_000).round(6)


def between(start: str, end: str) -> pl.Expr:
    """From one instant to another, seconds; NULL when it would be below zero."""
    elapsed = pl.col(f"at_{end}") - pl.col(f"at_{start}")
    return pl.when(elapsed >= 0).then(in_seconds(elapsed))


def _after_send(span: str) -> pl.Expr:
    """A span in seconds: as stated, else from its two instants; NULL when it would be below zero."""
    return pl.coalesce(f"span_{span}", between("sent", TWINS[span]))


def spans_from_send() -> dict[str, pl.Expr]:
    """What the lines say of spans from the send, seconds: ``told_s`` is a TTFT, to whatever event."""
    return {
        "client_headers_s": _after_send("headers_after"),
        "client_first_byte_s": _after_send("first_byte_after"),
        "content_s": _after_send("content_after"),
        "told_s": _after_send("ttft"),
        "client_e2e_s": _after_send("e2e"),
    }


def sent_plus(after_s: pl.Expr) -> pl.Expr:
    """The send plus a span, microseconds on the file's clock."""
    after_us = (after_s * 1_000_000).round(mode="half_to_even")
    return pl.col("at_sent") + pl.when(after_s <= _LONGEST_S).then(after_us).cast(pl.Int64)


def instant_of(event: str, after_s: pl.Expr) -> pl.Expr:
    """An instant: as stated, else the send plus a span."""
    return pl.coalesce(f"at_{event}", sent_plus(after_s))


def same(one: float, other: float) -> bool:
    """Whether two times of one request are the same event."""
    return abs(one - other) <= max(SAME_S, SAME_RATIO * max(one, other))


def _same(one: pl.Expr, other: pl.Expr) -> pl.Expr:
    """As `same`; NULL where one of them is not known."""
    near = (one - other).abs() <= pl.max_horizontal(
        pl.lit(SAME_S), SAME_RATIO * pl.max_horizontal(one, other)
    )
    return pl.when(one.is_not_null() & other.is_not_null()).then(near)


_TOLD, _CONTENT, _FIRST_BYTE, _WHOLE = map(
    pl.col, ("told_s", "content_s", "client_first_byte_s", "client_e2e_s")
)
_CHUNK, _ROLE = pl.col("first_content_s"), pl.col("first_role_s")
_NO_NUMBER, _NO_WORD = pl.lit(None, pl.Float64), pl.lit(None, pl.String)


def _is_whole(reported: pl.Expr) -> pl.Expr:
    """Whether a TTFT ends with the answer."""
    return _same(reported, _WHOLE).fill_null(value=False)


def _settled(ttft_s: pl.Expr, reported_s: pl.Expr, kind: pl.Expr) -> pl.Expr:
    return pl.struct(ttft_s=ttft_s, reported_s=reported_s, kind=kind)


def _not_streamed() -> pl.Expr:
    """Whoever did not stream saw no first token: what he calls TTFT is the whole answer, or its first byte."""
    told = pl.coalesce(_TOLD, _CONTENT)
    reported = pl.coalesce(told, _FIRST_BYTE)
    is_whole = _is_whole(reported) | (told.is_not_null() & _WHOLE.is_null())
    kind = (
        pl.when(is_whole)
        .then(pl.lit("whole_response"))
        .when(told.is_null() & reported.is_not_null())
        .then(pl.lit("first_byte"))
    )
    return _settled(_NO_NUMBER, reported, kind)


def _from_kinds() -> pl.Expr:
    """Where the chunks say what they are, they decide; the tool's number is compared with them."""
    near_content, near_role = (_same(_TOLD, at).fill_null(value=False) for at in (_CHUNK, _ROLE))
    is_nearer = (_TOLD - _CHUNK).abs() <= (_TOLD - _ROLE).abs()
    compared = (
        pl.when(near_content & (~near_role | is_nearer))
        .then(pl.lit("content"))
        .when(near_role)
        .then(pl.lit("role"))
    )
    untold = pl.when(_CHUNK.is_not_null() | _CONTENT.is_not_null()).then(pl.lit("content"))
    kind = pl.when(_TOLD.is_null()).then(untold).otherwise(compared)
    return _settled(_CHUNK, pl.coalesce(_TOLD, _CONTENT), kind)


def _from_content() -> pl.Expr:
    agrees = _same(_TOLD, _CONTENT).fill_null(value=True)
    return _settled(_CONTENT, pl.coalesce(_TOLD, _CONTENT), pl.when(agrees).then(pl.lit("content")))


def _from_told() -> pl.Expr:
    """A TTFT alone; it is the whole answer's where that is as long, and nobody says that it was streamed."""
    is_whole = pl.col("streamed").is_null() & (pl.col("output_tokens") > 1) & _is_whole(_TOLD)
    whole = is_whole.fill_null(value=False)
    return _settled(pl.when(~whole).then(_TOLD), _TOLD, pl.when(whole).then(pl.lit("whole_response")))


def first_token() -> pl.Expr:
    """Settle the TTFT: ``ttft_s`` to the first content, ``reported_s`` as the tool says, the ``kind`` of what that stops at.

    Reads `spans_from_send`, ``streamed``, ``output_tokens``, and of the chunks ``has_chunks``, ``kinds_known`` (on a clock that
    the send is on too), ``first_content_s`` and ``first_role_s``.
    """
    first_byte = pl.when("streamed").then(_FIRST_BYTE)
    byte_kind = pl.when(first_byte.is_not_null()).then(pl.lit("first_byte"))
    return (
        pl.when(~pl.col("streamed"))
        .then(_not_streamed())
        .when("kinds_known")
        .then(_from_kinds())
        .when(_CONTENT.is_not_null())
        .then(_from_content())
        .when(_TOLD.is_not_null())
        .then(_from_told())
        .when("has_chunks")
        .then(_settled(_CHUNK, _NO_NUMBER, _NO_WORD))
        .otherwise(_settled(_NO_NUMBER, first_byte, byte_kind))
    )
