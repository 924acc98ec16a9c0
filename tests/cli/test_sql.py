"""``sql`` and ``query``."""

from __future__ import annotations

import csv
import io
import time
from typing import TYPE_CHECKING

import pytest

from tracelens.named import named_queries

if TYPE_CHECKING:
    from pathlib import Path

ENDLESS = "SELECT count(*) FROM range(1000000) AS a(x), range(1000000) AS b(y) WHERE hash(x, y) = 3"


def test_a_query_comes_from_the_argument_a_file_or_stdin(run, tmp_path: Path) -> None:
    (tmp_path / "q.sql").write_text("SELECT count(*) AS n FROM request;\n")
    wanted = "n\n10\n"
    assert run("sql", "SELECT count(*) AS n FROM request").stdout == wanted
    assert run("sql", "-f", tmp_path / "q.sql").stdout == wanted
    assert run("sql", stdin="SELECT count(*) AS n FROM request").stdout == wanted
    assert run("sql", "-f", "-", stdin="SELECT count(*) AS n FROM request").stdout == wanted


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM read_text('/etc/hostname')",
        "SELECT * FROM glob('/*')",
        "COPY (SELECT 1) TO '/tmp/tracelens-must-not-exist.csv'",
        "ATTACH '/tmp/x.duckdb' AS x",
        "INSTALL httpfs",
        "SET memory_limit = '1GB'",
        "SET enable_external_access = true",
        "DELETE FROM source",
        "DROP VIEW request",
        "SELEC 1",
    ],
)
def test_a_query_that_leaves_the_case_or_writes_fails_with_a_message(run, text: str) -> None:
    result = run("sql", text)
    assert result.exit_code == 3
    assert result.stderr.startswith("error: ")
    assert "Traceback" not in result.output
    assert result.stdout == ""


def test_debug_shows_the_traceback(run) -> None:
    result = run("sql", "SELEC 1", "--debug")
    assert result.exit_code == 3
    assert "Traceback" in result.stderr


def test_a_query_stops_at_its_timeout(run) -> None:
    started = time.monotonic()
    result = run("sql", ENDLESS, "--timeout", "0.3")
    assert time.monotonic() - started < 5
    assert result.exit_code == 3
    assert "stopped after 0.3 s" in result.stderr
    assert "--timeout" in result.stderr


def test_a_cut_off_result_says_so_on_stderr(run) -> None:
    result = run("sql", "SELECT * FROM request", "--limit", "3")
    assert len(list(csv.reader(io.StringIO(result.stdout)))) == 4
    assert "cut off after 3 rows" in result.stderr
    assert run("sql", "SELECT * FROM request", "--limit", "10").stderr == ""


def test_all_rows_go_into_a_pipe(run) -> None:
    assert len(run("sql", "SELECT * FROM range(5000)").stdout.splitlines()) == 5001


def test_an_empty_query_or_two_of_them_are_usage_errors(run, tmp_path: Path) -> None:
    (tmp_path / "q.sql").write_text("SELECT 1")
    assert run("sql", stdin="  \n").exit_code == 2
    assert run("sql", "SELECT 1", "-f", tmp_path / "q.sql").exit_code == 2


def test_no_case_is_exit_code_2_and_names_the_next_step(run, tmp_path: Path) -> None:
    result = run("sql", "SELECT 1", "-c", tmp_path / "none.duckdb")
    assert result.exit_code == 2
    assert "no such case" in result.stderr
    assert "tracelens ingest" in result.stderr


def test_a_file_that_is_no_case_is_exit_code_2(run, tmp_path: Path) -> None:
    (tmp_path / "text.duckdb").write_text("not a database " * 500)
    result = run("sql", "SELECT 1", "-c", tmp_path / "text.duckdb")
    assert result.exit_code == 2
    assert "not a tracelens case" in result.stderr


def test_a_query_or_parameter_that_does_not_exist_is_exit_code_2(run) -> None:
    unknown = run("query", "slowst")
    assert unknown.exit_code == 2
    assert "query --list" in unknown.stderr
    assert run("query", "slowest", "topp=3").exit_code == 2
    assert run("query", "slowest", "top=many").exit_code == 2
    assert run("query", "slowest", "top").exit_code == 2


def test_a_value_that_a_query_refuses_is_exit_code_3(run) -> None:
    result = run("query", "slowest", "by=luck")
    assert result.exit_code == 3
    assert "by is ttft" in result.stderr


def test_list_names_every_query_with_what_it_answers(run) -> None:
    rows = list(csv.DictReader(io.StringIO(run("query", "--list").stdout)))
    assert [row["query"] for row in rows] == sorted(
        path.stem for path in named_queries_folder().glob("*.sql")
    )
    assert all(len(row["help"]) > 20 for row in rows)


def named_queries_folder() -> Path:
    from tracelens import resources

    return resources.queries()


@pytest.mark.parametrize("name", sorted(named_queries()))
def test_every_query_runs_with_its_defaults_and_for_one_request(run, name: str, clients) -> None:
    params = [f"request={next(iter(clients))}"] if "request" in named_queries()[name].params else []
    result = run("query", name, *params)
    assert result.exit_code == 0, result.stderr


def test_a_named_query_is_the_same_from_the_library_and_the_command(run, case: Path) -> None:
    import tracelens

    with tracelens.open(case) as opened:
        rows = opened.query("slowest", by="e2e", top=3).dicts()
    printed = list(csv.DictReader(io.StringIO(run("query", "slowest", "by=e2e", "top=3").stdout)))
    assert [row["request_id"] for row in printed] == [row["request_id"] for row in rows]
    assert [float(row["measure_s"]) for row in printed] == [row["measure_s"] for row in rows]
