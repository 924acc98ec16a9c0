"""Sources: what was read and what was not understood, how the clocks lie to each other, and which questions stay open."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final

from rich.text import Text
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll

from tracelens.store import Result
from tracelens.text.paths import common_folder
from tracelens.text.terminal import clean, shorten, wrap
from tracelens.tui.cols import ANY, Col, Row
from tracelens.tui.ink import Ink
from tracelens.tui.pane import Pane
from tracelens.tui.rows import Rows
from tracelens.tui.view import View
from tracelens.tui.words import clock
from tracelens.units import UNKNOWN, count, duration, plural

if TYPE_CHECKING:
    from textual.widget import Widget

Facts = Mapping[str, Any]
_STATES: Final = {"observed": "█", "derived": "▒", "within": "┊"}
_ANSWERS: Final = {"yes": "✓", "no": "✗", "cannot tell": "?"}
_LABEL: Final = 14


class Sources(View):
    """The files of the run."""

    NAME = "sources"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("g", "page", "clocks and gaps")]

    def __init__(self) -> None:
        super().__init__()
        self.files = Rows("the sources", _COLS, name="files", auto=True)
        self.clocks = Pane("the clocks", name="clocks")
        self.issues = Pane("lines not understood", name="issues", classes="ruled")
        self.coverage = Pane("open questions", name="coverage", classes="ruled")
        self.checklist = Pane("the checklist", name="checklist", classes="ruled")

    def title_text(self) -> str:
        """Its place in the way."""
        return "Sources"

    def compose_body(self) -> Iterable[Widget]:
        """The files; below them clocks, what was not understood, what stays open."""
        yield self.files
        yield VerticalScroll(
            self.clocks, self.issues, self.coverage, self.checklist, can_focus=True, id="page"
        )

    def load(self) -> None:
        """Everything that is known of the files."""
        self.query_case(self.files, "sources", self._show_files, run=self.run_id)
        asks: tuple[tuple[Pane, str, _Lines, str], ...] = (
            (
                self.clocks,
                "clock_offsets",
                clock_lines,
                "no two clocks to compare: one source, or none with stamps",
            ),
            (self.issues, "issues", issue_lines, "every line of every source was understood"),
            (self.coverage, "coverage", coverage_lines, "no question was asked of these files"),
            (self.checklist, "checklist", checklist_lines, "no checklist"),
        )
        for part, name, draw, nothing in asks:
            self.query_case(part, name, _shown(part, draw, nothing), run=self.run_id)
        self.files.focus(scroll_visible=False)

    def _show_files(self, result: Result) -> None:
        rows = result.dicts()
        if not rows:
            self.files.empty("This case is empty. Read logs into it: tracelens ingest FILES... -c CASE")
            return
        _, inside = common_folder([row["path"] for row in rows])
        self.files.set_rows([{**row, "name": inside(row["path"])} for row in rows])

    def action_page(self) -> None:
        """Go to the part below the files."""
        self.query_one("#page").focus()

    def on_rows_opened(self, message: Rows.Opened) -> None:
        """All that is known of a file."""
        row = message.row
        said = [
            row["path"], f"{row['format']}, {row['variant'] or 'no variant'}, {row['side']} side", f"{plural(row['record_count'], 'row')} in the case",
            row["time_basis"],
        ]  # fmt: skip
        self.notify("\n".join(clean(text) for text in said), timeout=15, markup=False)


_Lines = Callable[[Sequence[Facts], int, Ink], Iterator[Text]]


def _shown(part: Pane, draw: _Lines, nothing: str) -> Callable[[Result], None]:
    def show(result: Result) -> None:
        rows = result.dicts()
        if rows:
            part.fill(lambda width, ink: draw(rows, width, ink))
        else:
            part.empty(nothing)

    return show


def _told(label: str, text: str, width: int, style: str, ink: Ink) -> Iterator[Text]:
    for place, line in enumerate(wrap(clean(text), max(width - _LABEL, 20))):
        yield Text.assemble((f"{'' if place else label:<{_LABEL}}", ink.head), (line, style), no_wrap=True)


def clock_lines(rows: Sequence[Facts], width: int, ink: Ink) -> Iterator[Text]:
    """How far each clock is from the server's, and how sure that is."""
    yield Text("clocks: the server's is ahead of", style=ink.head)
    _, inside = common_folder([row["from_path"] for row in rows])
    for row in rows:
        known = row["chosen_s"] is not None
        said = f"{duration(row['chosen_s'])} ± {duration(row['error_s'])}" if known else "not known"
        ends = (
            f", between {duration(row['low_s'])} and {duration(row['high_s'])}"
            if row["low_s"] is not None
            else ""
        )
        server = (
            f" (against {row['to_path'].rpartition('/')[2]}, {plural(row['pair_count'], 'pair')})"
            if row["to_path"]
            else ""
        )
        yield Text(
            shorten(f"  {clean(inside(row['from_path']))}{clean(server)}", width),
            style=ink.link,
            no_wrap=True,
        )
        yield from _told("", f"{said}{ends}; {row['basis']}", width, ink.plain if known else ink.dim, ink)


