"""The schema of a case: the DDL files, applied in order, and what the catalog says of them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Final

import duckdb

from tracelens import resources
from tracelens.errors import CaseError
from tracelens.store.allowance import READ_ONLY_SETTINGS, SILENT, in_room

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
