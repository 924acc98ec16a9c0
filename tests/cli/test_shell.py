"""The command as a process: what loads, signals, pipes, the way through it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest  # noqa: TC002 - fixtures name its types

import tracelens
from tracelens import resources
from tracelens.cli import cli

ENDLESS = "SELECT count(*) FROM range(1000000) AS a(x), range(1000000) AS b(y) WHERE hash(x, y) = 3"


def test_help_loads_click_and_nothing_heavy() -> None:
    script = (
        "import sys\nfrom tracelens.cli import cli\n"
        "try: cli.main(['--help'])\nexcept SystemExit: pass\n"
        "heavy = {'polars', 'duckdb', 'textual', 'orjson', 'zstandard', 'numpy', 'tracelens.store', 'tracelens.formats'} & set(sys.modules)\n"
        "sys.exit(f'loaded: {heavy}' if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_examples_in_help_texts_keep_their_lines(run) -> None:
    assert "\n    tracelens check    " in run("--help").stdout
    for name in cli.commands:
        assert "\\b" not in run(name, "--help").stdout, name


def test_version_and_the_order_of_the_commands(run) -> None:
    assert run("--version").stdout.strip() == f"tracelens, version {tracelens.__version__}"
    text = run("--help").stdout
    places = [
        text.index(f"\n  {name} ")
        for name in (
            "ingest",
            "check",
            "slowest",
            "show",
            "report",
            "compare",
            "export",
            "sources",
            "sql",
            "query",
            "rules",
            "schema",
            "formats",
            "demo",
        )
    ]
    assert places == sorted(places)


def test_a_wrong_command_or_option_is_exit_code_2(run) -> None:
    assert run("slowst").exit_code == 2
    assert run("slowest", "--by", "luck").exit_code == 2
    assert run("slowest", "--top", "0").exit_code == 2
    assert run("sql", "SELECT 1", "--timeout", "0").exit_code == 2


def test_a_closed_pipe_is_quiet(case: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [sys.executable, "-m", "tracelens", "sql", "SELECT * FROM range(100000)", "-c", str(case)],
        stdout=write,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    os.close(write)
    assert done.stderr == ""
    assert done.returncode == 0


def test_an_interrupt_is_exit_code_130(case: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "tracelens", "sql", ENDLESS, "-c", str(case)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    for _ in range(200):  # until DuckDB is loaded: before that Python itself would answer the signal
        if "duckdb" in Path(f"/proc/{process.pid}/maps").read_text(encoding="utf-8", errors="replace"):
            break
        time.sleep(0.1)
    time.sleep(2.0)
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=20)
    assert process.returncode == 130
    assert "Traceback" not in stderr


def test_an_odd_encoding_does_not_stop_the_output(shell) -> None:
    done = shell("slowest", "--format", "table", env={"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"})
    assert done.returncode == 0
    assert "queue" in done.stdout


def test_the_way_through_from_logs_to_one_request(shell, tmp_path: Path, logs: Path) -> None:
    shutil.copytree(logs, tmp_path / "logs")
    env = {"TRACELENS_CASE": ""}
    assert shell("ingest", "logs", cwd=tmp_path, env=env).returncode == 0
    assert (tmp_path / "incident.duckdb").exists()
    worst = (
        shell("slowest", "--top", "1", "--format", "csv", cwd=tmp_path, env=env)
        .stdout.splitlines()[1]
        .split(",")[1]
    )
    shown = shell("show", worst, cwd=tmp_path, env=env)
    assert "Most of its TTFT is queue" in shown.stdout
    assert shell("sources", cwd=tmp_path, env=env).stdout.count("\n") == 4


def test_schema_works_without_a_case(run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names = [line.split(",")[0] for line in run("schema").stdout.splitlines()]
    assert {"source", "request_event", "request", "request_stage", "clock_offset"} <= set(names)
    assert not any(name.startswith("_") for name in names)
    assert "ttft_s,DOUBLE" in run("schema", "request").stdout
    missing = run("schema", "no_such_table")
    assert missing.exit_code == 2


def test_formats_are_listed_and_shown(run) -> None:
    assert "vllm_log" in run("formats").stdout
    assert "request_event" in run("formats", "show", "vllm_log").stdout
    assert run("formats", "show", "none").exit_code == 2


def test_sources_show_the_clocks_on_a_screen(run) -> None:
    text = run("sources", "--format", "table").stdout
    assert "How far the second clock is ahead of the first" in text
    assert "server.log" in text


def test_the_demo_ends_with_the_largest_stage_and_a_case(
    run, logs: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(resources, "demo_incident", lambda: logs)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    result = run("demo")
    assert result.exit_code == 0, result.stderr
    assert "the largest stage is queue" in result.stdout
    assert "Q queue" in result.stdout
    (kept,) = tmp_path.rglob("incident.duckdb")
    assert str(kept) in result.stdout
