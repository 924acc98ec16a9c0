"""Stamps around the rows of GPU tools: those put before each line, and how stamps become instants.

dmon and dcgmi have no subsecond time of their own, so people put one before each line with a shell loop, with
``ts`` of moreutils, or through a container's log.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import polars as pl

from tracelens.formats.base import PLACEHOLDER_YEAR, Clock

if TYPE_CHECKING:
    from collections.abc import Mapping

PREFIXES: Final[Mapping[str, str]] = {
    "epoch": r"^(\d{10}(?:\.\d{1,9})?|\d{13})[,\s]",
    "zoned": r"^\[?(\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d))\]?[,\s]",
    "dated": r"^\[?(\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?)\]?[,\s]",
    "ts": r"^([A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d(?:\.\d{1,9})?)[,\s]",
    "clock": r"^(\d\d:\d\d:\d\d(?:\.\d{1,9})?)[,\s]",
}
"""Stamps that others put before a line, with the one separator behind them."""

PREFIX_CLOCKS: Final[Mapping[str, Clock]] = {
    "epoch": Clock.UTC,
    "zoned": Clock.UTC,
    "dated": Clock.LOCAL,
    "ts": Clock.YEARLESS,
    "clock": Clock.DAYLESS,
}

_WORTH: Final = (Clock.UTC, Clock.LOCAL, Clock.YEARLESS, Clock.DAYLESS, Clock.NONE)

_PREFIX_PATTERNS: Final = {kind: re.compile(pattern) for kind, pattern in PREFIXES.items()}
_PLACEHOLDER_DAY: Final = f"{PLACEHOLDER_YEAR}-01-01 "
_MILLIS_DIGITS: Final = 13
_YEARS: Final = (1970, 2200)


def split_prefix(line: str) -> tuple[str | None, str]:
    """Find the kind of stamp before a line, if any, and the line without it."""
    for kind, pattern in _PREFIX_PATTERNS.items():
        found = pattern.match(line)
        if found:
            return kind, line[found.end() :]
    return None, line


def best_clock(kind: str | None, *own: Clock) -> Clock:
    """Choose among the stamps of a line, those before it and the tool's own, the ones that leave out least."""
    return min({PREFIX_CLOCKS.get(kind or "", Clock.NONE), *own}, key=_WORTH.index)


def without_prefix(line: str, kind: str | None) -> str:
    """Take a stamp of that kind off a line."""
    return _PREFIX_PATTERNS[kind].sub("", line, count=1) if kind in _PREFIX_PATTERNS else line


def _epoch(text: pl.Expr) -> pl.Expr:
    per_unit = pl.when(text.str.len_chars() == _MILLIS_DIGITS).then(1e3).otherwise(1e6)
    whole = ~text.str.contains(".", literal=True)
    micros = text.cast(pl.Float64, strict=False) * pl.when(whole).then(per_unit).otherwise(1e6)
    return micros.round().cast(pl.Int64, strict=False).cast(pl.Datetime("us"))


def zoned(text: pl.Expr) -> pl.Expr:
    """Read an ISO 8601 stamp with its zone."""
    plain = (
        text.str.replace(" ", "T", literal=True)
        .str.replace(",", ".", literal=True)
        .str.replace(r"Z$", "+00:00")
    )
    stamp = plain.str.to_datetime("%Y-%m-%dT%H:%M:%S%.f%z", strict=False, time_unit="us")
    return sane(stamp.dt.convert_time_zone("UTC").dt.replace_time_zone(None))


def sane(stamp: pl.Expr) -> pl.Expr:
    """Leave out years that no log is of: Python has none before 1 and none after 9999."""
    return pl.when(stamp.dt.year().is_between(*_YEARS)).then(stamp)


def instant(text: pl.Expr, pattern: str) -> pl.Expr:
    """Read a stamp without a zone; NULL where there is no such day or time, or no GPU yet."""
    return sane(text.str.to_datetime(pattern, strict=False, time_unit="us"))


def time_of_day(text: pl.Expr) -> pl.Expr:
    """Put ``HH:MM:SS``, with or without a fraction, on the first day of the placeholder year."""
    return instant(pl.lit(_PLACEHOLDER_DAY) + text, "%Y-%m-%d %H:%M:%S%.f")


def outside_stamp(kind: str | None) -> pl.Expr:
    """Read the stamp that stands before the line (column ``outside``)."""
    text = pl.col("outside")
    if kind == "epoch":
        return _epoch(text)
    if kind == "zoned":
        return zoned(text)
    if kind == "dated":
        plain = text.str.replace("T", " ", literal=True).str.replace(",", ".", literal=True)
        return instant(plain, "%Y-%m-%d %H:%M:%S%.f")
    if kind == "ts":
        return instant(pl.lit(f"{PLACEHOLDER_YEAR} ") + text.str.replace(r" +", " "), "%Y %b %d %H:%M:%S%.f")
    if kind == "clock":
        return time_of_day(text)
    return pl.lit(None, pl.Datetime("us"))


def resolution(text: pl.Expr) -> pl.Expr:
    """Count the seconds that the last digit of a stamp stands for: 1 without a fraction, 0.001 with three digits."""
    digits = text.str.extract(r"[.,](\d+)", 1).str.len_chars().cast(pl.Int32).clip(0, 6).fill_null(0)
    millis = text.str.contains(r"^\d{13}$")
    return pl.when(millis).then(0.001).otherwise(pl.lit(10.0).pow(-digits.cast(pl.Float64)))
