"""The schema of a case: the DDL files, applied in order, and what the catalog says of them."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any, Final, TypeVar

import duckdb

from tracelens import resources
from tracelens.errors import CaseError

_MEMORY_BYTES: Final = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
NO_EXTENSIONS: Final = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
}
"""DuckDB fetches extensions from the network by itself, where it is let."""
SILENT: Final = "SET enable_progress_bar = false"
"""Where no script is run (a notebook, ``python -c``) DuckDB draws a bar on stdout while a query takes its time."""
MOST_MEMORY_MIB: Final = min(_MEMORY_BYTES * 6 // 10, 16 << 30) >> 20
"""What DuckDB may take at most, whatever it is asked: three fifths of the machine's memory, or 16 GiB."""
READ_ONLY_SETTINGS: Final = {
    **NO_EXTENSIONS,
    "temp_directory": "",
    # The first rows of an order are chosen by the columns that it names; the others are read of those rows only.
    "late_materialization_max_rows": "10000",
    "memory_limit": f"{MOST_MEMORY_MIB}MiB",
}
"""Settings of a connection that may not reach out, nor write beside the case, nor take the machine's memory."""
_Made = TypeVar("_Made")
_MIB: Final = {"bytes": 2**-20, "KiB": 2**-10, "MiB": 1, "GiB": 2**10, "TiB": 2**20}
"""Units in which DuckDB shows its memory."""
_NEEDED: Final = re.compile(r"-- Nothing to do without rows of (\w+)\.\n")


def ddl(*folders: str) -> Iterator[tuple[str, str]]:
    """Name and text of every DDL file (of some folders), tables first, then views, each in the order of their names."""
    for folder in folders or ("tables", "views"):
        for path in sorted((resources.schemas() / folder).glob("*.sql")):
            yield f"{folder}/{path.name}", path.read_text(encoding="utf-8")


@cache
def schema_version() -> str:
    """Hash of the DDL: two cases with the same one have the same tables and views."""
    return hashlib.sha256("\n".join(text for _, text in ddl()).encode()).hexdigest()[:12]


def apply_schema(connection: duckdb.DuckDBPyConnection, *folders: str) -> None:
    """Create every table and view in an empty database, or those of some folders of the schema."""
    connection.begin()
    for name, text in ddl(*folders):
        try:
            connection.execute(text)
        except duckdb.Error as error:
            raise CaseError(f"schemas/{name}: {error}") from error
    connection.commit()


def memory_case() -> duckdb.DuckDBPyConnection:
    """An empty case in memory, for checks on views and queries.  It has no way out, like a case that is read."""
    connection = duckdb.connect(":memory:", config=dict(READ_ONLY_SETTINGS))
    connection.execute(SILENT)
    apply_schema(connection)
    connection.execute("SET enable_external_access = false; SET lock_configuration = true")
    return connection


def columns_of(connection: duckdb.DuckDBPyConnection, name: str) -> dict[str, str]:
    """Names and types of the columns of a table or view, in order; not of a temporary one that shadows it."""
    rows = connection.execute(
        "SELECT column_name, data_type FROM duckdb_columns() WHERE table_name = $name AND database_name <> 'temp' "
        "ORDER BY column_index",
        {"name": name},
    ).fetchall()
    return dict(rows)


def fact_tables(connection: duckdb.DuckDBPyConnection) -> list[str]:
    """Tables whose rows name a source, except `source` itself."""
    found = connection.execute(
        "SELECT table_name FROM duckdb_columns() WHERE column_name = 'source_id' AND table_name <> 'source' "
        "AND NOT starts_with(table_name, '_') AND table_name IN (SELECT table_name FROM duckdb_tables() WHERE NOT temporary) ORDER BY ALL"
    ).fetchall()
    return [row[0] for row in found]


def stamp_columns(connection: duckdb.DuckDBPyConnection) -> list[tuple[str, str]]:
    """Table and column of every instant in the fact tables."""
    tables = fact_tables(connection)
    found = connection.execute(
        "SELECT table_name, column_name FROM duckdb_columns() WHERE data_type = 'TIMESTAMP' "
        "AND database_name <> 'temp' ORDER BY ALL"
    ).fetchall()
    return [(table, column) for table, column in found if table in tables]


def has_rows(connection: duckdb.DuckDBPyConnection, relation: str) -> bool:
    """Whether a table or view has any row; it may be named with a condition."""
    return bool(connection.execute(f"SELECT 1 FROM {relation} LIMIT 1").fetchall())  # noqa: S608


def in_room(
    connection: duckdb.DuckDBPyConnection, statement: duckdb.Statement | str, params: Mapping[str, Any] | None
) -> duckdb.DuckDBPyConnection:
    """Execute a statement; where the memory that is allowed does not do, again with more."""
    return with_room(connection, lambda: connection.execute(statement, params))


def with_room(connection: duckdb.DuckDBPyConnection, work: Callable[[], _Made]) -> _Made:
    """Do some work; where the memory that is allowed does not do, again with twice as much, up to what the machine can give."""
    while True:
        try:
            return work()
        except duckdb.OutOfMemoryException as short:
            try:
                is_more = _allow_more(connection)
            except duckdb.TransactionException:
                raise short from None  # its transaction is lost with it: whoever began that begins anew
            if not is_more:
                raise


def _allow_more(connection: duckdb.DuckDBPyConnection) -> bool:
    """Let DuckDB take twice as much as before: not all that it computes can wait on the disk.  False where that is the most already."""
    before = _allowed(connection)
    number, unit = before.split()
    connection.execute(f"SET memory_limit = '{min(int(2 * float(number) * _MIB[unit]), MOST_MEMORY_MIB)}MiB'")
    return _allowed(connection) != before


def _allowed(connection: duckdb.DuckDBPyConnection) -> str:
    """What DuckDB may take, as it shows it: ``286.0 MiB``."""
    return str(connection.execute("SELECT current_setting('memory_limit')").fetchall()[0][0])


def run_script(connection: duckdb.DuckDBPyConnection, name: str, params: Mapping[str, Any]) -> None:
    """Run one of the SQL files of ``loading/``, statement by statement; each gets the parameters it names.

    A name such as ``join`` also stands for the files ``join_2_*.sql``, ``join_3_*.sql`` that continue it.  A file that begins
    with ``-- Nothing to do without rows of TABLE.`` is left out where that table has none.
    """
    folder = resources.loading()
    for path in [folder / f"{name}.sql", *sorted(folder.glob(f"{name}_[0-9]_*.sql"))]:
        text = path.read_text(encoding="utf-8")
        needed = _NEEDED.match(text)
        if needed is None or has_rows(connection, needed[1]):
            for statement in connection.extract_statements(text):
                in_room(connection, statement, named_in(statement, params))


def named_in(statement: duckdb.Statement, params: Mapping[str, Any]) -> dict[str, Any] | None:
    """Those of the parameters that a statement names."""
    return {key: value for key, value in params.items() if key in statement.named_parameters} or None
