"""The screens there are.  A screen's module is imported when it is opened first."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Final

from tracelens.errors import UsageError, near

if TYPE_CHECKING:
    from tracelens.tui.view import View


@dataclass(frozen=True, slots=True)
class Entry:
    """A screen: its name on the command line, the number that opens it, and its class.

    `takes` says what the id of ``--id`` is for this screen; empty where it takes none.  A screen with ``needs_id`` makes no
    sense without one: it is opened from another screen.
    """

    name: str
    number: str
    title: str
    place: str
    takes: str = ""
    needs_id: bool = False

    def make(self, given: str = "") -> View:
        """The screen; `given` is what ``--id`` said."""
        module, _, name = self.place.partition(":")
        made = getattr(import_module(f"tracelens.tui.screens.{module}"), name)
        view: View = made(given) if given else made()
        return view


SCREENS: Final = (
    Entry("overview", "1", "Overview", "overview:Overview"),
    Entry("requests", "2", "Requests", "requests:Requests", takes="an expression to filter by"),
    Entry("request", "3", "Request", "request:OneRequest", takes="the request's id; without one, the worst"),
    Entry("findings", "4", "Findings", "findings:Findings", takes="the name of a rule"),
    Entry("timeline", "5", "Timeline", "timeline:Timeline"),
    Entry("curve", "6", "Prompt length against TTFT", "curve:Curve"),
    Entry("compare", "7", "Stages, engines, GPUs", "compare:Compare"),
    Entry("sql", "8", "SQL", "sql:SqlView", takes="the text of a query"),
    Entry("sources", "9", "Sources", "sources:Sources"),
)


def entry(name: str) -> Entry:
    """A screen by its name or number; raises `UsageError`."""
    found = next((one for one in SCREENS if name in (one.name, one.number)), None)
    if found is None:
        names = [one.name for one in SCREENS]
        raise UsageError(
            f"there is no screen {name!r}", hint=near(name, names, f"there are: {', '.join(names)}")
        )
    return found
