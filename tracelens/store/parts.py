"""From the Parquet parts of a source to rows of a table: stamps on UTC, columns in the table's shape."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tracelens import resources
from tracelens.store.allowance import in_room
from tracelens.store.placement import Placement, error, placed
from tracelens.store.schema import columns_of, named_in

if TYPE_CHECKING:
    import duckdb


def load_parts(
    connection: duckdb.DuckDBPyConnection,
    table: str,
    parts: Sequence[Path],
    source: tuple[str, int],
    placement: Placement,
) -> int:
    """Load the parts of a source (run, number) into a table; returns the number of rows.

    A file ``loading/TABLE.sql`` shapes the rows of ``part`` first, where a table needs that: its last statement is a
    SELECT, those before it prepare.
    """
    if not parts:
        return 0
    connection.execute(f"CREATE OR REPLACE TEMP VIEW part AS {_placed(connection, table, parts, placement)}")
    special = resources.loading() / f"{table}.sql"
    text = special.read_text(encoding="utf-8") if special.exists() else "SELECT * FROM part"
    *first, shape = connection.extract_statements(text)
    named = dict(zip(("run", "source"), source, strict=True))
    for statement in first:
        in_room(connection, statement, named_in(statement, named))
    # A source's rows are compressed and written as they come, not held until the next commit: they are not written again.
    connection.execute("SET enable_optimistic_write = true")
    inserted = in_room(
        connection,
        f"INSERT INTO {table} BY NAME SELECT $run AS run_id, $source AS source_id, * FROM ({shape.query})",  # noqa: S608
        named,
    ).fetchall()
    connection.execute("SET enable_optimistic_write = false")
    return int(inserted[0][0])


def _placed(
    connection: duckdb.DuckDBPyConnection, table: str, parts: Sequence[Path], placement: Placement
) -> str:
    """Rows of the parts, stamps on UTC; columns that a format does not write are there, and NULL."""
    files = ", ".join("'" + str(path).replace("'", "''") + "'" for path in parts)
    scan = f"read_parquet([{files}], union_by_name = true)"
    described = f"SELECT column_name, column_type FROM (DESCRIBE SELECT * FROM {scan})"  # noqa: S608
    written = dict(connection.execute(described).fetchall())
    stamps = [name for name, kind in written.items() if kind == "TIMESTAMP"]
    changed = {name: placed(name, placement) for name in stamps}
    if "error_s" in written and stamps:
        changed["error_s"] = error("error_s", stamps[0], placement)
    replaced = ", ".join(f"{text} AS {name}" for name, text in changed.items())
    known = {*written, "run_id", "source_id"}
    missing = "".join(f", NULL AS {name}" for name in columns_of(connection, table) if name not in known)
    return f"SELECT * {f'REPLACE ({replaced})' if replaced else ''}{missing} FROM {scan}"  # noqa: S608
