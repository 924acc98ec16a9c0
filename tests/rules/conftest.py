"""Cases that are filled by hand, and the two toy rules."""

from __future__ import annotations

import shutil
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tracelens.given import fill
from tracelens.rulebook import Rule, read_rules
from tracelens.store import CaseWriter, Column, MemoryCase, Store
from tracelens.store.keeping import clocks_computed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

TOYS = Path(__file__).parent / "data" / "toys"


@cache
def columns_of_a_case() -> dict[str, dict[str, Column]]:
    return MemoryCase()._columns


class Filled(MemoryCase):
    """A case on disk, filled as the cases beside views are."""

    def __init__(self, writer: CaseWriter) -> None:
        self._connection = writer._connection
        self._reads = {}
        self._columns = columns_of_a_case()

    def run_script(self, name: str, params: Mapping[str, Any]) -> None:
        with clocks_computed(self._connection):
            super().run_script(name, params)


@pytest.fixture(scope="session")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("empty") / "case.duckdb"
    with CaseWriter(path):
        pass
    return path


@pytest.fixture
def store(tmp_path: Path, empty: Path) -> Iterator[Callable[..., Store]]:
    opened = []

    def make(**given: list[dict[str, Any]]) -> Store:
        path = tmp_path / f"case{len(opened)}.duckdb"
        shutil.copyfile(empty, path)
        with CaseWriter(path) as writer:
            fill(Filled(writer), given)
        opened.append(Store(path))
        return opened[-1]

    yield make
    for one in opened:
        one.close()


@pytest.fixture(scope="session")
def toys() -> list[Rule]:
    return read_rules(TOYS)
