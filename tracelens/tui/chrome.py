"""The first and the last line of every screen: where one is, and what the next key does."""

from __future__ import annotations

from rich.text import Text
from textual import events
from textual.widgets import Static

from tracelens.text.terminal import shorten
from tracelens.tui.ink import Ink, ink_of

ALWAYS = ("esc", "?", "F1")
"""Keys that the footer keeps where there is room for few: the way back, and the page of all keys."""


class Crumbs(Static):
    """Case ▸ run ▸ screen, and the time that the run spans."""

    def __init__(self) -> None:
        super().__init__("", markup=False, id="crumbs")
        self._parts: tuple[str, ...] = ()
        self._span = ""

    def show(self, parts: tuple[str, ...], span: str) -> None:
        """Set both ends of the line; texts are clean already."""
        self._parts, self._span = parts, span
        self.redraw()

    def redraw(self) -> None:
        """Draw for the width there is: the span goes first, then the middle of the way."""
        width = self.content_size.width or self.app.size.width
        ink = ink_of(self.app.current_theme)
        self.update(crumbs_line(self._parts, self._span, width, ink))

    def on_resize(self, _: events.Resize) -> None:
        """Draw for the new width."""
        self.redraw()


def crumbs_line(parts: tuple[str, ...], span: str, width: int, ink: Ink) -> Text:
    """The first line, at most `width` columns wide."""
    way = " ▸ ".join(parts)
    if len(way) > width and len(parts) > 2:  # noqa: PLR2004 - the case and the place are what stays
        way = f"{parts[0]} ▸ … ▸ {parts[-1]}"
    way = shorten(way, width, middle=True)
    head, arrow, last = way.rpartition(" ▸ ")
    line = Text(head + arrow, style=ink.dim, no_wrap=True)
    line.append(last, style=ink.strong)
    room = width - line.cell_len
    if span and len(span) + 2 <= room:
        line.append(" " * (room - len(span)))
        line.append(span, style=ink.dim)
    return line


class Keys(Static):
    """The keys that work here, as many as fit."""

    def __init__(self) -> None:
        super().__init__("", markup=False, id="keys")
        self._keys: tuple[tuple[str, str], ...] = ()

    def show(self, keys: tuple[tuple[str, str], ...]) -> None:
        """Keys and what each does, the most useful first."""
        self._keys = keys
        self.redraw()

    def redraw(self) -> None:
        """Draw for the width there is."""
        self.update(
            keys_line(
                self._keys, self.content_size.width or self.app.size.width, ink_of(self.app.current_theme)
            )
        )

    def on_resize(self, _: events.Resize) -> None:
        """Draw for the new width."""
        self.redraw()


def keys_line(keys: tuple[tuple[str, str], ...], width: int, ink: Ink) -> Text:
    """The last line: what does not fit is left out, the way back and help never."""
    kept = [pair for pair in keys if pair[0] in ALWAYS]
    room = width - sum(len(key) + len(label) + 3 for key, label in kept)
    shown: list[tuple[str, str]] = []
    for key, label in keys:
        size = len(key) + len(label) + 3
        if (key, label) in kept:
            continue
        if size > room:
            break
        shown.append((key, label))
        room -= size
    line = Text(no_wrap=True)
    for key, label in [*shown, *kept]:
        line.append(key, style=ink.strong)
        line.append(f" {label}  ", style=ink.dim)
    line.rstrip()
    return line
