"""A line of a source with those around it: from its file where that is still the same, else what the case keeps of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar, Final

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Static

from tracelens.store import Stop
from tracelens.text.terminal import clean, shorten, wrap
from tracelens.tui.asking import Asking
from tracelens.tui.draw import sentence
from tracelens.tui.ink import Ink
from tracelens.tui.pane import Pane

if TYPE_CHECKING:
    from tracelens.ingestion.around import Around

_NUMBER: Final = 10
"""Columns before a line: the mark and its number."""
_ROWS: Final = 2
"""Rows that a line beside the one looked for may take."""


class FileLines(Asking, ModalScreen[None]):
    """`path` and `line_no` are those of the case; `says` is what the case keeps of the line."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,enter", "close", "back"),
        Binding("y", "copy", "copy"),
    ]

    def __init__(self, path: str, line_no: int, says: str) -> None:
        super().__init__()
        self.add_class("lines")
        self._path = path
        self._line_no = line_no
        self._says = says
        self.note = Pane("the file", name="note")
        self.lines = Pane("the file", name="text")

    def compose(self) -> ComposeResult:
        """Where it stands, the lines, what the keys do."""
        name = self._path.rpartition("/")[2]
        title = Text(clean(f"{name}:{self._line_no}"), style="bold", no_wrap=True)
        with Vertical(id="box"):
            yield Static(title, markup=False, classes="title")
            yield self.note
            with VerticalScroll(id="page"):
                yield self.lines
            yield Static(Text("↑ ↓ scroll   y copy   esc back"), markup=False, classes="hint")

    def on_mount(self) -> None:
        """Read the file in a thread."""
        self.query_one("#page").focus()
        self.note.empty(self._path)
        self.ask(self.lines, self._read, self._show)

    def _read(self, stop: Stop) -> Around:
        from tracelens.ingestion.around import Around, around

        case = self.browser.case
        found = case.query("source_file", path=self._path, run=self.browser.run_id, stop=stop).dicts()
        if not found:
            return Around((), "the case has no such file")
        return around(case.path, found[0], self._line_no, stop)

    def _show(self, found: Around) -> None:
        self.note.fill(
            lambda width, ink: sentence(f"{found.note}: {self._path}", width, self._sure(found, ink))
        )
        self.lines.fill(lambda width, ink: self._drawn(found, width, ink))
        self.call_after_refresh(self._to_the_line)

    def _sure(self, found: Around, ink: Ink) -> str:
        return ink.dim if found.lines else ink.warn

    def _to_the_line(self) -> None:
        page = self.query_one("#page")
        place = self.lines.plain_text().split("\n▸")[0].count("\n")
        page.scroll_to(y=max(place - page.size.height // 3, 0), animate=False)

    def _drawn(self, found: Around, width: int, ink: Ink) -> Iterator[Text]:
        for number, text in found.lines:
            here = number == self._line_no
            parts = wrap(clean(text), max(width - _NUMBER, 10))
            if not here and len(parts) > _ROWS:
                parts = [*parts[: _ROWS - 1], shorten(" ".join(parts[_ROWS - 1 :]), max(width - _NUMBER, 10))]
            for place, part in enumerate(parts):
                head = "" if place else f"{'▸' if here else ' '} {number:>7,} "
                yield Text(f"{head:<{_NUMBER}}{part}", style=ink.strong if here else ink.dim, no_wrap=True)
        if found.lines:
            yield Text()
        yield Text("what the case keeps of the line", style=ink.head)
        yield from sentence(self._says or "nothing more than its number", width)

    def action_copy(self) -> None:
        """Copy all that it shows."""
        self.browser.outbox.copy(self.lines.plain_text())

    def action_close(self) -> None:
        """Stop reading, and go back."""
        self.stop_all()
        self.dismiss(None)
