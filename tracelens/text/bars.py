"""Stages drawn as bars of characters: every stage carries its letter, and the fill says how it is known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from tracelens.units import STAGE_LETTERS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

FILL: Final = {"observed": "█", "derived": "▒", "within": "┊┊", "unknown": "┊┊"}
"""How provenance is drawn: solid, shaded, an empty frame."""
_SHORTEST_S: Final = 1e-6
BAR_STAGES: Final = (
    "network_in",
    "tokenize",
    "step_wait",
    "unaccounted",
    "queue",
    "prefill",
    "stream_out",
    "decode",
)
"""Stages that can have a length, in the order in which bars show them."""


@dataclass(frozen=True, slots=True)
class Piece:
    """One stage of a bar; `seconds` is None where nobody knows it."""

    letter: str
    seconds: float | None
    provenance: str = "observed"


def pieces_of(row: Mapping[str, Any], stages: Iterable[str] = BAR_STAGES) -> list[Piece]:
    """Pieces from a row with one column per stage, such as ``queue_s``."""
    return [Piece(STAGE_LETTERS[stage], row[f"{stage}_s"]) for stage in stages]


def lengths(pieces: Sequence[Piece], width: int) -> list[int]:
    """Cells per piece: `width` in all, shared out by time, at least one for a piece that took any time."""
    seconds = [max(piece.seconds or 0.0, 0.0) for piece in pieces]
    seconds = [amount if amount >= _SHORTEST_S else 0.0 for amount in seconds]
    total = sum(seconds)
    if total == 0:
        return [0] * len(pieces)
    shares = [amount / total * width for amount in seconds]
    cells = [max(int(share), 1) if share else 0 for share in shares]
    _settle(cells, shares, width)
    return cells


def _settle(cells: list[int], shares: Sequence[float], width: int) -> None:
    """Give or take single cells until the sum is right: to the piece that is shortest of its share, from the longest."""
    while sum(cells) < width:
        place = max(range(len(cells)), key=lambda i: shares[i] - cells[i])
        cells[place] += 1
    while sum(cells) > width:
        place = max(range(len(cells)), key=lambda i: cells[i])
        if cells[place] <= 1:
            return
        cells[place] -= 1


def letters(pieces: Sequence[Piece], width: int) -> str:
    """A bar of letters, such as ``NQQQQQQQP``."""
    return "".join(
        piece.letter * length for piece, length in zip(pieces, lengths(pieces, width), strict=True)
    )


def drawn(pieces: Sequence[Piece], width: int) -> tuple[str, str]:
    """A bar filled by provenance, and the line of letters below it; what nobody knows follows as empty frames."""
    fills, names = [], []
    for piece, length in zip(pieces, lengths(pieces, width), strict=True):
        if length:
            fills.append(FILL[piece.provenance][:1] * length)
            names.append(piece.letter.ljust(length))
    unknown = [piece for piece in pieces if piece.seconds is None]
    frames = " ".join("┊ ┊" for _ in unknown)
    below = " ".join(f" {piece.letter} " for piece in unknown)
    return f"{'│'.join(fills)}  {frames}".rstrip(), f"{' '.join(names)}  {below}".rstrip()
