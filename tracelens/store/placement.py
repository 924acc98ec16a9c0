"""How the stamps of one source become UTC, as SQL."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Fold:
    """An hour that a wall clock goes through twice: stamps in [`begin`, `end`) as written.

    Lines from one of `second` on are of its second time, up to one of `first_again` (lines of two processes cross).
    `early_s` and `late_s` are what the clock is ahead of UTC the first and the second time.  Without any `second` the
    order of lines does not tell: the first time is taken, and the error says that it may have been the second.
    """

    begin: datetime
    end: datetime
    early_s: float
    late_s: float
    second: tuple[int, ...] = ()
    first_again: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Placement:
    """How the stamps of one source become UTC.  Everything a log leaves out is filled in here, once, and recorded.

    `years` and `days` are added to the placeholder date; `steps` are the line numbers at which a further one of
    `step_unit` begins (a log that runs past New Year, a time of day that runs past midnight), `back_steps` those at which
    one ends again (lines of two processes cross).  `zone` is an IANA
    name or None for UTC; `shift_s` is subtracted after that (fixed offsets, clocks with an unknown zero).  `folds` are the
    hours that come twice, where stamps lie in one.
    """

    years: int = 0
    days: int = 0
    steps: tuple[int, ...] = ()
    back_steps: tuple[int, ...] = ()
    step_unit: str = "years"
    zone: str | None = None
    shift_s: float = 0.0
    folds: tuple[Fold, ...] = ()


def placed(column: str, placement: Placement) -> str:
    """SQL for one stamp column: placeholder date to real date, wall clock to UTC."""
    wall = _on_wall(column, placement)
    text = wall
    if placement.zone:
        text = f"timezone('UTC', timezone('{placement.zone}', {text}))"
    if placement.shift_s:
        text = f"({text} - to_microseconds({round(placement.shift_s * 1e6)}))"
    for fold in placement.folds:
        ahead = f"CASE WHEN {_is_second(fold)} THEN {fold.late_s} ELSE {fold.early_s} END"
        text = f"CASE WHEN {_within(wall, fold)} THEN {wall} - to_seconds({ahead}) ELSE {text} END"
    return text


def error(column: str, stamp: str, placement: Placement) -> str:
    """SQL for how far the instants of a stamp column may lie behind what `placed` gives, seconds."""
    text = column
    for fold in placement.folds:
        if not fold.second:
            within = _within(_on_wall(stamp, placement), fold)
            text = f"CASE WHEN {within} THEN {column} + {fold.early_s - fold.late_s} ELSE {text} END"
    return text


def _on_wall(column: str, placement: Placement) -> str:
    """A stamp with its real date, on the clock that wrote it."""
    text = column
    passed = ""
    if placement.steps:
        passed = f" + {_passed(placement.steps)} - {_passed(placement.back_steps)}"
    for unit, amount in (("years", placement.years), ("days", placement.days)):
        steps = passed if placement.step_unit == unit else ""
        if amount or steps:
            text = f"({text} + to_{unit}(({amount}{steps})::INTEGER))"
    return text


def _within(wall: str, fold: Fold) -> str:
    return f"({wall} >= TIMESTAMP '{fold.begin}' AND {wall} < TIMESTAMP '{fold.end}')"


def _is_second(fold: Fold) -> str:
    return f"{_passed(fold.second)} > {_passed(fold.first_again)}"


def _passed(lines: tuple[int, ...]) -> str:
    return f"len(list_filter({list(lines)}::BIGINT[], lambda s: s <= line_no))"
