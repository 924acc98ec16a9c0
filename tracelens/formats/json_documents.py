"""JSON documents that span lines: one for a whole file, or several one after the other, between lines that are none."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final

import orjson

from tracelens.formats.json_lines import NOT_JSON, decode

if TYPE_CHECKING:
    import polars as pl

_OPENING: Final = re.compile(r"[ \t\r\ufeff]*([\[{])")
_MAX_FAILURES: Final = 500
"""Openings without an end that are tried; a text that has more of them holds no documents."""


@dataclass(frozen=True, slots=True)
class Document:
    """A JSON value and the lines that it stands on (places in the chunk, from 0; `last` is included)."""

    first: int
    last: int
    value: Any


@dataclass(frozen=True, slots=True)
class Documents:
    """The documents of some lines, and why each line outside of them holds none (place to reason)."""

    found: list[Document]
    refused: dict[int, str]


def read_documents(lines: pl.DataFrame) -> Documents:
    """Objects and arrays that begin at the start of a line; lines that are part of none are refused, blank ones aside."""
    texts = [text or "" for text in lines["text"].to_list()]
    whole = _whole(texts)
    if whole is not None:
        return Documents([whole], {})
    return _sequence(texts)


def _whole(texts: list[str]) -> Document | None:
    try:
        value = decode("\n".join(texts).strip().lstrip("\ufeff"))
    except ValueError:
        return None
    places = [place for place, text in enumerate(texts) if text.strip("\ufeff \t\r")]
    return Document(places[0], places[-1], value) if isinstance(value, dict | list) else None


def _sequence(texts: list[str]) -> Documents:
    text = "\n".join(texts)
    starts = list(accumulate((len(each) + 1 for each in texts), initial=0))
    found: list[Document] = []
    refused: dict[int, str] = {}
    place, failures = 0, 0
    while place < len(texts):
        opening = _OPENING.match(texts[place]) if failures < _MAX_FAILURES else None
        document = None if opening is None else _from(text, starts, starts[place] + opening.start(1))
        if document is not None:
            found.append(document)
            place = document.last
        else:
            failures += opening is not None
            if texts[place].strip("\ufeff \t\r"):
                refused[place] = NOT_JSON
        place += 1
    return Documents(found, refused)


def _from(text: str, starts: list[int], at: int) -> Document | None:
    """Decode the value that begins at a place; nothing else may follow on its last line."""
    try:
        value, end = json.JSONDecoder().raw_decode(text, at)
        # NaN becomes None, as everywhere; what no column can hold is refused.
        value = orjson.loads(orjson.dumps(value))
    except (ValueError, TypeError, RecursionError):
        return None
    line_end = text.find("\n", end)
    if text[end : line_end if line_end >= 0 else None].strip(" \t\r,"):
        return None
    return Document(bisect_right(starts, at) - 1, bisect_right(starts, end - 1) - 1, value)
