"""Rows of a query on their way out: table, csv, json, jsonl, md, parquet.

A cell has one plain value, the same in csv and json: instants are ISO text in UTC, numbers have all their digits, NULL
is empty or null; in csv alone a text that begins like a formula of a spreadsheet has an apostrophe in front.  Tables and Markdown are for people: nothing that a log says acts on a terminal or as markup.
"""

from __future__ import annotations

import csv
import json
import re
import sys
from datetime import UTC, datetime
from typing import IO, TYPE_CHECKING, Any, Final

from tracelens.errors import unwritable
from tracelens.text.grid import Column, grid, natural_width, terminal_width
from tracelens.text.terminal import clean, clean_lines
from tracelens.units import UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from tracelens.store import Result

FORMATS: Final = ("table", "csv", "json", "jsonl", "md")
_NUMBERS: Final = ("INT", "DOUBLE", "FLOAT", "DECIMAL")
_INERT: Final = re.compile(r"[A-Za-z0-9 ,:%()+-]*")
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")
_NUMERAL: Final = re.compile(r"[+-](?:\d[\d,]*)?(?:\.\d+)?(?:[eE][+-]?\d+)?%?")
_BIGGEST: Final = 2**63
_DIGITS: Final = 11
"""Digits that a document keeps: two more than a nanosecond has, so that quantiles between two stamps do not lie on an edge."""


def write_file(result: Result, kind: str, target: Path) -> None:
    """Rows into a file; raises `UsageError` where it cannot be written."""
    try:
        if kind == "parquet":
            result.pl().write_parquet(target)
            return
        with target.open("w", encoding="utf-8", newline="") as stream:
            write_rows(result, kind, stream)
    except OSError as error:
        raise unwritable(target, error) from error


def write_rows(result: Result, kind: str, stream: IO[str]) -> None:
    """Rows as text in one of `FORMATS`."""
    if kind == "csv":
        _write_csv(result, stream)
        return
    for line in _WRITERS[kind](result):
        stream.write(line + "\n")


def plain(value: Any) -> Any:
    """A cell as csv and json have it: None, bool, int, float, str, or lists and mappings of those."""
    if value is None or isinstance(value, bool | str | float):
        return value
    if isinstance(value, int):
        return value if -_BIGGEST <= value < _BIGGEST else str(value)
    if isinstance(value, datetime):
        return instant(value)
    if isinstance(value, dict):
        return {str(key): plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    return value.hex() if isinstance(value, bytes) else str(value)


def steady(value: Any, key: str = "") -> Any:
    """Plain values with their last digits left off: sums over many threads differ there, and a document should not."""
    if isinstance(value, dict):
        return {name: steady(one, name) for name, one in value.items()}
    if isinstance(value, list):
        return [steady(one, key) for one in value]
    if not isinstance(value, float):
        return value
    return round(value, _DIGITS) if key.endswith(("_s", "ratio")) else float(f"{value:.{_DIGITS}g}")


def instant(value: datetime | None) -> str:
    """An instant as ISO text, UTC, microseconds."""
    if value is None:
        return UNKNOWN
    naive = value if value.tzinfo is None else value.astimezone(UTC).replace(tzinfo=None)
    return naive.isoformat(timespec="microseconds")


def _flat(value: Any) -> Any:
    """A plain value in one cell of csv."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict) else value


def _write_csv(result: Result, stream: IO[str]) -> None:
    """Quoting of RFC 4180; line ends are a bare newline, as a Unix pipe wants them."""
    writer = csv.writer(_BareEnds(stream))
    safe = clean if stream.isatty() else str
    writer.writerow([safe(name) for name in result.columns])
    for row in result.rows:
        cells = (_flat(plain(value)) for value in row)
        writer.writerow([safe(_inactive(cell)) if isinstance(cell, str) else cell for cell in cells])


class _BareEnds:
    """Takes rows that end in CR LF, so that a carriage return in a cell is quoted, and ends them in LF."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream

    def write(self, row: str) -> None:
        """Write one row."""
        self._stream.write(row.removesuffix("\r\n") + "\n")


def _inactive(text: str) -> str:
    """A text that a spreadsheet would compute gets an apostrophe in front; json keeps it as it is."""
    return f"'{text}" if text.startswith(_FORMULA) and not _NUMERAL.fullmatch(text) else text


def _objects(result: Result) -> Iterator[str]:
    import orjson

    names = _unique(result.columns)
    for row in result.rows:
        yield orjson.dumps(dict(zip(names, map(plain, row), strict=True))).decode()


def _unique(names: Sequence[str]) -> list[str]:
    """Column names with the second `a` as `a_1`: an object holds a key once."""
    taken: list[str] = []
    for name in names:
        number, key = 0, name
        while key in taken:
            number += 1
            key = f"{name}_{number}"
        taken.append(key)
    return taken


def _json(result: Result) -> Iterator[str]:
    rows = list(_objects(result))
    yield "[" + ",\n ".join(rows) + "]"


def cell(value: Any) -> str:
    """A value in a table for people: floats with six digits, NULL as a dash, nothing that acts."""
    if value is None:
        return UNKNOWN
    if isinstance(value, float):
        return f"{value:.6g}"
    return clean(str(_flat(plain(value))))


def is_number(kind: str) -> bool:
    """Whether a DuckDB type is a number, so that its column stands to the right."""
    return any(word in kind for word in _NUMBERS) and kind[-1] != "]"


def _table(result: Result) -> Iterator[str]:
    heads = [
        Column(clean(name), right=is_number(kind), middle=name.endswith(("_id", "path")))
        for name, kind in zip(result.columns, result.types, strict=True)
    ]
    rows = [[cell(value) for value in row] for row in result.rows]
    limit = terminal_width()
    kept = _fitting(heads, rows, limit)
    yield from grid(heads[:kept], [row[:kept] for row in rows], limit)


def _note(text: str) -> None:
    print(clean_lines(text), file=sys.stderr)


def _fitting(heads: list[Column], rows: list[list[str]], limit: int | None) -> int:
    """How many columns fit when every text is as short as it may be; the others are named on stderr."""
    if limit is None:
        return len(heads)
    least = [["" if not head.right else text for head, text in zip(heads, row, strict=True)] for row in rows]
    kept = len(heads)
    while kept > 1 and natural_width(heads[:kept], [row[:kept] for row in least]) > limit:
        kept -= 1
    if kept < len(heads):
        hidden = ", ".join(head.title for head in heads[kept:])
        _note(
            f"{len(heads) - kept} columns do not fit and are left out: {hidden} (--format csv or json has them)"
        )
    return kept


def _markdown(result: Result) -> Iterator[str]:
    yield "| " + " | ".join(marked(name) for name in result.columns) + " |"
    yield "| " + " | ".join("---:" if is_number(kind) else "---" for kind in result.types) + " |"
    for row in result.rows:
        yield "| " + " | ".join(marked(cell(value)) for value in row) + " |"


def marked(text: str) -> str:
    """Text of a Markdown cell.  What could be markup, a link or a mention becomes a code span; ``|`` is escaped."""
    text = clean(text)
    if text == UNKNOWN or _INERT.fullmatch(text) or _is_float(text):
        return text
    ticks = "`" * (max((len(run) for run in re.findall("`+", text)), default=0) + 1)
    space = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{ticks}{space}{text}{space}{ticks}".replace("|", "\\|")


def _is_float(text: str) -> bool:
    return re.fullmatch(r"-?[0-9.]+(e[+-]?[0-9]+)?", text) is not None


_WRITERS: Final = {"table": _table, "json": _json, "jsonl": _objects, "md": _markdown}
