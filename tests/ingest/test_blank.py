"""The empty case that is kept between ingests: the same as one made anew, never an old, damaged or foreign one."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import pytest

from tracelens.store import blank
from tracelens.store.blank import place_blank

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.usefixtures("_asks_facts_alone")


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where it is kept; nothing is yet."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home" / "cache"))
    return tmp_path / "home" / "cache" / "tracelens" / "empty_case"


@pytest.fixture
def makes(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A mark for each case that is made from the statements; two of them stand for all."""
    made: list[str] = []

    def make(connection: duckdb.DuckDBPyConnection) -> None:
        made.append("made")
        connection.execute("CREATE TABLE source AS SELECT 1 AS source_id")

    monkeypatch.setattr(blank, "make_case", make)
    return made


def placed(path: Path) -> list[tuple[int]]:
    place_blank(path)
    with duckdb.connect(str(path), read_only=True) as connection:
        return connection.execute("FROM source").fetchall()


def test_the_kept_one_is_the_one_that_was_made(kept: Path, tmp_path: Path, makes: list[str]) -> None:
    assert [placed(tmp_path / name) for name in ("a", "b", "c")] == [[(1,)]] * 3
    assert makes == ["made"]
    assert (tmp_path / "a").read_bytes() == (tmp_path / "c").read_bytes()
    assert [path.name for path in kept.parent.iterdir()] == [kept.name]
    assert (kept.stat().st_mode & 0o777, kept.parent.stat().st_mode & 0o777) == (0o600, 0o700)


def _killed(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever kept it was killed meanwhile."""
    whole = kept.read_bytes()
    kept.unlink()
    kept.with_name("empty_case.new").write_bytes(whole[: len(whole) // 2])


def _other_duckdb(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(duckdb, "__version__", "another")


def _other_schema(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blank, "schema_version", lambda: "another")


def _other_owner(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getuid", lambda: kept.stat().st_uid + 1)


def _cut(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept.write_bytes(kept.read_bytes()[:-9])


def _flipped(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = bytearray(kept.read_bytes())
    whole[len(whole) // 2] ^= 1
    kept.write_bytes(whole)


def _empty(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept.write_bytes(b"")


def _folder(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept.unlink()
    kept.mkdir()


@pytest.mark.parametrize(
    "happens", [_killed, _other_duckdb, _other_schema, _other_owner, _cut, _flipped, _empty, _folder]
)
def test_one_that_will_not_do_is_not_used(
    kept: Path,
    tmp_path: Path,
    makes: list[str],
    monkeypatch: pytest.MonkeyPatch,
    happens: Callable[[Path, pytest.MonkeyPatch], None],
) -> None:
    placed(tmp_path / "before")
    happens(kept, monkeypatch)
    assert placed(tmp_path / "after") == [(1,)]
    assert makes == ["made", "made"]
    assert happens is _folder or [path.name for path in kept.parent.iterdir()] == [kept.name]


@pytest.mark.parametrize("home", ["a file", "/proc/none", "/dev/null"])
def test_where_none_can_be_kept_each_case_is_made(
    tmp_path: Path, makes: list[str], monkeypatch: pytest.MonkeyPatch, home: str
) -> None:
    (tmp_path / "a file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / home))
    assert [placed(tmp_path / name) for name in ("a", "b")] == [[(1,)]] * 2
    assert makes == ["made", "made"]


def test_a_user_without_a_home_can_make_a_case(
    tmp_path: Path, makes: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def none() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", none)
    assert placed(tmp_path / "a") == [(1,)]


def test_it_is_made_anew_where_its_code_has_changed(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The key is of the sources of the store: whoever changes them gets no case of before."""
    before = blank._key()
    monkeypatch.setattr(blank, "__file__", __file__)
    assert blank._key() != before
