"""Views that a finished case has as rows: they say what they would compute, and compute again for the next ingest."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import duckdb
import pytest

from tracelens import ingest, resources
from tracelens.store import apply_schema, keeping
from tracelens.store.allowance import allow, in_room
from tracelens.store.keeping import KEPT, keep_views, open_tables

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

READ = (*KEPT, "request", "request_event")


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("kept") / "case.duckdb"
    ingest([str(resources.demo_incident())], path)
    return path


@pytest.fixture(scope="module")
def computing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[duckdb.DuckDBPyConnection]:
    """A case in which no kept view is empty, and each computes."""
    path = tmp_path_factory.mktemp("every") / "case.duckdb"
    samples = resources.sample_logs()
    wanted = ("incidents", "prometheus_text", "sse_capture", "otlp_spans", "tgi_log/launcher_3.log")
    ingest([str(samples / name) for name in wanted], path)
    with duckdb.connect(str(path)) as connection:
        keeping._drop_views(connection)
        apply_schema(connection, "views")
        yield connection


def columns(connection: duckdb.DuckDBPyConnection, view: str) -> list[str]:
    return [row[0] for row in connection.execute(f"DESCRIBE {view}").fetchall()]


def rows(connection: duckdb.DuckDBPyConnection, view: str, names: list[str]) -> list[str]:
    """The rows, sorted; a sum may differ in its last digits by the order in which it was made."""
    found = connection.execute(f"SELECT {', '.join(names)} FROM {view}").fetchall()
    return sorted(
        repr([float(f"{one:.12g}") if isinstance(one, float) else one for one in row]) for row in found
    )


def comments(connection: duckdb.DuckDBPyConnection) -> list[tuple[str, ...]]:
    return connection.execute(
        "SELECT table_name, column_name, comment FROM duckdb_columns() "
        "WHERE NOT internal AND database_name <> 'temp' AND NOT starts_with(table_name, '_') ORDER BY ALL"
    ).fetchall()


def kept_tables(connection: duckdb.DuckDBPyConnection) -> dict[str, int]:
    """Their numbers of rows."""
    found = connection.execute(
        "SELECT table_name FROM duckdb_tables() WHERE ends_with(table_name, '_row')"
    ).fetchall()
    return {name: connection.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for (name,) in found}


def test_rows_that_were_kept_are_those_that_the_views_compute(case: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.duckdb"
    shutil.copyfile(case, copy)
    with duckdb.connect(str(copy)) as connection:
        assert len(kept_tables(connection)) == len(KEPT)
        assert any(kept_tables(connection).values())
        said = comments(connection)
        open_tables(connection)
        assert list(kept_tables(connection).values()) == [0] * len(KEPT)
        keeping._drop_views(connection)
        apply_schema(connection, "views")
        assert comments(connection) == said
        with duckdb.connect(str(case), read_only=True) as finished:
            for view in READ:
                # request_no is the place of a row: another one where there are no rows.
                names = [name for name in columns(connection, view) if name != "request_no"]
                assert rows(connection, view, names) == rows(finished, view, names), view


def test_where_memory_does_not_hold_the_rows_a_view_computes(
    case: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def compute(connection: duckdb.DuckDBPyConnection, view: str) -> None:
        if view in {"gpu_load", "_request_timing"}:
            raise duckdb.OutOfMemoryException("no room")
        made(connection, view)

    copy = tmp_path / "copy.duckdb"
    shutil.copyfile(case, copy)
    made = keeping._compute
    with duckdb.connect(str(copy)) as connection, duckdb.connect(str(case), read_only=True) as finished:
        open_tables(connection)
        monkeypatch.setattr(keeping, "_compute", compute)
        keep_views(connection)
        assert len(kept_tables(connection)) == len(KEPT) - 2
        assert comments(connection) == comments(finished)
        for view in ("gpu_load", "request", "time_window", "_run_measure", "request_event"):
            names = columns(connection, view)
            assert rows(connection, view, names) == rows(finished, view, names), view


@pytest.mark.parametrize("view", keeping._ROWS_OF)
def test_a_view_that_is_not_asked_for_want_of_rows_has_none(
    computing: duckdb.DuckDBPyConnection, view: str
) -> None:
    """All tables are full, but for the one whose rows it is said to be made of."""
    relation, _, condition = keeping._ROWS_OF[view].partition(" WHERE ")
    kind = "VIEW" if relation in {*KEPT, "request"} else "TABLE"
    assert computing.execute(f"SELECT count(*) FROM {view}").fetchall() != [(0,)]
    computing.begin()
    computing.execute(f"CREATE TABLE rest AS FROM {relation} WHERE NOT ({condition or True})")
    computing.execute(f"DROP {kind} {relation}; ALTER TABLE rest RENAME TO {relation}")
    assert computing.execute(f"SELECT count(*) FROM {view}").fetchall() == [(0,)]
    computing.rollback()


def test_what_does_not_fit_into_the_allowed_memory_is_done_with_more() -> None:
    """Lists do not wait on the disk: this one takes about 80 MB."""
    with duckdb.connect() as connection:
        allow(connection, 30)
        listed = "CREATE TABLE listed AS SELECT list(hash(range)) AS all_of_them FROM range(10_000_000)"
        with pytest.raises(duckdb.OutOfMemoryException):
            connection.execute(listed)
        allowed = "SELECT current_setting('memory_limit'), current_setting('threads')"
        before = connection.execute(allowed).fetchall()
        in_room(connection, listed, {})
        assert connection.execute(allowed).fetchall() == before
        allow(connection, 1000)
        assert connection.execute("SELECT len(all_of_them) FROM listed").fetchall() == [(10_000_000,)]


def test_a_view_that_does_not_fit_is_kept_all_the_same(
    computing: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def compute(connection: duckdb.DuckDBPyConnection, view: str) -> None:
        asked.append(view)
        connection.execute("CREATE TABLE tried AS SELECT 1")
        if len(asked) == 1:
            raise duckdb.OutOfMemoryException("no room")

    monkeypatch.setattr(keeping, "_compute", compute)
    keeping._keep(computing, "gpu_load")
    assert asked == ["gpu_load", "gpu_load"]
    computing.execute("DROP TABLE tried")


def test_what_does_not_fit_inside_a_transaction_is_left_to_whoever_began_it() -> None:
    with duckdb.connect() as connection:
        allow(connection, 30)
        connection.begin()
        with pytest.raises(duckdb.OutOfMemoryException):
            in_room(connection, "CREATE TABLE listed AS SELECT list(hash(range)) FROM range(10_000_000)", {})
        connection.rollback()
