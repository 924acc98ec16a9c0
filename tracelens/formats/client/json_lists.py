"""A JSON document with long lists in it, taken apart: the document without them, and each element decoded when it is wanted.

A decoded document takes about twelve times the memory of its text; a result of 300 MB would not fit where a server runs.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from tracelens.formats.base import no_issues
from tracelens.formats.client.bench_documents import documents_in
from tracelens.formats.json_lines import decode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    import polars as pl

_COMMA: Final = re.compile(r"\s*,?\s*")


@dataclass(frozen=True, slots=True)
class Peeled:
    """Documents in which each long list has become ``[n]``, and where in the text the elements of list n stand."""

    documents: list[dict[str, Any]]
    text: str
    lists: tuple[tuple[tuple[int, int], ...], ...]

    def elements(self, entries: Any) -> Iterator[Mapping[str, Any]]:
        """The objects of a list, whether it was taken out or stands in the document."""
        if not isinstance(entries, list):
            return
        if len(entries) == 1 and type(entries[0]) is int and 0 <= entries[0] < len(self.lists):
            entries = (decode(self.text[start:end]) for start, end in self.lists[entries[0]])
        yield from (entry for entry in entries if isinstance(entry, dict))


def peeled(
    lines: pl.DataFrame, opening: re.Pattern[str], wanted: Callable[[Mapping[str, Any]], bool]
) -> tuple[Peeled, pl.DataFrame]:
    """Take the lists out that `opening` finds (up to their bracket); a broken document is read as far as it goes.

    Text inside a string cannot look like an opening: its quotes are escaped.
    """
    text = "\n".join(lines["text"].fill_null("").to_list()).lstrip("\ufeff")
    try:
        rest, lists = _split(text, opening)
        value = decode(rest)
    except (ValueError, RecursionError):
        value, lists = None, ()
    if isinstance(value, dict) and wanted(value):
        return Peeled([value], text, lists), no_issues()
    documents, issues = documents_in(lines, wanted)
    return Peeled(documents, "", ()), issues


def _split(text: str, opening: re.Pattern[str]) -> tuple[str, tuple[tuple[tuple[int, int], ...], ...]]:
    decoder = json.JSONDecoder()
    parts: list[str] = []
    lists: list[tuple[tuple[int, int], ...]] = []
    at = 0
    while found := opening.search(text, at):
        spans = tuple(_spans(decoder, text, found.end()))
        parts += [text[at : found.end()], str(len(lists))]
        lists.append(spans)
        at = spans[-1][1] if spans else found.end()
    return "".join((*parts, text[at:])), tuple(lists)


def _spans(decoder: json.JSONDecoder, text: str, at: int) -> Iterator[tuple[int, int]]:
    """From and to of each object of a list; raises ValueError where one is broken."""
    start = _COMMA.match(text, at).end()  # type: ignore[union-attr]  # it matches nothing, too
    while text.startswith("{", start):
        _, end = decoder.raw_decode(text, start)
        yield start, end
        start = _COMMA.match(text, end).end()  # type: ignore[union-attr]
