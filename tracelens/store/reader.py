"""Reading a case, with no way out of it: read only, no files, no network, no extensions, settings locked."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Self

import duckdb

from tracelens.errors import CaseError, QueryError
from tracelens.store.allowance import READ_ONLY_SETTINGS, SILENT
from tracelens.store.result import Result, asked
from tracelens.store.schema import schema_version
from tracelens.store.stopping import Stop

_NO_CASE: Final = "name a case with -c FILE, or make one: tracelens ingest FILES... -c NEW.duckdb"


_HINTS: Final = (
    ("operations are disabled", "a query sees the case and nothing else: no files, no network"),
    ("read-only mode", "a case is only read; -o FILE writes the rows of a query into a file"),
    ("has been locked", "a query cannot change settings; --timeout and --limit are options of the command"),
)
"""What DuckDB says where a query would leave the case, and what to do instead."""
_RAISED: Final = "Invalid Input Error: "
"""Stands before what a query says by itself, with ``error()``."""


class Store:
    """A case opened for reading.  Every query runs on a cursor of its own, so threads may share a store."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._connection = _open_read_only(path)

    def run(
        self,
        sql: str,
        params: Mapping[str, Any] | None = None,
        *,
        limit: int | None = None,
        timeout_s: float | None = None,
        stop: Stop | None = None,
    ) -> Result:
        """Run one query; one row more than `limit` is fetched, to know whether there were more.

        Raises `QueryError` with DuckDB's message, `QueryTimeout` when `timeout_s` has passed, `QueryStopped` when `stop`
        was pulled.
        """
        with self._cursor() as cursor:
            return asked(cursor, sql, params, limit, timeout_s, stop)

    @contextlib.contextmanager
    def sitting(self, stop: Stop | None = None) -> Iterator[Sitting]:
        """Many queries on one cursor, on which views may be computed once for all of them."""
        with self._cursor() as cursor:
            yield Sitting(self.path, cursor, stop)

    def close(self) -> None:
        """Close the case."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextlib.contextmanager
    def _cursor(self) -> Iterator[duckdb.DuckDBPyConnection]:
        cursor = self._connection.cursor()
        try:
            yield cursor
        except duckdb.OutOfMemoryException as error:
            raise QueryError(
                f"the query needs more memory than it may have ({_first_line(error)})",
                hint="ask for fewer rows or columns",
            ) from error
        except duckdb.Error as error:
            message, hint = _told(error)
            raise QueryError(message, hint=hint) from error
        finally:
            cursor.close()


class Sitting:
    """A case asked many questions in a row."""

    def __init__(self, path: Path, cursor: duckdb.DuckDBPyConnection, stop: Stop | None = None) -> None:
        self.path = path
        self._cursor = cursor
        self._stop = stop

    def run(self, sql: str, params: Mapping[str, Any] | None = None) -> Result:
        """Rows of one query; raises `QueryError` with DuckDB's message, `QueryStopped` when it was stopped."""
        try:
            return asked(self._cursor, sql, params, stop=self._stop)
        except duckdb.Error as error:
            raise QueryError(str(error)) from error

    def has_rows(self, relation: str, run: str) -> bool:
        """Whether a table or view has a row of a run."""
        sql = f"SELECT 1 FROM {quoted(relation)} WHERE run_id = $run LIMIT 1"  # noqa: S608
        return bool(self.run(sql, {"run": run}).rows)


def quoted(name: str) -> str:
    """An identifier as SQL writes it."""
    return '"' + name.replace('"', '""') + '"'


def open_case(path: Path) -> duckdb.DuckDBPyConnection:
    """Open a case for reading, not yet shut off from files; raises `CaseError`."""
    connection = _connected(path)
    try:
        _check_version(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def _connected(path: Path) -> duckdb.DuckDBPyConnection:
    """A DuckDB file opened for reading, of whatever version."""
    if not path.exists():
        raise CaseError(
            f"{path}: no such case", hint="make one with: tracelens ingest FILES... --case " + str(path)
        )
    try:
        connection = duckdb.connect(str(path), read_only=True, config=dict(READ_ONLY_SETTINGS))
    except duckdb.Error as error:
        raise CaseError(f"{path}: not a tracelens case ({_first_line(error)})", hint=_NO_CASE) from error
    _silenced(connection)
    return connection


def _silenced(connection: duckdb.DuckDBPyConnection) -> None:
    """No bar on stdout; where the file is open in this process already, its settings are locked and it is silent."""
    with contextlib.suppress(duckdb.Error):
        connection.execute(SILENT)


def _open_read_only(path: Path) -> duckdb.DuckDBPyConnection:
    connection = open_case(path)
    try:
        _shut(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _shut(connection: duckdb.DuckDBPyConnection) -> None:
    """Take away files and network, for good.  A file opened twice in one process is one database, and shut already."""
    if not connection.execute("SELECT current_setting('lock_configuration')").fetchall()[0][0]:
        connection.execute("SET enable_external_access = false; SET lock_configuration = true")


def sources_of(path: Path) -> tuple[list[Mapping[str, Any]], int]:
    """The sources of a case of any version, in the order in which they were read, and the key of its prompts (0: none)."""
    connection = _connected(path)
    try:
        cursor = connection.execute("SELECT * FROM source ORDER BY source_id")
        columns = [column[0] for column in cursor.description or []]
        rows = [dict(zip(columns, row, strict=True)) for row in cursor.fetchall()]
        key = connection.execute("SELECT value FROM case_property WHERE key = 'prompt_key'").fetchone()
    except duckdb.Error as error:
        raise CaseError(f"{path}: a DuckDB file, but not a tracelens case", hint=_NO_CASE) from error
    finally:
        connection.close()
    return list(rows), int(key[0]) if key else 0


def _told(error: duckdb.Error) -> tuple[str, str]:
    """DuckDB's message, and what to do next."""
    text = str(error)
    hint = next((hint for sign, hint in _HINTS if sign in text), "")
    if not hint and text.startswith(_RAISED):
        return text.removeprefix(_RAISED), "tracelens query --list shows queries and their parameters"
    return text, hint or "tracelens schema names tables and columns"


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]


def _check_version(connection: duckdb.DuckDBPyConnection, path: Path) -> None:
    try:
        row = connection.execute("SELECT value FROM case_property WHERE key = 'schema_version'").fetchone()
    except duckdb.Error as error:
        raise CaseError(f"{path}: a DuckDB file, but not a tracelens case", hint=_NO_CASE) from error
    if row is None or row[0] != schema_version():
        raise CaseError(
            f"{path}: made by a tracelens with other tables (schema {row[0] if row else 'unknown'}, this is {schema_version()})",
            hint=f"read its sources again: tracelens reingest -c {path}",
        )
