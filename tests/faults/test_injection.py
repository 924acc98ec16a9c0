"""A query reads the case and nothing else; no command opens a connection; nothing that a log says acts anywhere."""

from __future__ import annotations

import csv
import io
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner
from harm import LOGS, environment

import tracelens
from tracelens.cli import cli
from tracelens.errors import QueryError
from tracelens.store import CaseWriter, Store

Shell = Callable[..., subprocess.CompletedProcess[str]]
FORMULAS = ("=cmd|' /C calc'!A0", "+1+1", "-2+3+cmd|' /C calc'!A0", "@SUM(1)", "\t=1", "\r=1")


@pytest.mark.parametrize(
    "text",
    [
        "PRAGMA threads=1", "PRAGMA memory_limit='1TB'", "PRAGMA database_list; ATTACH 'x'", "SET threads TO 64", "SET GLOBAL memory_limit='1TB'",
        "SET temp_directory='/tmp'", "SET home_directory='/'", "SET secret_directory='/tmp'", "CREATE SECRET s (TYPE s3)", "CREATE PERSISTENT SECRET s (TYPE s3)",
        "ATTACH '' AS x; COPY FROM DATABASE x TO x; SELECT * FROM read_text('/etc/passwd')",
        "COPY (SELECT 1) TO '/dev/stdout'", "COPY source TO 'x.csv'", "INSTALL json FROM community", "FORCE INSTALL httpfs", "LOAD json_that_is_not_there",
        "UPDATE EXTENSIONS", "EXPORT DATABASE 'x'", "VACUUM source; DELETE FROM source", "SELECT * FROM read_text('~/.ssh/id_rsa')",
        "SELECT * FROM 'http://localhost/x.parquet'", "SELECT * FROM sniff_csv('/etc/passwd')", "SELECT * FROM parquet_metadata('/etc/passwd')",
        "SELECT * FROM read_duckdb('/etc/passwd')", "FROM query('SELECT * FROM read_text(''/etc/passwd'')')", "CREATE VIEW v AS SELECT 1", "ALTER TABLE source ADD COLUMN x INT",
        "TRUNCATE source", "DROP SCHEMA main CASCADE", "PREPARE x AS SELECT * FROM glob('/*'); EXECUTE x",
        "EXPLAIN ANALYZE COPY source TO '/tmp/tracelens-x.csv'",
    ],
)  # fmt: skip
def test_a_query_has_no_way_out_of_the_case(text: str, first_case: Path) -> None:
    with Store(first_case) as store, pytest.raises(QueryError):
        store.run(text)


def test_a_query_cannot_take_the_machines_memory(first_case: Path) -> None:
    with Store(first_case) as store:
        (limit,) = store.run("SELECT value FROM duckdb_settings() WHERE name = 'memory_limit'").rows
        assert limit[0].endswith(("MiB", "GiB"))
        (spill,) = store.run("SELECT value FROM duckdb_settings() WHERE name = 'temp_directory'").rows
        assert spill == ("",)


