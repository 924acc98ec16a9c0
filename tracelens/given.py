"""Rows given to an empty case, with what they leave out.

Rows name only the columns that matter.  In a given row a column left out is NULL; one that must not be NULL gets
`DEFAULTS`, and these:

- ``run_id``: ``default``; ``source_id``: 1; ``line_no``: the row's place in its table, from 1.
- ``logged_id``: the row's ``request_id``; ``last_line_no``: its ``line_no``; ``path`` and ``sha256``: ``source N``.
- A source that a row names and ``source`` does not have: a row of `source`, with the side of the table that named it.
- A `client_request` with a ``request_id``: a row of `client_link`, unless the case joins or gives ``client_link``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from tracelens.errors import CaseError
from tracelens.store import Column, MemoryCase

Row = Mapping[str, Any]
Tables = Mapping[str, Sequence[Row]]

RUN: Final = "default"

DEFAULTS: Final[Mapping[tuple[str, str], Any]] = {
    ("server_request", "measured_by"): "span",
    ("server_setting", "basis"): "stated",
    ("log_event", "kind"): "warning",
    ("client_link", "basis"): "id sent by the client",
    ("source", "clock"): "utc",
}
"""What stands in a column that must not be NULL, where a given row does not say it; else `BLANKS` by its type."""

BLANKS: Final[Mapping[str, Any]] = {
    "VARCHAR": "-",
    "BOOLEAN": False,
    "DOUBLE": 0.0,
    "BIGINT": 0,
    "INTEGER": 0,
}

_SIDES: Final = {"client_request": "client", "client_stream": "client", "gpu_sample": "gpu"}


def fill(memory: MemoryCase, given: Tables, *, join: bool = False) -> None:
    """Put given rows into an empty case, with what they leave out; then join them.  Raises `CaseError`, `QueryError`."""
    tables = {**given, **_implied(given, join)}
    for table, rows in tables.items():
        columns = memory.columns(table)
        if not columns:
            raise CaseError(f"there is no table or view {table}")
        memory.freeze(table)
        completed = [_completed(table, columns, row, place) for place, row in enumerate(rows, start=1)]
        memory.insert(table, *completed)
    if join:
        memory.run_script("join", {"run": RUN})


def _implied(given: Tables, join: bool) -> dict[str, list[Row]]:
    implied: dict[str, list[Row]] = {"source": [*given.get("source", ()), *_named_sources(given)]}
    if not join and "client_link" not in given:
        implied["client_link"] = [
            {
                "line_no": place,
                **{key: row[key] for key in ("run_id", "source_id", "line_no", "request_id") if key in row},
            }
            for place, row in enumerate(given.get("client_request", ()), start=1)
            if "request_id" in row
        ]
    return implied


def _named_sources(given: Tables) -> Iterator[Row]:
    known = {row["source_id"] for row in given.get("source", ())}
    for table, rows in given.items():
        for row in rows:
            source_id = row.get("source_id", 1)
            if source_id not in known:
                known.add(source_id)
                yield {
                    "source_id": source_id,
                    "run_id": row.get("run_id", RUN),
                    "side": _SIDES.get(table, "server"),
                }


def _completed(table: str, columns: Mapping[str, Column], row: Row, place: int) -> dict[str, Any]:
    unknown = sorted(set(row) - set(columns))
    if unknown:
        raise CaseError(f"{table} has no column {unknown[0]}")
    required = {
        name: column.type for name, column in columns.items() if column.required or name == "source_id"
    }
    filled = {name: _blank(table, name, kind) for name, kind in required.items()}
    places = {"run_id": RUN, "source_id": 1, "line_no": row.get("line_no", place)}
    places["last_line_no"] = places["line_no"]
    places["logged_id"] = row.get("request_id")
    places["path"] = places["sha256"] = f"source {row.get('source_id', 1)}"
    return filled | {name: value for name, value in places.items() if name in filled} | _stored(row)


def _blank(table: str, name: str, kind: str) -> Any:
    return DEFAULTS.get((table, name), BLANKS.get(kind))


def _stored(row: Row) -> dict[str, Any]:
    return {name: utc(value) for name, value in row.items()}


def utc(value: Any) -> Any:
    """An instant with a zone as UTC without one, as a case stores it."""
    zoned = isinstance(value, datetime) and value.tzinfo is not None
    return value.astimezone(UTC).replace(tzinfo=None) if zoned else value
