"""Stamps that stand in a column of a table: epoch numbers of any unit, ISO 8601 texts, times of day.

A number says by its size in which unit it counts from 1970 (instants lie between 2015 and 2050), so a column has one
kind, found once in the head of the file.  Numbers of another size count from an unknown zero and are no stamp.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import polars as pl

from tracelens.formats.base import Clock
from tracelens.formats.gpu.gpu_stamps import instant, time_of_day, zoned

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

CLOCKS: Final[Mapping[str, Clock]] = {
    "epoch_s": Clock.UTC,
    "epoch_ms": Clock.UTC,
    "epoch_us": Clock.UTC,
    "epoch_ns": Clock.UTC,
    "zoned": Clock.UTC,
    "dated": Clock.LOCAL,
    "ctime": Clock.LOCAL,
    "clock": Clock.DAYLESS,
}
"""What stamps of each kind are worth."""

_PER_SECOND: Final = {"epoch_s": 1, "epoch_ms": 1_000, "epoch_us": 1_000_000, "epoch_ns": 1_000_000_000}
_EPOCH_S: Final = (1_420_070_400, 2_524_608_000)
"""From 2015 to 2050."""

_NUMBER: Final = re.compile(r"\d{1,20}(?:\.\d{1,12})?", re.ASCII)
_TEXTS: Final = {
    "zoned": re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})? ?(?:Z|[+-]\d\d:?\d\d)", re.ASCII),
    "dated": re.compile(r"\d{4}([-/])\d\d\1\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?", re.ASCII),
    "ctime": re.compile(r"[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]?\d \d\d:\d\d:\d\d \d{4}", re.ASCII),
    "clock": re.compile(r"\d\d:\d\d:\d\d(?:\.\d{1,9})?", re.ASCII),
}


def kind_of(cell: str) -> str | None:
    """Say what kind of stamp a cell holds; None where it holds none."""
    if _NUMBER.fullmatch(cell):
        low, high = _EPOCH_S
        amount = float(cell)
        return next((kind for kind, per in _PER_SECOND.items() if low * per <= amount < high * per), None)
    return next((kind for kind, pattern in _TEXTS.items() if pattern.fullmatch(cell)), None)


def kind_in(cells: Sequence[str]) -> str | None:
    """Say what kind of stamp most cells of a column hold; None where they hold none or differ."""
    kinds = [kind_of(cell.strip()) for cell in cells]
    found = [kind for kind in kinds if kind]
    first = max(sorted(set(found)), key=found.count) if found else None
    return first if found.count(first or "") * 2 > len(kinds) else None


def _epoch(cell: pl.Expr, per_second: int) -> pl.Expr:
    whole = cell.cast(pl.Int64, strict=False)
    exact = whole * (1_000_000 // per_second) if per_second <= 1_000_000 else whole // 1_000  # noqa: PLR2004
    rounded = (cell.cast(pl.Float64, strict=False) * (1e6 / per_second)).round()
    low, high = (bound * 1_000_000 for bound in _EPOCH_S)
    micros = pl.coalesce(exact, pl.when(rounded.abs() < 1e18).then(rounded).cast(pl.Int64, strict=False))  # noqa: PLR2004
    return pl.when(micros.is_between(low, high)).then(micros).cast(pl.Datetime("us"))


def stamp(cell: pl.Expr, kind: str) -> pl.Expr:
    """Read a column's stamps; NULL where a cell holds none of its kind."""
    if kind in _PER_SECOND:
        return _epoch(cell, _PER_SECOND[kind])
    if kind == "zoned":
        return zoned(cell.str.replace(r" ([Z+-])", "$1"))
    if kind == "clock":
        return time_of_day(cell)
    if kind == "ctime":
        return instant(cell.str.replace_all(r" +", " "), "%a %b %d %H:%M:%S %Y")
    plain = (
        cell.str.replace_all("/", "-", literal=True)
        .str.replace("T", " ", literal=True)
        .str.replace(",", ".", literal=True)
    )
    return instant(plain, "%Y-%m-%d %H:%M:%S%.f")


def resolution(cell: pl.Expr, kind: str) -> pl.Expr:
    """Count the seconds that the last digit of a stamp stands for."""
    if kind in _PER_SECOND and kind != "epoch_s":
        return pl.lit(max(1e-6, 1 / _PER_SECOND[kind]))
    digits = cell.str.extract(r"[.,](\d+)", 1).str.len_chars().cast(pl.Int32).clip(0, 6).fill_null(0)
    return pl.lit(10.0).pow(-digits.cast(pl.Float64))
