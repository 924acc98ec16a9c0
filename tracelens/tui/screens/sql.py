"""SQL: any question to the case, and the query behind every other screen."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final

from rich.text import Text
from textual.binding import Binding, BindingType
from textual.widgets import TextArea

from tracelens.errors import TracelensError
from tracelens.store import Result
from tracelens.text.rows import cell, is_number
from tracelens.text.terminal import clean, columns
from tracelens.tui.cols import Col, Row
from tracelens.tui.dialogs import Choice
from tracelens.tui.outbox import state_folder
from tracelens.tui.pane import Pane
from tracelens.tui.rows import Rows
from tracelens.tui.view import View
from tracelens.units import plural

if TYPE_CHECKING:
    from textual.widget import Widget

    from tracelens.tui.ink import Ink

LIMIT: Final = 10_000
"""Rows that are fetched; the table says when there are more."""
KEPT: Final = 200
"""Texts that the history keeps."""
_WIDEST: Final = 40
_START: Final = "SELECT stage, p50_s, p99_s, share_of_ttft_ratio\nFROM stage_summary\nORDER BY share_of_ttft_ratio DESC NULLS LAST, stage_index"
_SEEN: Final = 200
_OFFERED: Final = 200


class SqlView(View):
    """An editor above, rows below."""

    NAME = "sql"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("f5,ctrl+r", "run_sql", "run", key_display="F5", priority=True),
        Binding("f2,ctrl+at", "complete", "complete", key_display="F2", priority=True),
        Binding("ctrl+up", "history(-1)", "history", key_display="^↑", priority=True),
        Binding("ctrl+down", "history(1)", "later", show=False, priority=True),
    ]

    def __init__(self, text: str = "") -> None:
        super().__init__()
        self.editor = TextArea(text or _START, id="editor", show_line_numbers=True)
        self.head = Pane("the query", name="head")
        self.rows = Rows("the query", (), name="rows")
        self._history: list[str] = []
        self._place = 0

    def title_text(self) -> str:
        """Its place in the way."""
        return "SQL"

    def compose_body(self) -> Iterable[Widget]:
        """Editor and rows."""
        yield self.editor
        yield self.head
        yield self.rows

    def load(self) -> None:
        """Run what stands in the editor."""
        self._history = _read_history()
        self.action_run_sql()
        self.editor.focus()

    def keys(self) -> tuple[tuple[str, str], ...]:
        """While one writes, letters are text and no keys."""
        shown = super().keys()
        if self.focused is not self.editor:
            return shown
        return (("tab", "to the rows"), *(pair for pair in shown if len(pair[0]) > 1), ("F1", "help"))

    def action_run_sql(self) -> None:
        """Run what stands in the editor."""
        text = self.editor.text
        if not text.strip():
            self.rows.empty("nothing to run: write a query, F2 completes names of tables and columns")
            self.head.empty("")
            return
        self._remember(text)
        case = self.browser.case
        self.head.waiting()
        self.ask(self.rows, lambda stop: case.sql(text, limit=LIMIT, stop=stop), self._show)
        self.head.empty("")

    def _show(self, result: Result) -> None:
        names = [f"{place}" for place in range(len(result.columns))]
        self.rows.cols = tuple(_col(result, place) for place in range(len(result.columns)))
        more = " and more: the table holds no further ones, e writes all" if result.truncated else ""
        said = f"{plural(len(result.rows), 'row')}{more}"
        self.head.fill(lambda _, ink: [Text(said, style=ink.dim, no_wrap=True)])
        if result.rows:
            self.rows.set_rows([dict(zip(names, row, strict=True)) for row in result.rows])
        else:
            self.rows.empty(
                f"no rows; the columns would be {', '.join(clean(name) for name in result.columns)}"
            )

    # Completion -------------------------------------------------------------------------------------------------------

    def action_complete(self) -> None:
        """Offer names of tables, views and columns that go on from the word before the cursor."""
        word = self._word()
        try:
            tables = self.browser.case.query("schema_tables").dicts()
            fields = self.browser.case.query("schema_columns").dicts()
        except TracelensError as error:
            self.head.fail(error)
            return
        options = _offered(tables, fields, self.editor.text, word)
        if len(options) == 1:
            self._complete(options[0][0])
        elif options:
            self.app.push_screen(
                Choice(f"Names with {word!r}" if word else "Tables and views", options), self._complete
            )
        else:
            self.notify(f"no name of a table or column has {clean(word)!r} in it", markup=False)

    def _word(self) -> str:
        row, column = self.editor.cursor_location
        found = re.search(r"\w*$", self.editor.document.get_line(row)[:column])
        return found[0] if found else ""

    def _complete(self, name: str | None) -> None:
        if name is None:
            return
        row, column = self.editor.cursor_location
        self.editor.replace(name, (row, column - len(self._word())), (row, column))
        self.editor.focus()

    # History ----------------------------------------------------------------------------------------------------------

    def _remember(self, text: str) -> None:
        if not self._history or self._history[-1] != text:
            self._history = [*self._history, text][-KEPT:]
            _write_history(self._history)
        self._place = len(self._history) - 1

    def action_history(self, by: int) -> None:
        """The text that was run before, or after."""
        if self._history:
            self._place = max(0, min(self._place + by, len(self._history) - 1))
            self.editor.text = self._history[self._place]

    # Rows -----------------------------------------------------------------------------------------------------------------

    def action_show_sql(self) -> None:
        """It is here already."""
        self.editor.focus()

    def action_export(self) -> None:
        """Write all rows into a file."""
        text = self.editor.text
        self.browser.outbox.export_rows(lambda: self.browser.case.sql(text), "query")

    def copied_text(self) -> str:
        """The row under the cursor."""
        return self.rows.plain_text()

    def on_rows_opened(self, message: Rows.Opened) -> None:
        """A row that names a request opens it."""
        titles = [col.title for col in self.rows.cols]
        if "request_id" in titles:
            self.browser.open("request", str(message.row[str(titles.index("request_id"))]))
        else:
            self.notify(self.rows.plain_text(), timeout=15, markup=False)


def _offered(tables: list[Row], fields: list[Row], text: str, word: str) -> list[tuple[str, str]]:
    """Names that begin with a word, those of tables that the text names first; then those that have it inside."""
    named = {row["name"] for row in tables if re.search(rf"\b{re.escape(row['name'])}\b", text)}
    rows = [(row["name"], f"{row['name']}  ({row['kind']})", row["name"] in named) for row in tables]
    if word or named:
        rows += [
            (
                row["column_name"],
                f"{row['column_name']}  {row['type']}, {row['table_name']}",
                row["table_name"] in named,
            )
            for row in fields
        ]
    low = word.lower()
    fitting = [one for one in rows if low in one[0].lower() and one[0].lower() != low]
    ranked = sorted(fitting, key=lambda one: (not one[0].lower().startswith(low), not one[2], one[0]))
    return list({name: (name, shown) for name, shown, _ in reversed(ranked)}.values())[::-1][:_OFFERED]


def _history_path() -> Path:
    return state_folder() / "sql_history.json"


def _read_history() -> list[str]:
    try:
        found = json.loads(_history_path().read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return []
    return [text for text in found if isinstance(text, str)] if isinstance(found, list) else []


def _write_history(texts: list[str]) -> None:
    path = _history_path()
    with contextlib.suppress(OSError):  # a history that cannot be kept is no reason not to answer
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(texts), encoding="utf-8")


def _col(result: Result, place: int) -> Col:
    title = clean(result.columns[place])
    widest = max((columns(cell(row[place])) for row in result.rows[:_SEEN]), default=0)

    def draw(row: Row, _: Ink) -> Text:
        return Text(cell(row[f"{place}"]))

    width = min(max(widest, columns(title)), _WIDEST)
    return Col(title, width, draw, right=is_number(result.types[place]))
