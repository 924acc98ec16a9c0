"""Questions asked in threads: each belongs to a part of a screen, and ends in an answer, an error or a stop."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from textual.message import Message

from tracelens.store import Stop
from tracelens.tui.pane import Asked


class Part(Protocol):
    """A part of a screen that waits for an answer."""

    asked: Asked | None

    def waiting(self) -> None:
        """Say that it is being read."""

    def stopped(self) -> None:
        """Say that it was stopped."""

    def fail(self, error: BaseException) -> None:
        """Show an error in place."""


@dataclass(frozen=True, slots=True)
class Question:
    """What a thread works on; `then` gets its answer on the screen's own thread."""

    part: Part
    work: Callable[[Stop], Any]
    then: Callable[[Any], None]
    stop: Stop
    deliver: Callable[[Answered], None]


class Answered(Message):
    """A thread is done with a question."""

    def __init__(self, question: Question, answer: Any, error: BaseException | None) -> None:
        super().__init__()
        self.question = question
        self.answer = answer
        self.error = error
