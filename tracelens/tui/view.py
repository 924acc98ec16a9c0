"""What all screens have in common: questions in threads, the keys that work everywhere, the way back."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from textual.app import ComposeResult
from textual.binding import ActiveBinding, Binding, BindingType
from textual.screen import Screen

from tracelens.errors import QueryStopped, TracelensError
from tracelens.named import spelled
from tracelens.store import Narrow, Result, Stop
from tracelens.text.terminal import clean
from tracelens.tui.chrome import Crumbs, Keys
from tracelens.tui.pane import Asked, Pane
from tracelens.tui.rows import Rows
from tracelens.tui.work import Answered, Part, Question

if TYPE_CHECKING:
    from textual.widget import Widget

    from tracelens.check import Check
    from tracelens.marks import Mark
    from tracelens.tui.app import Browser


class View(Screen[None]):
    """A screen of the case.  Below it: `compose_body` (its parts), `load` (what they ask), `title_text`."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "search", "search", key_display="/"),
        Binding("f", "filter", "filter"),
        Binding("o", "order", "order"),
        Binding("s", "show_sql", "SQL"),
        Binding("y", "copy", "copy"),
        Binding("e", "export", "export"),
        Binding("m", "mark", "mark"),
        Binding("a", "annotate", "note"),
        Binding("f5", "reload", "read again", show=False),
    ]
    AUTO_FOCUS = ""
    filters: ClassVar[bool] = False
    """Whether ``f`` does anything here."""
    orders: ClassVar[bool] = False
    """Whether ``o`` does anything here."""
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (130, "-wide")]  # noqa: RUF012 - as Textual declares it
    NAME: ClassVar[str] = ""
    """Its name in `registry.SCREENS`."""

    def __init__(self) -> None:
        super().__init__()
        self._asking: dict[int, Question] = {}
        self._loaded = False

    # Below: what a screen is made of --------------------------------------------------------------------------------

    def compose_body(self) -> Iterable[Widget]:
        """The parts, from top to bottom."""
        raise NotImplementedError

    def load(self) -> None:
        """Ask for everything; called when it is opened, when the run changes and by F5."""
        raise NotImplementedError

    def title_text(self) -> str:
        """Its place in the way at the top."""
        raise NotImplementedError

    def marked(self) -> Mark | None:
        """What ``m`` marks here: a request or a finding; None where there is nothing to mark."""
        return None

    # Around: what every screen does the same way --------------------------------------------------------------------

    @property
    def browser(self) -> Browser:
        """The app."""
        app: Browser = self.app  # type: ignore[assignment]
        return app

    @property
    def run_id(self) -> str:
        """The run that is looked at."""
        return self.browser.run_id

    def compose(self) -> ComposeResult:
        """First line, parts, last line."""
        yield Crumbs()
        yield from self.compose_body()
        yield Keys()

    def on_screen_resume(self) -> None:
        """Ask for what it shows when it is first in front; draw the way and the keys, which may have changed."""
        if self.app.screen is not self:
            return
        if not self._loaded:
            self._loaded = True
            self.load()
        self.show_way()
        self.call_after_refresh(self.show_keys)

    def on_descendant_focus(self) -> None:
        """Another part, other keys."""
        self.show_keys()

    def show_way(self) -> None:
        """Draw the first line again."""
        self.query_one(Crumbs).show(self.browser.way(), self.browser.span)

    def show_keys(self) -> None:
        """Draw the last line again."""
        found = self.query(Keys)
        if found:
            found.first().show(self.keys())

    def keys(self) -> tuple[tuple[str, str], ...]:
        """Keys that work now, with what each does: those of the focused part first, then the screen's, then everywhere's."""
        shown: dict[str, str] = {}
        own = {one.action for one in type(self).__dict__.get("BINDINGS", []) if isinstance(one, Binding)}
        ranked = sorted(self.active_bindings.items(), key=lambda pair: self._rank_of(pair[1], own))
        for key, active in ranked:
            if active.binding.show and active.enabled and active.binding.description:
                shown.setdefault(active.binding.description, self.app.get_key_display(active.binding) or key)
        return tuple((key, label) for label, key in shown.items())

    def _rank_of(self, active: ActiveBinding, own: set[str]) -> int:
        """Keys of the focused part first, then the screen's own, those of all screens, the app's."""
        if active.node is self.app:
            return 3
        if active.node is not self:
            return 0
        return 1 if active.binding.action in own else 2

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Keys that do nothing here are not shown."""
        can = {
            "filter": self.filters,
            "order": self.orders,
            "mark": self.marked() is not None if self.is_mounted else False,
            "annotate": self.marked() is not None if self.is_mounted else False,
        }
        return can.get(action, True)

    # Questions --------------------------------------------------------------------------------------------------------

    def query_case(
        self,
        part: Part,
        name: str,
        then: Callable[[Result], None],
        *,
        narrow: Narrow | None = None,
        **params: Any,
    ) -> None:
        """Ask a named query for a part; what it asked before is stopped."""
        part.asked = Asked(name, params, narrow)
        case = self.browser.case
        self.ask(part, lambda stop: case.query(name, narrow=narrow, stop=stop, **params), then)

    def check_case(self, part: Part, then: Callable[[Check], None]) -> None:
        """The outcome of the rules: at once where it is known, else when they are done."""
        known = self.browser.checked
        if known is not None:
            then(known)
            return
        self.ask(part, self.browser.check_now, then)

    def ask(
        self, part: Part, work: Callable[[Stop], Any], then: Callable[[Any], None], *, quiet: bool = False
    ) -> None:
        """Run `work` in a thread; a part that is `quiet` keeps what it shows until the answer is there."""
        self._stop_for(part)
        if not quiet:
            part.waiting()
        question = Question(part, work, then, Stop(), self.answered)
        self._asking[id(part)] = question
        self.browser.pending += 1
        self.run_worker(
            partial(self._work, question), thread=True, exit_on_error=False, name=type(self).__name__
        )

    def _work(self, question: Question) -> None:
        answer, error = None, None
        try:
            answer = question.work(question.stop)
        except Exception as raised:  # noqa: BLE001 - the thread's edge: whatever it is, it is shown in the part
            error = raised
        self.browser.post_message(Answered(question, answer, error))

    def answered(self, message: Answered) -> None:
        """Show an answer, an error, or that it was stopped; an answer that nobody waits for any more is dropped."""
        question = message.question
        if self._asking.get(id(question.part)) is not question:
            return
        del self._asking[id(question.part)]
        if not self.is_mounted:
            return
        try:
            if isinstance(message.error, QueryStopped):
                question.part.stopped()
            elif message.error is not None:
                question.part.fail(message.error)
            else:
                question.then(message.answer)
        except Exception as error:  # noqa: BLE001 - a fault in drawing is shown in the part too
            question.part.fail(error)
        if not self._asking:
            self.show_keys()

    def _stop_for(self, part: Part) -> None:
        before = self._asking.pop(id(part), None)
        if before is not None:
            before.stop.pull()

    def stop_all(self) -> bool:
        """Stop what is being read; whether there was anything."""
        running = list(self._asking.values())
        for question in running:
            question.stop.pull()
        return bool(running)

    def on_unmount(self) -> None:
        """Nobody waits any more."""
        self.stop_all()

    # Keys ---------------------------------------------------------------------------------------------------------------

    def main_part(self) -> Pane | Rows | None:
        """The part that ``s``, ``y`` and ``e`` are about: the focused one, else the first that asked."""
        if isinstance(self.focused, Pane | Rows) and self.focused.asked is not None:
            return self.focused
        parts = [part for part in self.query("Pane, Rows") if isinstance(part, Pane | Rows)]
        return next((part for part in parts if part.asked is not None), parts[0] if parts else None)

    def action_reload(self) -> None:
        """Read everything again."""
        self.load()

    def action_search(self) -> None:
        """Look for a request by its id or a part of it."""
        self.browser.search()

    def action_filter(self) -> None:
        """Choose rows; screens with ``filters`` do."""

    def action_order(self) -> None:
        """Order rows; screens with ``orders`` do."""

    def action_show_sql(self) -> None:
        """The query behind the focused part, in the SQL screen."""
        part = self.main_part()
        if part is None or part.asked is None:
            self.notify("no query stands behind this part", severity="warning")
            return
        text = spelled(part.asked.name, part.asked.params)
        self.browser.open("sql", part.asked.narrow.around(text) if part.asked.narrow is not None else text)

    def copied_text(self) -> str:
        """What ``y`` copies: the focused row, or the text of the focused part."""
        part = self.main_part()
        return part.plain_text() if part is not None else ""

    def action_copy(self) -> None:
        """Copy to the clipboard, through ssh and tmux too, and into a file."""
        self.browser.copy(self.copied_text())

    def action_export(self) -> None:
        """Write what the focused part asked, or a picture of the screen, into a file."""
        part = self.main_part()
        self.browser.export(part.asked if part is not None else None, self.NAME)

    def action_mark(self) -> None:
        """Mark this request or finding, or take the mark away."""
        mark = self.marked()
        if mark is not None:
            self.browser.toggle_mark(mark)

    def action_annotate(self) -> None:
        """Note something on this request or finding."""
        mark = self.marked()
        if mark is not None:
            self.browser.annotate(mark)

    def marks_changed(self) -> None:
        """A mark was made or taken away; screens that show marks draw them again."""
        self.show_keys()

    def redraw(self) -> None:
        """Draw everything again, for another theme."""
        self.show_way()
        self.show_keys()
        for part in self.query("Pane, Rows"):
            part.redraw()  # type: ignore[attr-defined]


def told(error: TracelensError | OSError) -> str:
    """An error in one line, for a notice."""
    hint = error.hint if isinstance(error, TracelensError) else ""
    return clean(f"{error}" + (f" ({hint})" if hint else ""))
