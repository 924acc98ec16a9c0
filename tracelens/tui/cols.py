"""Columns of a table: which of them fit, and a row or the heading drawn in them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from rich.text import Text

from tracelens.text.terminal import shorten
from tracelens.tui.ink import Ink

_GAP: Final = 2
_MARK: Final = 2
"""Columns before the first cell: the cursor's mark."""

ARROWS: Final = 3
"""Columns at the end of the heading for the arrows to further columns."""
ANY: Final = 1000
"""For a column that takes all the width there is."""

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Col:
    """A column: its width, and how a row's cell is drawn.  `key` is the query's column by which it is ordered."""

    title: str
    width: int
    draw: Callable[[Row, Ink], Text]
    key: str = ""
    right: bool = False
    widest: int = 0
    """Takes what width is left over, up to this many columns."""
    middle: bool = False
    """Of what is too long, the middle is left out: ids and paths are told apart by their ends."""


Placed = tuple[Col, int]
"""A column that is shown, and how wide."""


def layout(cols: Sequence[Col], first: int, width: int) -> list[Placed]:
    """The columns that fit, each with its width: the first one, then those from the place `first` on.

    Where not all fit, room is left for the heading's arrows.
    """
    placed = _placed(cols, first, width - _MARK)
    return placed if len(placed) == len(cols) else _placed(cols, first, width - _MARK - ARROWS)


def _placed(cols: Sequence[Col], first: int, left: int) -> list[Placed]:
    taken: list[Placed] = []
    for col in (cols[0], *cols[first:]):
        size = min(col.width, left) if not taken else col.width
        if size > left:
            break
        taken.append((col, size))
        left -= size + _GAP
    left += _GAP
    for place, (col, size) in reversed(list(enumerate(taken))):
        more = max(min(left, col.widest - size), 0)
        taken[place] = (col, size + more)
        left -= more
    return taken


def heading(placed: Sequence[Placed], ordered_by: str, ink: Ink) -> Text:
    """The titles; the column that orders the rows (``ttft_s DESC``) has an arrow."""
    line = Text("  ", no_wrap=True)
    for col, size in placed:
        arrow = _arrow(col, ordered_by)
        line.append_text(_fitted(Text(col.title + arrow, style=ink.head), col, size))
        line.append(" " * _GAP)
    return line


def _arrow(col: Col, ordered_by: str) -> str:
    name, _, way = ordered_by.partition(" ")
    return ("▼" if way.upper() == "DESC" else "▲") if col.key and name == col.key else ""


def row_line(row: Row, placed: Sequence[Placed], ink: Ink, *, marked: bool) -> Text:
    """A row; the one under the cursor is marked."""
    line = Text("▸ " if marked else "  ", style=ink.strong if marked else "", no_wrap=True)
    for col, size in placed:
        line.append_text(_fitted(col.draw(row, ink), col, size))
        line.append(" " * _GAP)
    return line


def _fitted(text: Text, col: Col, size: int) -> Text:
    text = text.copy()
    text.no_wrap = True
    if text.cell_len > size and col.middle:
        text = Text(shorten(text.plain, size, middle=True), style=text.style, no_wrap=True)
    elif text.cell_len > size:
        text.truncate(size, overflow="ellipsis")
    blanks = max(size - text.cell_len, 0)
    if col.right:
        text.pad_left(blanks)
    else:
        text.pad_right(blanks)
    return text
