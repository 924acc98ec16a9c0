"""From what a user names to streams of bytes: folders, globs, standard input, compressed files and bundles.

Compression and archives are recognised by their first bytes, never by the name.  Archive members are read where
they are; nothing is unpacked onto the disk, and links inside an archive are not followed.
"""

from __future__ import annotations

import bz2
import contextlib
import glob
import io
import lzma
import stat
import sys
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any, Final, cast

import zstandard
from isal import igzip, isal_zlib

from tracelens.errors import SourceError

MAX_EXPANSION: Final = 2000
"""Bytes out per byte in, above which a compressed file is taken for a bomb (text logs reach a few hundred)."""

MIN_BOMB_BYTES: Final = 1 << 30
"""Output below this size is never called a bomb."""

READ_ERRORS: Final = (
    OSError,
    EOFError,
    zlib.error,
    cast("type[Exception]", isal_zlib.error),
    lzma.LZMAError,
    zstandard.ZstdError,
    tarfile.TarError,
    zipfile.BadZipFile,
    SourceError,
)
"""What reading a damaged, cut off or vanished input can raise."""

_GZIP, _BZIP2, _XZ, _ZSTD, _ZIP = b"\x1f\x8b", b"BZh", b"\xfd7zXZ\x00", b"\x28\xb5\x2f\xfd", b"PK\x03\x04"
_ZSTD_BLOCK_BYTES: Final = 4096
"""Taken in at once: a bomb's 4 KiB give 128 MiB at most."""

_SHELL_PIPES: Final = ("/dev/fd/", "/proc/self/fd/")
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
    """A decompressing stream that stops at an absurd ratio instead of filling the memory.

    `beneath` is what it reads from, which decompressors and archives leave open.
    """

    def __init__(
        self, stream: IO[bytes], label: str, taken: Callable[[], int], beneath: contextlib.ExitStack
    ) -> None:
        self._stream, self._label, self._beneath = stream, label, beneath
        self._taken = taken
        """How many bytes have gone in: the whole size of a file, what has come so far of a pipe."""
        self._given = 0

    def read(self, size: int = -1) -> bytes:
        """Read like any stream; raises `SourceError` past the limit."""
        block = self._stream.read(size)
        self._given += len(block)
        if self._given > max(self._taken() * MAX_EXPANSION, MIN_BOMB_BYTES):
            raise SourceError(
                f"{self._label}: more than {MAX_EXPANSION} bytes out of each byte in; this looks like a decompression bomb",
                hint="decompress it yourself if you trust it, and ingest the result",
            )
        return block

    def close(self) -> None:
        """Close the stream and what is beneath it."""
        self._stream.close()
        self._beneath.close()


class _Counted(io.RawIOBase):
    """A pipe, and how many bytes have come out of it."""

    def __init__(self, stream: IO[bytes], *, closes: bool) -> None:
        self._stream, self._closes, self.count = stream, closes, 0

    def readable(self) -> bool:
        return True

    def readinto(self, target: Any) -> int:
        """Fill `target` as far as there is something to read."""
        read = getattr(self._stream, "read1", self._stream.read)
        block = read(len(target))
        target[: len(block)] = block
        self.count += len(block)
        return len(block)

    def close(self) -> None:
        """Close the pipe, unless it is not ours."""
        if self._closes and not self.closed:
            self._stream.close()
        super().close()


def _piped(open_pipe: Callable[[], IO[bytes]], label: str, *, closes: bool) -> Input:
    """What comes out of a pipe, decompressed; it can be opened once."""

    def opened() -> IO[bytes]:
        counted = _Counted(open_pipe(), closes=closes)
        return _unpacked(io.BufferedReader(counted), label, lambda: counted.count, contextlib.ExitStack())

    return Input(label, None, opened)


class _ZstdFrames:
    """Zstandard frames, one after the other.  A frame that is cut off raises; zstandard's own reader ends in silence."""

    def __init__(self, raw: IO[bytes]) -> None:
        self._raw, self._rest, self._ready = raw, b"", bytearray()
        self._frame: zstandard.ZstdDecompressionObj | None = None

    def read(self, size: int = -1) -> bytes:
        """Read like any stream; raises `EOFError` where the last frame has no end."""
        while (size < 0 or len(self._ready) < size) and self._decompress_more():
            pass
        end = len(self._ready) if size < 0 else size
        block = bytes(self._ready[:end])
        del self._ready[:end]
        return block

    def _decompress_more(self) -> bool:
        block = self._rest or self._raw.read(_ZSTD_BLOCK_BYTES)
        if not block:
            if self._frame is not None:
                raise EOFError
            return False
        frame = self._frame or zstandard.ZstdDecompressor().decompressobj()
        self._ready += frame.decompress(block)
        self._rest = frame.unused_data if frame.eof else b""
        self._frame = None if frame.eof else frame
        return True

    def close(self) -> None:
        """Nothing to close: the stream beneath belongs to whoever opened it."""


def _decompressor(magic: bytes) -> Callable[[IO[bytes]], IO[bytes]] | None:
    if magic.startswith(_GZIP):
        return lambda raw: cast("IO[bytes]", igzip.IGzipFile(fileobj=raw))  # type: ignore[no-untyped-call]
    if magic.startswith(_BZIP2):
        return lambda raw: cast("IO[bytes]", bz2.BZ2File(raw))
    if magic.startswith(_XZ):
        return lambda raw: cast("IO[bytes]", lzma.LZMAFile(raw))
    if magic.startswith(_ZSTD):
        return lambda raw: cast("IO[bytes]", _ZstdFrames(raw))
    return None


