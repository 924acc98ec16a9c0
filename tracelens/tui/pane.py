"""A part of a screen that is text: drawn anew for each width, and never blank."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rich.text import Text
from textual import events
from textual.widgets import Static

from tracelens.errors import TracelensError
from tracelens.text.terminal import clean, wrap
from tracelens.tui.ink import Ink, ink_of

if TYPE_CHECKING:
    from tracelens.store import Narrow

Draw = Callable[[int, Ink], Iterable[Text]]
"""Lines for a width in columns."""


@dataclass(frozen=True, slots=True)
class Asked:
    """The named query behind a part, so that it can be shown as SQL and exported."""

    name: str
    params: dict[str, Any] = field(default_factory=dict)
    narrow: Narrow | None = None


def trouble(error: BaseException) -> list[str]:
    """An error as lines for people: what, and what to do next."""
    if isinstance(error, TracelensError):
        hint = [f"hint: {error.hint}"] if error.hint else []
        return [f"error: {error}", *hint]
    return [f"error: {type(error).__name__}: {error}", "hint: this is a fault of tracelens; please report it"]


def told(error: TracelensError | OSError) -> str:
    """An error in one line, for a notice."""
    hint = error.hint if isinstance(error, TracelensError) else ""
    return clean(f"{error}" + (f" ({hint})" if hint else ""))


def message(lines: Iterable[str], width: int, style: str) -> list[Text]:
    """Sentences wrapped, each line of one style; a line that begins with blanks points at something above it."""
    return [
        Text(part, style=style, no_wrap=True)
        for line in lines
        for piece in line.split("\n")
        for part in ([clean(piece)] if piece.startswith(" ") else wrap(clean(piece), max(width, 10)))
    ]


class Pane(Static):
    """Text from rows.  Waiting, empty, failed or filled; each of them says so."""

    DEFAULT_CSS = """
    Pane { height: auto; width: 1fr; text-wrap: nowrap; text-overflow: ellipsis; }
    """

    def __init__(self, reads: str, *, name: str = "", classes: str | None = None) -> None:
        super().__init__("", markup=False, id=name or None, classes=classes)
        self.asked: Asked | None = None
        self.reads = reads
        self._draw: Draw = self._drawn_waiting
        self._drawn_for: tuple[int, bool] | None = None

    def waiting(self) -> None:
        """Say that it is being read, in the place of what was there."""
        self.fill(self._drawn_waiting)

    def _drawn_waiting(self, width: int, ink: Ink) -> list[Text]:
        return message([f"reading {self.reads} …"], width, ink.dim)

    def stopped(self) -> None:
        """Say that it was stopped by the user."""
        self.fill(lambda width, ink: message([f"{self.reads}: stopped (F5 reads it again)"], width, ink.dim))

    def fail(self, error: BaseException) -> None:
        """Show an error in place."""
        self.fill(lambda width, ink: message(trouble(error), width, ink.bad))

    def empty(self, *sentences: str) -> None:
        """Say what is missing, and what would record it."""
        self.fill(lambda width, ink: message(sentences, width, ink.dim))

    def fill(self, draw: Draw) -> None:
        """Show lines; `draw` is called again for a new width or theme."""
        self._draw = draw
        self.redraw()

    def redraw(self) -> None:
        """Draw again."""
        if not self.is_mounted:
            return
        width = self.content_size.width or self.app.size.width
        theme = self.app.current_theme
        try:
            lines = list(self._draw(width, ink_of(theme)))
        except Exception as error:  # noqa: BLE001 - a fault of drawing is shown where it is, not by the end of the program
            lines = message(trouble(error), width, ink_of(theme).bad)
        self._drawn_for = (width, theme.dark)
        self.update(Text("\n", no_wrap=True).join(lines))

    def on_mount(self) -> None:
        """Draw for the first time."""
        self.redraw()

    def on_resize(self, _: events.Resize) -> None:
        """Draw for the new width."""
        if self._drawn_for != (self.content_size.width, self.app.current_theme.dark):
            self.redraw()

    def plain_text(self) -> str:
        """What it shows, as text."""
        shown = self.content
        text = shown.plain if isinstance(shown, Text) else str(shown)
        return "\n".join(line.rstrip() for line in text.split("\n"))
