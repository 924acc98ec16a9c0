"""Colours by meaning, for a dark and a light terminal.  Nothing is told by colour alone: letters, fills and words say it too."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from textual.theme import Theme

DARK: Final = Theme(
    name="tracelens-dark",
    primary="#7aa2d6",
    secondary="#9d8bc9",
    accent="#e0af68",
    warning="#e0af68",
    error="#e8746b",
    success="#8fbf7f",
    foreground="#d4d7dc",
    background="#14171c",
    surface="#1b1f26",
    panel="#262b34",
    dark=True,
)
LIGHT: Final = Theme(
    name="tracelens-light",
    primary="#2b5c9e",
    secondary="#6a4fa3",
    accent="#8a5a00",
    warning="#8a5a00",
    error="#b3261e",
    success="#2f6b2a",
    foreground="#22262b",
    background="#fcfcfa",
    surface="#f1f1ee",
    panel="#e3e4e0",
    dark=False,
)
THEMES: Final = {"dark": DARK, "light": LIGHT}

_STAGES_DARK: Final = {
    "w": "#8a919c", "N": "#6cb3b8", "T": "#b9a3e3", "S": "#e39ac0", "?": "#8a919c", "r": "#8a919c", "Q": "#e0af68", "K": "#c98f5c",
    "P": "#7aa2d6", "s": "#6f8fd0", "O": "#7fb8a0", "D": "#8fbf7f",
}  # fmt: skip
_STAGES_LIGHT: Final = {
    "w": "#666b73", "N": "#0f6a70", "T": "#6a4fa3", "S": "#a02c6b", "?": "#666b73", "r": "#666b73", "Q": "#8a5a00", "K": "#80480f",
    "P": "#2b5c9e", "s": "#3d4fa0", "O": "#1f6b4c", "D": "#2f6b2a",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Ink:
    """Styles of one theme, as Rich reads them."""

    strong: str
    dim: str
    head: str
    good: str
    warn: str
    bad: str
    link: str
    cursor: str
    faint_cursor: str
    stages: Mapping[str, str]
    plain: str = ""

    def severity(self, severity: str) -> str:
        """The style of a finding."""
        return {"critical": f"bold {self.bad}", "warning": f"bold {self.warn}"}.get(severity, self.link)

    def stage(self, letter: str) -> str:
        """The style of a stage's bar."""
        return self.stages.get(letter, self.plain)


DARK_INK: Final = Ink(
    strong="bold #eef0f3", dim="#8a919c", head="bold #9aa7b8", good="#8fbf7f", warn="#e0af68", bad="#e8746b", link="#7aa2d6",
    cursor="on #33415a", faint_cursor="on #252b36", stages=_STAGES_DARK,
)  # fmt: skip
LIGHT_INK: Final = Ink(
    strong="bold #0e1116", dim="#666b73", head="bold #454b55", good="#2f6b2a", warn="#8a5a00", bad="#b3261e", link="#2b5c9e",
    cursor="on #cfdcf0", faint_cursor="on #e6e9ee", stages=_STAGES_LIGHT,
)  # fmt: skip


def ink_of(theme: Theme) -> Ink:
    """The styles that can be read on a theme."""
    return DARK_INK if theme.dark else LIGHT_INK
