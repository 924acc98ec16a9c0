"""SQL: any question to the case, and the query behind every other screen."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar, Final

from rich.text import Text
from textual.binding import Binding, BindingType
from textual.widgets import TextArea

from tracelens.store import Result
from tracelens.text.rows import cell, is_number
from tracelens.text.terminal import clean, columns
from tracelens.tui.rows import Col, Row, Rows
from tracelens.tui.view import View

if TYPE_CHECKING:
    from textual.widget import Widget

    from tracelens.tui.ink import Ink

LIMIT: Final = 10_000
"""Rows that are fetched; the table says when there are more."""
_WIDEST: Final = 40


class SqlView(View):
    """An editor above, rows below."""

    NAME = "sql"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("f5,ctrl+r", "run_sql", "run", key_display="F5", priority=True)
    ]

    def __init__(self, text: str = "") -> None:
        super().__init__()
        self._text = text

    def title_text(self) -> str:
        """Its place in the way."""
        return "SQL"

    def compose_body(self) -> Iterable[Widget]:
        """Editor and rows."""
        yield TextArea(self._text or "SELECT * FROM stage_summary", id="editor", show_line_numbers=True)
        yield Rows("the query", (), name="rows")

    def load(self) -> None:
        """Run what stands in the editor."""
        self.action_run_sql()

    def action_run_sql(self) -> None:
        """Run what stands in the editor."""
        text = self.query_one(TextArea).text
        case = self.browser.case
        rows = self.query_one(Rows)
        self.ask(rows, lambda stop: case.sql(text, limit=LIMIT, stop=stop), self._show)

    def _show(self, result: Result) -> None:
        rows = self.query_one(Rows)
        names = [f"{place}" for place in range(len(result.columns))]
        rows.cols = tuple(_col(result, place) for place in range(len(result.columns)))
        if result.rows:
            rows.set_rows([dict(zip(names, row, strict=True)) for row in result.rows])
        else:
            rows.empty("no rows")


def _col(result: Result, place: int) -> Col:
    title = clean(result.columns[place])
    widest = max((columns(cell(row[place])) for row in result.rows[:200]), default=0)

    def draw(row: Row, _: Ink) -> Text:
        return Text(cell(row[f"{place}"]))

    width = min(max(widest, columns(title)), _WIDEST)
    return Col(title, width, draw, right=is_number(result.types[place]))