def issue_lines(rows: Sequence[Facts], width: int, ink: Ink) -> Iterator[Text]:
    """Lines that were not understood, by file and reason."""
    yield Text("lines not understood", style=ink.head)
    for row in rows:
        where = f"{row['path'].rpartition('/')[2]}:{row['first_line_no']}"
        yield Text(
            shorten(clean(f"  {count(row['issue_count'])}  {row['reason']}, first {where}"), width),
            style=ink.warn,
            no_wrap=True,
        )
        yield Text(shorten(clean(f"      {row['first_excerpt'] or ''}"), width), style=ink.dim, no_wrap=True)


def coverage_lines(rows: Sequence[Facts], width: int, ink: Ink) -> Iterator[Text]:
    """Which questions the files answer, and what would open those that stay closed."""
    yield Text("which questions these files answer, in how many rows", style=ink.head, no_wrap=True)
    yield Text("█ observed  ▒ derived  ┊ inside another  ✗ not", style=ink.dim, no_wrap=True)
    subject = max(len(row["subject"]) for row in rows)
    known = max(len(_known(row)) for row in rows)
    for row in rows:
        answered = row["state"] in _STATES
        head = f"{_STATES.get(row['state'], '✗')} {row['subject']:<{subject}} {_known(row):>{known}}  "
        line = Text(head, style=ink.plain if answered else ink.warn, no_wrap=True)
        yield line.append(
            shorten(clean(row["question"]), width - line.cell_len), style=ink.plain if answered else ink.dim
        )
        if not answered and row["switch_on"]:
            yield Text(shorten(clean(f"    record: {row['switch_on']}"), width), style=ink.dim, no_wrap=True)


def _known(row: Facts) -> str:
    return (
        f"{count(row['observed_count'])} of {count(row['of_count'])}"
        if row["of_count"] and row["observed_count"]
        else ""
    )


def checklist_lines(rows: Sequence[Facts], width: int, ink: Ink) -> Iterator[Text]:
    """The points to settle before going live."""
    yield Text("before going live", style=ink.head)
    for row in rows:
        style = {"yes": ink.good, "no": ink.bad}.get(row["answer"], ink.warn)
        line = Text(f"{_ANSWERS.get(row['answer'], '?')} {row['answer']:<12}", style=style, no_wrap=True)
        yield line.append(shorten(clean(row["question"]), width - line.cell_len))
        yield from _told("", row["why"], width, ink.dim, ink)
        if row["answer"] != "yes" and row["switch_on"]:
            yield from _told("", f"switch on: {row['switch_on']}", width, ink.dim, ink)


def _name(row: Row, ink: Ink) -> Text:
    return Text(clean(row["name"]), style=ink.link)


def _skipped(row: Row, ink: Ink) -> Text:
    return Text(count(row["skipped_count"]), style=ink.warn if row["skipped_count"] else ink.dim)


def _span(row: Row, _: Ink) -> Text:
    if row["first_ts"] is None:
        return Text("no stamps")
    return Text(f"{row['first_ts']:%d %b} {clock(row['first_ts'])}–{clock(row['last_ts'])}")


_COLS: Final = (
    Col("file", 26, _name, "path", widest=60, middle=True),
    Col("format", 16, lambda row, _: Text(clean(row["format"]))),
    Col("lines", 9, lambda row, _: Text(count(row["line_count"])), right=True),
    Col("not understood", 14, _skipped, right=True),
    Col("rows", 9, lambda row, _: Text(count(row["record_count"])), right=True),
    Col("UTC", 25, _span),
    Col("side", 8, lambda row, _: Text(clean(row["side"] or UNKNOWN))),
    Col("time basis", 24, lambda row, ink: Text(clean(row["time_basis"]), style=ink.dim), widest=ANY),
)
