"""Rows of one table of an SQLite database that came as bytes, without trusting it.

The bytes are opened in memory, so nothing beside the file (a journal, an attached database) is ever touched.  Extensions are
off, an authorizer lets nothing happen but reading the named table, views and virtual tables are refused (they run code of
the schema), and more rows than the bytes can hold are taken for a broken page tree.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

MAGIC: Final = b"SQLite format 3\x00"
MAX_BYTES: Final = 1 << 30
_MIN_ROW_BYTES: Final = 8
_MAX_CELL_BYTES: Final = 64 << 20
_WAL_AT: Final = slice(18, 20)
_ALLOWED: Final = frozenset((sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ))

NOT_SQLITE: Final = "not an SQLite database"
TOO_LARGE: Final = "an SQLite database of more than 1 GiB"
NO_TABLE: Final = "an SQLite database without the table"
BROKEN: Final = "a broken SQLite database"


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of the table by column, as far as they could be read, and what was wrong."""

    rows: Sequence[dict[str, Any]]
    reason: str | None = None


def rows_of(data: bytes, table: str, columns: Sequence[str]) -> Rows:
    """Read some columns of a table; one that it lacks is NULL.  Raises nothing on any bytes."""
    if not data.startswith(MAGIC):
        return Rows((), NOT_SQLITE)
    if len(data) > MAX_BYTES:
        return Rows((), TOO_LARGE)
    found: list[dict[str, Any]] = []
    try:
        with contextlib.closing(_opened(data)) as database:
            there = _columns(database, table)
            if not there:
                return Rows((), NO_TABLE)
            wanted = [name for name in columns if name in there]
            reason = _read(database, table, wanted, found, len(data) // _MIN_ROW_BYTES)
    except (sqlite3.Error, OverflowError, UnicodeDecodeError, ValueError):
        return Rows(found, BROKEN)
    return Rows(found, reason)


def _opened(data: bytes) -> sqlite3.Connection:
    """The database in memory.  One in WAL mode is told that it is not: there is no log beside it."""
    if data[_WAL_AT] == b"\x02\x02":
        data = data[: _WAL_AT.start] + b"\x01\x01" + data[_WAL_AT.stop :]
    database = sqlite3.connect(":memory:")
    try:
        _load(database, data)
    except BaseException:
        database.close()
        raise
    return database


def _load(database: sqlite3.Connection, data: bytes) -> None:
    """The file's bytes, shut in: nothing but reading is allowed."""
    database.deserialize(data)
    database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MAX_CELL_BYTES)
    database.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
    database.text_factory = lambda text: text.decode("utf-8", "replace")
    for pragma in ("query_only = ON", "trusted_schema = OFF", "cell_size_check = ON"):
        database.execute(f"PRAGMA {pragma}")
    database.set_authorizer(
        lambda action, *_: sqlite3.SQLITE_OK if action in _ALLOWED else sqlite3.SQLITE_DENY
    )


def _columns(database: sqlite3.Connection, table: str) -> frozenset[str]:
    """Columns of an ordinary table of that name; none where it is a view, virtual, or computes its columns."""
    stated = database.execute(
        "SELECT sql FROM sqlite_master WHERE type = 'table' AND name = ? AND rootpage > 0", (table,)
    ).fetchall()
    if len(stated) != 1 or not isinstance(stated[0][0], str):
        return frozenset()
    sql = stated[0][0].upper()
    if "VIRTUAL" in sql or "GENERATED" in sql or " AS " in sql or " AS(" in sql:
        return frozenset()
    cursor = database.execute(f'SELECT * FROM "{table}" LIMIT 0')  # noqa: S608 - the name is the caller's own
    return frozenset(entry[0] for entry in cursor.description)


def _read(
    database: sqlite3.Connection, table: str, wanted: Sequence[str], found: list[dict[str, Any]], most: int
) -> str | None:
    names = ", ".join(f'"{name}"' for name in wanted)
    cursor: Iterator[tuple[Any, ...]] = database.execute(f'SELECT {names} FROM "{table}"')  # noqa: S608 - as above
    for row in cursor:
        if len(found) >= most:
            return BROKEN
        found.append(dict(zip(wanted, row, strict=True)))
    return None
