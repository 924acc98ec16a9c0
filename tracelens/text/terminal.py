"""Text from logs made safe to show, and measured as a terminal does."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

_ACTING: Final = re.compile(
    "[\x00-\x1f\x7f-\x9f"  # C0, DEL and C1 controls: escape sequences begin with these
    "\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"  # bidi marks, invisibles, separators
    "\ud800-\udfff\U000e0000-\U000e0fff]"
)
_SHORT: Final = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
LABEL: Final = 9
"""Columns of the label of a paragraph."""
_BYTE: Final = 0x100
_PLANE: Final = 0x10000


def clean(text: str) -> str:
    r"""Text in which nothing acts on a terminal: controls, escapes and bidi marks as ``\x1b``, ``\u202e``."""
    return _ACTING.sub(_escaped, text)


def _escaped(match: re.Match[str]) -> str:
    mark = match.group()
    number = ord(mark)
    if number < _BYTE:
        return _SHORT.get(mark, f"\\x{number:02x}")
    return f"\\u{number:04x}" if number < _PLANE else f"\\U{number:08x}"


def clean_lines(text: str) -> str:
    """As `clean`, but line ends stay: for messages of our own that quote what others wrote."""
    return "\n".join(clean(line) for line in text.split("\n"))


def columns(text: str) -> int:
    """Columns that a text takes on a terminal: wide characters two, combining ones none."""
    if text.isascii():
        return len(text)
    return sum(_columns_of(mark) for mark in text)


def _columns_of(mark: str) -> int:
    if unicodedata.combining(mark):
        return 0
    return 2 if unicodedata.east_asian_width(mark) in "WF" else 1


def shorten(text: str, limit: int, *, middle: bool = False) -> str:
    """Text of at most `limit` columns, ``…`` for what was left out: at the end, or in the middle of an id or a path."""
    if columns(text) <= limit:
        return text
    if limit <= 1:
        return "…"[:limit]
    tail = (limit - 1) * 2 // 3 if middle else 0
    end = _last(text, tail)
    return _first(text, limit - 1 - columns(end)) + "…" + end


def wrap(text: str, limit: int) -> list[str]:
    """Lines of at most `limit` columns, broken between words, and within a word that is longer than a line."""
    lines: list[str] = []
    line = ""
    for word in text.split(" "):
        longer = f"{line} {word}" if line else word
        if line and columns(longer) > limit:
            lines.append(line)
            longer = word
        while columns(longer) > max(limit, 2):
            head = _first(longer, max(limit, 2))
            lines.append(head)
            longer = longer[len(head) :]
        line = longer
    return [*lines, line]


def hanging(label: str, text: str, limit: int) -> list[str]:
    """A paragraph whose lines all begin below the first word after its label."""
    first, *more = wrap(text, limit - LABEL)
    return [label.ljust(LABEL) + first, *(" " * LABEL + line for line in more)]


def _first(text: str, limit: int) -> str:
    taken = 0
    for place, mark in enumerate(text):
        taken += _columns_of(mark)
        if taken > limit:
            return text[:place]
    return text


def _last(text: str, limit: int) -> str:
    return _first(text[::-1], limit)[::-1]


def pad(text: str, size: int, *, right: bool = False) -> str:
    """Text filled with blanks to `size` columns."""
    blanks = " " * (size - columns(text))
    return blanks + text if right else text + blanks
