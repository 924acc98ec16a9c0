"""What all tests share: an empty case is made once and copied, not made anew from nine hundred statements for each ingest."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import duckdb
import pytest

from tracelens.store import writer
from tracelens.store.keeping import make_case

if TYPE_CHECKING:
    from collections.abc import Iterator

# A command in a process of its own is compiled once, not by each of them.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


@pytest.fixture(scope="session", autouse=True)
def _empty_case(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Commands that run as processes of their own, and test_contract.py, still make theirs."""
    template = tmp_path_factory.mktemp("schema") / "template.duckdb"
    with duckdb.connect(str(template)) as connection:
        make_case(connection)

    def copied(connection: duckdb.DuckDBPyConnection) -> None:
        (name,) = connection.execute("SELECT current_database()").fetchall()[0]
        connection.execute(f"ATTACH '{template}' AS template (READ_ONLY)")
        connection.execute(f'COPY FROM DATABASE template TO "{name}"')
        connection.execute("DETACH template")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(writer, "make_case", copied)
        yield
