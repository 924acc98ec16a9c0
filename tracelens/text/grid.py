"""Aligned columns of text that fit a terminal."""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tracelens.text.terminal import columns, pad, shorten, wrap

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

LEAST: Final = 10
"""Columns that a shortened cell keeps."""
_GAP: Final = "  "


@dataclass(frozen=True, slots=True)
class Column:
    """Heading of a column; `right` for numbers, `middle` where the ends of a text tell more than its middle."""

    title: str
    right: bool = False
    middle: bool = False
    fixed: bool = False
    """Never shortened, such as a bar."""
    wraps: bool = False
    """Goes on in further lines instead of being shortened; for the last column."""


def terminal_width() -> int | None:
    """Columns of the terminal (or ``$COLUMNS``); None where nobody looks at the width."""
    if sys.stdout.isatty() or os.environ.get("COLUMNS", "").isdigit():
        return shutil.get_terminal_size().columns
    return None


def natural_width(heads: Sequence[Column], rows: Sequence[Sequence[str]]) -> int:
    """Columns that a grid takes when nothing is shortened."""
    widths = _widths(heads, rows)
    return sum(widths) + len(_GAP) * max(len(widths) - 1, 0)


def grid(heads: Sequence[Column], rows: Sequence[Sequence[str]], limit: int | None = None) -> Iterator[str]:
    """Heading, rule and rows (cells already clean), text cells shortened until a line takes at most `limit` columns."""
    widths = _widths(heads, rows)
    if limit is not None:
        widths = _fitted(heads, widths, limit - len(_GAP) * (len(widths) - 1))
    yield _line(heads, widths, [head.title for head in heads])
    yield _GAP.join("─" * width for width in widths)
    for row in rows:
        yield from _lines(heads, widths, row)


def _widths(heads: Sequence[Column], rows: Sequence[Sequence[str]]) -> list[int]:
    return [
        max(columns(cell) for cell in (head.title, *cells))
        for head, cells in zip(heads, _turned(heads, rows), strict=True)
    ]


def _turned(heads: Sequence[Column], rows: Sequence[Sequence[str]]) -> list[tuple[str, ...]]:
    return list(zip(*rows, strict=True)) if rows else [() for _ in heads]


def _fitted(heads: Sequence[Column], widths: list[int], limit: int) -> list[int]:
    """Widths with the widest text columns cut down first; still too wide where only numbers are left."""
    fitted = list(widths)
    texts = [place for place, head in enumerate(heads) if not (head.right or head.fixed)]
    while sum(fitted) > limit:
        widest = max(texts, key=lambda place: fitted[place], default=None)
        if widest is None or fitted[widest] <= LEAST:
            break
        fitted[widest] -= 1
    return fitted


def _lines(heads: Sequence[Column], widths: Sequence[int], cells: Sequence[str]) -> Iterator[str]:
    """One row, on as many lines as its wrapping column needs."""
    if not heads[-1].wraps:
        yield _line(heads, widths, cells)
        return
    first, *more = wrap(cells[-1], widths[-1])
    yield _line(heads, widths, [*cells[:-1], first])
    for part in more:
        yield _line(heads, widths, [*("" for _ in cells[:-1]), part])


def _line(heads: Sequence[Column], widths: Sequence[int], cells: Sequence[str]) -> str:
    padded = (
        pad(shorten(cell, width, middle=head.middle), width, right=head.right)
        for head, width, cell in zip(heads, widths, cells, strict=True)
    )
    return _GAP.join(padded).rstrip()
