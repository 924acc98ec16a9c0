"""The whole incident over time: lanes that share one axis, one of them as a curve; a window that filters what else is shown."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar, Final

from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll

from tracelens.store import Result
from tracelens.tui.ink import ink_of
from tracelens.tui.pane import Pane
from tracelens.tui.screens import timeline_parts as parts
from tracelens.tui.screens.plots import Plot, rgb, upright
from tracelens.tui.view import View

if TYPE_CHECKING:
    from textual.geometry import Size
    from textual.widget import Widget

    from tracelens.check import Check

PIECES: Final = 120
"""Pieces of time that the span in view is cut into."""
_LEAST_S: Final = 1.0
"""Shortest span in view."""


class LanePane(Pane, can_focus=True):
    """Lanes with a cursor; the keys are the screen's."""


class Timeline(View):
    """Lanes of the run, zoomed and panned."""

    NAME = "timeline"
    moves = (
        ("← →", "earlier, later; with shift ten times as far"),
        ("↑ ↓", "the lane that is drawn as a curve"),
        ("PgUp PgDn", "scroll"),
        ("backspace", "no window any more"),
    )
    VERTICAL_BREAKPOINTS = [(0, "-short"), (34, "-tall")]  # noqa: RUF012 - as Textual declares it
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "step(-1)", "earlier", show=False),
        Binding("right", "step(1)", "later", show=False),
        Binding("shift+left,ctrl+left", "step(-10)", "much earlier", show=False),
        Binding("shift+right,ctrl+right", "step(10)", "much later", show=False),
        Binding("up,k", "lane(-1)", "lane above", show=False),
        Binding("down,j", "lane(1)", "lane below", show=False),
        Binding("plus,equals_sign", "zoom(2)", "zoom", key_display="+ -"),
        Binding("minus", "zoom(-2)", "zoom out", show=False),
        Binding("left_square_bracket", "pan(-1)", "pan", key_display="[ ]"),
        Binding("right_square_bracket", "pan(1)", "pan later", show=False),
        Binding("space", "brush", "window"),
        Binding("enter", "requests", "its requests"),
        Binding("0", "whole", "whole run"),
        Binding("backspace", "clear", "no window", show=False),
        Binding("pageup", "scroll(-1)", "up", show=False),
        Binding("pagedown", "scroll(1)", "down", show=False),
    ]

    def __init__(self) -> None:
        super().__init__()
        self.lanes = LanePane("the time", name="lanes")
        self.found = Pane("the rules", name="found")
        self.plot = Plot(id="plot", classes="-none")
        self.scene = parts.Scene()
        self._span: tuple[datetime, datetime] | None = None

    def title_text(self) -> str:
        """Its place in the way."""
        return "Timeline"

    def compose_body(self) -> Iterable[Widget]:
        """Lanes, the curve of one, and what was found then."""
        yield VerticalScroll(self.lanes, self.plot, self.found, can_focus=False)

    def load(self) -> None:
        """The span in view; the rules when they are done."""
        self.scene.window = self.browser.window
        self._ask()
        self.check_case(self.found, self._show_check)
        self.lanes.focus(scroll_visible=False)

    def _ask(self) -> None:
        since, until = (stamp.isoformat() for stamp in self._span) if self._span else ("", "")
        self.query_case(
            self.lanes, "lanes", self._show, run=self.run_id, pieces=PIECES, since=since, until=until
        )

    def _show(self, result: Result) -> None:
        rows = result.dicts()
        self.scene.rows = rows
        self.plot.set_class(not rows, "-none")
        if not rows:
            self.lanes.empty(
                "No stamp in this run says when anything happened: there is no time to draw.",
                "Stats lines, request lines, spans, a client's file or a GPU log with stamps would show it.",
            )
            return
        if self.scene.place is None:
            self.scene.chosen = parts.telling_lane(rows)
            self.scene.place = parts.telling_place(rows)
        self.scene.place = min(self.scene.cursor, len(rows) - 1)
        since, until = rows[0]["from_ts"].isoformat(), rows[-1]["to_ts"].isoformat()
        case, run = self.browser.case, self.run_id
        self.ask(
            self.lanes,
            lambda stop: case.query(
                "event_lane", stop=stop, run=run, pieces=PIECES, since=since, until=until
            ),
            self._show_events,
            quiet=True,
        )
        self._draw()

    def _show_events(self, result: Result) -> None:
        self.scene.events = {row["place"]: row for row in result.dicts()}
        self._draw()

    def _show_check(self, check: Check) -> None:
        self.scene.findings = [one for one in check.fired() if one.run == self.run_id]
        self._draw()

    def _draw(self) -> None:
        scene = self.scene
        if not scene.rows:
            return
        self.lanes.fill(lambda width, ink: parts.lane_lines(scene, width, ink))
        if scene.findings is not None:
            self.found.fill(lambda width, ink: parts.found_lines(scene, width, ink))
        self.plot.fill(self._draw_curve)

    def _draw_curve(self, plt: Any, size: Size) -> None:
        scene = self.scene
        plt.title(f"{scene.lane.label}{scene.lane.unit}")
        curves = parts.curves(scene)
        colour = rgb(ink_of(self.app.current_theme).link)
        for curve in curves:
            plt.plot([x for x, _ in curve], [y for _, y in curve], marker="braille", color=colour)
        if curves:
            plt.xticks([])
            plt.xlim(0, len(scene.rows))
            upright(plt, max(y for curve in curves for _, y in curve), size.height - 3)
            plt.vline(scene.cursor + 0.5)

    def redraw(self) -> None:
        """Draw again, for another theme."""
        super().redraw()
        self._draw()

    # Keys -----------------------------------------------------------------------------------------------------------

    def action_step(self, by: int) -> None:
        """Move the cursor through time; at an edge, pan."""
        if not self.scene.rows:
            return
        self.scene.place = max(0, min(self.scene.cursor + by, len(self.scene.rows) - 1))
        self._draw()

    def action_lane(self, by: int) -> None:
        """Choose the lane that is drawn as a curve."""
        self.scene.chosen = (self.scene.chosen + by) % len(parts.LANES)
        self._draw()

    def action_zoom(self, by: int) -> None:
        """Half the span around the cursor, or twice as much."""
        if not self.scene.rows:
            return
        start, end = self.scene.rows[0]["from_ts"], self.scene.rows[-1]["to_ts"]
        here = self.scene.rows[self.scene.cursor]["from_ts"]
        factor = 0.5 if by > 0 else 2.0
        if by > 0 and (end - start).total_seconds() <= _LEAST_S:
            return
        self._look(here - (here - start) * factor, here + (end - here) * factor, here)

    def action_pan(self, by: int) -> None:
        """Move the span in view by half of itself."""
        if self.scene.rows:
            start, end = self.scene.rows[0]["from_ts"], self.scene.rows[-1]["to_ts"]
            step = (end - start) / 2 * by
            self._look(start + step, end + step, self.scene.rows[self.scene.cursor]["from_ts"] + step)

    def _look(self, start: datetime, end: datetime, here: datetime) -> None:
        self._span = (start, end)
        self.scene.place = max(0, min(int((here - start) / (end - start) * PIECES), PIECES - 1))
        self._ask()

    def action_scroll(self, by: int) -> None:
        """See the parts further down, or up again."""
        page = self.query_one(VerticalScroll)
        page.scroll_relative(y=by * page.size.height, animate=False)

    def action_whole(self) -> None:
        """The whole run."""
        self._span = None
        self._ask()

    def action_brush(self) -> None:
        """Begin a window at the cursor, or end it there."""
        if not self.scene.rows:
            return
        row = self.scene.rows[self.scene.cursor]
        if self.scene.begun is None:
            self.scene.begun = row["from_ts"]
        else:
            first = min(self.scene.begun, row["from_ts"])
            self._set_window((first, max(self.scene.begun, row["to_ts"])))
        self._draw()

    def action_clear(self) -> None:
        """No window any more."""
        self._set_window(None)
        self._draw()

    def _set_window(self, window: tuple[datetime, datetime] | None) -> None:
        self.scene.begun = None
        self.scene.window = self.browser.window = window

    def action_requests(self) -> None:
        """The requests that came in the window; without one, those of the piece under the cursor."""
        if not self.scene.rows:
            return
        if self.browser.window is None:
            row = self.scene.rows[self.scene.cursor]
            self._set_window((row["from_ts"], row["to_ts"]))
        self.browser.open("requests", self.browser.window_expression())
