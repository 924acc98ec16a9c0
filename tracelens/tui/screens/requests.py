"""All requests: a table of any length, ordered by any column, filtered by an expression or by what one mostly looks for."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar, Final

from rich.text import Text
from textual.binding import Binding, BindingType

from tracelens.errors import QueryError, UsageError
from tracelens.marks import Mark
from tracelens.store import Stop
from tracelens.text.bars import Piece
from tracelens.text.terminal import clean, shorten
from tracelens.tui.cols import Col, Row
from tracelens.tui.dialogs import Choice, Prompt
from tracelens.tui.draw import stage_bar
from tracelens.tui.listed import QUERY, Page
from tracelens.tui.listed import Requests as Listed
from tracelens.tui.pane import Asked, Pane
from tracelens.tui.rows import PAGE, Rows
from tracelens.tui.view import View
from tracelens.tui.words import clock
from tracelens.units import count, duration, percentile, plural

if TYPE_CHECKING:
    from textual.widget import Widget

    from tracelens.tui.ink import Ink

SLOWEST_FIRST: Final = "ttft_s DESC"
PRESETS: Final = (
    ("", "all requests"),
    ("ttft_percentile_ratio >= 0.99", "slowest 1 %"),
    ("ttft_percentile_ratio >= 0.9", "slowest 10 %"),
    ("status = 'aborted'", "aborted"),
    ("status IN ('error', 'rejected')", "failed"),
    ("status = 'unknown'", "no end seen"),
    ("NOT streamed", "not streamed"),
    ("preemption_count > 0", "preempted"),
    ("cached_input_tokens > 0", "with a hit of the prefix cache"),
)
"""Expressions, and what they choose."""
_WRITE: Final = "\x00write"
_COLUMNS: Final = "status arrival_ts ttft_s ttft_percentile_ratio queue_s prefill_s tpot_s e2e_s input_tokens output_tokens label"
_BAR: Final = 12
_REST: Final = "r"
"""Letter of what is neither queue nor prefill."""


class Requests(View):
    """The table; `given` is an expression to filter by."""

    NAME = "requests"
    filters = True
    orders = True
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("percent_sign", "percentile", "to a percentile", key_display="%"),
    ]

    def __init__(self, given: str = "", order: str = SLOWEST_FIRST) -> None:
        super().__init__()
        self.where = given
        self.order = order
        self.rows = Rows(
            "requests",
            (Col("request", 27, self._request, "request_id", widest=60, middle=True), *_COLS),
            name="requests",
        )
        self.head = Pane("how many there are", name="head")

    def title_text(self) -> str:
        """Its place in the way, with the filter."""
        return f"Requests ({shorten(self._filter_name(), 40)})" if self.where else "Requests"

    def _filter_name(self) -> str:
        if self.where == self.browser.window_expression():
            return f"window {self.browser.window_text()}"
        return clean(dict(PRESETS).get(self.where, self.where))

    def compose_body(self) -> Iterable[Widget]:
        """What is chosen, and the rows."""
        yield self.head
        yield self.rows

    def load(self) -> None:
        """Choose, order, and show the first page."""
        listed = self._listed()
        self.rows.ordered_by = self.order
        self.rows.asked = self.head.asked = Asked(QUERY, {"run": listed.run}, listed.narrow)
        self.head.fill(lambda _, ink: [self._headline("requests", ink)])

        def work(stop: Stop) -> Page:
            try:
                return listed.first(PAGE, stop)
            except QueryError as error:
                hint = "f changes the expression" if self.where else error.hint
                raise QueryError(str(error).partition("\n")[0], hint=hint) from error

        self.ask(self.rows, work, self._show)
        self.rows.focus()

    def _listed(self) -> Listed:
        return Listed(self.browser.case, self.run_id, self.where, self.order)

    def _show(self, page: Page) -> None:
        found = page.count or 0
        self.head.fill(lambda _, ink: [self._headline(plural(found, "request"), ink)])
        if not found:
            self.rows.empty(*self._nothing())
            return
        self.rows.begin(found)
        self.rows.give(0, page.rows)

    def _nothing(self) -> tuple[str, ...]:
        if self.where:
            return (f"no request of this run: {self._filter_name()}", "f chooses others")
        return (
            "no request in this run",
            "Requests come from spans (--otlp-traces-endpoint), request lines (--enable-log-requests) or a client's file.",
        )

    def _headline(self, found: str, ink: Ink) -> Text:
        name, _, way = self.order.partition(" ")
        name = next((col.title for col in self.rows.cols if col.key == name), name)
        line = Text(found, style=ink.strong, no_wrap=True)
        said = f" · {self._filter_name()}" if self.where else ""
        line.append(f"{said} · by {name}, {'largest' if way == 'DESC' else 'smallest'} first", style=ink.dim)
        return line.append("  Q queue  P prefill  r rest of TTFT", style=ink.dim)

    def on_rows_needed(self, message: Rows.Needed) -> None:
        """Fetch the page that is in view."""
        listed, offset, limit, found = self._listed(), message.offset, message.limit, self.rows.count
        work = lambda stop: listed.page(offset, limit, found, stop)  # noqa: E731
        self.ask(self.rows, work, lambda one: self.rows.give(one.offset, one.rows), quiet=True)

    def on_rows_opened(self, message: Rows.Opened) -> None:
        """A request opens."""
        self.browser.open("request", message.row["request_id"])

    def on_rows_moved(self, _: Rows.Moved) -> None:
        """Whether there is something to mark may have changed."""
        self.show_keys()

    # Keys -------------------------------------------------------------------------------------------------------------

    def action_filter(self) -> None:
        """Choose a preset, or write an expression."""
        window = self.browser.window_expression()
        presets = [*PRESETS, *([(window, f"this window: {self.browser.window_text()}")] if window else [])]
        options = [(_WRITE, "write an expression …"), *presets]
        self.app.push_screen(Choice("Requests to show", options, self.where), self._take_filter)

    def _take_filter(self, chosen: str | None) -> None:
        if chosen == _WRITE:
            hint = f"an SQL expression over: {_COLUMNS}; such as  ttft_s > 2 AND input_tokens < 1000"
            self.app.push_screen(Prompt("Show requests where", hint, self.where), self._filter_by)
        else:
            self._filter_by(chosen)

    def _filter_by(self, expression: str | None) -> None:
        if expression is not None and expression != self.where:
            self.where = expression.strip()
            self.show_way()
            self.load()

    def action_order(self) -> None:
        """Choose a column; the one that is chosen already turns round."""
        name, _, way = self.order.partition(" ")
        arrows = {name: "  ▼ largest first" if way == "DESC" else "  ▲ smallest first"}
        options = [(col.key, col.title + arrows.get(col.key, "")) for col in self.rows.cols if col.key]
        self.app.push_screen(Choice("Order by (again: the other way)", options, name), self._take_order)

    def _take_order(self, key: str | None) -> None:
        if key is None:
            return
        name, _, way = self.order.partition(" ")
        self.order = f"{key} {'ASC' if name == key and way == 'DESC' else 'DESC'}"
        self.load()

    def action_percentile(self) -> None:
        """Ask for a percentile of TTFT, and go there."""
        self.app.push_screen(
            Prompt("To which percentile of TTFT?", "such as 99 or p99.9", "99", _check_percentile), self._go
        )

    def _go(self, given: str | None) -> None:
        if given is None:
            return
        ratio = _percentile(given)
        if self.order != SLOWEST_FIRST:
            self.order = SLOWEST_FIRST
            self.load()
        listed = self._listed()
        self.ask(self.head, lambda stop: listed.place_at(ratio, stop), self._gone, quiet=True)

    def _gone(self, place: int | None) -> None:
        if place is None:
            self.notify("no request here is that fast", severity="warning", markup=False)
        else:
            self.rows.move(place)

    # Marks and cells --------------------------------------------------------------------------------------------------

    def marked(self) -> Mark | None:
        """The request under the cursor."""
        row = self.rows.row
        return Mark("request", self.run_id, row["request_id"]) if row is not None else None

    def marks_changed(self) -> None:
        """Draw the marks of the rows."""
        self.rows.refresh()
        super().marks_changed()

    def copied_text(self) -> str:
        """The row under the cursor."""
        return self.rows.plain_text()

    def _request(self, row: Row, ink: Ink) -> Text:
        star = "★ " if self.browser.marks.on("request", row["request_id"]) else ""
        return Text(star + clean(row["request_id"]), style=ink.link)


def _bar(row: Row, ink: Ink) -> Text:
    pieces = [Piece(_REST, row["rest_s"]), Piece("Q", row["queue_s"]), Piece("P", row["prefill_s"])]
    known = [
        Piece(piece.letter, piece.seconds, "derived" if piece.letter == _REST else "observed")
        for piece in pieces
        if piece.seconds
    ]
    return stage_bar(known, _BAR, ink) if known else Text("┊" + " " * (_BAR - 2) + "┊", style=ink.dim)


def _end_to_end(row: Row, ink: Ink) -> Text:
    """From the log's whole seconds it is only known roughly."""
    rough = bool(row["e2e_error_s"])
    return Text(f"{'~' if rough else ''}{duration(row['e2e_s'])}", style=ink.dim if rough else ink.plain)


