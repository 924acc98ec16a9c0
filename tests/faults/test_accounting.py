"""Every line of every source is understood or kept, and the files can be held against the case at any time."""

from __future__ import annotations

import csv
import gzip
import io
import shutil
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest
from click.testing import CliRunner, Result
from harm import LOGS, contents

import tracelens
from tracelens.cli import cli
from tracelens.errors import CaseError
from tracelens.ingestion.verifying import Fate, Verified, verify
from tracelens.store import Store

SAMPLE_LOGS = Path(__file__).parents[2] / "sample_logs"


def run(*args: object) -> Result:
    return CliRunner().invoke(cli, [str(arg) for arg in args])


def two_of(folder: Path) -> list[Path]:
    """The smallest sample of a format, and one of a usual size."""
    by_size = sorted(
        (path for path in folder.iterdir() if path.suffix != ".md"), key=lambda path: path.stat().st_size
    )
    return list(dict.fromkeys([*by_size[:1], *by_size[len(by_size) // 2 :][:1]]))


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> list[Verified]:
    """Two samples of every format, ingested and held against the case; each sample's lines are counted in test_golden.py."""
    case = tmp_path_factory.mktemp("all") / "case.duckdb"
    tracelens.ingest(
        [path for folder in SAMPLE_LOGS.iterdir() if folder.is_dir() for path in two_of(folder)], case
    )
    return list(verify(case))


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """The small incident, to be changed: one file compressed, one in a bundle."""
    folder = tmp_path / "logs"
    folder.mkdir()
    (folder / "server.log.gz").write_bytes(gzip.compress((LOGS / "server.log").read_bytes()))
    shutil.copy(LOGS / "client.jsonl", folder)
    with tarfile.open(folder / "bundle.tar", "w") as archive:
        archive.add(LOGS / "otel_spans.jsonl", "spans!.jsonl")
    return folder


def test_lines_in_are_lines_understood_and_lines_kept_in_every_format(everything: list[Verified]) -> None:
    found = everything
    assert len({one.path.rpartition("/")[0] for one in found}) > 50
    assert {one.path: one.note for one in found if one.fate is not Fate.SAME} == {}
    for one in found:
        assert one.line_now_count == one.line_count == one.understood_count + one.kept_count
        assert one.size_now_bytes == one.size_bytes


def test_the_bytes_and_lines_of_a_sample_are_those_that_anyone_counts(everything: list[Verified]) -> None:
    counted = 0
    for one in everything:
        data = Path(one.path).read_bytes()
        assert one.size_bytes == len(data)
        if not data.startswith((b"SQLite", b"\xff\xfe")) and b"\r" not in data.replace(b"\r\n", b""):
            assert one.line_count == data.count(b"\n") + (not data.endswith(b"\n"))
            counted += 1
    assert counted > 60


def test_files_that_are_as_they_were_verify_with_exit_code_0(files: Path, tmp_path: Path) -> None:
    case = tmp_path / "case.duckdb"
    tracelens.ingest([files], case)
    result = run("sources", "--verify", "-c", case)
    assert result.exit_code == 0, result.stderr
    rows = list(csv.DictReader(io.StringIO(result.stdout)))
    assert {Path(row["path"]).name: row["fate"] for row in rows} == {
        "server.log.gz": "same",
        "client.jsonl": "same",
        "bundle.tar!spans!.jsonl": "same",
    }


def test_files_that_are_gone_changed_or_grown_are_named_and_the_exit_code_is_1(
    files: Path, tmp_path: Path
) -> None:
    shutil.copy(LOGS / "client.jsonl", files / "second.jsonl")
    (files / "second.jsonl").write_text((files / "second.jsonl").read_text() + "\n")
    case = tmp_path / "case.duckdb"
    tracelens.ingest([files], case)
    (files / "bundle.tar").unlink()
    with (files / "client.jsonl").open("a") as grown:
        grown.write("{}\n")
    (files / "second.jsonl").write_text("other")
    (files / "server.log.gz").write_bytes((files / "server.log.gz").read_bytes()[:-9])
    result = run("sources", "--verify", "-c", case, "--format", "csv")
    assert result.exit_code == 1
    assert "4 of 4 sources not as when read" in result.stderr
    rows = list(csv.DictReader(io.StringIO(result.stdout)))
    assert {Path(row["path"]).name: row["fate"] for row in rows} == {
        "server.log.gz": "unreadable",
        "client.jsonl": "grown",
        "second.jsonl": "changed",
        "bundle.tar!spans!.jsonl": "gone",
    }
    assert run("sources", "--verify", "-c", case, "--format", "table").exit_code == 1


def test_a_case_that_lost_a_line_is_told(files: Path, tmp_path: Path) -> None:
    case = tmp_path / "case.duckdb"
    (files / "client.jsonl").write_text((files / "client.jsonl").read_text() + "not json\n")
    tracelens.ingest([files / "client.jsonl"], case)
    connection = duckdb.connect(str(case))
    connection.execute("DELETE FROM ingest_issue")
    connection.close()
    (one,) = verify(case)
    assert one.fate is Fate.MISCOUNTED


def test_reingest_reads_everything_again_with_its_runs_and_options(files: Path, tmp_path: Path) -> None:
    case, again = tmp_path / "case.duckdb", tmp_path / "again.duckdb"
    tracelens.ingest([files / "server.log.gz"], case, run="a", tz="Europe/Berlin")
    tracelens.ingest([files / "client.jsonl", files / "bundle.tar"], case, run="b", keep_text=True)
    result = run("reingest", "-c", case, "-o", again)
    assert result.exit_code == 0, result.stderr
    assert contents(again) == contents(case)
    wanted = "SELECT run_id, path, time_basis, options, first_ts FROM source ORDER BY ALL"
    with Store(case) as old, Store(again) as new:
        assert new.run(wanted).rows == old.run(wanted).rows
        key = "SELECT value FROM case_property WHERE key = 'prompt_key'"
        assert new.run(key).rows == old.run(key).rows
    assert again.stat().st_mode & 0o777 == 0o600


def test_a_case_of_another_version_is_refused_with_the_one_command_that_mends_it(
    files: Path, tmp_path: Path
) -> None:
    case = tmp_path / "case.duckdb"
    tracelens.ingest([files / "client.jsonl"], case)
    wanted = contents(case)
    connection = duckdb.connect(str(case))
    connection.execute("UPDATE case_property SET value = '0123456789ab' WHERE key = 'schema_version'")
    connection.execute("ALTER TABLE source DROP COLUMN options")
    connection.close()
    for command in (
        ["check"],
        ["sources"],
        ["sql", "SELECT 1"],
        ["ingest", LOGS / "server.log"],
        ["sources", "--verify"],
    ):
        result = run(*command, "-c", case)
        assert result.exit_code == 2
        assert "made by a tracelens with other tables (schema 0123456789ab" in result.stderr
        assert f"tracelens reingest -c {case}" in result.stderr
    assert run("reingest", "-c", case).exit_code == 0
    assert contents(case) == wanted
    assert sorted(path.name for path in tmp_path.iterdir()) == ["case.duckdb", "logs"]


def test_reingest_changes_nothing_where_a_source_is_gone(files: Path, tmp_path: Path) -> None:
    case = tmp_path / "case.duckdb"
    tracelens.ingest([files], case)
    before = case.read_bytes()
    (files / "client.jsonl").unlink()
    with pytest.raises(
        CaseError, match=r"1 of 3 sources cannot be read again \(first: .*client\.jsonl\)"
    ) as caught:
        from tracelens.ingestion.again import reingest

        reingest(case)
    assert "--without-gone" in caught.value.hint
    assert case.read_bytes() == before
    assert run("reingest", "-c", case, "--without-gone").exit_code == 1
    assert len(list(verify(case))) == 2


def test_a_case_and_its_relative_files_may_be_asked_for_from_anywhere(
    files: Path, tmp_path: Path, shell: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    assert shell("ingest", "logs/client.jsonl", "-c", "case.duckdb").returncode == 0
    (tmp_path / "elsewhere").mkdir()
    asked = shell("sources", "--verify", "-c", "../case.duckdb", cwd=tmp_path / "elsewhere")
    assert asked.returncode == 0, asked.stdout + asked.stderr
    (tmp_path / "logs").rename(tmp_path / "old")
    assert shell("sources", "--verify", "-c", "case.duckdb").returncode == 1
