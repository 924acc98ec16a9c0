"""JSON objects, one a line: reading them, and taking numbers, counts and texts out of them.

Nothing in here raises on content.  A number that is not finite, a count below zero or a text of another type is
None, never a guess.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import orjson
import polars as pl

from tracelens.formats.base import ISSUE_SCHEMA, issues_of, no_issues

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

NOT_JSON: Final = "not JSON"
NOT_OBJECT: Final = "not a JSON object"

TEXT_CHARS: Final = 2000
"""Characters of a text (an error, say) that are kept."""

_LARGEST_COUNT: Final = 2**53
_NUMERAL: Final = re.compile(r"\s*[+-]?\d{1,30}(\.\d{0,30})?([eE][+-]?\d{1,3})?\s*")
_HEX_DIGITS: Final = "0123456789abcdefABCDEF"
_SLOW_MARKS: Final = ("NaN", "Infinity")


@dataclass(frozen=True, slots=True)
class Objects:
    """The JSON objects of some lines; `blank_count` lines held nothing, `issues` are those that held no object."""

    line_nos: list[int]
    values: list[dict[str, Any]]
    blank_count: int
    issues: pl.DataFrame

    def __iter__(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """Line number and object, in file order."""
        return zip(self.line_nos, self.values, strict=True)


def decode(text: str) -> Any:
    """Return the JSON value of a text; raises ValueError.  NaN and Infinity, which Python's json writes, become None."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        if not any(mark in text for mark in _SLOW_MARKS):
            raise
    return _decode_slowly(text)


def _decode_slowly(text: str) -> Any:
    try:
        return orjson.loads(orjson.dumps(json.loads(text)))
    except (ValueError, TypeError, RecursionError) as error:
        raise ValueError(NOT_JSON) from error


def read_objects(lines: pl.DataFrame) -> Objects:
    """Every line (``line_no, text``) as an object, a blank, or an issue."""
    line_nos: list[int] = []
    values: list[dict[str, Any]] = []
    refused: dict[int, str] = {}
    blank_count = 0
    for line_no, text in zip(lines["line_no"].to_list(), lines["text"].to_list(), strict=True):
        bare = (text or "").strip().lstrip("\ufeff")
        if not bare:
            blank_count += 1
            continue
        found = _object(bare)
        if isinstance(found, str):
            refused[line_no] = found
        else:
            line_nos.append(line_no)
            values.append(found)
    return Objects(line_nos, values, blank_count, refusals(lines, refused))


def _object(text: str) -> dict[str, Any] | str:
    """Return the object, or why there is none."""
    try:
        value = decode(text)
    except ValueError:
        return NOT_JSON
    return value if isinstance(value, dict) else NOT_OBJECT


def refusals(lines: pl.DataFrame, reasons: Mapping[int, str]) -> pl.DataFrame:
    """Issues for the lines whose numbers are in `reasons`."""
    if not reasons:
        return no_issues()
    why = pl.DataFrame(
        {"line_no": list(reasons), "reason": list(reasons.values())}, schema_overrides=ISSUE_SCHEMA
    )
    return issues_of(lines.join(why, on="line_no", maintain_order="left"), pl.col("reason"))


def objects_in(lines: tuple[str, ...], at_most: int = 200) -> list[dict[str, Any]] | None:
    """Objects of the first lines of a file; None when more than one in five of them holds none."""
    bare = [line.strip().lstrip("\ufeff") for line in lines if line.strip()][:at_most]
    found = [value for value in map(_object, bare) if isinstance(value, dict)]
    return found if found and len(found) >= 0.8 * len(bare) else None


def number(value: Any) -> float | int | None:
    """Return a finite number, also one written as a string; an int stays an int (nanoseconds need all digits)."""
    if type(value) is str:
        value = _numeral(value)
    if type(value) is float:
        return value if math.isfinite(value) else None
    return value if type(value) is int else None


def _numeral(text: str) -> float | int | None:
    if not _NUMERAL.fullmatch(text):
        return None
    bare = text.strip()  # float() alone keeps some of what a regex takes for blanks
    return int(bare) if bare.lstrip("+-").isdigit() else float(bare)


def count(value: Any) -> int | None:
    """Return a whole number of things, 0 or more."""
    if value is None:
        return None
    amount = number(value)
    if amount is None or amount < 0 or amount > _LARGEST_COUNT or amount != int(amount):
        return None
    return int(amount)


def seconds(value: Any, per_unit: float = 1.0) -> float | None:
    """Return a duration in seconds; None below zero."""
    amount = number(value)
    if amount is None or amount < 0:
        return None
    return float(amount) if per_unit == 1.0 else amount * per_unit


def text_of(value: Any) -> str | None:
    """Return a name or an id: a text that is not empty, or a number written out."""
    if isinstance(value, str):
        return value[:TEXT_CHARS] or None
    return str(value) if type(value) in (int, float) else None


def text_or_json(value: Any) -> str | None:
    """Return a text as it is, a list or an object as JSON; None for nothing, a number or a switch."""
    if not value or isinstance(value, bool | int | float):
        return None
    return value if isinstance(value, str) else orjson.dumps(value).decode()


def hex_id(value: Any, digits: int = 32) -> str | None:
    """Return a trace id as lower-case hex, None when it is none (all zeros is W3C's "no trace")."""
    if not isinstance(value, str) or len(value) != digits or value.strip(_HEX_DIGITS):
        return None
    return value.lower() if value.strip("0") else None


def dump(values: Mapping[str, Any]) -> str | None:
    """Write an object as JSON text, None when it is empty."""
    return orjson.dumps(values).decode() if values else None
