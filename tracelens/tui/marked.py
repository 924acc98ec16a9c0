"""Bookmarks and notes on the case that is open: read once, written at each change."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from tracelens.errors import SourceError
from tracelens.marks import Mark, read_marks, with_mark, without_mark, write_marks
from tracelens.text.terminal import clean
from tracelens.tui.dialogs import Prompt
from tracelens.tui.pane import told

if TYPE_CHECKING:
    from tracelens.tui.app import Browser


class Marks:
    """The marks of one case."""

    def __init__(self, app: Browser) -> None:
        self._app = app
        self._marks: tuple[Mark, ...] = ()
        self._trouble = ""
        self._warned_of: Mark | None = None

    def read(self) -> None:
        """Read them; a file that is none of ours is told, and never written over."""
        try:
            self._marks = read_marks(self._app.case.path)
        except SourceError as error:
            self._trouble = told(error)
            self._app.notify(self._trouble, severity="warning", markup=False)

    def on(self, kind: str, name: str) -> Mark | None:
        """The mark on a request or finding of this run."""
        wanted = (kind, self._app.run_id, name)
        return next((mark for mark in self._marks if (mark.kind, mark.run, mark.name) == wanted), None)

    def toggle(self, mark: Mark) -> None:
        """Make a mark, or take it away; one with a note goes only when asked twice."""
        there = self.on(mark.kind, mark.name)
        if there is not None and there.note and there != self._warned_of:
            self._warned_of = there
            self._app.notify("m again takes the mark and its note away", severity="warning", markup=False)
            return
        self._warned_of = None
        self._keep(with_mark(self._marks, mark) if there is None else without_mark(self._marks, mark))

    def annotate(self, mark: Mark) -> None:
        """Ask for a note, and keep it with a mark."""
        there = self.on(mark.kind, mark.name)
        self._app.push_screen(
            Prompt(
                f"Note on {mark.kind} {clean(mark.name)}",
                "kept beside the case; it goes into the report",
                there.note if there else "",
            ),
            partial(self._noted, mark),
        )

    def _noted(self, mark: Mark, note: str | None) -> None:
        if note is not None:
            self._keep(with_mark(self._marks, Mark(mark.kind, mark.run, mark.name, note)))

    def _keep(self, marks: tuple[Mark, ...]) -> None:
        if self._trouble:
            self._app.notify(self._trouble, severity="error", markup=False)
            return
        try:
            path = write_marks(self._app.case.path, marks)
        except SourceError as error:
            self._app.notify(told(error), severity="error", markup=False)
            return
        said = "mark taken away" if len(marks) < len(self._marks) else "marked"
        self._app.notify(f"{said} ({path.name})", timeout=3, markup=False)
        self._marks = marks
        for view in self._app.views():
            view.marks_changed()
