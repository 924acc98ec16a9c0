"""The page of keys, made from the keys themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rich.text import Text

from tracelens.tui.ink import Ink
from tracelens.tui.registry import SCREENS
from tracelens.units import STAGE_LETTERS

if TYPE_CHECKING:
    from tracelens.tui.view import View

_MOVES: Final = (
    ("Tab", "next part of the screen"),
    ("T", "light or dark"),
    ("F5", "read it again"),
)


def help_lines(view: View, ink: Ink) -> list[Text]:
    """Keys of a screen, then those of every screen, then what letters and fills mean."""
    lines = [_line(key, label, ink) for key, label in (*view.moves, *view.keys(), *_MOVES)]
    lines += [Text(), Text("Screens", style=ink.head)]
    lines += [_line(one.number, one.title, ink) for one in SCREENS]
    lines += [Text(), Text("Stages", style=ink.head)]
    lines += [
        Text.assemble((f"  {letter} ", ink.stage(letter)), (stage.replace("_", " "), ""))
        for stage, letter in STAGE_LETTERS.items()
    ]
    lines += [Text(), Text("How a length is known", style=ink.head)]
    lines += [
        Text(f"  {fill} {word}")
        for fill, word in (
            ("███", "observed"),
            ("▒▒▒", "derived from other stamps"),
            ("┊ ┊", "not known, or inside another stage"),
        )
    ]
    return lines


def _line(key: str, label: str, ink: Ink) -> Text:
    return Text.assemble((f"  {key:<28}", ink.strong), (label, ""))
