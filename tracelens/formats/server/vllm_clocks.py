"""The clocks of a vLLM log: its own stamps, and those that a wrapper or a JSON formatter put beside them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final

import polars as pl

from tracelens.formats.base import Clock
from tracelens.formats.server import records

_STAMP_OF: Final = {Clock.UTC: "outer_ts", Clock.LOCAL: "dated", Clock.YEARLESS: "inner"}
_ERROR_OF: Final = {Clock.UTC: "outer_error_s", Clock.LOCAL: "dated_error_s"}
_STEP_S: Final = 900
"""Zones are a whole number of these apart."""
_MIN_STEPS: Final = 3
_NEARLY_ALL: Final = 0.9


def clock_of(mine: pl.DataFrame) -> tuple[Clock, bool]:
    """What the stamps are worth, and whether they are a wrapper's wall clock since the log has none of its own."""
    headed = mine.filter(pl.col("level").is_not_null() | pl.col("outer_ts").is_not_null())
    for clock, name in _STAMP_OF.items():
        known = headed[name].count()
        if known and known >= headed.height / 2:
            return clock, False
    return (Clock.LOCAL, True) if 2 * mine["outer_local"].count() >= mine.height else (Clock.NONE, False)


def newest_first(mine: pl.DataFrame, clock: Clock) -> bool:
    """Whether the stamps go down from line to line, as in what collectors and log explorers export."""
    if clock not in _STAMP_OF:
        return False
    steps = mine[_STAMP_OF[clock]].drop_nulls().diff().drop_nulls().dt.total_microseconds()
    moved = steps.filter(steps != 0)
    return moved.len() >= _MIN_STEPS and (moved < 0).sum() >= _NEARLY_ALL * moved.len()


def own_clock(mine: pl.DataFrame) -> tuple[int, datetime] | None:
    """How many quarter hours the log's own clock is ahead of the wrappers' in UTC, and an instant for its year."""
    steps = steps_between(mine.filter(pl.col("outer_ts").is_not_null()))
    if len(steps) != 1:
        return None
    at: Any = mine["outer_ts"].drop_nulls()[0]
    return next(iter(steps)), at


def stamped(kinds: pl.DataFrame, clock: Clock, settings: Mapping[str, Any]) -> pl.DataFrame:
    """Choose each record's stamp by what the file as a whole has; ``after`` is the last one up to a record.

    Where most lines have an instant from a wrapper, the others' own stamps are moved by what lies between both clocks.
    """
    stamp = pl.lit(None, pl.Datetime("us"))
    error = pl.lit(1.0)
    if clock in _STAMP_OF:
        stamp = pl.col("outer_local" if settings.get("from_outside") else _STAMP_OF[clock])
        error = pl.col(_ERROR_OF[clock]).fill_null(1.0) if clock in _ERROR_OF else error
    if clock is Clock.UTC and (own := settings.get("own_clock")):
        step, around = own
        moved = records.in_year_of(pl.col("inner"), pl.lit(around, pl.Datetime("us"))) - timedelta(
            seconds=step * _STEP_S
        )
        error = pl.when(stamp.is_null()).then(1.0).otherwise(error)
        stamp = pl.coalesce(stamp, moved)
    return kinds.with_columns(
        stamp=stamp, error_s=pl.when(stamp.is_not_null()).then(error), after=stamp.forward_fill()
    )


def steps_between(kinds: pl.DataFrame) -> dict[int, int]:
    """Of records with the log's own stamp and one outside: by how many quarter hours the log's is ahead, and how many records."""
    outside = pl.coalesce("outer_ts", "outer_local")
    if kinds.select(outside.is_null().all()).item():
        return {}
    both = kinds.select(own=pl.col("inner"), outside=outside).drop_nulls()
    ahead = records.in_year_of(pl.col("own"), pl.col("outside")) - pl.col("outside")
    steps = both.select(step=(ahead.dt.total_seconds() / _STEP_S).round().cast(pl.Int64))
    return dict(steps.drop_nulls().group_by("step").len().iter_rows())
