"""An empty case to start from, and a case's rows to compare."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tracelens.store import CaseWriter, Store


@pytest.fixture(scope="session")
def empty_case(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("case") / "empty.duckdb"
    with CaseWriter(path):
        pass
    return path


@pytest.fixture
def case(tmp_path: Path) -> Path:
    """Where a case of its own will be, in a folder of its own."""
    (tmp_path / "case").mkdir()
    return tmp_path / "case" / "incident.duckdb"


@pytest.fixture
def begun_case(empty_case: Path, case: Path) -> Path:
    """The same, with a case in it that has no sources yet."""
    shutil.copyfile(empty_case, case)
    return case


@pytest.fixture
def rows_of() -> Callable[[Path, str], list[dict[str, Any]]]:
    """Rows of a query on a case."""

    def rows(path: Path, sql: str) -> list[dict[str, Any]]:
        with Store(path) as store:
            return store.run(sql).dicts()

    return rows


@pytest.fixture
def everything() -> Callable[[Path], dict[str, list[tuple[Any, ...]]]]:
    """Every row of every table that sources fill, sorted."""

    def tables(path: Path) -> dict[str, list[tuple[Any, ...]]]:
        with Store(path) as store:
            names = store.run(
                "SELECT table_name FROM duckdb_tables() WHERE NOT temporary AND table_name <> 'case_property' ORDER BY ALL"
            )
            return {
                name: [_told(row) for row in store.run(f"SELECT * FROM {name} ORDER BY ALL").rows]
                for (name,) in names.rows
            }

    def _told(row: tuple[Any, ...]) -> tuple[Any, ...]:
        """The last digits of a sum depend on the order in which two cores made it."""
        return tuple(float(f"{one:.12g}") if isinstance(one, float) else one for one in row)

    return tables
