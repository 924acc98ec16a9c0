"""Times of day as microseconds, written on the placeholder's day until ingest has found the date."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Final

from tracelens.formats.base import PLACEHOLDER_YEAR

_DAY: Final = (datetime(PLACEHOLDER_YEAR, 1, 1, tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(
    microseconds=1
)
_TIME: Final = re.compile(r"(\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?")
DAY_US: Final = 86_400_000_000


def since_midnight(text: str) -> int | None:
    """Microseconds of ``12:51:04.285872`` since midnight; None where it is no time of day."""
    found = _TIME.fullmatch(text)
    if found is None:
        return None
    hours, minutes, whole = int(found[1]), int(found[2]), int(found[3])
    if hours > 23 or minutes > 59 or whole > 60:  # noqa: PLR2004
        return None
    fraction = int((found[4] or "0").ljust(9, "0")) // 1000
    return ((hours * 60 + minutes) * 60 + whole) * 1_000_000 + fraction


def day_instant(text: str) -> int | None:
    """Microseconds since 1970 of a time of day on the first of January of the placeholder's year."""
    found = since_midnight(text)
    return None if found is None else _DAY + found
