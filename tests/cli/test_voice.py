"""How much a command says: nothing that may go unsaid, remarks, or each step."""

from __future__ import annotations

import logging
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tracelens import resources

TOYS = Path(__file__).parent.parent / "rules" / "data" / "toys"
STEP = re.compile(r"^ *\d+\.\d{3} s +[\d.]+ [KMG]iB  \S")


@pytest.fixture(autouse=True)
def only_toys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two rules tell as much about what is said as all of them."""
    monkeypatch.setattr(resources, "rules", lambda: TOYS)


def steps(stderr: str) -> list[str]:
    lines = stderr.splitlines()
    assert all(STEP.match(line) for line in lines), stderr
    return [line[22:] for line in lines]


def test_verbose_tells_what_was_read_recognised_and_loaded_with_time_and_memory(
    run, logs: Path, tmp_path: Path
) -> None:
    result = run("-v", "ingest", logs, tmp_path / "none.log", "-c", tmp_path / "case.duckdb")
    told = "\n".join(steps(result.stderr))
    for name, kind, lines in (
        ("client.jsonl", "client_stream", 10),
        ("otel_spans.jsonl", "otlp_spans", 9),
        ("server.log", "vllm_log", 64),
    ):
        size = (logs / name).stat().st_size
        assert f"{name}: recognised as {kind} (" in told
        assert f"{name}: parsed {size:,} bytes, {lines} lines, 0 of them not understood" in told
        assert f"{name}: loaded " in told
    assert "written: " in told
    assert told.splitlines()[-1].startswith("in all; ")
    assert "read into run default" in result.stdout


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("check",), "rule toy.waits: fired"),
        (("slowest",), "query slowest: 10 rows"),
        (("sql", "SELECT 1"), "sql: 1 rows"),
        (("query", "stages"), "query stages: 11 rows"),
        (("sources",), "query sources: 3 rows"),
    ],
)
def test_verbose_tells_the_steps_of_every_kind_of_command_and_changes_no_output(
    run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, args: tuple[str, ...], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    plain, told = run(*args), run(*args, "--verbose")
    assert told.stdout == plain.stdout
    assert told.exit_code == plain.exit_code
    assert any(
        line.startswith(said) or said in line
        for line in steps("\n".join(line for line in told.stderr.splitlines() if STEP.match(line)))
    )


def test_steps_are_told_in_one_command_and_not_in_the_next(run) -> None:
    assert run("sql", "SELECT 1", "-v").stderr
    assert run("sql", "SELECT 1").stderr == ""
    assert not logging.getLogger("tracelens").handlers


def test_a_path_in_a_step_does_not_act(run, logs: Path, tmp_path: Path) -> None:
    hostile = tmp_path / "evil\x1b[2J\u202e.jsonl"
    hostile.write_bytes((logs / "client.jsonl").read_bytes())
    result = run("ingest", hostile, "-v", "-c", tmp_path / "case.duckdb")
    assert result.exit_code == 0
    assert not set(result.stderr + result.stdout) & set("\x1b\u202e")


def test_quiet_leaves_remarks_unsaid_and_writes_the_same(
    run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tracelens.toml").write_text("[set]\ntoy.waits.min_waiting_count = 4\n")
    written = []
    for quiet in ((), ("--quiet",)):
        exported = run(*quiet, "export", "--format", "otlp", "-o", "spans.jsonl")
        checked = run("check", "--fail-on", "info", *quiet)
        assert (exported.exit_code, checked.exit_code) == (0, 1)
        assert bool(exported.stderr) == bool(checked.stderr) == (not quiet)
        written.append((Path("spans.jsonl").read_bytes(), checked.stdout))
    assert written[0] == written[1]


def test_quiet_still_says_errors_and_what_was_left_out(run, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run("show", "nobody", "-q").stderr.startswith("error: no request is called 'nobody'\nhint: ")
    assert "cut off after 2 rows" in run("-q", "sql", "SELECT * FROM range(9)", "--limit", "2").stderr


def test_quiet_ingest_and_reingest_print_only_the_files_that_were_not_read(
    run, logs: Path, tmp_path: Path
) -> None:
    case, bad = tmp_path / "case.duckdb", tmp_path / "bad.log"
    bad.write_text("Dear all,\n")
    first = run("-q", "ingest", logs / "client.jsonl", bad, "-c", case)
    assert first.stdout.splitlines()[0].startswith(f"{bad}  not recognised: ")
    assert len(first.stdout.splitlines()) == 1
    again = run("reingest", "-q", "-c", case)
    assert (again.stdout, again.stderr, again.exit_code) == ("", "", 0)


def test_quiet_and_verbose_at_once_are_refused(run) -> None:
    for args in (("-q", "check", "-v"), ("check", "-q", "-v")):
        result = run(*args)
        assert result.exit_code == 2
        assert "--quiet and --verbose: which of the two?" in result.stderr


def test_steps_are_not_told_over_a_screen() -> None:
    try:
        ours, theirs = pty.openpty()
    except OSError:
        pytest.skip("no terminals here")
    try:
        ended = subprocess.run(
            [sys.executable, "-m", "tracelens", "browse", "-v"],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            check=False,
            timeout=60,
        )
        assert ended.returncode == 2
        assert b"--verbose would write over the screen" in os.read(ours, 4000)
    finally:
        os.close(ours)
        os.close(theirs)
