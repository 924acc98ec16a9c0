"""JSON arrays of many objects, one after the other: a file of some hundred megabytes is never held as one value.

Tools that write with an indent end each element with a line of its own; so it can be decoded by itself, and what stands
before the place where a file is cut off is kept.  An array in any other shape is decoded at once.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, TypeVar

from tracelens.formats.client.bench_documents import BROKEN, NO_RESULT, documents_in
from tracelens.formats.json_lines import NOT_JSON, decode, refusals

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import polars as pl

_T = TypeVar("_T")
_OPENING: Final = re.compile(r"[ \t]+\{[ \t]*")
_FRAME: Final = ("", "[", "]")


def elements_in(
    lines: pl.DataFrame, make: Callable[[int, dict[str, Any]], _T | None]
) -> tuple[list[_T], pl.DataFrame]:
    """What `make` makes of each element (its place, from 1, and the object), and an issue per line of what is none.

    `make` returns None for an object that is not one of the format's.
    """
    texts = lines["text"].fill_null("").to_list()
    if not _is_indented(texts):
        documents, issues = documents_in(lines, lambda _: True)
        alike = (make(at, each) for at, each in enumerate(documents, 1))
        return [each for each in alike if each is not None], issues
    made: list[_T] = []
    reasons: dict[int, str] = {}
    numbers = lines["line_no"].to_list()
    for start, end in _spans(texts):
        found = _made(texts[start:end], len(made) + 1, make)
        if isinstance(found, str):
            reasons |= {
                numbers[at]: found if at == start else BROKEN for at in range(start, end) if texts[at].strip()
            }
        elif found is not None:
            made.append(found)
    return made, refusals(lines, reasons)


def _made(part: list[str], place: int, make: Callable[[int, dict[str, Any]], _T | None]) -> _T | str | None:
    """An element, or why the lines hold none; None for the brackets around all of them."""
    bare = "\n".join(part).strip().removesuffix(",")
    if bare in _FRAME:
        return None
    try:
        value = decode(bare)
    except ValueError:
        return NOT_JSON
    found = make(place, value) if isinstance(value, dict) else None
    return NO_RESULT if found is None else found


def _is_indented(texts: list[str]) -> bool:
    """Whether the file is an opening bracket on a line of its own, then objects that begin on lines of their own."""
    filled = [text for text in texts[:20] if text.strip()][:2]
    return (
        len(filled) == 2  # noqa: PLR2004
        and filled[0].strip().lstrip("\ufeff") == "["
        and _OPENING.fullmatch(filled[1]) is not None
    )


def _spans(texts: list[str]) -> Iterator[tuple[int, int]]:
    """Places from and to (not included) of each element, of the brackets, and of whatever else there is."""
    opening = next(at for at, text in enumerate(texts) if text.strip().lstrip("\ufeff") == "[") + 1
    yield 0, 0
    indent = next(text for text in texts[opening:] if text.strip()).rstrip()[:-1]
    start = opening
    for at in range(opening, len(texts)):
        if texts[at].rstrip() in (f"{indent}}}", f"{indent}}},"):
            yield start, at + 1
            start = at + 1
    if start < len(texts):
        yield start, len(texts)
