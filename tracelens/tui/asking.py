"""A screen that asks: its parts' questions run in threads, and their answers come back to the part that asked."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from textual.screen import Screen

from tracelens.errors import QueryStopped
from tracelens.store import Narrow, Result, Stop
from tracelens.tui.pane import Asked
from tracelens.tui.work import Answered, Part, Question

if TYPE_CHECKING:
    from tracelens.check import Check
    from tracelens.tui.app import Browser


class Asking(Screen[None]):
    """One question per part: a new one stops the one before."""

    def __init__(self) -> None:
        super().__init__()
        self._asking: dict[int, Question] = {}

    @property
    def browser(self) -> Browser:
        """The app."""
        app: Browser = self.app  # type: ignore[assignment]
        return app

    def all_answered(self) -> None:
        """No question is open any more."""

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
            self.all_answered()

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
