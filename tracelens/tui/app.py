"""The app: the case, the run that is looked at, what the rules say, the marks; and what keys do on every screen."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from textual.app import App, SystemCommand
from textual.binding import Binding, BindingType
from textual.screen import Screen

from tracelens.errors import TracelensError
from tracelens.text.terminal import clean
from tracelens.tui.dialogs import Choice, Help, Prompt
from tracelens.tui.help import help_lines
from tracelens.tui.ink import THEMES, ink_of
from tracelens.tui.marked import Marks
from tracelens.tui.outbox import Outbox
from tracelens.tui.pane import told
from tracelens.tui.registry import SCREENS, entry
from tracelens.tui.view import View
from tracelens.tui.words import clock, span_text

if TYPE_CHECKING:
    from tracelens.case import Case
    from tracelens.check import Check
    from tracelens.store import Stop
    from tracelens.tui.work import Answered


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
        Binding("w", "open_screen('request')", "worst request"),
        Binding("r", "open_screen('requests')", "requests"),
        Binding("4", "open_screen('findings')", "findings"),
        Binding("t", "open_screen('timeline')", "timeline"),
        Binding("c", "open_screen('curve')", "curve"),
        Binding("x", "choose_run", "run"),
        Binding("T", "other_theme", "light or dark", show=False),
        Binding("escape", "back", "back"),
        Binding("q", "quit", "quit"),
        Binding("question_mark", "help", "help", key_display="?"),
        Binding("f1", "help", "help", show=False),
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
        self.window: tuple[datetime, datetime] | None = None
        self.marks = Marks(self)
        self.outbox = Outbox(self)
        self._first = first
        self._check_lock = threading.Lock()
        for one in THEMES.values():
            self.register_theme(one)
        self.theme = THEMES[theme].name

    # The case ---------------------------------------------------------------------------------------------------------

    def on_mount(self) -> None:
        """Open the first screen, and the one asked for on top of it."""
        self.marks.read()
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
        if action == "open_screen" and isinstance(self.screen, View):
            return parameters[0] != self.screen.NAME
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
        self.pending += 1
        self.run_worker(partial(self._look_for, text.strip()), thread=True, exit_on_error=False)

    def _look_for(self, text: str) -> None:
        """Runs in a thread."""
        found: list[dict[str, Any]] | None = None
        try:
            found = self.case.query("request_find", id=text, run=self.run_id).dicts()
        except TracelensError as error:
            self.call_from_thread(self.notify, told(error), severity="error", markup=False)
        self.call_from_thread(self._show_found, text, found)

    def _show_found(self, text: str, found: list[dict[str, Any]] | None) -> None:
        self.pending -= 1
        if found is None:
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
