"""The app: the case, the run that is looked at, what the rules say, the marks; and what keys do on every screen."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterable
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

from textual.app import App, SystemCommand
from textual.binding import Binding, BindingType
from textual.screen import Screen

from tracelens.errors import SourceError, TracelensError, UsageError
from tracelens.marks import Mark, read_marks, with_mark, without_mark, write_marks
from tracelens.text.rows import FORMATS, write_file
from tracelens.text.terminal import clean
from tracelens.tui.dialogs import Choice, Help, Prompt
from tracelens.tui.help import help_lines
from tracelens.tui.ink import THEMES, ink_of
from tracelens.tui.listed import Requests
from tracelens.tui.registry import SCREENS, entry
from tracelens.tui.svg import svg_of
from tracelens.tui.view import View, told
from tracelens.tui.words import clock, span_text

if TYPE_CHECKING:
    from tracelens.case import Case
    from tracelens.check import Check
    from tracelens.store import Result, Stop
    from tracelens.tui.pane import Asked
    from tracelens.tui.work import Answered

EXPORTS: Final = (*(kind for kind in FORMATS if kind != "table"), "parquet", "svg")
"""Kinds of file that ``e`` writes, by the ending of the name."""


class Browser(App[None]):
    """The terminal UI over one open case."""

    TITLE = "tracelens"
    CSS_PATH = "browse.tcss"
    ENABLE_COMMAND_PALETTE = True
    BINDINGS: ClassVar[list[BindingType]] = [
        *(
            Binding(one.number, f"open_screen('{one.name}')", one.title, show=False)
            for one in SCREENS
            if one.name != "findings"
        ),
        Binding("r", "open_screen('requests')", "requests"),
        Binding("w", "open_screen('request')", "worst request"),
        Binding("4", "open_screen('findings')", "findings"),
        Binding("t", "open_screen('timeline')", "timeline"),
        Binding("c", "open_screen('curve')", "curve"),
        Binding("x", "choose_run", "run"),
        Binding("T", "other_theme", "light or dark", show=False),
        Binding("escape", "back", "back"),
        Binding("q", "quit", "quit"),
        Binding("question_mark", "help", "help", key_display="?"),
        Binding("ctrl+p", "command_palette", "palette", key_display="^p"),
    ]

    def __init__(
        self, case: Case, *, run: str = "", theme: str = "dark", first: tuple[str, str] = ("overview", "")
    ) -> None:
        super().__init__()
        self.case = case
        self.checked: Check | None = None
        self.pending = 0
        self.span = ""
        self.runs = tuple(dict.fromkeys(str(row["run_id"]) for row in case.query("sources").dicts()))
        self.run_id = run or (self.runs[0] if self.runs else "")
        self.requests = Requests(case)
        self.window: tuple[datetime, datetime] | None = None
        self.marks: tuple[Mark, ...] = ()
        self._marks_trouble = ""
        self._first = first
        self._check_lock = threading.Lock()
        for one in THEMES.values():
            self.register_theme(one)
        self.theme = THEMES[theme].name

    # The case ---------------------------------------------------------------------------------------------------------

    def on_mount(self) -> None:
        """Open the first screen, and the one asked for on top of it."""
        try:
            self.marks = read_marks(self.case.path)
        except SourceError as error:
            self._marks_trouble = told(error)
            self.notify(self._marks_trouble, severity="warning", markup=False)
        self.push_screen(entry("overview").make())
        name, given = self._first
        if name != "overview":
            self.open(name, given)
            self.run_worker(self._find_span, thread=True, exit_on_error=False)

    def _find_span(self) -> None:
        """The time that the run spans, where the first screen does not ask for it.  Runs in a thread."""
        try:
            row = next(iter(self.case.query("run_span", run=self.run_id).dicts()), None)
        except TracelensError:
            row = None
        self.call_from_thread(self.show_span, row)

    def on_unmount(self) -> None:
        """Stop what still runs, so that leaving is quick."""
        for screen in self.screen_stack:
            if isinstance(screen, View):
                screen.stop_all()

    def check_now(self, stop: Stop) -> Check:
        """What the rules say of the whole case; computed once.  Runs in a thread."""
        with self._check_lock:
            if self.checked is None:
                self.checked = self.case.check(stop=stop)
            return self.checked

    def on_answered(self, message: Answered) -> None:
        """Hand an answer to the screen that asked."""
        self.pending -= 1
        message.question.deliver(message)

    # Where one is -------------------------------------------------------------------------------------------------------

    def views(self) -> list[View]:
        """The screens that are open, from the first to the one in front."""
        return [screen for screen in self.screen_stack if isinstance(screen, View)]

    def way(self) -> tuple[str, ...]:
        """Case, run, and the titles of the open screens."""
        run = f"run {clean(self.run_id)}" if self.run_id else "no run"
        if len(self.runs) > 1:
            run += f" ({self.runs.index(self.run_id) + 1} of {len(self.runs)})"
        titles = [view.title_text() for view in self.views()]
        return (f"tracelens  {clean(self.case.path.name)}", run, *(titles[1:] or titles))

    def show_span(self, row: dict[str, Any] | None) -> None:
        """The time that the run spans, for the first line."""
        self.span = span_text(row)
        for view in self.views():
            view.show_way()

    def window_expression(self) -> str:
        """The window of time that was chosen on the timeline, as an expression over requests; empty where there is none."""
        if self.window is None:
            return ""
        start, end = (stamp.isoformat(sep=" ") for stamp in self.window)
        return f"arrival_ts >= TIMESTAMP '{start}' AND arrival_ts < TIMESTAMP '{end}'"

    def window_text(self) -> str:
        """That window for people."""
        return "" if self.window is None else f"{clock(self.window[0])}–{clock(self.window[1])}"

    def open(self, name: str, given: str = "") -> None:
        """Open a screen on top; one that is open already without anything special is gone back to."""
        try:
            one = entry(name)
            same = next((view for view in self.views() if one.name == view.NAME), None)
            if same is not None and not given and not one.takes:
                self._back_to(same)
            else:
                self.push_screen(one.make(given))
        except TracelensError as error:
            self.notify(told(error), severity="error", markup=False)

    def _back_to(self, view: View) -> None:
        while self.screen is not view:
            self.pop_screen()

    def action_open_screen(self, name: str) -> None:
        """A key that opens a screen."""
        if isinstance(self.screen, View) and name == self.screen.NAME:
            return
        self.open(name)

    async def action_back(self) -> None:
        """Stop what is being read; else back to the screen before."""
        if isinstance(self.screen, View) and self.screen.stop_all():
            self.notify("stopped; F5 reads it again", markup=False)
        elif len(self.views()) > 1:
            self.pop_screen()

    def action_choose_run(self) -> None:
        """Look at another run of the case."""
        self.push_screen(Choice("Run", [(run, run) for run in self.runs], self.run_id), self._take_run)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """One run needs no key to choose one; the first screen has no way back."""
        if action == "choose_run":
            return len(self.runs) > 1
        if action == "back":
            return len(self.views()) > 1 or bool(self.pending)
        return True

    def _take_run(self, run: str | None) -> None:
        if run is None or run == self.run_id:
            return
        self.run_id = run
        first = self.views()[0]
        self._back_to(first)
        first.load()
        first.show_way()

    # Words asked for ------------------------------------------------------------------------------------------------------

    def search(self) -> None:
        """Ask for an id, and open the request that has it."""
        self.push_screen(
            Prompt(
                "Request id, or a part of it",
                "the server's id, the client's, a trace id; Enter finds, Esc goes back",
            ),
            self._search_for,
        )

    def _search_for(self, text: str | None) -> None:
        if not text:
            return
        try:
            found = self.case.query("request_find", id=text.strip(), run=self.run_id).dicts()
        except TracelensError as error:
            self.notify(told(error), severity="error", markup=False)
            return
        if not found:
            self.notify(
                clean(f"no request of run {self.run_id} is called {text!r}"), severity="warning", markup=False
            )
        elif len(found) == 1:
            self.open("request", found[0]["request_id"])
        else:
            title = f"{found[0]['match_count']:,} requests match by their {found[0]['matched_by']}"
            options = [(row["request_id"], row["request_id"]) for row in found]
            self.push_screen(Choice(title, options), self._found)

    def _found(self, request_id: str | None) -> None:
        if request_id is not None:
            self.open("request", request_id)

    def copy(self, text: str) -> None:
        """Copy by the terminal's own escape (OSC 52, which passes ssh and tmux), and into a file for terminals without it."""
        if not text:
            self.notify("nothing to copy here", severity="warning", markup=False)
            return
        self.copy_to_clipboard(text)
        place = state_folder() / "copied.txt"
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text + "\n", encoding="utf-8")
        except OSError as error:
            self.notify(
                f"copied {len(text):,} characters ({place} cannot be written: {error.strerror})", markup=False
            )
            return
        self.notify(f"copied {len(text):,} characters; they are in {place} too", markup=False)

    def export(self, asked: Asked | None, name: str) -> None:
        """Ask for a file's name, and write what a query gives, or a picture, into it."""
        if asked is None:
            self.export_rows(None, name)
            return
        whole = asked.narrow.whole() if asked.narrow is not None else None
        self.export_rows(lambda: self.case.query(asked.name, narrow=whole, **asked.params), asked.name)

    def export_rows(self, fetch: Callable[[], Result] | None, name: str) -> None:
        """The same for any rows; without any, only a picture."""
        hint = f"the ending chooses: {', '.join(EXPORTS)}"
        start = f"{name}.{'svg' if fetch is None else 'csv'}"
        self.push_screen(Prompt("Export to", hint, start, _check_export), partial(self._export_to, fetch))

    def _export_to(self, fetch: Callable[[], Result] | None, given: str | None) -> None:
        if given is None:
            return
        target = Path(given).expanduser()
        if target.suffix.lower() == ".svg":
            picture = svg_of(self)
            self._export(target, lambda: target.write_text(picture, encoding="utf-8"))
        elif fetch is None:
            self.notify(
                "no query stands behind this part; svg draws the screen", severity="error", markup=False
            )
        else:
            kind = target.suffix.removeprefix(".").lower()
            self._export(target, lambda: write_file(fetch(), kind, target))

    def _export(self, target: Path, write: Callable[[], object]) -> None:
        """Write in a thread, and say how it went."""

        def work() -> None:
            try:
                write()
            except (TracelensError, OSError) as error:
                said, severity = told(error), "error"
            else:
                said, severity = f"written: {target}", "information"
            self.call_from_thread(self.notify, clean(said), severity=severity, markup=False)

        self.run_worker(work, thread=True, exit_on_error=False)

    # Marks ----------------------------------------------------------------------------------------------------------------

    def mark_on(self, kind: str, name: str) -> Mark | None:
        """The mark on a request or finding of this run."""
        wanted = (kind, self.run_id, name)
        return next((mark for mark in self.marks if (mark.kind, mark.run, mark.name) == wanted), None)

    def toggle_mark(self, mark: Mark) -> None:
        """Make a mark, or take it away with its note."""
        there = self.mark_on(mark.kind, mark.name) is not None
        self._keep_marks(without_mark(self.marks, mark) if there else with_mark(self.marks, mark))

    def annotate(self, mark: Mark) -> None:
        """Ask for a note, and keep it with a mark."""
        there = self.mark_on(mark.kind, mark.name)
        self.push_screen(
            Prompt(
                f"Note on {mark.kind} {clean(mark.name)}",
                "kept beside the case; it goes into the report",
                there.note if there else "",
            ),
            partial(self._noted, mark),
        )

    def _noted(self, mark: Mark, note: str | None) -> None:
        if note is not None:
            self._keep_marks(with_mark(self.marks, Mark(mark.kind, mark.run, mark.name, note)))

    def _keep_marks(self, marks: tuple[Mark, ...]) -> None:
        if self._marks_trouble:
            self.notify(self._marks_trouble, severity="error", markup=False)
            return
        try:
            path = write_marks(self.case.path, marks)
        except SourceError as error:
            self.notify(told(error), severity="error", markup=False)
            return
        self.notify(
            f"{'marked' if len(marks) >= len(self.marks) else 'mark taken away'} ({path.name})", markup=False
        )
        self.marks = marks
        for view in self.views():
            view.marks_changed()

    # Looks ------------------------------------------------------------------------------------------------------------------

    def action_other_theme(self) -> None:
        """Light to dark, dark to light."""
        self.theme = THEMES["light" if self.current_theme.dark else "dark"].name

    def watch_theme(self, theme: str) -> None:
        """Draw everything in the new colours."""
        for view in self.views():
            if view.is_mounted:
                view.call_after_refresh(view.redraw)

    def action_help(self) -> None:
        """All keys of this screen."""
        if isinstance(self.screen, View):
            self.push_screen(
                Help(
                    f"Keys · {self.screen.title_text()}", help_lines(self.screen, ink_of(self.current_theme))
                )
            )

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        """What the palette offers: screens, runs, themes, help."""
        for one in SCREENS:
            yield SystemCommand(f"{one.title}", f"open screen {one.number}", partial(self.open, one.name))
        if len(self.runs) > 1:
            yield SystemCommand("Run", "look at another run of the case", self.action_choose_run)
        yield SystemCommand("Light or dark", "the other theme", self.action_other_theme)
        yield SystemCommand("Help", "all keys of this screen", self.action_help)
        yield SystemCommand("Quit", "leave", self.action_quit)


def state_folder() -> Path:
    """Where things that outlive a session lie: what was copied, the history of SQL."""
    with contextlib.suppress(RuntimeError):
        return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "tracelens"
    return Path.cwd()


def _check_export(given: str) -> None:
    kind = Path(given).suffix.removeprefix(".").lower()
    if kind not in EXPORTS:
        raise UsageError(f"{given}: no kind of file that can be written", hint=f"one of {', '.join(EXPORTS)}")
