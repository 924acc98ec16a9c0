"""Input that is broken, endless, huge or no file: a clear word, bounded memory, and the rest is read."""

from __future__ import annotations

import gzip
import io
import os
import resource
import subprocess
import sys
import tarfile
import threading
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import breaking
import pytest
from breaking import samples
from harm import LOGS, environment

import tracelens
from tracelens import opening
from tracelens.formats.gpu import vmstat
from tracelens.ingestion import IngestReport, State, chunks
from tracelens.ingestion.verifying import Fate, verify
from tracelens.opening import streams
from tracelens.store import Store

Shell = Callable[..., subprocess.CompletedProcess[str]]
LINE = "INFO 11-29 12:00:{:02d} [async_llm.py:1] Added request r{}.\n"


def lines(*numbers: int) -> bytes:
    return "".join(LINE.format(number % 60, number) for number in numbers).encode()


def read(case: Path, *sources: object) -> IngestReport:
    return tracelens.ingest([str(source) for source in sources], case)


GIANT = {
    "log": (lines(1) + b"INFO 11-29 12:00:01 [x.py:1] ", b"\n" + lines(2), "request_event", 2),
    "log that stops inside the line": (lines(1) + b"INFO 11-29 12:00:01 [x.py:1] ", b"", "request_event", 1),
    "client stream": (
        b'{"request_id": "a", "t_send": 1764417600.1, "t_first": 1764417600.9, "tokens": 5}\n'
        b'{"request_id": "b", "t_send": 1764417601.5, "text": "',
        b'"}\n{"request_id": "c", "t_send": 1764417602.1, "t_first": 1764417602.9, "tokens": 5}\n',
        "client_request",
        2,
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "packed", "size_mb"),
    [("log", False, 100), ("log that stops inside the line", True, 30), ("client stream", False, 30)],
)
def test_a_line_of_100_mb_is_read_in_bounded_memory(
    kind: str, packed: bool, size_mb: int, tmp_path: Path
) -> None:
    before, behind, table, rows = GIANT[kind]
    path = tmp_path / ("file.gz" if packed else "file.log")
    words = b"".join(b"w%06d " % (number * 7919 % 999983) for number in range(125_000))
    with gzip.open(path, "wb", 1) if packed else path.open("wb") as log:
        log.write(before)
        for _ in range(size_mb):
            log.write(words)
        log.write(behind)
    code = (
        "import sys, tracelens\n"
        "report = tracelens.ingest([sys.argv[1]], sys.argv[2])\n"
        "from tracelens.cli.voice import peak_bytes\n"
        "print(peak_bytes() // 2**20, report.files[0].understood + report.files[0].skipped - report.files[0].lines)\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code, str(path), str(tmp_path / "case.duckdb")],
        capture_output=True, text=True, check=True, env=environment(), timeout=300,
    )  # fmt: skip
    peak_mib, lost = map(int, ran.stdout.split())
    print(f"{peak_mib} MiB")
    assert lost == 0
    assert peak_mib < 500
    with Store(tmp_path / "case.duckdb") as store:
        assert store.run(f"SELECT count(*) FROM {table}").rows == [(rows,)]


@pytest.mark.parametrize("mark", ["utf-16-le", "utf-16-be", "utf-8"])
def test_text_in_another_encoding_is_read_by_its_byte_order_mark(mark: str, tmp_path: Path) -> None:
    (tmp_path / "server.log").write_bytes(("\ufeff" + lines(*range(9)).decode()).encode(mark))
    (report,) = read(tmp_path / "case.duckdb", tmp_path / "server.log").files
    assert (report.state, report.lines, report.rows["request_event"]) == (State.READ, 9, 9)


def test_nuls_and_wrong_bytes_inside_lines_lose_no_line(tmp_path: Path) -> None:
    broken = (
        lines(1) + b"\x00\x00\x00\n" + b"\xff\xfe\xc0 INFO\n" + lines(2) + b"\x00" * 5000 + b"\n" + lines(3)
    )
    (tmp_path / "server.log").write_bytes(broken)
    (report,) = read(tmp_path / "case.duckdb", tmp_path / "server.log").files
    assert (report.state, report.lines) == (State.READ, 6)
    assert report.understood + report.skipped == 6
    assert report.rows["request_event"] == 3


