"""When a scrape was taken: what people write between two scrapes, or before each line of them.

The exposition format has no time of the scrape.  A loop around ``curl`` adds one: a comment (``# 2026-11-29T12:00:00Z``), the
output of ``date``, an epoch number, a ruler with a stamp in it, the Date of the answer's headers, or a stamp before each
line (``ts`` of moreutils, a container's log).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

import polars as pl

from tracelens.formats.base import PLACEHOLDER_YEAR, Clock

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_LEAD: Final = (
    r"^[\s#=*>\[(\-]*(?:(?:scrape[d_]?\w*|time\w*|ts|date|now|at|when|epoch)\s*[:=]?\s*(?:at\s+)?)?[\[(]?"
)
"""What may stand before the stamp on a line of its own: rulers, and a word that says what it is."""

_EPOCH: Final = re.compile(_LEAD + r"(\d{10}(?:\.\d{1,9})?|\d{13}|\d{16}|\d{19})(?![\w.:-])", re.IGNORECASE)
_ISO: Final = re.compile(
    _LEAD + r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(?:[.,](\d{1,9}))?\s?(Z|UTC|GMT|[+-]\d\d:?\d\d)?(?!\d)",
    re.IGNORECASE,
)
_DATE: Final = re.compile(
    _LEAD + r"(?:[A-Z][a-z]{2},? )?(?:([A-Z][a-z]{2}) +(\d{1,2})|(\d{1,2}) ([A-Z][a-z]{2}) (\d{4})),? "
    r"(\d\d?:\d\d:\d\d)(?: ([AP]M))?(?: ([A-Z]{1,5}|[+-]\d{2,4}))?(?: (\d{4}))?(?!\d)"
)
_CLOCK: Final = re.compile(_LEAD + r"(\d\d:\d\d:\d\d)(?:[.,](\d{1,9}))?(?!\d)", re.IGNORECASE)
_ZERO: Final = datetime(1970, 1, 1)
_UNIT_OF_DIGITS: Final = {10: 1, 13: 1_000, 16: 1_000_000, 19: 1_000_000_000}
_LAST_EPOCH_S: Final = 2_524_608_000  # 2050-01-01
_FIRST_EPOCH_S: Final = 1_420_070_400  # 2015-01-01
_TAIL_WORDS: Final = 8
"""A line of words with a stamp in front is a sentence of something else; a time line says little more than the time."""


@dataclass(frozen=True, slots=True)
class Stamp:
    """A time as a line states it: UTC or a wall clock's, and the seconds that its last digit stands for."""

    at: datetime
    clock: Clock
    error_s: float


def time_of(line: str) -> Stamp | None:
    """Read a line that says when the scrape next to it was taken; None for any other line."""
    text = line.strip()
    if not text or len(text.split()) > _TAIL_WORDS:
        return None
    return next((found for read in _READERS if (found := read(text)) is not None), None)


def _epoch(text: str) -> Stamp | None:
    found = _EPOCH.match(text)
    if found is None:
        return None
    whole, _, fraction = found[1].partition(".")
    per_second = _UNIT_OF_DIGITS[len(whole)]
    if not _FIRST_EPOCH_S <= int(whole) // per_second < _LAST_EPOCH_S:
        return None
    micros = int(whole) * 1_000_000 // per_second + _micros(fraction)
    error_s = 1 / per_second if per_second > 1 else 10.0 ** -len(fraction)
    return Stamp(_ZERO + timedelta(microseconds=micros), Clock.UTC, max(error_s, 1e-6))


def _micros(fraction: str | None) -> int:
    return int((fraction or "").ljust(6, "0")[:6])


def _iso(text: str) -> Stamp | None:
    found = _ISO.match(text)
    if found is None:
        return None
    day, clock, fraction, zone = found.groups()
    return _placed(f"{day} {clock}", "%Y-%m-%d %H:%M:%S", fraction, zone)


def _placed(text: str, pattern: str, fraction: str | None, zone: str | None) -> Stamp | None:
    try:
        at = datetime.strptime(text, pattern) + timedelta(microseconds=_micros(fraction))
        offset = _offset(zone)
        moved = at if offset is None else at - offset
    except (ValueError, OverflowError):
        return None
    clock = Clock.LOCAL if offset is None else Clock.UTC
    return Stamp(moved, clock, 10.0 ** -min(len(fraction or ""), 6))


def _offset(zone: str | None) -> timedelta | None:
    """Read a zone; None for none, and for a name that several zones share (CST)."""
    if zone is None:
        return None
    if zone.upper() in ("Z", "UTC", "GMT"):
        return timedelta(0)
    if zone[0] not in "+-":
        return None
    digits = zone[1:].replace(":", "").ljust(4, "0")
    return timedelta(hours=int(digits[:2]), minutes=int(digits[2:])) * (-1 if zone[0] == "-" else 1)


def _date(text: str) -> Stamp | None:
    """Read the output of ``date`` in its usual orders, and of a Date header."""
    found = _DATE.match(text)
    if found is None:
        return None
    month, day = found[1] or found[4], found[2] or found[3]
    year = found[5] or found[9]
    half = found[7]
    clock = f"{found[6]} {half}" if half else found[6]
    pattern = "%Y %b %d %I:%M:%S %p" if half else "%Y %b %d %H:%M:%S"
    stamp = _placed(f"{year or PLACEHOLDER_YEAR} {month} {day} {clock}", pattern, None, found[8])
    return stamp if stamp is None or year else Stamp(stamp.at, Clock.YEARLESS, stamp.error_s)


def _clock(text: str) -> Stamp | None:
    found = _CLOCK.match(text)
    if found is None:
        return None
    stamp = _placed(f"{PLACEHOLDER_YEAR}-01-01 {found[1]}", "%Y-%m-%d %H:%M:%S", found[2], None)
    return stamp and Stamp(stamp.at, Clock.DAYLESS, stamp.error_s)


_READERS: Final[tuple[Callable[[str], Stamp | None], ...]] = (_epoch, _iso, _date, _clock)


def times_in(texts: pl.Series, clock: Clock) -> pl.Series:
    """Instants that lines state on one clock; NULL for other lines.  Each text is read once."""
    seen = texts.unique().drop_nulls().to_list()
    read = {text: found.at for text in seen if (found := time_of(text)) is not None and found.clock is clock}
    if not read:
        return pl.Series(texts.name, [None] * len(texts), dtype=pl.Datetime("us"))
    return texts.replace_strict(list(read), list(read.values()), default=None, return_dtype=pl.Datetime("us"))


PREFIXES: Final[Mapping[str, tuple[str, Clock]]] = {
    "epoch": (r"^(\d{10}(?:\.\d{1,9})?|\d{13})[,\s]+", Clock.UTC),
    "zoned": (r"^\[?(\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d))\]?[,\s]+", Clock.UTC),
    "dated": (r"^\[?(\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?)\]?[,\s]+", Clock.LOCAL),
    "ts": (r"^([A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d(?:\.\d{1,9})?)[,\s]+", Clock.YEARLESS),
    "clock": (r"^(\d\d:\d\d:\d\d(?:\.\d{1,9})?)[,\s]+", Clock.DAYLESS),
}  # fmt: skip
"""Stamps before each line, and what they are worth."""


def prefix_of(line: str) -> tuple[str | None, str]:
    """Find the kind of stamp before a line, if any, and the line without it."""
    for kind, (pattern, _) in PREFIXES.items():
        found = re.match(pattern, line)
        if found:
            return kind, line[found.end() :]
    return None, line
