"""How the stamps of one source become UTC, as SQL."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Placement:
    """How the stamps of one source become UTC.  Everything a log leaves out is filled in here, once, and recorded.

    `years` and `days` are added to the placeholder date; `steps` are the line numbers at which a further one of
    `step_unit` begins (a log that runs past New Year, a time of day that runs past midnight), `back_steps` those at which
    one ends again (lines of two processes cross).  `zone` is an IANA
    name or None for UTC; `shift_s` is subtracted after that (fixed offsets, clocks with an unknown zero).
    """

    years: int = 0
    days: int = 0
    steps: tuple[int, ...] = ()
    back_steps: tuple[int, ...] = ()
    step_unit: str = "years"
    zone: str | None = None
    shift_s: float = 0.0


def placed(column: str, placement: Placement) -> str:
    """SQL for one stamp column: placeholder date to real date, wall clock to UTC."""
    text = column
    passed = ""
    if placement.steps:
        passed = f" + {_passed(placement.steps)} - {_passed(placement.back_steps)}"
    for unit, amount in (("years", placement.years), ("days", placement.days)):
        steps = passed if placement.step_unit == unit else ""
        if amount or steps:
            text = f"({text} + to_{unit}(({amount}{steps})::INTEGER))"
    if placement.zone:
        text = f"timezone('UTC', timezone('{placement.zone}', {text}))"
    if placement.shift_s:
        text = f"({text} - to_microseconds({round(placement.shift_s * 1e6)}))"
    return text


def _passed(lines: tuple[int, ...]) -> str:
    return f"len(list_filter({list(lines)}::BIGINT[], lambda s: s <= line_no))"
