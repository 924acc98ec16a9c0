"""Streams of bytes as they were before they were compressed, recognised by their first bytes, and no bombs."""

from __future__ import annotations

import bz2
import contextlib
import io
import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Callable
from typing import IO, Any, Final, cast

import zstandard
from isal import igzip, isal_zlib

from tracelens.errors import SourceError
from tracelens.opening.exports import as_lines, may_be_export

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

_GZIP, _BZIP2, _XZ, _ZSTD = b"\x1f\x8b", b"BZh", b"\xfd7zXZ\x00", b"\x28\xb5\x2f\xfd"
_JSON_BEGINS: Final = (b"{", b"[", b" ", b"\n")
_ZSTD_BLOCK_BYTES: Final = 4096
"""Taken in at once: a bomb's 4 KiB give 128 MiB at most."""


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


class Counted(io.RawIOBase):
    """A pipe, and how many bytes have come out of it."""

    def __init__(self, stream: IO[bytes], *, closes: bool) -> None:
        self._stream, self._closes, self.count = stream, closes, 0

    def readable(self) -> bool:
        """Always."""
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


def unpacked(
    raw: io.BufferedReader, label: str, size: int | Callable[[], int], beneath: contextlib.ExitStack
) -> IO[bytes]:
    """The stream itself, decompressed where its first bytes say so, a log service's document as lines; closing it closes what is `beneath`."""
    beneath.callback(raw.close)
    taken = size if callable(size) else lambda: size
    start = raw.peek(len(_XZ))
    unpack = _decompressor(start)
    bounded = cast("IO[bytes]", _Bounded(unpack(raw) if unpack else raw, label, taken, beneath))
    return as_lines(bounded) if unpack or start[:1] in _JSON_BEGINS else bounded


def is_changed(start: bytes) -> bool:
    """Whether what comes out of a stream of this beginning is not what is in the file: compressed, or a document."""
    return _decompressor(start) is not None or may_be_export(start)
