"""Members of tar and zip files, read where they are: nothing is unpacked onto the disk, no link is followed."""

from __future__ import annotations

import contextlib
import io
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import IO, Final, cast

from tracelens.errors import SourceError
from tracelens.opening.inputs import Input, Unreadable
from tracelens.opening.replay import Replayed, read_up_to
from tracelens.opening.streams import READ_ERRORS, unpacked

TAR_MAGIC_AT: Final = 257
_ZIP: Final = b"PK\x03\x04"
_LINK: Final = "a link or a device inside an archive; it is not followed"


def is_zip(start: bytes) -> bool:
    """Whether a file of this beginning is a zip file."""
    return start.startswith(_ZIP)


def is_tar(open_stream: Callable[[], IO[bytes]]) -> bool:
    """Whether a stream, decompressed, is a tar file."""
    try:
        with contextlib.closing(open_stream()) as stream:
            return _begins_tar(read_up_to(stream, TAR_MAGIC_AT + 8))
    except READ_ERRORS:
        return False


def _begins_tar(start: bytes) -> bool:
    return start[TAR_MAGIC_AT : TAR_MAGIC_AT + 5] == b"ustar"


def tar_members(
    path: Path, open_stream: Callable[[], IO[bytes]], modified: float
) -> Iterator[Input | Unreadable]:
    """Members of a tar file.  Each is opened by reading the archive up to it again: slow for many, flat in memory."""
    try:
        with contextlib.closing(open_stream()) as raw, tarfile.open(fileobj=raw, mode="r|") as archive:
            every = [
                (index, m.name, m.size, m.mtime, m.isfile())
                for index, m in enumerate(archive)
                if not m.isdir()
            ]
    except READ_ERRORS as error:
        yield Unreadable(str(path), f"broken archive: {error}")
        return
    for index, name, size, written, is_file in every:
        if not hidden(Path(name)):
            label = f"{path}!{name}"
            if not is_file:
                yield Unreadable(label, _LINK)
                continue
            yield Input(
                label,
                size,
                _tar_opener(open_stream, index, label),
                modified_ts=written or modified,
                compressed=True,
            )


def _tar_opener(open_stream: Callable[[], IO[bytes]], wanted: int, label: str) -> Callable[[], IO[bytes]]:
    def opened() -> IO[bytes]:
        with contextlib.ExitStack() as beneath:
            raw = beneath.enter_context(contextlib.closing(open_stream()))
            archive = beneath.enter_context(tarfile.open(fileobj=raw, mode="r|"))
            for index, member in enumerate(archive):
                if index == wanted:
                    stream = cast("io.BufferedReader", archive.extractfile(member))
                    return unpacked(stream, label, member.size, beneath.pop_all())
        raise SourceError(f"{label}: the archive changed while it was read")

    return opened


def piped(source: Input) -> Iterator[Input | Unreadable]:
    """What comes out of a pipe: one file, or the members of a tar in their order, each gone when the next is asked for."""
    try:
        stream = source.open()
        whole = cast("IO[bytes]", Replayed(start := read_up_to(stream, TAR_MAGIC_AT + 8), stream))
        if not _begins_tar(start):
            yield replace(source, open=lambda: whole)
            return
        with tarfile.open(fileobj=whole, mode="r|") as archive:
            for member in archive:
                if not member.isdir() and not hidden(Path(member.name)):
                    yield _passing(archive, member, f"{source.label}!{member.name}")
    except READ_ERRORS as error:
        yield Unreadable(source.label, f"broken archive: {error}")


def _passing(archive: tarfile.TarFile, member: tarfile.TarInfo, label: str) -> Input | Unreadable:
    """A member of a tar that passes by: it can be opened once, and its size does not matter as it is not looked up."""
    if not member.isfile():
        return Unreadable(label, _LINK)

    def opened() -> IO[bytes]:
        stream = cast("io.BufferedReader", archive.extractfile(member))
        return unpacked(stream, label, member.size, contextlib.ExitStack())

    return Input(label, None, opened, modified_ts=member.mtime or None, compressed=True)


def zip_members(path: Path, modified: float) -> Iterator[Input | Unreadable]:
    """Members of a zip file."""
    try:
        with zipfile.ZipFile(path) as archive:
            members = [m for m in archive.infolist() if not m.is_dir() and not hidden(Path(m.filename))]
    except READ_ERRORS as error:
        yield Unreadable(str(path), f"broken archive: {error}")
        return
    for member in members:
        label = f"{path}!{member.filename}"
        yield Input(
            label, member.file_size, _zip_opener(path, member, label), modified_ts=modified, compressed=True
        )


def _zip_opener(path: Path, member: zipfile.ZipInfo, label: str) -> Callable[[], IO[bytes]]:
    def opened() -> IO[bytes]:
        with contextlib.ExitStack() as beneath:
            archive = beneath.enter_context(zipfile.ZipFile(path))
            try:
                stream = cast("io.BufferedReader", archive.open(member))
            except RuntimeError as error:  # encrypted, or a compression that Python does not have
                raise SourceError(f"{label}: {error}") from error
            return unpacked(stream, label, member.compress_size, beneath.pop_all())

    return opened


def hidden(path: Path) -> bool:
    """Whether a file is of those that systems keep for themselves."""
    return any(part.startswith((".", "__MACOSX")) and part != ".." for part in path.parts)
