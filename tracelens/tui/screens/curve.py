"""TTFT over prompt length, and TPOT apart from it: points, the straight line, and the requests that lie far from it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final

from rich.text import Text
from textual.binding import Binding, BindingType
from textual.containers import Container

from tracelens.marks import Mark
from tracelens.store import Result
from tracelens.text.terminal import clean
from tracelens.tui.cols import Col, Row
from tracelens.tui.draw import sentence
from tracelens.tui.ink import Ink, ink_of
from tracelens.tui.pane import Pane
from tracelens.tui.rows import Rows
from tracelens.tui.screens.plots import Plot, rgb, round_ticks, tick_text, upright
from tracelens.tui.view import View
from tracelens.units import count, duration, number, plural

if TYPE_CHECKING:
    from textual.geometry import Size
    from textual.widget import Widget

POINTS: Final = 2000
"""Points that are asked for; of more, all outliers and an even choice of the others."""
_WEAK_FIT: Final = 0.5
_MILLI: Final = 1000


class Curve(View):
    """Scatter, fit, outliers."""

    NAME = "curve"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("v", "other", "TTFT or TPOT")]

    def __init__(self) -> None:
        super().__init__()
        self.fit = Pane("the fit", name="fit")
        self.ttft = Plot(id="ttft")
        self.tpot = Plot(id="tpot")
        self.far = Rows("outliers", _COLS, name="far")
        self._points: list[dict[str, Any]] = []

    def title_text(self) -> str:
        """Its place in the way."""
        return "Prompt length"

    def compose_body(self) -> Iterable[Widget]:
        """The line in a sentence, both scatters, the outliers."""
        yield self.fit
        yield Container(self.ttft, self.tpot, id="plots")
        yield self.far

    def load(self) -> None:
        """The fit, and the points."""
        self.query_case(self.fit, "prompt_length_curve", self._show_fit, run=self.run_id)
        self.query_case(self.far, "curve_points", self._show, run=self.run_id, top=POINTS)
        self.far.focus(scroll_visible=False)

    def _show_fit(self, result: Result) -> None:
        row = next(iter(result.dicts()), None)
        if row is None or row["slope_s_per_1k_tokens"] is None:
            self.fit.empty("No line: it takes TTFT and prompt tokens of requests of several lengths.")
        else:
            self.fit.fill(lambda width, ink: fit_lines(row, width, ink))

    def _show(self, result: Result) -> None:
        self._points = result.dicts()
        far = [row for row in self._points if row["is_outlier"]]
        self.far.set_class(not far, "-auto")
        self.query_one("#plots").display = bool(self._points)
        if not self._points:
            self.far.empty(
                "No request has both a TTFT and the tokens of its prompt.",
                "Record it: spans (--otlp-traces-endpoint), or a client that notes TTFT and prompt tokens.",
            )
            return
        if far:
            marks = [{**row, "marked": self.browser.marks.on("request", row["request_id"])} for row in far]
            self.far.set_rows(marks)
        else:
            self.far.empty("no request lies far from the line")
        self._draw()

    def _draw(self) -> None:
        self.ttft.fill(self._draw_ttft)
        self.tpot.fill(self._draw_tpot)

    def _draw_ttft(self, plt: Any, size: Size) -> None:
        ink = ink_of(self.app.current_theme)
        plt.title(scatter_title("TTFT in s", self._points))
        scatter(plt, size, "ttft_s", 1, _parted(self._points), ink)
        line = sorted(
            (row["input_tokens"], row["line_s"]) for row in self._points if row["line_s"] is not None
        )
        if line:
            (low, start), (high, end) = line[0], line[-1]
            plt.plot([low, high], [start, end], marker="braille", color=rgb(ink.good))

    def _draw_tpot(self, plt: Any, size: Size) -> None:
        ink = ink_of(self.app.current_theme)
        plt.title(scatter_title("TPOT in ms", self._points))
        scatter(plt, size, "tpot_s", _MILLI, _parted(self._points), ink)

    def redraw(self) -> None:
        """Draw again, for another theme."""
        super().redraw()
        if self._points:
            self._draw()

    def action_other(self) -> None:
        """Where there is room for one, the other plot."""
        self.query_one("#plots").toggle_class("-tpot")

    def on_rows_opened(self, message: Rows.Opened) -> None:
        """An outlier opens."""
        self.browser.open("request", message.row["request_id"])

    def marked(self) -> Mark | None:
        """The outlier under the cursor."""
        row = self.far.row
        return Mark("request", self.run_id, row["request_id"]) if row is not None else None

    def copied_text(self) -> str:
        """The outlier under the cursor, and the line."""
        return f"{self.fit.plain_text()}\n{self.far.plain_text()}"


def fit_lines(row: Mapping[str, Any], width: int, ink: Ink) -> list[Text]:
    """The straight line in words: what a prompt costs, and what is fixed."""
    slope = row["slope_s_per_1k_tokens"]
    said = (
        f"TTFT ({row['measured_at']}) = {duration(row['intercept_s'])} {'−' if slope < 0 else '+'} {duration(abs(slope))} for each 1,000 prompt "
        f"tokens (95 % sure: {duration(row['slope_low_s'])} to {duration(row['slope_high_s'])}), r² {number(row['r2'])}, {plural(row['sample_count'], 'request')}"
    )
    weak = row["r2"] is not None and row["r2"] < _WEAK_FIT
    more = (
        ["The line explains little: what makes TTFT long here is not the length of the prompt."]
        if weak
        else []
    )
    return [
        *sentence(said, width, ink.strong),
        *(line for text in more for line in sentence(text, width, ink.warn)),
    ]


def scatter_title(measure: str, points: Sequence[Row]) -> str:
    """What is drawn, and what the two marks mean where there are two."""
    marks = "   • near the line  x far from it" if any(row["is_outlier"] for row in points) else ""
    return f"{measure} over prompt tokens{marks}"


def scatter(
    plt: Any,
    size: Size,
    key: str,
    times: float,
    points: tuple[Sequence[Row], Sequence[Row]],
    ink: Ink,
) -> None:
    """Points of one measure over prompt tokens: those near the line as dots, the others as crosses."""
    for rows, marker, style in ((points[0], "dot", ink.link), (points[1], "x", ink.warn)):
        known = [row for row in rows if row[key] is not None]
        if known:
            plt.scatter(
                [row["input_tokens"] for row in known],
                [row[key] * times for row in known],
                marker=marker,
                color=rgb(style),
            )
    _axes(plt, size, [row for rows in points for row in rows if row[key] is not None], key, times)


def _axes(plt: Any, size: Size, known: Sequence[Row], key: str, times: float) -> None:
    """Round ticks on both axes."""
    if not known:
        return
    upright(plt, max(row[key] for row in known) * times, size.height - 4)
    lengths = [row["input_tokens"] for row in known]
    ticks = round_ticks(min(lengths), max(lengths), max(min(size.width // 12, 8), 3))
    plt.xticks(ticks, [tick_text(tick) for tick in ticks])


def _parted(points: Sequence[Row]) -> tuple[list[Row], list[Row]]:
    return [row for row in points if not row["is_outlier"]], [row for row in points if row["is_outlier"]]


def _name(row: Row, ink: Ink) -> Text:
    star = "★ " if row["marked"] else ""
    return Text(star + clean(row["request_id"]), style=ink.link)


_COLS: Final = (
    Col("far from the line", 30, _name, widest=60, middle=True),
    Col("above it", 9, lambda row, ink: Text(duration(row["above_s"]), style=ink.strong), right=True),
    Col("TTFT", 9, lambda row, _: Text(duration(row["ttft_s"])), right=True),
    Col("line says", 9, lambda row, _: Text(duration(row["line_s"])), right=True),
    Col("tokens in", 9, lambda row, _: Text(count(row["input_tokens"])), right=True),
    Col("cached", 7, lambda row, _: Text(count(row["cached_input_tokens"])), right=True),
    Col("TPOT", 9, lambda row, _: Text(duration(row["tpot_s"])), right=True),
    Col("out", 6, lambda row, _: Text(count(row["output_tokens"])), right=True),
)
