"""What several screens draw alike: stage bars, lanes over time, sentences."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final

from rich.text import Text

from tracelens.text.bars import FILL, Piece, lengths
from tracelens.text.terminal import clean, shorten, wrap
from tracelens.tui.ink import Ink
from tracelens.tui.words import clock

_HEIGHTS: Final = " ▁▂▃▄▅▆▇"
"""No full block: lanes one below the other stay apart."""
SILENT: Final = "·"
"""A piece of time in which no source says anything."""
LIMITS: Final = {
    "seats": ("S", "seats"), "kv": ("K", "KV cache"), "prefill": ("P", "prefill"), "stalled": ("!", "stalled"),
    "deferred": ("d", "deferred"), "unknown": ("?", "unknown"), "none": (" ", "nothing waits"),
}  # fmt: skip
"""What a queue waits for: its letter in a lane, and its name."""
_GLUE: Final = "\xa0"
"""Stands for a blank at which no line is broken."""
_BEFORE_UNIT: Final = re.compile(r"(?<=\d) (?=(?:%|s|ms|µs)(?!\w))")


def sentence(text: str, width: int, style: str = "") -> list[Text]:
    """A text that may come from a log, wrapped; a number stays with its unit."""
    glued = _BEFORE_UNIT.sub(_GLUE, clean(text))
    return [Text(line.replace(_GLUE, " "), style=style, no_wrap=True) for line in wrap(glued, max(width, 10))]


def stage_bar(pieces: Sequence[Piece], width: int, ink: Ink) -> Text:
    """A bar: each stage begins with its letter, and goes on in the fill of how it is known; unknown ones follow as frames."""
    bar = Text(no_wrap=True)
    unknown = [piece for piece in pieces if piece.seconds is None]
    room = max(width - 4 * len(unknown), 8)
    for piece, cells in zip(pieces, lengths(pieces, room), strict=True):
        if cells:
            fill = FILL[piece.provenance][:1]
            bar.append(piece.letter + fill * (cells - 1), style=ink.stage(piece.letter))
    for piece in unknown:
        bar.append(f" ┊{piece.letter}┊", style=ink.dim)
    return bar


def spark(values: Sequence[float | None], top: float | None = None) -> str:
    """One character per value, as high as its part of `top` (else of the greatest)."""
    known = [value for value in values if value is not None]
    high = top or max(known, default=0) or 1
    return "".join(
        SILENT if value is None else _HEIGHTS[0 if value <= 0 else max(1, min(round(value / high * 7), 7))]
        for value in values
    )


def stretched(text: str, pieces: int, width: int) -> str:
    """A text of one character per piece of time, as wide as the lane."""
    return "".join(text[place * pieces // width] for place in range(width)) if text else ""


def seen_of(names: Mapping[str, tuple[str, str]], seen: Iterable[str | None], between: str = " ") -> str:
    """The letters that a lane has, each with its name: ``S seats K KV cache``; `between` stands within a name."""
    there = set(seen)
    return " ".join(
        f"{letter} {name}".replace(" ", between)
        for key, (letter, name) in names.items()
        if key in there and letter.strip()
    )


def limit_labels(limits: Iterable[str | None], width: int) -> tuple[str, str]:
    """What the letters of a lane of limits mean, as its label and that of the line below it: ``bound by S seats``."""
    first, *more = wrap(f"bound by {seen_of(LIMITS, limits, _GLUE)}".rstrip(), width)
    return first.replace(_GLUE, " "), shorten(" ".join(more).replace(_GLUE, " "), width)


def limit_lane(limits: Sequence[str | None], room: int, ink: Ink) -> Text:
    """The binding limit of each piece of time, by letter and colour, as wide as the lane; words where there is none."""
    if all(limit in (None, "none") for limit in limits):
        said = "nothing waited" if "none" in limits else "┊ no source says it"
        return Text(said[:room], style=ink.dim, no_wrap=True)
    lane = Text(no_wrap=True)
    for limit in (limits[cell * len(limits) // room] for cell in range(room)):
        letter = LIMITS[limit][0] if limit in LIMITS else SILENT
        style = {"none": ink.dim, None: ink.dim, "stalled": ink.bad, "unknown": ink.dim}.get(limit, ink.warn)
        lane.append(letter, style=style)
    return lane


def time_axis(start: datetime, end: datetime, width: int) -> str:
    """Stamps below a lane: at its ends, and between them where there is room."""
    ticks = max(min(width // 20, 6), 1)
    finely = (end - start).total_seconds() < 2 * ticks
    line = [" "] * width
    for tick in range(ticks + 1):
        text = clock(start + (end - start) * tick / ticks, finely=finely)
        place = min(width * tick // ticks, width - len(text))
        if place >= 0 and all(mark == " " for mark in line[max(place - 1, 0) : place + len(text)]):
            line[place : place + len(text)] = text
    return "".join(line).rstrip()
