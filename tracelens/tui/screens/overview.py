"""Overview: the verdict, where the time goes, what bound the engine, what was found, and what is not known."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from textual.containers import Container, VerticalScroll

from tracelens.marks import Mark
from tracelens.store import Result
from tracelens.tui.pane import Pane
from tracelens.tui.rows import Rows
from tracelens.tui.screens import overview_parts as parts
from tracelens.tui.view import View

if TYPE_CHECKING:
    from textual.widget import Widget

    from tracelens.check import Check, Outcome

PIECES: Final = 60
"""Pieces of time in the strip."""


class Overview(View):
    """The first screen."""

    NAME = "overview"
    opens_first = True

    def __init__(self) -> None:
        super().__init__()
        self.verdict = Pane("what the rules say", name="verdict")
        self.percentiles = Pane("percentiles", name="percentiles")
        self.map = Pane("the stages", name="map")
        self.strip = Pane("the time strip", name="strip", classes="ruled")
        self.findings = Rows("the rules", parts.FINDING_COLS, name="findings", auto=True, head=False)
        self.detail = Pane("the finding", name="detail")
        self.rest = Pane("what is not known", name="rest")
        self.counts = Pane("the run", name="counts")

    def title_text(self) -> str:
        """Its place in the way."""
        return "Overview"

    def compose_body(self) -> Iterable[Widget]:
        """Verdict, latency, strip, findings, what is not known."""
        yield VerticalScroll(
            self.verdict,
            Container(self.percentiles, self.map, id="latency"),
            self.counts,
            self.strip,
            self.findings,
            self.detail,
            self.rest,
            can_focus=False,
        )

    def load(self) -> None:
        """Percentiles and map first; the rules come when they are done."""
        if not self.run_id:
            self._nothing_read()
            return
        self.query_case(self.percentiles, "latency_percentiles", self._show_percentiles)
        self.query_case(self.map, "latency_map", self._show_map, run=self.run_id)
        self.query_case(self.counts, "run_span", self._show_counts, run=self.run_id)
        self.query_case(self.strip, "lanes", self._show_strip, pieces=PIECES, run=self.run_id)
        self.verdict.waiting()
        self.rest.waiting()
        self.check_case(self.findings, self._show_check)
        self.findings.focus(scroll_visible=False)

    def _nothing_read(self) -> None:
        for part in (
            self.percentiles,
            self.map,
            self.counts,
            self.strip,
            self.findings,
            self.detail,
            self.rest,
        ):
            part.empty("")
        self.verdict.empty("This case is empty. Read logs into it: tracelens ingest FILES... -c CASE")

    def _show_percentiles(self, result: Result) -> None:
        rows = result.dicts()
        if any(row["run_id"] == self.run_id for row in rows):
            self.percentiles.fill(lambda width, ink: parts.percentile_lines(rows, self.run_id, width, ink))
        else:
            self.percentiles.empty(
                "TTFT, TPOT and end-to-end times: no source tells of a single request in this run."
            )

    def _show_map(self, result: Result) -> None:
        rows = result.dicts()
        if rows:
            self.map.fill(lambda width, ink: parts.map_lines(rows, width, ink))
        else:
            self.map.empty(
                "Where the time goes is not known: no request of this run has a time to first token.",
                parts.WANTS_TTFT,
            )

    def _show_counts(self, result: Result) -> None:
        row = next(iter(result.dicts()), None)
        self.browser.show_span(row)
        if row is None:
            self.counts.empty("no source in this run")
        else:
            self.counts.fill(lambda width, ink: parts.count_lines(row, width, ink))

    def _show_strip(self, result: Result) -> None:
        rows = result.dicts()
        if rows:
            self.strip.fill(lambda width, ink: parts.strip_lines(rows, width, ink))
        else:
            self.strip.empty("No stamp in this run says when anything happened: there is no time to draw.")

    def _show_check(self, check: Check) -> None:
        found = self._findings(check)
        self.verdict.fill(lambda width, ink: parts.verdict_lines(check, self.run_id, width, ink))
        self.rest.fill(lambda width, ink: parts.rest_lines(check, self.run_id, width, ink))
        if found:
            self.findings.set_rows(
                [{"finding": one, "mark": self.browser.marks.on("finding", one.rule)} for one in found]
            )
        else:
            self.findings.empty("no findings: no rule fired on this run")
            self.detail.empty("")

    def _findings(self, check: Check) -> list[Outcome]:
        return [one for one in check.fired() if one.run == self.run_id]

    def marked(self) -> Mark | None:
        """The finding under the cursor."""
        row = self.findings.row
        return Mark("finding", self.run_id, row["finding"].rule) if row is not None else None

    def marks_changed(self) -> None:
        """Draw the marks of the findings."""
        if self.browser.checked is not None and self.findings.count:
            cursor = self.findings.cursor
            self._show_check(self.browser.checked)
            self.findings.move(cursor)
        super().marks_changed()

    def on_rows_moved(self, message: Rows.Moved) -> None:
        """What the finding under the cursor says."""
        row, check = message.row, self.browser.checked
        if row is not None and check is not None:
            self.detail.fill(lambda width, ink: parts.detail_lines(check, row["finding"], width, ink))
            if self.findings.cursor:
                self.call_after_refresh(self.detail.scroll_visible, animate=False)

    def on_rows_opened(self, message: Rows.Opened) -> None:
        """A finding opens on the screen of findings."""
        self.browser.open("findings", message.row["finding"].rule)

    def copied_text(self) -> str:
        """All of it."""
        texts = [part.plain_text() for part in self.query(Pane)]
        return "\n\n".join(text for text in texts if text)