def _percentile(given: str) -> float:
    found = re.fullmatch(r"\s*[pP]?\s*(\d{1,2}(?:\.\d+)?|100)\s*%?\s*", given)
    if found is None:
        raise UsageError(f"{given!r} is no percentile", hint="such as 99 or p99.9")
    return float(found[1]) / 100


def _check_percentile(given: str) -> None:
    _percentile(given)


_COLS: Final = (
    Col("TTFT", 9, lambda row, ink: Text(duration(row["ttft_s"]), style=ink.strong), "ttft_s", right=True),
    Col(
        "rank",
        6,
        lambda row, _: Text(percentile(row["ttft_percentile_ratio"])),
        "ttft_percentile_ratio",
        right=True,
    ),
    Col("where it went", _BAR + 1, _bar),
    Col("queue", 9, lambda row, _: Text(duration(row["queue_s"])), "queue_s", right=True),
    Col("prefill", 9, lambda row, _: Text(duration(row["prefill_s"])), "prefill_s", right=True),
    Col("TPOT", 8, lambda row, _: Text(duration(row["tpot_s"])), "tpot_s", right=True),
    Col("E2E", 9, _end_to_end, "e2e_s", right=True),
    Col("tokens in", 9, lambda row, _: Text(count(row["input_tokens"])), "input_tokens", right=True),
    Col(
        "cached", 7, lambda row, _: Text(count(row["cached_input_tokens"])), "cached_input_tokens", right=True
    ),
    Col("out", 6, lambda row, _: Text(count(row["output_tokens"])), "output_tokens", right=True),
    Col(
        "status",
        8,
        lambda row, ink: Text(row["status"], style=ink.plain if row["status"] == "ok" else ink.bad),
        "status",
    ),
    Col("arrived", 12, lambda row, _: Text(clock(row["arrival_ts"], finely=True)), "arrival_ts"),
    Col("preempted", 9, lambda row, _: Text(count(row["preemption_count"])), "preemption_count", right=True),
    Col("label", 14, lambda row, _: Text(clean(row["label"] or "")), "label"),
    Col("end", 10, lambda row, _: Text(clean(row["finish_reason"] or "")), "finish_reason"),
)
"""The columns after the name."""
