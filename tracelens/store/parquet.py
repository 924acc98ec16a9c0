"""A case as a folder of Parquet files, one per table and view."""

from __future__ import annotations

from pathlib import Path

import duckdb

from tracelens.errors import CaseError, UsageError
from tracelens.store.reader import open_case, quoted


def write_parquet(case: Path, folder: Path) -> dict[str, int]:
    """Write every table and public view of a case into `folder` (made where it is not there); returns rows by name.

    Raises `CaseError` for what is no case, `UsageError` where the folder holds something already or cannot be written.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{folder}: there is something already", hint="name a folder that is new or empty")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{folder}: cannot be made ({error.strerror or error})") from error
    connection = open_case(case)
    try:
        return {name: _write(connection, name, folder / f"{name}.parquet") for name in _relations(connection)}
    except duckdb.Error as error:
        raise CaseError(f"{folder}: {error}") from error
    finally:
        connection.close()


def _relations(connection: duckdb.DuckDBPyConnection) -> list[str]:
    rows = connection.execute(
        "SELECT table_name FROM information_schema.tables WHERE table_schema = 'main' AND NOT starts_with(table_name, '_') ORDER BY ALL"
    ).fetchall()
    return [str(row[0]) for row in rows]


def _write(connection: duckdb.DuckDBPyConnection, name: str, target: Path) -> int:
    escaped = str(target).replace("'", "''")
    written = connection.execute(
        f"COPY (SELECT * FROM {quoted(name)}) TO '{escaped}' (FORMAT parquet, COMPRESSION zstd)"  # noqa: S608
    ).fetchall()
    return int(written[0][0])
