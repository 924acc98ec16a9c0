"""Instants that programs wrote by themselves: epoch numbers of any unit, ISO 8601 texts, seconds of a monotonic clock.

An instant is a whole number of microseconds.  Epoch instants lie between 2015 and 2050, so a number says by its
size whether it counts from 1970 or from an unknown zero, and in which unit.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from tracelens.formats.base import Clock
from tracelens.formats.json_lines import number

PER_SECOND: Final = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
"""Units of time in a second."""

_FIRST_EPOCH_S: Final = 1_420_070_400  # 2015-01-01
_LAST_EPOCH_S: Final = 2_524_608_000  # 2050-01-01
LARGEST: Final = 1e19
"""Larger numbers are no time in any unit."""

_ZERO: Final = datetime(1970, 1, 1, tzinfo=UTC)
_ISO_START: Final = re.compile(r"\s*\d{4}-?\d\d-?\d\d[T ]")


def is_epoch(instant_us: int) -> bool:
    """Whether an instant counts from 1970."""
    return _FIRST_EPOCH_S * 1_000_000 <= instant_us < _LAST_EPOCH_S * 1_000_000


def unit_of(amount: float, stated: str | None) -> str:
    """Return the unit of an instant: the stated one, else that in which the number is an epoch, else seconds."""
    if stated is not None:
        return stated
    for unit, per_second in PER_SECOND.items():
        if _FIRST_EPOCH_S * per_second <= amount < _LAST_EPOCH_S * per_second:
            return unit
    return "s"


def instant(value: Any, stated_unit: str | None = None) -> tuple[int, Clock] | None:
    """Microseconds and what they count from: UTC (1970), LOCAL (1970 of a wall clock without zone) or RELATIVE."""
    if type(value) is float and stated_unit is None and _FIRST_EPOCH_S <= value < _LAST_EPOCH_S:
        return round(value * 1_000_000), Clock.UTC  # most instants of most files, without the questions below
    amount = number(value)
    if amount is None or abs(amount) > LARGEST:
        return _iso(value) if isinstance(value, str) else None
    found = to_us(amount, unit_of(amount, stated_unit))
    if is_epoch(found):
        return found, Clock.UTC
    return (found, Clock.RELATIVE) if 0 <= found < _FIRST_EPOCH_S * 1_000_000 else None


def to_us(amount: float, unit: str) -> int:
    """Write a number of a unit as microseconds; whole nanoseconds keep all their digits."""
    per_second = PER_SECOND[unit]
    if isinstance(amount, int):
        return amount * 1_000_000 // per_second
    return round(amount * (1_000_000 / per_second))


def _iso(value: str) -> tuple[int, Clock] | None:
    if not _ISO_START.match(value):
        return None
    try:
        stamp = datetime.fromisoformat(value.strip())
        clock = Clock.LOCAL if stamp.tzinfo is None else Clock.UTC
        found = (stamp.replace(tzinfo=stamp.tzinfo or UTC) - _ZERO) // timedelta(microseconds=1)
    except (ValueError, OverflowError):
        return None
    return (found, clock) if is_epoch(found) else None


def instant_on(clock: Clock, value: Any, stated_unit: str | None = None) -> int | None:
    """Microseconds of an instant, None when it is none or not on the clock that the whole file keeps."""
    found = instant(value, stated_unit)
    return found[0] if found is not None and found[1] is clock else None
