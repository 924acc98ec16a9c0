"""An ingest that is ended from outside: the case is as before or complete, and the next ingest finds no obstacle."""

from __future__ import annotations

import os
import random
import resource
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from harm import LOGS, contents, environment

import tracelens
from tracelens.errors import CaseError
from tracelens.ingestion.scratch import scratch_folder
from tracelens.store import CaseLock, Store

INGEST = (
    "import sys, tracelens.ingestion as i, pathlib\n"
    "print('ready', flush=True)\n"
    "i.ingest(sys.argv[2:], pathlib.Path(sys.argv[1]))\n"
)


class Place:
    """A folder with a case and a folder for temporary files of its own."""

    def __init__(self, folder: Path, before: Path | None) -> None:
        self.case, self.scratch = folder / "case.duckdb", folder / "tmp"
        self.scratch.mkdir(parents=True)
        if before is not None:
            shutil.copyfile(before, self.case)

    def started(self, **more: Any) -> subprocess.Popen[str]:
        """An ingest that is about to begin."""
        child = subprocess.Popen(
            [sys.executable, "-c", INGEST, str(self.case), str(LOGS)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment(TMPDIR=str(self.scratch)),
            **more,
        )
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        return child

    def litter(self) -> list[str]:
        """What lies about besides the case."""
        return sorted(
            str(path.relative_to(self.case.parent))
            for path in self.case.parent.rglob("*")
            if path not in (self.case, self.scratch)
        )

    def again(self, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
        """The next ingest, and what is in the case then."""
        with monkeypatch.context() as patched:
            patched.setattr("tempfile.tempdir", str(self.scratch))
            assert tracelens.ingest([LOGS], self.case).recognised
        assert self.litter() == []
        return contents(self.case)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory, first_case: Path) -> tuple[dict[str, Any], float]:
    """What a complete ingest gives, and how long one takes."""
    place = Place(tmp_path_factory.mktemp("whole"), first_case)
    child = place.started()
    began = time.monotonic()
    child.communicate(timeout=60)
    assert child.returncode == 0
    return contents(place.case), time.monotonic() - began


def killed(places: int, folder: Path, first_case: Path, whole: tuple[dict[str, Any], float]) -> Counter[str]:
    """Kill ingests at points spread over their whole time, by chance within each part; returns what was found."""
    complete, seconds = whole
    before, found, chance = contents(first_case), Counter[str](), random.Random(places)
    for number in range(places):
        place = Place(folder / str(number), first_case)
        child = place.started()
        time.sleep(seconds * 1.05 * (number + chance.random()) / places)
        child.send_signal(signal.SIGKILL)
        child.communicate()
        now = contents(place.case)
        assert now in (before, complete)
        found["complete" if now == complete else "as before"] += 1
        found["litter"] += bool(place.litter())
        with pytest.MonkeyPatch.context() as patch:
            assert place.again(patch) == complete
        shutil.rmtree(folder / str(number))
    return found


@pytest.mark.slow
def test_a_killed_ingest_leaves_the_case_as_before_or_complete(
    tmp_path: Path, first_case: Path, whole: tuple[dict[str, Any], float]
) -> None:
    points = int(os.environ.get("TRACELENS_KILLS", "6"))
    found = killed(points, tmp_path, first_case, whole)
    print(f"{points} points: {dict(found)}")
    assert found["as before"] + found["complete"] == points
    assert found["as before"]


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_ingest_leaves_the_case_as_before(
    how: int,
    tmp_path: Path,
    first_case: Path,
    whole: tuple[dict[str, Any], float],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    place = Place(tmp_path / "case", first_case)
    child = place.started()
    time.sleep(whole[1] * 0.5)
    child.send_signal(how)
    child.communicate()
    assert contents(place.case) in (contents(first_case), whole[0])
    if how == signal.SIGINT:
        assert place.litter() == []
    assert place.again(monkeypatch) == whole[0]


@pytest.mark.parametrize("limit_bytes", [1, 20_000, 1_500_000])
def test_a_full_disk_leaves_the_case_as_before(
    limit_bytes: int,
    tmp_path: Path,
    first_case: Path,
    whole: tuple[dict[str, Any], float],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    place = Place(tmp_path / "case", first_case)
    ran = subprocess.run(
        [sys.executable, "-m", "tracelens", "ingest", str(LOGS), "-c", str(place.case)],
        capture_output=True,
        text=True,
        check=False,
        # A file of bytecode that is cut by the limit would stay, and break whoever imports it next.
        env=environment(TMPDIR=str(place.scratch), PYTHONDONTWRITEBYTECODE="1"),
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit_bytes, limit_bytes)),
    )
    assert ran.returncode == 2, ran.stderr
    assert ran.stderr.startswith("error: ")
    assert "cannot" in ran.stderr
    assert "hint: " in ran.stderr
    assert "Traceback" not in ran.stderr
    assert place.litter() == []
    assert contents(place.case) == contents(first_case)
    assert place.again(monkeypatch) == whole[0]


def test_two_ingests_at_once_do_not_mix(
    tmp_path: Path, first_case: Path, whole: tuple[dict[str, Any], float]
) -> None:
    place = Place(tmp_path / "case", first_case)
    pair = [place.started(), place.started()]
    said = [child.communicate(timeout=60)[1] for child in pair]
    codes = [child.returncode for child in pair]
    assert 0 in codes
    for code, words in zip(codes, said, strict=True):
        assert code == 0 or f" on {socket.gethostname()}) is writing this case" in words
    assert contents(place.case) == whole[0]
    assert place.litter() == []


def test_a_case_that_is_held_is_refused_before_anything_is_read(tmp_path: Path, first_case: Path) -> None:
    case = tmp_path / "case.duckdb"
    shutil.copyfile(first_case, case)
    with (
        CaseLock(case),
        pytest.raises(
            CaseError, match=rf"another ingest \(process {os.getpid()} on .*\) is writing this case"
        ),
    ):
        tracelens.ingest(["/dev/zero"], case)


def test_readers_see_the_old_state_while_an_ingest_is_on(
    tmp_path: Path, first_case: Path, whole: tuple[dict[str, Any], float]
) -> None:
    place = Place(tmp_path / "case", first_case)
    before = contents(first_case)
    child = place.started()
    seen = []
    while child.poll() is None:
        seen.append(contents(place.case))
    child.communicate()
    assert all(one in (before, whole[0]) for one in seen)
    assert before in seen
    assert contents(place.case) == whole[0]


def test_a_case_is_its_owners_alone_while_it_grows_and_after(tmp_path: Path) -> None:
    case = tmp_path / "case.duckdb"
    with CaseLock(case) as lock:
        assert lock.folder.stat().st_mode & 0o777 == 0o700
    tracelens.ingest([LOGS / "client.jsonl"], case)
    assert case.stat().st_mode & 0o777 == 0o600


def test_a_case_in_a_folder_that_may_not_be_written_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CaseError):
        tracelens.ingest([LOGS], tmp_path / "file" / "case.duckdb")


def test_a_reader_that_is_open_keeps_its_state(tmp_path: Path, first_case: Path) -> None:
    case = tmp_path / "case.duckdb"
    shutil.copyfile(first_case, case)
    with Store(case) as reader:
        tracelens.ingest([LOGS / "server.log"], case)
        assert reader.run("SELECT count(*) FROM source").rows == [(1,)]


def test_what_an_ingest_was_removing_when_it_was_killed_is_removed_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Place(tmp_path / "case", None)
    for number, names in enumerate(
        ((), ("1/request_event-000000.parquet",), ("owner",), ("owner", "1/a.parquet"))
    ):
        for name in names:
            path = place.scratch / f"tracelens-parts-{number}" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(b"")
        (place.scratch / f"tracelens-parts-{number}").mkdir(exist_ok=True)
    monkeypatch.setattr("tempfile.tempdir", str(place.scratch))
    with scratch_folder() as mine, scratch_folder() as other:
        assert {path.name for path in place.scratch.iterdir()} == {mine.name, other.name}
    assert place.litter() == []
