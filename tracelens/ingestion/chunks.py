"""From a stream of bytes to frames of lines, in bounded memory.

A chunk ends at a line end; a line longer than `MAX_LINE_BYTES` is cut into pieces of one number.  Bytes that are not
UTF-8 become the replacement character; UTF-16 with a byte-order mark is decoded.
"""

from __future__ import annotations

import codecs
import hashlib
import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import IO, Final, cast

import polars as pl

from tracelens.errors import SourceError
from tracelens.formats.base import HEAD_LINES, Head
from tracelens.ingestion.writers import Writer
from tracelens.opening import Input, Replayed, read_up_to

CHUNK_BYTES: Final = 8 << 20
"""Half of it takes a fifth more time for the same bytes; twice of it 100 MB more memory."""
MAX_LINE_BYTES: Final = CHUNK_BYTES
"""A longer line is read in pieces: parsing takes some thirty times a line's bytes."""
PIECE_BYTES: Final = 1 << 20
MAX_RECORD_BYTES: Final = 16 << 20
"""Lines that belong together are cut apart beyond this."""
MAX_WHOLE_BYTES: Final = 1 << 30
"""A document that can only be read whole may have this many bytes."""
HEAD_BYTES: Final = 128 << 10
_TAIL_BYTES: Final = 256 << 10
"""What `may_cut` sees: a container's parts of 16 KiB are up to six times that as JSON."""
_SAMPLE_BYTES: Final = 16 << 10
_BOMS: Final = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


def utf8(data: bytes) -> bytes:
    """The same text as valid UTF-8."""
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return data.decode("utf-8", "replace").encode("utf-8")
    return data


def lines_frame(data: bytes, first_line_no: int) -> pl.DataFrame:
    """``line_no, text`` of some whole lines."""
    if not data:
        return pl.DataFrame(schema={"line_no": pl.Int64, "text": pl.String})
    frame = pl.scan_lines(io.BytesIO(utf8(data)), name="text").collect()
    return frame.select(
        pl.int_range(first_line_no, first_line_no + pl.len(), dtype=pl.Int64).alias("line_no"), "text"
    )


def framed(data: bytes, first_line_no: int, *, binary: bool) -> tuple[pl.DataFrame, bytes]:
    """Lines and raw bytes as `Chunk` wants them: a binary file is one line without text, and its bytes."""
    return (lines_frame(b"\n", first_line_no), data) if binary else (lines_frame(data, first_line_no), b"")


@dataclass
class Reading:
    """Reads one input and keeps count: its hash, and the bytes that have passed; of the lines those of one `writer` are wanted."""

    source: Input
    writer: Writer | None = None
    hash: hashlib._Hash = field(default_factory=hashlib.sha256)
    bytes_read: int = 0

    def blocks(self, size: int = CHUNK_BYTES) -> Iterator[bytes]:
        """The decompressed bytes, block by block.

        Of a file that grows meanwhile, those that it had when it was looked up: the next ingest takes the rest.
        """
        stream = self.source.open()
        ends = self.source.size_bytes if self.source.path and not self.source.compressed else None
        try:
            while block := stream.read(size if ends is None else min(size, ends - self.bytes_read)):
                self.hash.update(block)
                self.bytes_read += len(block)
                yield block
        finally:
            if self.source.label != "-":
                stream.close()

    def chunks(self, size: int = CHUNK_BYTES, may_cut: Callable[[bytes], bool] = bool) -> Iterator[bytes]:
        """Whole lines, about `size` bytes at a time, as UTF-8; cut where `may_cut` allows it, given the lines before."""
        rest, is_giant = b"", False
        for block in _decoded(self.blocks(size)):
            data = rest + block if rest else block
            if is_giant or (len(data) >= MAX_LINE_BYTES and b"\n" not in data):
                end = data.find(b"\n") + 1
                yield from _pieces(data[: end or len(data)])
                is_giant, data = not end, data[end or len(data) :]
            cut = _cut(data, may_cut) or _forced(data)
            if cut:
                yield data[:cut]
            rest = data[cut:]
        if rest:
            yield rest

    def whole(self) -> bytes:
        """Everything at once, for formats that are one document."""
        parts: list[bytes] = []
        for part in _decoded(self.blocks()):
            parts.append(part)
            if self.bytes_read > MAX_WHOLE_BYTES:
                raise SourceError(
                    f"one document of more than {MAX_WHOLE_BYTES >> 20} MiB; it would not fit into memory"
                )
        return b"".join(parts)


def _cut(data: bytes, may_cut: Callable[[bytes], bool]) -> int:
    """Where to cut: behind the last line end at which that is allowed; 0 where there is none."""
    cut = data.rfind(b"\n") + 1
    while cut and not may_cut(data[max(0, cut - _TAIL_BYTES) : cut]):
        cut = data.rfind(b"\n", 0, cut - 1) + 1
    return cut


def _forced(data: bytes) -> int:
    """Where to cut lines that belong together, when there are too many: 0 while their end may still come."""
    return len(data) if b"\n" in data and len(data) > MAX_RECORD_BYTES else 0


def _pieces(line: bytes) -> Iterator[bytes]:
    return (line[at : at + PIECE_BYTES] for at in range(0, len(line), PIECE_BYTES))


def _decoded(blocks: Iterator[bytes]) -> Iterator[bytes]:
    decoder: codecs.IncrementalDecoder | None = None
    first = True
    for block in blocks:
        data = block
        if first:
            first = False
            for mark, name in _BOMS:
                if block.startswith(mark):
                    data = block[len(mark) :]
                    decoder = codecs.getincrementaldecoder(name)("replace") if name != "utf-8" else None
                    break
        yield decoder.decode(data).encode("utf-8") if decoder else data


def head_of(source: Input) -> tuple[Head, bool]:
    """The beginning of an input, with samples from its middle and end where it is a plain file; and whether it has NULs.

    Standard input cannot be read twice: use `peeked` first.
    """
    stream = source.open()
    try:
        raw = read_up_to(stream, HEAD_BYTES)
    finally:
        stream.close()
    data = b"".join(_decoded(iter([raw])))
    complete = len(raw) < HEAD_BYTES
    text = data.decode("utf-8", "replace")
    lines = text.split("\n")
    if not complete and len(lines) > 1:
        lines.pop()
    lines = [line.rstrip("\r") for line in lines]
    sampled = () if complete else _sampled(source)
    return Head(tuple(lines[:HEAD_LINES]), sampled, complete and len(lines) <= HEAD_LINES), b"\x00" in data


def _sampled(source: Input) -> tuple[str, ...]:
    if source.path is None or source.compressed or not source.size_bytes:
        return ()
    found: list[str] = []
    with source.path.open("rb") as stream:
        for share in (0.35, 0.7, 1.0):
            stream.seek(max(0, int(source.size_bytes * share) - _SAMPLE_BYTES))
            found += stream.read(_SAMPLE_BYTES).decode("utf-8", "replace").split("\n")[1:-1]
    return tuple(line.rstrip("\r") for line in found)


def peeked(source: Input) -> tuple[Input, Input]:
    """A pipe as two inputs: its beginning, to be looked at, and all of it, to be read once."""
    stream = source.open()
    start = read_up_to(stream, HEAD_BYTES)
    beginning = Input(source.label, None, lambda: io.BytesIO(start))
    return beginning, Input(source.label, None, lambda: cast("IO[bytes]", Replayed(start, stream)))
