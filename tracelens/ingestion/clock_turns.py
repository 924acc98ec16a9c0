"""Steps of the stamps of one file that are no passing of time: New Year, midnight, a clock that was set."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

import polars as pl

from tracelens.formats.base import Clock

HALF_PERIOD_S: Final = {Clock.YEARLESS: 183 * 86400.0, Clock.DAYLESS: 12 * 3600.0}
"""A stamp that lies further back than this behind the one before begins a new year, or a new day."""
RETURN_SHARE: Final = 1.6
"""A jump forward by this many half periods takes the last such step back: lines of two processes cross midnight."""
GPU_DAY_STEP_S: Final = 2 * 3600.0
"""The same for times of day of a GPU tool: it has one writer, and only a clock change takes its stamps back by less."""
MAX_JUMPS: Final = 5000
HOUR_S: Final = 3600.0
HOUR_SLACK_S: Final = (2.0, 120.0)
"""How far from an hour a step may be, below and above, to look like a clock change: the sampling period comes on top."""

TURN_S: Final = 60.0
"""Lines of a server's processes cross by less than this; a step back beyond it is a clock that was set."""
_AHEAD_S: Final = (-HOUR_S / 2, HOUR_SLACK_S[1])


@dataclass(frozen=True, slots=True)
class Turn:
    """A line whose stamp, `after_ts` as written, lies far behind the one before it, or about an hour ahead."""

    line_no: int
    step_s: float
    after_ts: datetime


def jumps(stamps: pl.DataFrame, half_period_s: float | None) -> list[tuple[int, float]]:
    """Lines, and seconds from the stamp before, of steps beyond half a period."""
    if half_period_s is None or stamps.height < 2:  # noqa: PLR2004 - a jump takes two stamps
        return []
    steps = stamps.drop_nulls("stamp").select(
        "line_no", step=pl.col("stamp").diff().dt.total_seconds(fractional=True)
    )
    far = steps.filter(pl.col("step").abs() > half_period_s)
    return [(int(line), float(step)) for line, step in far.head(MAX_JUMPS).iter_rows()]


def turns(stamps: pl.DataFrame) -> list[Turn]:
    """Steps back that are no mere crossing of two processes' lines, and steps ahead that may undo one of an hour."""
    seen = stamps.drop_nulls("stamp").with_columns(
        step=pl.col("stamp").diff().dt.total_seconds(fractional=True)
    )
    far = seen.filter((pl.col("step") < -TURN_S) | (pl.col("step") - HOUR_S).is_between(*_AHEAD_S))
    rows = far.select("line_no", "step", "stamp").head(MAX_JUMPS).iter_rows()
    return [Turn(int(line), float(step), stamp) for line, step, stamp in rows]


def hours(steps: list[tuple[int, float]]) -> list[tuple[int, float]]:
    """Those of the steps that look like a clock change."""
    below, above = HOUR_SLACK_S
    return [
        (line, step)
        for line, step in steps
        if any(-below <= step - hour <= above for hour in (-HOUR_S, HOUR_S))
    ]
