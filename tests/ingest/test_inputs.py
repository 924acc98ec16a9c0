"""What a user may name: files, folders, globs, compressed files, bundles; and what is wrong with some of them."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import sys
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zstandard

from tracelens.errors import SourceError
from tracelens.ingestion import FileReport, IngestReport, State, ingest
from tracelens.opening import Input, Unreadable, expand, streams

pytestmark = pytest.mark.usefixtures("_asks_facts_alone")

Rows = Callable[[Path, str], list[dict[str, Any]]]
PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "gz": gzip.compress,
    "zst": zstandard.ZstdCompressor(write_checksum=True).compress,
    "xz": lzma.compress,
    "bz2": bz2.compress,
}


def log(*ids: str) -> bytes:
    return "".join(f"INFO 11-29 12:00:00 [async_llm.py:1] Added request {one}.\n" for one in ids).encode()


def found(*names: object) -> list[Input | Unreadable]:
    return list(expand([str(name) for name in names]))


def content(source: Input | Unreadable) -> bytes:
    assert isinstance(source, Input), source
    stream = source.open()
    try:
        return stream.read()
    finally:
        stream.close()


def fate(report: IngestReport) -> dict[str, FileReport]:
    return {Path(one.path).name: one for one in report.files}


def tar_of(members: dict[str, bytes], mode: str = "w") -> bytes:
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode=mode) as archive:  # type: ignore[call-overload]
        for name, data in members.items():
            member = tarfile.TarInfo(name)
            member.size, member.mtime = len(data), 1_700_000_000
            archive.addfile(member, io.BytesIO(data))
    return target.getvalue()


@pytest.mark.parametrize("packer", PACKERS)
def test_a_compressed_file_is_known_by_its_first_bytes_and_not_by_its_name(
    packer: str, tmp_path: Path
) -> None:
    path = tmp_path / "server.log"
    path.write_bytes(PACKERS[packer](log("a", "b")))
    (source,) = found(path)
    assert content(source) == log("a", "b")
    assert content(source) == log("a", "b"), "it opens more than once"


def test_frames_of_one_file_are_read_one_after_the_other(tmp_path: Path) -> None:
    for packer, pack in PACKERS.items():
        (tmp_path / packer).write_bytes(pack(log("a")) + pack(log("b")))
        assert content(found(tmp_path / packer)[0]) == log("a", "b")


@pytest.mark.parametrize("packer", PACKERS)
@pytest.mark.parametrize("damage", ["cut", "garbled", "beginning only"])
def test_a_damaged_file_is_unreadable_and_the_rest_of_the_ingest_goes_on(
    packer: str, damage: str, tmp_path: Path
) -> None:
    noise = bytes(range(256)) * 40 + os.urandom(4000)
    packed = PACKERS[packer](log(*(f"r{n}" for n in range(400))) + noise)
    middle = len(packed) // 2
    broken = {
        "cut": packed[:-9],
        "garbled": packed[:middle]
        + bytes(255 - byte for byte in packed[middle : middle + 40])
        + packed[middle + 40 :],
        "beginning only": packed[:7],
    }[damage]
    (tmp_path / "a.log").write_bytes(broken)
    (tmp_path / "b.log").write_bytes(b"\x00")
    report = ingest([str(tmp_path)], tmp_path / "case.duckdb")
    assert {name: one.state for name, one in fate(report).items()} == {
        "a.log": State.UNREADABLE,
        "b.log": State.UNKNOWN,
    }
    assert fate(report)["a.log"].note
    assert not (tmp_path / "case.duckdb").exists(), "a case is not made of nothing"


def test_a_cut_file_says_that_it_is_cut(tmp_path: Path) -> None:
    for packer, pack in PACKERS.items():
        (tmp_path / f"{packer}.log").write_bytes(pack(log("a") * 500)[:-3])
    report = ingest([str(tmp_path)], tmp_path / "case.duckdb")
    assert {one.note for one in report.files} == {"cut off in the middle of its compression"}
    assert report.nothing


def test_folders_globs_and_names_give_each_file_once(tmp_path: Path) -> None:
    for name in (
        "b.log",
        "a.log",
        "sub/c.txt",
        ".hidden",
        ".git/config",
        "sub/x.duckdb",
        "y.duckdb.wal",
        "z.partial",
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(log(name))
    labels = [
        Path(one.label).relative_to(tmp_path).as_posix()
        for one in found(tmp_path, tmp_path / "a.log", tmp_path / "*.log")
    ]
    assert labels == ["a.log", "b.log", "sub/c.txt"]
    assert [Path(one.label).name for one in found(tmp_path / "**" / "*.txt")] == ["c.txt"]


def test_what_cannot_be_read_is_named_with_its_reason(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "hollow").mkdir()
    (tmp_path / "gone").symlink_to(tmp_path / "nowhere")
    reasons = {
        one.label: one.reason
        for one in found(
            tmp_path / "pipe", tmp_path / "hollow", tmp_path / "gone", "none.log", "*.none", "x" * 300
        )
        if isinstance(one, Unreadable)
    }
    assert reasons == {
        str(tmp_path / "pipe"): f"a named pipe; read it with: tracelens ingest - < {tmp_path / 'pipe'}",
        str(tmp_path / "hollow"): "no files in this folder",
        str(tmp_path / "gone"): "no such file or folder",
        "none.log": "no such file or folder",
        "*.none": "no such file or folder",
        "x" * 300: "File name too long",
    }
    assert [type(one) for one in found(tmp_path)] == [Unreadable, Unreadable], (
        "a broken link and a pipe in a folder too"
    )


def test_a_folder_that_may_not_be_entered_is_unreadable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.log").write_bytes(log("a"))
    (tmp_path / "locked").mkdir()

    def refused(self: Path) -> bool:
        if self.name == "locked":
            raise PermissionError(13, "Permission denied", str(self))
        return os.path.isdir(self)  # noqa: PTH112 - what is replaced is Path's own

    monkeypatch.setattr(Path, "is_dir", refused)
    locked = tmp_path / "locked"
    assert found(locked) == [Unreadable(str(locked), "Permission denied")]
    assert [one.label for one in found(tmp_path)] == [str(tmp_path / "a.log"), str(locked)]


BUNDLE = {
    "./logs/server.log": log("a"),
    "../../escape.log": log("b"),
    "/etc/abs.log": log("c"),
    "logs/old.log.gz": gzip.compress(log("d")),
}


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:xz", "w:bz2"])
def test_members_of_a_tar_are_read_in_place_and_decompressed(mode: str, tmp_path: Path) -> None:
    path = tmp_path / "bundle"
    path.write_bytes(tar_of(BUNDLE | {"logs/.hidden": b"x"}, mode))
    members = found(path)
    assert {one.label: content(one) for one in members} == {
        f"{path}!./logs/server.log": log("a"),
        f"{path}!../../escape.log": log("b"),
        f"{path}!/etc/abs.log": log("c"),
        f"{path}!logs/old.log.gz": log("d"),
    }
    assert {one.modified_ts for one in members if isinstance(one, Input)} == {1_700_000_000}, (
        "the member's date, not the bundle's"
    )
    assert list(tmp_path.iterdir()) == [path], "nothing is unpacked"


def test_links_and_devices_in_a_tar_are_left_alone(tmp_path: Path) -> None:
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w") as archive:
        for name, kind in (
            ("link", tarfile.SYMTYPE),
            ("hard", tarfile.LNKTYPE),
            ("fifo", tarfile.FIFOTYPE),
            ("dev", tarfile.CHRTYPE),
        ):
            member = tarfile.TarInfo(name)
            member.type, member.linkname = kind, "/etc/passwd"
            archive.addfile(member)
        archive.addfile(tarfile.TarInfo("empty.log"))
    (tmp_path / "b.tar").write_bytes(target.getvalue())
    named = found(tmp_path / "b.tar")
    assert [one.label for one in named if isinstance(one, Input)] == [f"{tmp_path / 'b.tar'}!empty.log"]
    left = [one for one in named if isinstance(one, Unreadable)]
    assert [one.label.partition("!")[2] for one in left] == ["link", "hard", "fifo", "dev"]
    assert {one.reason for one in left} == {"a link or a device inside an archive; it is not followed"}


def test_members_of_a_zip_are_read_in_place_and_decompressed(tmp_path: Path) -> None:
    path = tmp_path / "bundle.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.mkdir("logs")
        for name, data in (BUNDLE | {"__MACOSX/logs/x": b"x"}).items():
            archive.writestr(name, data)
    assert [content(one) for one in found(path)] == [log("a"), log("b"), log("c"), log("d")]


def test_broken_bundles_are_unreadable_and_encrypted_members_too(tmp_path: Path) -> None:
    whole = tar_of(BUNDLE, "w:gz")
    (tmp_path / "cut.tgz").write_bytes(whole[:-20])
    (tmp_path / "cut.tar").write_bytes(tar_of(BUNDLE)[:700])
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("a.log", log("a"))
    data = packed.getvalue()
    (tmp_path / "cut.zip").write_bytes(data[:-30])
    (tmp_path / "crc.zip").write_bytes(data.replace(b"Added", b"Adder"))
    flag = bytearray(data)
    flag[6] |= 1
    flag[data.index(b"PK\x01\x02") + 8] |= 1
    (tmp_path / "secret.zip").write_bytes(flag)
    report = ingest([str(tmp_path)], tmp_path / "case.duckdb")
    assert {name: one.state for name, one in fate(report).items()} == dict.fromkeys(
        ["crc.zip!a.log", "cut.tar", "cut.tgz", "cut.zip", "secret.zip!a.log"], State.UNREADABLE
    )
    assert "encrypted" in fate(report)["secret.zip!a.log"].note


@pytest.mark.parametrize("packer", PACKERS)
def test_a_decompression_bomb_is_stopped(
    packer: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "MIN_BOMB_BYTES", 1000)
    monkeypatch.setattr(streams, "MAX_EXPANSION", 10)
    (tmp_path / "bomb.log").write_bytes(PACKERS[packer](log("a") * 5000))
    (source,) = found(tmp_path / "bomb.log")
    with pytest.raises(SourceError, match="decompression bomb"):
        content(source)


def test_a_bomb_in_a_bundle_is_stopped_and_the_other_files_are_read(
    case: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "MIN_BOMB_BYTES", 30_000)
    monkeypatch.setattr(streams, "MAX_EXPANSION", 10)
    logs = tmp_path / "logs"
    logs.mkdir()
    (logs / "a.log").write_bytes(log("a"))
    (logs / "b.tgz").write_bytes(tar_of({"bomb.log": log("b") * 5000}, "w:gz"))
    (logs / "c.tar").write_bytes(tar_of({"bomb.gz": gzip.compress(log("b") * 50_000), "good.log": log("c")}))
    with zipfile.ZipFile(logs / "d.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("bomb.log", log("b") * 5000)
    report = ingest([str(logs)], case)
    states = {name: one.state for name, one in fate(report).items()}
    assert states == {
        "a.log": State.READ,
        "b.tgz": State.UNREADABLE,
        "c.tar!bomb.gz": State.UNREADABLE,
        "c.tar!good.log": State.READ,
        "d.zip!bomb.log": State.UNREADABLE,
    }
    assert all("bomb" in one.note for one in report.files if one.state is State.UNREADABLE)


def test_all_ways_of_packing_give_the_same_rows(case: Path, tmp_path: Path, rows_of: Rows) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    for number, (packer, pack) in enumerate(PACKERS.items()):
        (logs / f"{packer}.log").write_bytes(pack(log(f"a{number}", "b")))
    (logs / "t.tgz").write_bytes(tar_of({"x.log": log("a4", "b"), "y.log": log("a5", "b")}, "w:gz"))
    report = ingest([str(logs)], case)
    assert [one.state for one in report.files] == [State.READ] * 6
    rows = rows_of(
        case, "SELECT path, logged_id, line_no FROM request_event JOIN source USING (source_id) ORDER BY ALL"
    )
    names = sorted(("gz.log", "zst.log", "xz.log", "bz2.log", "t.tgz!x.log", "t.tgz!y.log"))
    order = {"gz.log": 0, "zst.log": 1, "xz.log": 2, "bz2.log": 3, "t.tgz!x.log": 4, "t.tgz!y.log": 5}
    assert [(Path(r["path"]).name, r["logged_id"], r["line_no"]) for r in rows] == [
        row for name in names for row in ((name, f"a{order[name]}", 1), (name, "b", 2))
    ]


class _Stdin:
    def __init__(self, data: bytes) -> None:
        self.buffer = io.BytesIO(data)


def test_stdin_is_read_to_its_end_and_only_once(
    case: Path, monkeypatch: pytest.MonkeyPatch, rows_of: Rows
) -> None:
    data = log(*(f"r{n}" for n in range(5000)))
    assert len(data) > 2 * 128 * 1024
    monkeypatch.setattr(sys, "stdin", _Stdin(data))
    report = ingest(["-"], case)
    assert [(one.state, one.path, one.lines) for one in report.files] == [(State.READ, "-", 5000)]
    (source,) = rows_of(case, "SELECT size_bytes, line_count FROM source")
    assert source == {"size_bytes": len(data), "line_count": 5000}
    monkeypatch.setattr(sys, "stdin", _Stdin(data))
    assert [one.state for one in ingest(["-"], case).files] == [State.UNCHANGED]


def test_what_is_no_log_is_reported_and_nothing_is_made(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    (logs / "empty").write_bytes(b"")
    (logs / "blank").write_bytes(b"\n \n\r\n")
    (logs / "binary").write_bytes(bytes(range(256)) * 20)
    (logs / "prose").write_text("Dear all,\nwe had an incident.\n")
    report = ingest([str(logs), str(tmp_path / "missing")], tmp_path / "case.duckdb")
    assert report.nothing
    assert not report.recognised
    assert {name: (one.state, one.note) for name, one in fate(report).items() if name != "prose"} == {
        "empty": (State.EMPTY, ""),
        "blank": (State.EMPTY, ""),
        "binary": (State.UNKNOWN, "binary data"),
        "missing": (State.UNREADABLE, "no such file or folder"),
    }
    assert fate(report)["prose"].state is State.UNKNOWN
    assert fate(report)["prose"].note.startswith("begins with 'Dear all,'; ")
    assert not (tmp_path / "case.duckdb").exists()