def test_a_cross_join_ends_at_the_memory_limit_with_a_word(
    first_case: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    case = tmp_path / "case.duckdb"
    case.write_bytes(first_case.read_bytes())
    monkeypatch.setattr(
        "tracelens.store.reader.READ_ONLY_SETTINGS",
        {**tracelens.store.allowance.READ_ONLY_SETTINGS, "memory_limit": "64MiB"},
    )
    huge = "SELECT list(a.range ORDER BY hash(a.range)) FROM range(20000) a, range(2000) b GROUP BY b.range"
    result = CliRunner().invoke(cli, ["sql", huge, "-c", str(case), "--timeout", "60"])
    assert result.exit_code == 3
    assert "the query needs more memory than it may have" in result.stderr
    assert "memory_limit" not in result.stderr.partition("hint: ")[2]
    assert [path.name for path in tmp_path.iterdir()] == ["case.duckdb"]


COMMANDS = (
    ("ingest", str(LOGS), "-c", "new.duckdb"), ("check",), ("slowest",), ("query", "--list"), ("query", "requests"), ("sources",), ("sources", "--verify"),
    ("sources", "--next-time"), ("sql", "SELECT 1"), ("rules", "list"), ("formats",), ("schema",), ("report", "-o", "r.html"), ("rules", "test", "."),
    ("export", "--help"), ("reingest",), ("show", "chatcmpl"), ("compare", "default", "default"),
)  # fmt: skip


DENYING = """
import json, sys
def deny(event, args):
    if event.startswith("socket.") and event != "socket.gethostname":
        denied.append((event, args))
        raise RuntimeError("no network: " + event)
denied = []
sys.addaudithook(deny)
from click.testing import CliRunner
from tracelens.cli import cli
for args in json.loads(sys.argv[1]):
    result = CliRunner().invoke(cli, args, env={"TRACELENS_CASE": "case.duckdb"})
    print(json.dumps([args[0], result.exit_code, "no network" in result.output]))
assert not denied, denied
"""
"""Runs commands with every socket of Python denied."""


def watched(trace: Path) -> list[str]:
    """Words before a command: without any network, its system calls for one noted; nothing where the host cannot."""
    words = [
        "unshare",
        "-n",
        "strace",
        "-f",
        "-qq",
        "-e",
        "trace=socket,connect,bind,sendto",
        "-o",
        str(trace),
    ]
    can = shutil.which("unshare") and shutil.which("strace")
    return (
        words
        if can and subprocess.run([*words, "true"], check=False, capture_output=True).returncode == 0
        else []
    )


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory, first_case: Path) -> tuple[str, str | None]:
    """What every command said, and its system calls for a network, where they can be watched."""
    folder = tmp_path_factory.mktemp("network")
    (folder / "case.duckdb").write_bytes(first_case.read_bytes())
    words, trace = watched(folder / "trace"), folder / "trace"
    done = subprocess.run(
        [*words, sys.executable, "-c", DENYING, json.dumps(COMMANDS)],
        cwd=folder, capture_output=True, text=True, env=environment(), timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout, trace.read_text() if words else None


def test_no_command_opens_a_connection(ran: tuple[str, str | None]) -> None:
    """Every socket is denied by an audit hook, in every command."""
    told = [json.loads(line) for line in ran[0].splitlines()]
    assert len(told) == len(COMMANDS)
    assert not [one for one in told if one[2] or one[1] not in (0, 1, 2)]


def test_nothing_below_python_opens_a_connection_either(ran: tuple[str, str | None]) -> None:
    """DuckDB, Polars: no system call of any of their threads asks for a network, and without one all of them work."""
    if ran[1] is None:
        pytest.skip("needs strace and unshare -n")
    assert [line for line in ran[1].splitlines() if "AF_INET" in line or "AF_NETLINK" in line] == []


def test_the_watch_would_see_a_connection(tmp_path: Path) -> None:
    words = watched(tmp_path / "trace")
    if not words:
        pytest.skip("needs strace and unshare -n")
    code = "import socket; socket.socket().connect_ex(('127.0.0.1', 9))"
    subprocess.run([*words, sys.executable, "-c", code], check=True)
    assert "AF_INET" in (tmp_path / "trace").read_text()


def test_duckdb_fetches_no_extension_while_it_reads_or_writes(
    first_case: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = "SELECT name, value FROM duckdb_settings() WHERE name LIKE '%known_extensions' OR name = 'allow_community_extensions'"
    off = [("false",)] * 3
    with Store(first_case) as store:
        assert [row[1:] for row in store.run(asked).rows] == off
        (locked,) = store.run(
            "SELECT current_setting('lock_configuration'), current_setting('enable_external_access')"
        ).rows
        assert locked == (True, False)
    with CaseWriter(tmp_path / "case.duckdb") as writer:
        assert [row[1:] for row in writer.rows(asked)] == off


def test_a_slow_query_draws_no_bar_on_stdout_in_a_notebook(first_case: Path) -> None:
    """DuckDB does where there is no script, as in ``python -c``, when a query takes more than two seconds."""
    code = (
        "import sys, tracelens\n"
        "with tracelens.open(sys.argv[1]) as case:\n"
        "    print(case.sql(\"SELECT current_setting('enable_progress_bar')\").rows)\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code, str(first_case)],
        capture_output=True,
        text=True,
        env=environment(),
        check=True,
    )
    assert ran.stdout == "[(False,)]\n"


def test_a_formula_does_not_act_in_csv_and_json_has_it_as_it_is(tmp_path: Path) -> None:
    rows = [json.loads(line) for line in (LOGS / "client.jsonl").read_text().splitlines()]
    for row, text in zip(rows, FORMULAS, strict=False):
        row["label"] = text
    (tmp_path / "client.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    case = tmp_path / "case.duckdb"
    tracelens.ingest([tmp_path / "client.jsonl"], case)
    ask = [
        "sql",
        "SELECT label, -1.5 AS low, '-3' AS cell FROM client_request WHERE label IS NOT NULL",
        "-c",
        str(case),
    ]
    cells = list(csv.DictReader(io.StringIO(CliRunner().invoke(cli, [*ask, "--format", "csv"]).stdout)))
    assert {cell["label"] for cell in cells} >= {"'" + text for text in FORMULAS if not text.startswith("\r")}
    assert not [cell for cell in cells if cell["label"].startswith(("=", "+", "-", "@", "\t", "\r"))]
    assert {(cell["low"], cell["cell"]) for cell in cells} == {("-1.5", "-3")}
    objects = json.loads(CliRunner().invoke(cli, [*ask, "--format", "json"]).stdout)
    assert {one["label"] for one in objects} >= set(FORMULAS)
