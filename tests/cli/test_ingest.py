"""``ingest``: what it prints, and its exit codes."""

from __future__ import annotations

import json
import re
import shutil
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def test_every_file_gets_a_line_with_its_format_lines_and_rows(run, tmp_path: Path, logs: Path) -> None:
    result = run("ingest", logs, "-c", tmp_path / "a.duckdb")
    assert result.exit_code == 0
    assert "client.jsonl" in result.stdout
    assert "client_stream (chunk times), 10 lines: client_request 10, client_stream 10" in result.stdout
    assert "server_request 10" in result.stdout
    assert "request_event 30" in result.stdout
    assert "year 2026" in result.stdout
    assert "Next: tracelens check -c" in result.stdout.splitlines()[-1]
    assert result.stderr == ""


def test_lines_not_understood_are_counted_with_the_first_of_them(run, tmp_path: Path, logs: Path) -> None:
    broken = (logs / "client.jsonl").read_text().splitlines()
    broken[3] = "{broken"
    broken[6] = '{"also": '
    (tmp_path / "client.jsonl").write_text("\n".join(broken) + "\n")
    result = run("ingest", tmp_path / "client.jsonl", "-c", tmp_path / "a.duckdb")
    assert result.exit_code == 0
    assert re.search(r"2 lines \([0-9.]+ %\) not understood", result.stdout)
    assert "client.jsonl:4" in result.stdout


def test_the_same_files_again_change_nothing(run, tmp_path: Path, logs: Path) -> None:
    run("ingest", logs, "-c", tmp_path / "a.duckdb")
    again = run("ingest", logs, "-c", tmp_path / "a.duckdb")
    assert again.exit_code == 0
    assert again.stdout.count("in the case already") == 3


def test_a_file_that_is_not_recognised_is_named_and_the_others_are_in(
    run, tmp_path: Path, logs: Path
) -> None:
    (tmp_path / "notes.txt").write_text("my notes of that night\n" * 5)
    result = run("ingest", logs, tmp_path / "notes.txt", "-c", tmp_path / "a.duckdb")
    assert result.exit_code == 1
    assert "not recognised" in result.stdout
    assert "my notes of that night" in result.stdout
    assert "vllm_log" in result.stdout
    assert (
        run("sql", "SELECT count(*) FROM request", "-c", tmp_path / "a.duckdb").stdout.splitlines()[1] == "10"
    )


def test_nothing_recognised_is_exit_code_3_and_no_case(run, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("my notes\n")
    result = run("ingest", tmp_path / "notes.txt", "-c", tmp_path / "a.duckdb")
    assert result.exit_code == 3
    assert "nothing could be ingested" in result.stdout
    assert not (tmp_path / "a.duckdb").exists()


def test_a_file_that_does_not_exist_is_exit_code_2_alone_and_1_beside_others(
    run, tmp_path: Path, logs: Path
) -> None:
    alone = run("ingest", tmp_path / "none.log", "-c", tmp_path / "a.duckdb")
    assert alone.exit_code == 2
    assert "no such file" in alone.stdout
    assert run("ingest", tmp_path / "none.log", logs, "-c", tmp_path / "a.duckdb").exit_code == 1


def test_wrong_options_are_exit_code_2(run, tmp_path: Path, logs: Path) -> None:
    case = tmp_path / "a.duckdb"
    assert run("ingest").exit_code == 2
    assert run("ingest", logs, "-c", case, "--tz", "Mars/Olympus").exit_code == 2
    assert run("ingest", logs, "-c", case, "--format", "no_such_format").exit_code == 2
    assert run("ingest", logs, "-c", case, "--date", "yesterday").exit_code == 2
    assert run("ingest", logs, "-c", tmp_path / "no" / "folder.duckdb").exit_code == 2
    assert not case.exists()


def test_run_and_zone_and_date_reach_the_case(run, tmp_path: Path, logs: Path) -> None:
    case = tmp_path / "a.duckdb"
    shutil.copy(logs / "server.log", tmp_path / "server.log")
    done = run(
        "ingest",
        tmp_path / "server.log",
        "-c",
        case,
        "--run",
        "before",
        "--tz",
        "+02:00",
        "--date",
        "2025-11-29",
    )
    assert done.exit_code == 0
    (row,) = json.loads(run("sources", "-c", case, "--format", "json").stdout)
    assert row["run_id"] == "before"
    assert row["first_ts"] == "2025-11-29T10:45:54.000000"


def test_stdin_is_a_source(run, tmp_path: Path, logs: Path) -> None:
    done = run("ingest", "-", "-c", tmp_path / "a.duckdb", stdin=(logs / "client.jsonl").read_bytes())
    assert done.exit_code == 0
    assert "client_request 10" in done.stdout


def test_what_a_log_says_does_not_act_on_the_terminal(run, tmp_path: Path, logs: Path) -> None:
    (tmp_path / "odd\x1b[31m.txt").write_text("\x1b]0;title\x07 hello \u202e\n")
    result = run("ingest", logs, tmp_path, "-c", tmp_path / "a.duckdb")
    assert "\x1b" not in result.stdout
    assert "\\x1b" in result.stdout
    assert "\u202e" not in result.stdout
