"""One request: why it was slow, its stages against its peers, its batch-mates, the engine and the GPUs, the log lines."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final

from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll

from tracelens.marks import Mark
from tracelens.store import Result, Stop
from tracelens.text.terminal import clean, shorten
from tracelens.tui.file_lines import FileLines
from tracelens.tui.pane import Pane
from tracelens.tui.rows import Rows
from tracelens.tui.screens import request_parts as parts
from tracelens.tui.screens.request_lanes import Scene, lane_lines
from tracelens.tui.screens.request_why import why_lines
from tracelens.tui.view import View

if TYPE_CHECKING:
    from textual.widget import Widget

_PIECES: Final = 60
MATES: Final = 200
"""Batch-mates that are asked for."""

Facts = dict[str, Any]


class OneRequest(View):
    """A request; without an id the worst one of the run by TTFT."""

    NAME = "request"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("n", "neighbour('better_id')", "next outlier"),
        Binding("p", "neighbour('worse_id')", "previous"),
        Binding("l", "show('lines')", "log lines"),
        Binding("b", "show('mates')", "batch-mates"),
        Binding("g", "show('gaps')", "gaps"),
    ]

    def __init__(self, request_id: str = "", by: str = "ttft") -> None:
        super().__init__()
        self.request_id = request_id
        self.by = by
        self._rank: Facts = {}
        self._scene = Scene()
        self._stages: list[Facts] = []
        self._peers: list[Facts] = []
        self.why = Pane("the request", name="why")
        self.stages = Pane("its stages", name="stages", classes="ruled")
        self.lanes = Pane("what ran meanwhile", name="lanes", classes="ruled")
        self.gaps = Pane("its stream", name="gaps", classes="ruled")
        self.gpus = Pane("the GPUs", name="gpus")
        self.lines = Rows("log lines", parts.LINE_COLS, name="lines", auto=True)
        self.mates = Rows("batch-mates", parts.MATE_COLS, name="mates", auto=True)

    def title_text(self) -> str:
        """Its place in the way: the id."""
        return shorten(clean(self.request_id), 40, middle=True) if self.request_id else "worst request"

    def compose_body(self) -> Iterable[Widget]:
        """From the sentence down to the lines."""
        yield VerticalScroll(
            self.why,
            self.stages,
            self.lanes,
            self.gaps,
            self.gpus,
            self.lines,
            self.mates,
            can_focus=True,
            id="page",
        )

    def load(self) -> None:
        """First which request it is, then everything about it."""
        for part in (self.stages, self.lanes, self.gaps, self.gpus, self.lines, self.mates):
            part.display = True
            part.waiting()
        self._scene = Scene()
        self._stages, self._peers = [], []
        self.query_case(
            self.why, "request_rank", self._found, request=self.request_id, by=self.by, run=self.run_id
        )
        self.query_one("#page").focus()

    def _found(self, result: Result) -> None:
        row = next(iter(result.dicts()), None)
        if row is None:
            self._nothing(
                f"no request of run {self.run_id} is called {self.request_id!r}"
                if self.request_id
                else "there is no request in this run"
            )
            return
        self._rank = row
        self.request_id = row["request_id"]
        self.show_way()
        self.show_keys()
        which: dict[str, Any] = {"request": self.request_id, "run": self.run_id}
        self.query_case(self.why, "request_facts", self._show_facts, narrow=None, **which)
        self.query_case(self.stages, "request_stages", self._show_stages, narrow=None, **which)
        self.query_case(self.gaps, "request_chunks", self._show_gaps, narrow=None, **which)
        self.query_case(self.gpus, "gpu_around", self._show_gpus, narrow=None, **which)
        self.query_case(self.lines, "request_evidence", self._show_lines, narrow=None, **which)
        self.query_case(self.mates, "request_batch", self._show_mates, narrow=None, top=MATES, **which)

    def _nothing(self, text: str) -> None:
        self.why.empty(text, "/ searches for a part of an id; r lists all requests")
        for part in (self.stages, self.lanes, self.gaps, self.gpus, self.lines, self.mates):
            part.display = False

    # Answers ----------------------------------------------------------------------------------------------------------

    def _show_facts(self, result: Result) -> None:
        self._scene.facts = result.dicts()[0]
        self._ask_engine()
        self.ask(self.why, self._company_of, self._show_company, quiet=True)
        if self._stages:
            self._draw_stages()
        self._draw_why()

    def _company_of(self, stop: Stop) -> Result:
        return self.browser.case.query("request_company", stop=stop, request=self.request_id, run=self.run_id)

    def _show_company(self, result: Result) -> None:
        self._scene.company = next(iter(result.dicts()), {})
        self._draw_why()

    def _ask_engine(self) -> None:
        facts = self._scene.facts
        if facts["arrival_ts"] is None or facts["end_ts"] is None:
            self.lanes.empty("No stamp says when it was there: nothing can be drawn beside it.")
            return
        pieces = max(min(int(facts["whole_e2e_s"] or 1), _PIECES), 1)
        self.query_case(
            self.lanes, "lanes", self._show_engine, run=self.run_id, pieces=pieces,
            since=facts["arrival_ts"].isoformat(), until=facts["end_ts"].isoformat(),
        )  # fmt: skip

    def _show_engine(self, result: Result) -> None:
        self._scene.engine = result.dicts()
        self._draw_lanes()
        self._draw_why()

    def _show_stages(self, result: Result) -> None:
        self._stages = result.dicts()
        self.ask(self.stages, self._peers_of, self._show_peers, quiet=True)
        self._draw_stages()

    def _peers_of(self, stop: Stop) -> Result:
        return self.browser.case.query("request_peers", stop=stop, request=self.request_id, run=self.run_id)

    def _show_peers(self, result: Result) -> None:
        self._peers = result.dicts()
        self._draw_stages()

    def _draw_stages(self) -> None:
        stages, peers, scene = self._stages, self._peers, self._scene
        scene.stages, scene.peers = stages, peers
        self.stages.fill(lambda width, ink: parts.stage_lines(stages, peers, scene.facts, width, ink))
        self._draw_lanes()
        self._draw_why()

    def _show_mates(self, result: Result) -> None:
        mates = result.dicts()
        self._scene.mates = mates
        if mates:
            self.mates.set_rows(mates)
        else:
            self.mates.empty(
                "no batch-mates: no other request was in the server at the same time, as far as stamps say"
            )
        self._draw_lanes()
        self._draw_why()

    def _show_gaps(self, result: Result) -> None:
        chunks = result.dicts()
        self._scene.chunks = chunks
        if chunks:
            self.gaps.fill(lambda width, ink: parts.gap_lines(chunks, width, ink))
        else:
            self.gaps.empty(
                "stream: no arrival times of chunks; a streaming client that stamps every chunk shows gaps and stalls"
            )
        self._draw_lanes()

    def _show_gpus(self, result: Result) -> None:
        rows = result.dicts()
        if rows:
            self.gpus.fill(lambda width, ink: parts.gpu_lines(rows, width, ink))
        else:
            self.gpus.empty(
                "GPU: no sample while it was there; nvidia-smi dmon -s pucvmet -o DT records them"
            )

    def _show_lines(self, result: Result) -> None:
        rows = result.dicts()
        if rows:
            self.lines.set_rows(rows)
        else:
            self.lines.empty("no line of any source is behind it")

    def _draw_lanes(self) -> None:
        scene = self._scene
        if scene.facts and scene.engine is not None:
            self.lanes.fill(lambda width, ink: lane_lines(scene, width, ink))

    def _draw_why(self) -> None:
        scene, rank = self._scene, self._rank
        if scene.facts:
            mark = self.browser.marks.on("request", self.request_id)
            self.why.fill(lambda width, ink: why_lines(scene, rank, mark, width, ink))

    # Keys -----------------------------------------------------------------------------------------------------------------

    def action_neighbour(self, key: str) -> None:
        """The next request in the order of the measure, or the one before."""
        other = self._rank.get(key)
        if other is None:
            self.notify(
                "this is the last one" if key == "better_id" else "this is the worst one", markup=False
            )
            return
        self.request_id = other
        self.load()

    def action_show(self, name: str) -> None:
        """Go to a part of the page."""
        part = self.query_one(f"#{name}")
        if part.can_focus:
            part.focus()
        part.scroll_visible(animate=False, top=True)

    def on_rows_opened(self, message: Rows.Opened) -> None:
        """A batch-mate opens as a request; a line opens with those around it."""
        if message.rows is self.mates:
            self.browser.open("request", message.row["request_id"])
        else:
            row = message.row
            self.app.push_screen(FileLines(row["path"], row["line_no"], row["says"] or ""))

    def marked(self) -> Mark | None:
        """The request."""
        return Mark("request", self.run_id, self.request_id) if self.request_id else None

    def marks_changed(self) -> None:
        """Draw its mark."""
        self._draw_why()
        super().marks_changed()

    def copied_text(self) -> str:
        """The focused row, else the whole page."""
        if isinstance(self.focused, Rows):
            return self.focused.plain_text()
        texts: Sequence[str] = [clean(self.request_id), *(part.plain_text() for part in self.query(Pane))]
        return "\n\n".join(text for text in texts if text)
