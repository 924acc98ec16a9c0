"""A case that is read has no way out of it: no files, no network, no settings; and what is no case says so."""

from __future__ import annotations

import time
from pathlib import Path

import duckdb
import polars as pl
import pytest

from tracelens.errors import CaseError, QueryError, QueryTimeout
from tracelens.store import Store, memory_case, schema_version

LONG = "SELECT count(*) FROM range(1000000) AS a, range(1000000) AS b, range(1000) AS c WHERE a.range + b.range = c.range"


@pytest.fixture(scope="module")
def store(empty_case: Path) -> Store:
    return Store(empty_case)


@pytest.mark.parametrize(
    "sql",
    [
        "COPY (SELECT 1) TO '{folder}/out.csv'",
        "COPY source FROM '{folder}/in.csv'",
        "SELECT * FROM read_csv('{folder}/in.csv')",
        "SELECT * FROM read_text('/etc/passwd')",
        "SELECT * FROM read_blob('/etc/passwd')",
        "SELECT * FROM read_parquet('{folder}/in.parquet')",
        "SELECT * FROM read_json('{folder}/in.json')",
        "SELECT * FROM glob('/etc/*')",
        "SELECT * FROM '{folder}/in.csv'",
        "ATTACH '{folder}/other.duckdb'",
        "ATTACH ':memory:' AS other; COPY (SELECT 1) TO '{folder}/out.csv'",
        "EXPORT DATABASE '{folder}/out'",
        "IMPORT DATABASE '{folder}/out'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "LOAD '{folder}/in.duckdb_extension'",
        "SELECT * FROM read_csv('https://localhost:1/x.csv')",
        "SET enable_external_access = true",
        "SET lock_configuration = false",
        "SET memory_limit = '1TB'",
        "RESET enable_external_access",
        "PRAGMA enable_external_access = true",
        "INSERT INTO case_property VALUES ('a', 'b')",
        "UPDATE case_property SET value = 'x'",
        "DELETE FROM source",
        "DROP TABLE source",
        "CREATE TABLE mine (a INTEGER)",
        "SELECT 1; DROP VIEW request",
        "SELECT getenv('HOME')",
    ],
)  # fmt: skip
def test_a_query_can_only_read_the_case(sql: str, store: Store, tmp_path: Path) -> None:
    for name in ("in.csv", "in.json"):
        (tmp_path / name).write_text('{"a": 1}\n')
    with pytest.raises(QueryError):
        store.run(sql.format(folder=tmp_path))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.csv", "in.json"]


def test_a_query_does_not_see_the_programs_variables(store: Store) -> None:
    secret = pl.DataFrame({"answer": [42]})
    assert secret.height == 1
    with pytest.raises(QueryError, match="secret"):
        store.run("SELECT * FROM secret")


def test_rows_columns_types_and_limit(store: Store) -> None:
    result = store.run("SELECT range AS n, 'x' || range AS t FROM range(3) ORDER BY n")
    assert (result.columns, result.types) == (("n", "t"), ("BIGINT", "VARCHAR"))
    assert result.rows == [(0, "x0"), (1, "x1"), (2, "x2")]
    assert result.dicts()[1] == {"n": 1, "t": "x1"}
    assert not result.truncated
    assert result.pl().rows() == result.rows
    for limit, truncated in ((2, True), (3, False), (4, False)):
        cut = store.run("SELECT range FROM range(3)", limit=limit)
        assert (len(cut.rows), cut.truncated) == (min(limit, 3), truncated)
    assert store.run("SELECT $a + $b AS sum", {"a": 1, "b": 2}).rows == [(3,)]


def test_a_wrong_query_gives_duckdbs_own_words(store: Store) -> None:
    with pytest.raises(QueryError, match="no_such_column"):
        store.run("SELECT no_such_column FROM source")
    with pytest.raises(QueryError):
        store.run("SELECT $a", {})
    with pytest.raises(QueryError, match="syntax error"):
        store.run("SELEC 1")


def test_a_query_past_its_time_is_stopped_and_the_store_goes_on(store: Store) -> None:
    began = time.monotonic()
    with pytest.raises(QueryTimeout, match=r"stopped after 0\.05 s") as caught:
        store.run(LONG, timeout_s=0.05)
    assert time.monotonic() - began < 5
    assert "--timeout" in caught.value.hint
    assert store.run("SELECT 1", timeout_s=5).rows == [(1,)]


def test_what_is_no_case_says_so(tmp_path: Path) -> None:
    with pytest.raises(CaseError, match="no such case") as missing:
        Store(tmp_path / "none.duckdb")
    assert "tracelens ingest" in missing.value.hint
    (tmp_path / "text.duckdb").write_text("not a database at all\n" * 100)
    with pytest.raises(CaseError, match="not a tracelens case"):
        Store(tmp_path / "text.duckdb")
    (tmp_path / "empty.duckdb").write_bytes(b"")
    with pytest.raises(CaseError):
        Store(tmp_path / "empty.duckdb")
    with pytest.raises(CaseError):
        Store(tmp_path)
    duckdb.connect(str(tmp_path / "other.duckdb")).execute("CREATE TABLE t (a INTEGER)").close()
    with pytest.raises(CaseError, match="a DuckDB file, but not a tracelens case"):
        Store(tmp_path / "other.duckdb")


def test_a_case_of_other_tables_is_refused_with_the_way_out(
    begun_case: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = schema_version()
    monkeypatch.setattr("tracelens.store.reader.schema_version", lambda: "0123456789ab")
    with pytest.raises(CaseError, match=f"schema {known}, this is 0123456789ab") as caught:
        Store(begun_case)
    assert "tracelens reingest -c" in caught.value.hint


def test_the_schema_version_is_the_hash_of_the_tables_and_views() -> None:
    assert len(schema_version()) == 12
    connection = memory_case()
    try:
        (tables,) = connection.execute(
            "SELECT count(*) FROM duckdb_tables() WHERE comment IS NULL"
        ).fetchall()
        assert tables == (0,), "every table says what a row is"
    finally:
        connection.close()