def test_an_empty_file_counts_as_empty(tmp_path: Path, shell: Shell) -> None:
    (tmp_path / "empty.log").write_bytes(b"")
    (tmp_path / "server.log").write_bytes(lines(1))
    ran = shell("ingest", "empty.log", "server.log")
    assert ran.returncode == 0
    assert "empty.log   empty file" in ran.stdout
    ran = shell("ingest", "empty.log", "-c", "new.duckdb")
    assert ran.returncode == 2
    assert not (tmp_path / "new.duckdb").exists()


def test_binary_data_is_called_so(tmp_path: Path) -> None:
    (tmp_path / "core").write_bytes(bytes(range(256)) * 500)
    (report,) = read(tmp_path / "case.duckdb", tmp_path / "core").files
    assert (report.state, report.note) == (State.UNKNOWN, "binary data")


def test_a_bomb_is_stopped_with_a_clear_word(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "MIN_BOMB_BYTES", 1 << 20)
    monkeypatch.setattr(streams, "MAX_EXPANSION", 100)
    bomb = gzip.compress(lines(1) + b"0" * (20 << 20))
    (tmp_path / "bomb.gz").write_bytes(bomb)
    with tarfile.open(tmp_path / "bomb.tar", "w") as archive:
        archive.add(tmp_path / "bomb.gz", "inner.gz")
    (tmp_path / "twice.gz").write_bytes(gzip.compress(gzip.compress(bomb)))
    found = {Path(one.path).name: one for one in read(tmp_path / "case.duckdb", tmp_path).files}
    for name in ("bomb.gz", "bomb.tar!inner.gz"):
        assert found[name].state is State.UNREADABLE
        assert "this looks like a decompression bomb" in found[name].note
    assert found["twice.gz"].state is State.UNKNOWN


def test_a_bomb_in_a_pipe_is_stopped_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "MIN_BOMB_BYTES", 1 << 20)
    monkeypatch.setattr(streams, "MAX_EXPANSION", 100)

    class Piped:
        buffer = io.BytesIO(gzip.compress(lines(1) + b"0" * (20 << 20)))

    monkeypatch.setattr(sys, "stdin", Piped())
    (report,) = read(tmp_path / "case.duckdb", "-").files
    assert "decompression bomb" in report.note


def test_a_document_that_is_too_large_to_be_read_whole_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chunks, "MAX_WHOLE_BYTES", 1000)
    sample = Path(__file__).parents[2] / "sample_logs" / "nvidia_smi_xml"
    path = next(one for one in sorted(sample.iterdir()) if one.suffix == ".xml")
    (report,) = read(tmp_path / "case.duckdb", path).files
    assert report.state is State.UNREADABLE
    assert "it would not fit into memory" in report.note


