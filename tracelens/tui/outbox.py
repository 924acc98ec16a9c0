"""What leaves the screen: a copy to the clipboard, rows and pictures in files."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tracelens.errors import TracelensError, UsageError
from tracelens.text.rows import FORMATS, write_file
from tracelens.text.terminal import clean
from tracelens.tui.dialogs import Prompt
from tracelens.tui.pane import told
from tracelens.tui.svg import svg_of

if TYPE_CHECKING:
    from tracelens.store import Result
    from tracelens.tui.app import Browser
    from tracelens.tui.pane import Asked

EXPORTS: Final = (*(kind for kind in FORMATS if kind != "table"), "parquet", "svg")
"""Kinds of file that ``e`` writes, by the ending of the name."""


class Outbox:
    """Copies and files made from what the app shows."""

    def __init__(self, app: Browser) -> None:
        self._app = app

    def copy(self, text: str) -> None:
        """Copy by the terminal's own escape (OSC 52, which passes ssh and tmux), and into a file for terminals without it."""
        if not text:
            self._app.notify("nothing to copy here", severity="warning", markup=False)
            return
        self._app.copy_to_clipboard(text)
        place = state_folder() / "copied.txt"
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text + "\n", encoding="utf-8")
        except OSError as error:
            self._app.notify(
                f"copied {len(text):,} characters ({place} cannot be written: {error.strerror})", markup=False
            )
            return
        self._app.notify(f"copied {len(text):,} characters; they are in {place} too", markup=False)

    def export(self, asked: Asked | None, name: str) -> None:
        """Ask for a file's name, and write what a query gives, or a picture, into it."""
        if asked is None:
            self.export_rows(None, name)
            return
        whole = asked.narrow.whole() if asked.narrow is not None else None
        self.export_rows(lambda: self._app.case.query(asked.name, narrow=whole, **asked.params), asked.name)

    def export_rows(self, fetch: Callable[[], Result] | None, name: str) -> None:
        """The same for any rows; without any, only a picture."""
        hint = f"the ending chooses: {', '.join(EXPORTS)}"
        start = f"{name}.{'svg' if fetch is None else 'csv'}"
        self._app.push_screen(Prompt("Export to", hint, start, _Target()), partial(self._export_to, fetch))

    def _export_to(self, fetch: Callable[[], Result] | None, given: str | None) -> None:
        if given is None:
            return
        target = Path(given).expanduser()
        if target.suffix.lower() == ".svg":
            picture = svg_of(self._app)
            self._export(target, lambda: target.write_text(picture, encoding="utf-8"))
        elif fetch is None:
            self._app.notify(
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
            self._app.call_from_thread(self._app.notify, clean(said), severity=severity, markup=False)

        self._app.run_worker(work, thread=True, exit_on_error=False)


def state_folder() -> Path:
    """Where things that outlive a session lie: what was copied, the history of SQL."""
    with contextlib.suppress(RuntimeError):
        return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "tracelens"
    return Path.cwd()


class _Target:
    """Whether a file can be written; one that is there already is written over when its name is given twice."""

    def __init__(self) -> None:
        self._warned_of = ""

    def __call__(self, given: str) -> None:
        kind = Path(given).suffix.removeprefix(".").lower()
        if kind not in EXPORTS:
            raise UsageError(
                f"{given}: no kind of file that can be written", hint=f"one of {', '.join(EXPORTS)}"
            )
        if Path(given).expanduser().exists() and given != self._warned_of:
            self._warned_of = given
            raise UsageError(f"{given} is there already;", hint="Enter again writes over it")