def _opener(path: Path, size: int) -> Callable[[], IO[bytes]]:
    return lambda: _unpacked(path.open("rb"), str(path), size, contextlib.ExitStack())


def _unpacked(
    raw: io.BufferedReader, label: str, size: int | Callable[[], int], beneath: contextlib.ExitStack
) -> IO[bytes]:
    """The stream itself, or decompressed where its first bytes say so; closing it closes what is `beneath`."""
    beneath.callback(raw.close)
    taken = size if callable(size) else lambda: size
    unpack = _decompressor(raw.peek(len(_XZ)))
    return cast("IO[bytes]", _Bounded(unpack(raw) if unpack else raw, label, taken, beneath))


def _is_tar(open_stream: Callable[[], IO[bytes]]) -> bool:
    try:
        with contextlib.closing(open_stream()) as stream:
            start = stream.read(_TAR_MAGIC_AT + 8)
    except READ_ERRORS:
        return False
    return start[_TAR_MAGIC_AT : _TAR_MAGIC_AT + 5] == b"ustar"


def _tar_members(
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
        if not _hidden(Path(name)):
            label = f"{path}!{name}"
            if not is_file:
                yield Unreadable(label, "a link or a device inside an archive; it is not followed")
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
                    return _unpacked(stream, label, member.size, beneath.pop_all())
        raise SourceError(f"{label}: the archive changed while it was read")

    return opened


def _zip_members(path: Path, modified: float) -> Iterator[Input | Unreadable]:
    try:
        with zipfile.ZipFile(path) as archive:
            members = [m for m in archive.infolist() if not m.is_dir() and not _hidden(Path(m.filename))]
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
            return _unpacked(stream, label, member.compress_size, beneath.pop_all())

    return opened


def _hidden(path: Path) -> bool:
    return any(part.startswith((".", "__MACOSX")) and part != ".." for part in path.parts)


def _file(path: Path) -> Iterator[Input | Unreadable]:
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            yield _no_file(path, status.st_mode)
            return
        with path.open("rb") as stream:
            magic = stream.read(_TAR_MAGIC_AT + 8)
    except OSError as error:
        yield Unreadable(str(path), error.strerror or str(error))
        return
    opener = _opener(path, status.st_size)
    if magic.startswith(_ZIP):
        yield from _zip_members(path, status.st_mtime)
    elif _is_tar(opener):
        yield from _tar_members(path, opener, status.st_mtime)
    else:
        compressed = _decompressor(magic) is not None
        yield Input(str(path), status.st_size, opener, path, status.st_mtime, compressed)


def _no_file(path: Path, mode: int) -> Input | Unreadable:
    """A pipe that the shell made, as of ``<(zcat x.gz)``, is read; other pipes might never end, devices never do."""
    if stat.S_ISFIFO(mode):
        if str(path).startswith(_SHELL_PIPES):
            return _piped(lambda: path.open("rb"), str(path), closes=True)
        return Unreadable(str(path), f"a named pipe; read it with: tracelens ingest - < {path}")
    kind = "a socket" if stat.S_ISSOCK(mode) else "a device"
    return Unreadable(str(path), f"{kind}, not a file")


def _folder(path: Path) -> Iterator[Input | Unreadable]:
    entries = [
        entry
        for entry in sorted(path.rglob("*"))
        if not (
            _is_folder(entry) or _hidden(entry.relative_to(path)) or entry.name.endswith(SKIPPED_SUFFIXES)
        )
    ]
    if not entries:
        yield Unreadable(str(path), "no files in this folder")
    for entry in entries:
        yield from _file(entry)


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:
        return False


def _stdin() -> Iterator[Input]:
    yield _piped(lambda: sys.stdin.buffer, "-", closes=False)


def _named(name: str) -> Iterator[Input | Unreadable]:
    try:
        yield from _found(name)
    except OSError as error:  # a folder on the way that may not be entered, a name that is too long
        yield Unreadable(name, error.strerror or str(error))


def _found(name: str) -> Iterator[Input | Unreadable]:
    path = Path(name)
    if name == "-":
        yield from _stdin()
    elif path.is_dir():
        yield from _folder(path)
    elif path.exists():
        yield from _file(path)
    else:
        found = sorted(glob.glob(name, recursive=True)) if glob.has_magic(name) else []  # noqa: PTH207 - absolute and relative alike
        if not found:
            yield Unreadable(name, "no such file or folder")
        for match in found:
            yield from _named(match)


def located(label: str, folder: Path = Path()) -> Input | Unreadable:
    """What `Input.label` said once, found again: a file, or a member of an archive; a relative one is looked for in `folder`."""
    ends = [place for place, char in enumerate(label) if char == "!"]
    for end in (len(label), *reversed(ends)):
        path = folder / label[:end]
        if path.is_file():
            members = {str(one.label): one for one in _named(str(path))}
            one = members.get(f"{path}{label[end:]}")
            if one is not None:
                return replace(one, label=label)
    return Unreadable(label, "a stream, which cannot be read twice" if label == "-" else "no such file")


def expand(names: list[str]) -> Iterator[Input | Unreadable]:
    """Every stream behind the names, in a stable order; a file named twice comes once."""
    seen: set[str] = set()
    for name in names:
        for found in _named(name):
            key = str(found.path.resolve()) if isinstance(found, Input) and found.path else found.label
            if key not in seen:
                seen.add(key)
                yield found
