"""JSON documents of a whole file: one, several after each other, or an array of them; and the lines that hold none."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

import orjson
import polars as pl

from tracelens.formats.base import no_issues
from tracelens.formats.json_lines import NOT_JSON, decode, refusals

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

BROKEN: Final = "part of a broken JSON document"
NO_RESULT: Final = "not a benchmark result"

_SPACE: Final = re.compile(r"[ \t\r\n\ufeff]*")


def documents_in(
    lines: pl.DataFrame, wanted: Callable[[Mapping[str, Any]], bool]
) -> tuple[list[dict[str, Any]], pl.DataFrame]:
    """Find the objects that are wanted, and an issue per line of what is none."""
    text = "\n".join(lines["text"].fill_null("").to_list())
    values, rest = _one_or_one_a_line(text), len(text)
    if values is None:
        values, rest = _sequence(text)
    found = _results(values, wanted)
    if not found:
        return [], _unread(lines, text, 0, NO_RESULT if rest == len(text) else NOT_JSON)
    return found, _unread(lines, text, rest, NOT_JSON)


def _one_or_one_a_line(text: str) -> list[Any] | None:
    """Decode the usual forms fast: one document, or one on each line; None where it is neither."""
    for parts in ([text.lstrip("\ufeff")], text.lstrip("\ufeff").split("\n")):
        try:
            return [decode(part) for part in parts if part.strip()]
        except ValueError:
            continue
    return None


def _results(values: list[Any], wanted: Callable[[Mapping[str, Any]], bool]) -> list[dict[str, Any]]:
    """Results among the values; a sweep's summary is an array of them."""
    flat = [inner for value in values for inner in (value if isinstance(value, list) else [value])]
    return [value for value in flat if isinstance(value, dict) and wanted(value)]


def _sequence(text: str) -> tuple[list[Any], int]:
    """JSON values one after the other, and the place in the text from which there is no further one."""
    decoder, at = json.JSONDecoder(), 0
    found: list[Any] = []
    while (at := _SPACE.match(text, at).end()) < len(text):  # type: ignore[union-attr]  # it matches nothing, too
        try:
            value, end = decoder.raw_decode(text, at)
            found.append(orjson.loads(orjson.dumps(value)))  # NaN to None; refuses what no column can hold
        except (ValueError, TypeError, RecursionError):
            break
        at = end
    return found, at


def _unread(lines: pl.DataFrame, text: str, start: int, reason: str) -> pl.DataFrame:
    """Issues for the lines from a place in the text on, blank ones aside."""
    if start >= len(text) and reason != NO_RESULT:
        return no_issues()
    first = text.count("\n", 0, start)
    rest = (
        lines.slice(first).filter(pl.col("text").fill_null("").str.strip_chars() != "")["line_no"].to_list()
    )
    return refusals(lines, {line_no: reason if place == 0 else BROKEN for place, line_no in enumerate(rest)})