def test_links_and_paths_that_leave_the_archive_touch_nothing(tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(lines(7))
    with tarfile.open(tmp_path / "logs.tar", "w") as archive:
        for name, kind, target in (
            ("link", tarfile.SYMTYPE, str(tmp_path / "secret")),
            ("hard", tarfile.LNKTYPE, "../secret"),
            ("device", tarfile.CHRTYPE, ""),
            ("pipe", tarfile.FIFOTYPE, ""),
        ):
            member = tarfile.TarInfo(name)
            member.type, member.linkname = kind, target
            archive.addfile(member)
        outside = tarfile.TarInfo("../../outside.log")
        outside.size = len(lines(1))
        archive.addfile(outside, io.BytesIO(lines(1)))
    before = sorted(tmp_path.parent.rglob("*"))
    found = {
        one.path.partition("!")[2]: one for one in read(tmp_path / "case.duckdb", tmp_path / "logs.tar").files
    }
    assert found["../../outside.log"].state is State.READ
    for name in ("link", "hard", "device", "pipe"):
        assert (found[name].state, found[name].note) == (
            State.UNREADABLE,
            "a link or a device inside an archive; it is not followed",
        )
    assert set(tmp_path.parent.rglob("*")) - set(before) == {tmp_path / "case.duckdb"}


def packed(kind: str, *names: str, link: bool = False) -> bytes:
    """An archive of logs of nine lines."""
    stream = io.BytesIO()
    if kind == "zip":
        with zipfile.ZipFile(stream, "w") as zipped:
            for number, name in enumerate(names):
                zipped.writestr(name, lines(*range(number, number + 9)))
        return stream.getvalue()
    with tarfile.open(fileobj=stream, mode="w:gz" if kind == "tar.gz" else "w") as archive:
        for number, name in enumerate(names):
            member = tarfile.TarInfo(name)
            member.size = len(lines(*range(number, number + 9)))
            archive.addfile(member, io.BytesIO(lines(*range(number, number + 9))))
        if link:
            member = tarfile.TarInfo("link")
            member.type, member.linkname = tarfile.SYMTYPE, "/etc/passwd"
            archive.addfile(member)
    return stream.getvalue()


def pipe(monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", type("Piped", (), {"buffer": io.BytesIO(data)}))


@pytest.mark.parametrize("kind", ["tar", "tar.gz"])
def test_a_tar_in_a_pipe_is_read_as_it_passes(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("logs/server.log", "../../other.log", ".hidden", "logs/third.log")
    data = packed(kind, *names, link=True)
    pipe(monkeypatch, data)
    before = sorted(tmp_path.parent.rglob("*"))
    found = read(tmp_path / "case.duckdb", "-", tmp_path / "gone").files
    assert [(one.path, one.state, one.lines) for one in found] == [
        *((f"-!{name}", State.READ, 9) for name in names if name != ".hidden"),
        ("-!link", State.UNREADABLE, 0),
        (str(tmp_path / "gone"), State.UNREADABLE, 0),
    ]
    assert set(tmp_path.parent.rglob("*")) - set(before) == {tmp_path / "case.duckdb"}
    pipe(monkeypatch, data)
    again = read(tmp_path / "case.duckdb", "-").files
    assert {one.state for one in again} == {State.UNCHANGED, State.UNREADABLE}
    assert {one.note for one in verify(tmp_path / "case.duckdb")} == {"a stream, which cannot be read twice"}


def test_a_tar_in_a_pipe_that_breaks_off_gives_what_came_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = packed("tar", "a.log", "b.log", "c.log")
    second = data.rindex(lines(1))
    pipe(monkeypatch, data[: second + 100])
    first, cut, *rest = read(tmp_path / "case.duckdb", "-").files
    assert (first.path, first.state, first.lines) == ("-!a.log", State.READ, 9)
    assert (cut.path, cut.state) == ("-!b.log", State.UNREADABLE)
    assert [(one.path, one.note) for one in rest] == [("-", "broken archive: unexpected end of data")]


def test_a_bomb_in_a_tar_in_a_pipe_is_stopped_and_the_rest_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "MIN_BOMB_BYTES", 1 << 20)
    monkeypatch.setattr(streams, "MAX_EXPANSION", 100)
    bomb = gzip.compress(lines(1) + b"0" * (20 << 20))
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        for name, data in (("bomb.gz", bomb), ("server.log", lines(*range(9)))):
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    pipe(monkeypatch, stream.getvalue())
    stopped, good = read(tmp_path / "case.duckdb", "-").files
    assert "decompression bomb" in stopped.note
    assert (good.path, good.lines) == ("-!server.log", 9)
    pipe(monkeypatch, gzip.compress(packed("tar", "a.log") + b"\0" * (20 << 20)))
    assert [one.path for one in read(tmp_path / "case.duckdb", "-").files] == ["-!a.log"]


@pytest.mark.parametrize("kind", ["tar", "tar.gz", "zip"])
def test_a_zip_in_a_pipe_and_an_archive_in_another_are_called_so(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / f"inner.{kind}").write_bytes(packed(kind, "logs/server.log"))
    with tarfile.open(tmp_path / "outer.tar", "w") as outer:
        outer.add(tmp_path / f"inner.{kind}", f"inner.{kind}")
    pipe(
        monkeypatch,
        packed(kind, "logs/server.log") if kind == "zip" else (tmp_path / "outer.tar").read_bytes(),
    )
    for report in read(tmp_path / "case.duckdb", "-", tmp_path / "outer.tar").files:
        assert report.state is State.UNKNOWN
        assert report.note.startswith("a zip in a pipe, or an archive inside another archive;")
    assert read(tmp_path / "case.duckdb", tmp_path / f"inner.{kind}").files[0].lines == 9


def test_devices_sockets_and_named_pipes_are_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    notes = {
        one.path: one.note
        for one in read(tmp_path / "case.duckdb", tmp_path / "pipe", "/dev/zero", "/dev/null").files
    }
    assert notes["/dev/zero"] == notes["/dev/null"] == "a device, not a file"
    assert (
        notes[str(tmp_path / "pipe")]
        == f"a named pipe; read it with: tracelens ingest - < {tmp_path / 'pipe'}"
    )


def test_what_the_shell_pipes_in_is_read_compressed_or_not(tmp_path: Path) -> None:
    (tmp_path / "server.log").write_bytes(lines(*range(30)))
    (tmp_path / "server.gz").write_bytes(gzip.compress(lines(*range(30))))
    program = f"{sys.executable} -m tracelens ingest"
    for number, text in enumerate((
        f"{program} <(cat server.log) -c 0.duckdb",
        f"{program} <(cat server.gz) -c 1.duckdb",
        f"{program} - -c 2.duckdb < server.gz",
        f"cat server.gz | {program} - -c 3.duckdb",
    )):  # fmt: skip
        ran = subprocess.run(
            ["bash", "-c", text],
            cwd=tmp_path,
            env=environment(),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert ran.returncode == 0, ran.stdout + ran.stderr
        with Store(tmp_path / f"{number}.duckdb") as store:
            assert store.run("SELECT line_count FROM source").rows == [(30,)]
            assert store.run("SELECT count(*) FROM request_event").rows == [(30,)]


def test_a_file_that_grows_while_it_is_read_is_read_as_it_was_and_goes_on_with_the_next_ingest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, case = tmp_path / "server.log", tmp_path / "case.duckdb"
    log.write_bytes(lines(*range(40)))
    parse = tracelens.ingestion.parse_source

    def grows(*args: object, **options: object) -> object:
        with log.open("ab") as more:
            more.write(lines(*range(40, 50)))
        return parse(*args, **options)  # type: ignore[arg-type]

    with monkeypatch.context() as patched:
        patched.setattr("tracelens.ingestion.parse_source", grows)
        (first,) = read(case, log).files
    assert first.lines == 40
    assert [one.fate for one in verify(case)] == [Fate.GROWN]
    (second,) = read(case, log).files
    assert (second.state, second.lines) == (State.REPLACED, 50)
    assert [one.fate for one in verify(case)] == [Fate.SAME]


def test_a_file_that_cannot_be_read_to_its_end_is_named_and_the_rest_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bad.log").write_bytes(lines(*range(9)))
    (tmp_path / "good.log").write_bytes(lines(1))

    class Failing(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            if self.tell() > 100:
                raise OSError(5, "Input/output error")
            return super().read(min(size or 0, 101) if size and size > 0 else 101)

    opener = opening._opener

    def broken(path: Path, size: int) -> Callable[[], object]:
        return (lambda: Failing(path.read_bytes())) if path.name == "bad.log" else opener(path, size)

    monkeypatch.setattr(opening, "_opener", broken)
    found = {Path(one.path).name: one for one in read(tmp_path / "case.duckdb", tmp_path).files}
    assert (found["bad.log"].state, found["bad.log"].note) == (State.UNREADABLE, "Input/output error")
    assert found["good.log"].state is State.READ


def test_many_files_at_once_do_not_hang_on_each_other(tmp_path: Path) -> None:
    """Threads that ingest into cases of their own do not meet."""
    (tmp_path / "server.log").write_bytes((LOGS / "server.log").read_bytes())
    reports: list[IngestReport] = []
    threads = [
        threading.Thread(
            target=lambda n=n: reports.append(read(tmp_path / f"{n}.duckdb", tmp_path / "server.log"))
        )
        for n in range(3)
    ]
    for one in threads:
        one.start()
    for one in threads:
        one.join(60)
    assert [one.recognised for one in reports] == [True] * 3
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss > 0


def test_rows_under_many_headings_of_the_same_names_are_read_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each reading costs milliseconds: a table with a heading before every row is read in one of them."""
    kind, claim, data = next(each for each in samples() if each[0].name == "vmstat")
    heading = next(line for line in data.split(b"\n") if b" swpd" in line)
    row = data.rstrip().split(b"\n")[-2]
    misfits = [heading.replace(b"swpd", b"swpd x%d" % number) for number in range(50)]
    table = b"".join(
        b" " * (number % 9) + heading + b"\n" + row + b"\n" + misfits[number % 50] + b"\n" + row + b"\n"
        for number in range(200)
    )
    calls: list[int] = []
    under = vmstat._rows_under

    def counted(group: Any, *rest: Any) -> Any:
        calls.append(group.height)
        return under(group, *rest)

    monkeypatch.setattr(vmstat, "_rows_under", counted)
    found, count, wrong = breaking.read(table, kind, claim)
    assert wrong == []
    assert (count, calls) == (800, [200])
    assert found.issues["reason"].to_list() == ["cells differ from heading"] * 200
