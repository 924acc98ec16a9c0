"""What is said of wrong uses and broken files: what is wrong, where, and what to do next; and the exit code."""

from __future__ import annotations

import gzip
import os
import re
import tomllib
from pathlib import Path
from typing import Any

import duckdb
import pytest
from click.testing import CliRunner
from harm import LOGS

import tracelens
from tracelens.cli import cli

CATALOGUE = tomllib.loads((Path(__file__).parent / "catalogue.toml").read_text(encoding="utf-8"))["case"]
WHAT_NEXT = re.compile(r"^hint: \S|^Try 'cli |  not re(ad|cognised): |  empty file$", re.MULTILINE)
"""A hint, the way to the help, or the reason why a file was not read."""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a case, and with files that are none."""
    folder = tmp_path_factory.mktemp("catalogue")
    line = "INFO 11-29 12:00:00 [async_llm.py:1] Added request a.\n"
    (folder / "server.log").write_text(line)
    (folder / "mail.txt").write_text("Dear all,\nregards\n")
    (folder / "empty.log").write_text("")
    (folder / "cut.log.gz").write_bytes(gzip.compress(line.encode() * 500)[:-9])
    (folder / "text.duckdb").write_text("all my work\n" * 100)
    (folder / "core").write_bytes(bytes(range(256)) * 9)
    (folder / "broken.zip").write_bytes(b"PK\x03\x04" + b"x" * 90)
    (folder / "q.sql").write_text("SELECT 1")
    (folder / "hollow").mkdir()
    os.mkfifo(folder / "pipe")
    duckdb.connect(str(folder / "other.duckdb")).execute("CREATE TABLE t (a INTEGER)").close()
    tracelens.ingest([LOGS], folder / "case.duckdb")
    return folder


@pytest.mark.parametrize("entry", CATALOGUE, ids=[" ".join(one["command"])[:40] for one in CATALOGUE])
def test_what_is_said_and_how_it_ends(
    entry: dict[str, Any], place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(place)
    result = CliRunner().invoke(
        cli, entry["command"], env={"TRACELENS_CASE": "case.duckdb", "XDG_CONFIG_HOME": str(place)}
    )
    assert result.exit_code == entry["exit_code"], result.output
    for piece in entry["says"]:
        assert piece in result.output
    assert WHAT_NEXT.search(result.output), result.output
    assert "Traceback" not in result.output
    assert "this is a fault of tracelens" not in result.output


def test_the_catalogue_is_long_enough_and_names_what_next() -> None:
    assert len(CATALOGUE) >= 64
    assert len({tuple(one["command"]) for one in CATALOGUE}) == len(CATALOGUE)
    assert all(one["says"] for one in CATALOGUE)


@pytest.mark.parametrize("shell_name", ["bash", "zsh", "fish"])
def test_shells_complete_commands(shell_name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    result = CliRunner().invoke(
        cli, [], env={"_TRACELENS_COMPLETE": f"{shell_name}_source"}, prog_name="tracelens"
    )
    assert "tracelens" in result.output
    assert "complete" in result.output


def test_every_command_has_help_and_those_with_files_have_examples() -> None:
    for name, command in cli.commands.items():
        result = CliRunner().invoke(cli, [name, "--help"])
        assert result.exit_code == 0
        assert command.help
    assert "tracelens ingest logs/" in CliRunner().invoke(cli, ["ingest", "--help"]).output


def test_quiet_says_only_what_was_not_read(place: Path, tmp_path: Path) -> None:
    result = CliRunner().invoke(
        cli,
        ["ingest", str(place / "server.log"), str(place / "core"), "-q", "-c", str(tmp_path / "case.duckdb")],
    )
    assert result.exit_code == 1
    assert result.stdout == f"{place / 'core'}  not recognised: binary data\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[set]\n# a limit\nqueue.seats_exhausted.min_rati = 0.5\n", "tracelens.toml:3: no rule has a parameter 'queue.seats_exhausted.min_rati'"),
        ("[set]\nqueue.seats_exhausted.min_rati = 0.5\n", "did you mean queue.seats_exhausted.min_ratio?"),
        ("\n[sett]\na.b = 1\n", "tracelens.toml:2: 'sett': only the tables [set] and [slo] are known"),
        ("[sett]\na.b = 1\n", "did you mean [set]?"),
        ("[set\n", "tracelens.toml: "),
        ("[set]\n\nqueue.seats_exhausted.min_ratio = 'x'\n", "tracelens.toml:3: queue.seats_exhausted.min_ratio='x' is no number"),
        ("[slo]\nttft = '1s'\ntpto = '50ms'\n", "tracelens.toml:3: an SLO has no 'tpto'"),
        ("[slo]\ntpto = '50ms'\n", "did you mean tpot?"),
        ("[slo]\n\nttft = 'soon'\n", "tracelens.toml:3: ttft=soon is no length of time"),
    ],
)  # fmt: skip
def test_a_wrong_key_of_a_configuration_file_is_named_with_its_line_and_the_nearest_right_one(
    text: str, said: str, place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tracelens.toml").write_text(text)
    result = CliRunner().invoke(
        cli, ["check", "-c", str(place / "case.duckdb")], env={"XDG_CONFIG_HOME": str(tmp_path)}
    )
    assert result.exit_code == 2
    assert said in result.stderr
