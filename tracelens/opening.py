"""From what a user names to streams of bytes: folders, globs, standard input, compressed files and bundles.

Compression and archives are recognised by their first bytes, never by the name.  Archive members are read where
they are; nothing is unpacked onto the disk, and links inside an archive are not followed.
"""

from __future__ import annotations

import bz2
import contextlib
import glob
import gzip
import lzma
import stat
import sys
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final, cast

import zstandard

from tracelens.errors import SourceError

MAX_EXPANSION: Final = 2000
"""Bytes out per byte in, above which a compressed file is taken for a bomb (text logs reach a few hundred)."""

MIN_BOMB_BYTES: Final = 1 << 30
"""Output below this size is never called a bomb."""

_GZIP, _BZIP2, _XZ, _ZSTD, _ZIP = b"\x1f\x8b", b"BZh", b"\xfd7zXZ\x00", b"\x28\xb5\x2f\xfd", b"PK\x03\x04"
_TAR_MAGIC_AT: Final = 257
SKIPPED_SUFFIXES: Final = (".duckdb", ".duckdb.wal", ".partial")


@dataclass(frozen=True, slots=True)
class Input:
    """One stream of bytes to ingest.

    `label` names it for people (``bundle.tar.gz!logs/server.log`` inside an archive); `size_bytes` is its size on
    the disk or in the archive, None for a pipe; `path` is the plain file behind it, where there is one;
    `modified_ts` is the file's date, epoch seconds.  `open()` gives decompressed bytes.
    """

    label: str
    size_bytes: int | None
    open: Callable[[], IO[bytes]]
    path: Path | None = None
    modified_ts: float | None = None
    compressed: bool = False


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Something that was named and cannot be read, and why."""

    label: str
    reason: str


class _Bounded:
    """A decompressing stream that stops at an absurd ratio instead of filling the memory."""

    def __init__(self, stream: IO[bytes], label: str, compressed_bytes: int) -> None:
        self._stream, self._label = stream, label
        self._limit = max(compressed_bytes * MAX_EXPANSION, MIN_BOMB_BYTES)
        self._given = 0

    def read(self, size: int = -1) -> bytes:
        """Read like any stream; raises `SourceError` past the limit."""
        block = self._stream.read(size)
        self._given += len(block)
        if self._given > self._limit:
            raise SourceError(
                f"{self._label}: more than {MAX_EXPANSION} bytes out of each byte in; this looks like a decompression bomb",
                hint="decompress it yourself if you trust it, and ingest the result",
            )
        return block

    def close(self) -> None:
        """Close the stream beneath."""
        self._stream.close()


def _decompressor(magic: bytes) -> Callable[[IO[bytes]], IO[bytes]] | None:
    if magic.startswith(_GZIP):
        return lambda raw: cast("IO[bytes]", gzip.GzipFile(fileobj=raw))
    if magic.startswith(_BZIP2):
        return lambda raw: cast("IO[bytes]", bz2.BZ2File(raw))
    if magic.startswith(_XZ):
        return lambda raw: cast("IO[bytes]", lzma.LZMAFile(raw))
    if magic.startswith(_ZSTD):
        return lambda raw: cast("IO[bytes]", zstandard.ZstdDecompressor().stream_reader(raw, read_across_frames=True))
    return None


def _opener(path: Path, magic: bytes, size: int) -> Callable[[], IO[bytes]]:
    unpack = _decompressor(magic)
    if unpack is None:
        return lambda: path.open("rb")
    return lambda: cast("IO[bytes]", _Bounded(unpack(path.open("rb")), str(path), size))


def _is_tar(open_stream: Callable[[], IO[bytes]]) -> bool:
    try:
        with contextlib.closing(open_stream()) as stream:
            start = stream.read(_TAR_MAGIC_AT + 8)
    except (OSError, EOFError, lzma.LZMAError, zstandard.ZstdError):
        return False
    return start[_TAR_MAGIC_AT : _TAR_MAGIC_AT + 5] == b"ustar"


def _tar_members(path: Path, open_stream: Callable[[], IO[bytes]], modified: float) -> Iterator[Input | Unreadable]:
    """Members of a tar file.  Each is opened by reading the archive up to it again: slow for many, flat in memory."""
    try:
        with tarfile.open(fileobj=open_stream(), mode="r|") as archive:
            names = [(index, m.name, m.size) for index, m in enumerate(archive) if m.isfile()]
    except (tarfile.TarError, OSError, EOFError, lzma.LZMAError, zstandard.ZstdError) as error:
        yield Unreadable(str(path), f"broken archive: {error}")
        return
    for index, name, size in names:
        if not _hidden(Path(name)):
            yield Input(f"{path}!{name}", size, _tar_opener(open_stream, index), modified_ts=modified, compressed=True)


def _tar_opener(open_stream: Callable[[], IO[bytes]], wanted: int) -> Callable[[], IO[bytes]]:
    def opened() -> IO[bytes]:
        archive = tarfile.open(fileobj=open_stream(), mode="r|")  # noqa: SIM115 - closed with the stream it gives
        for index, member in enumerate(archive):
            if index == wanted:
                return cast("IO[bytes]", archive.extractfile(member))
        raise SourceError("the archive changed while it was read")

    return opened


def _zip_members(path: Path, modified: float) -> Iterator[Input | Unreadable]:
    try:
        with zipfile.ZipFile(path) as archive:
            members = [m for m in archive.infolist() if not m.is_dir() and not _hidden(Path(m.filename))]
    except (zipfile.BadZipFile, OSError) as error:
        yield Unreadable(str(path), f"broken archive: {error}")
        return
    for member in members:
        label = f"{path}!{member.filename}"

        def opened(name: str = member.filename, label: str = label, size: int = member.compress_size) -> IO[bytes]:
            return cast("IO[bytes]", _Bounded(zipfile.ZipFile(path).open(name), label, size))

        yield Input(label, member.file_size, opened, modified_ts=modified, compressed=True)


def _hidden(path: Path) -> bool:
    return any(part.startswith((".", "__MACOSX")) for part in path.parts)


def _file(path: Path) -> Iterator[Input | Unreadable]:
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            yield Unreadable(str(path), "not a regular file")
            return
        with path.open("rb") as stream:
            magic = stream.read(_TAR_MAGIC_AT + 8)
    except OSError as error:
        yield Unreadable(str(path), error.strerror or str(error))
        return
    opener = _opener(path, magic, status.st_size)
    if magic.startswith(_ZIP):
        yield from _zip_members(path, status.st_mtime)
    elif _is_tar(opener):
        yield from _tar_members(path, opener, status.st_mtime)
    else:
        compressed = _decompressor(magic) is not None
        yield Input(str(path), status.st_size, opener, path, status.st_mtime, compressed)


def _folder(path: Path) -> Iterator[Input | Unreadable]:
    for entry in sorted(path.rglob("*")):
        if entry.is_dir() or _hidden(entry.relative_to(path)) or entry.name.endswith(SKIPPED_SUFFIXES):
            continue
        yield from _file(entry)


def _stdin() -> Iterator[Input]:
    yield Input("-", None, lambda: sys.stdin.buffer)


def _named(name: str) -> Iterator[Input | Unreadable]:
    path = Path(name)
    if name == "-":
        yield from _stdin()
    elif path.is_dir():
        yield from _folder(path)
    elif path.exists():
        yield from _file(path)
    else:
        found = sorted(glob.glob(name, recursive=True)) if glob.has_magic(name) else []
        if not found:
            yield Unreadable(name, "no such file or folder")
        for match in found:
            yield from _named(match)


def expand(names: list[str]) -> Iterator[Input | Unreadable]:
    """Every stream behind the names, in a stable order; a file named twice comes once."""
    seen: set[str] = set()
    for name in names:
        for found in _named(name):
            key = str(found.path.resolve()) if isinstance(found, Input) and found.path else found.label
            if key not in seen:
                seen.add(key)
                yield found
