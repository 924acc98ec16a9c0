"""The lines around one line of a source, from its file, where that is still what was read.

The case keeps what a line means, seldom its words: the file has them.  Nothing of this is stored.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tracelens import formats
from tracelens.errors import QueryStopped, UnknownFormat
from tracelens.ingestion.chunks import Reading
from tracelens.ingestion.recognise import longer_edition
from tracelens.ingestion.verifying import where
from tracelens.opening import READ_ERRORS, Input, Unreadable
from tracelens.store import Stop

BESIDE: Final = 20
"""Lines before it, and as many after it."""
HASHED_BYTES: Final = 64 << 20
"""Up to this size a file is compared by its hash, above it by its size."""
READ_BYTES: Final = 1 << 30
"""Further into a larger file nobody waits for."""
SHOWN_CHARS: Final = 2000
"""Of a longer line only the beginning is given."""


@dataclass(frozen=True, slots=True)
class Around:
    """Lines with their numbers, as they stand in the file; `note` says how sure they are, or why there are none."""

    lines: tuple[tuple[int, str], ...]
    note: str


def around(case: Path, row: Mapping[str, Any], line_no: int, stop: Stop) -> Around:
    """Lines around a line of a source; `row` is one of the query ``source_file``.  Raises `QueryStopped`."""
    found = where(row, case)
    if isinstance(found, Unreadable):
        return Around((), f"the file is not where it was read ({found.reason})")
    if _is_binary(row["format"]):
        return Around((), "the file is no text")
    try:
        note, to_the_end = _compared(found, row)
        return _read(found, row, line_no, stop, to_the_end=to_the_end) if not note else Around((), note)
    except READ_ERRORS as error:
        return Around((), f"the file cannot be read ({error})")


def _is_binary(name: str) -> bool:
    try:
        return formats.named(name).binary
    except UnknownFormat:
        return False


def _compared(found: Input, row: Mapping[str, Any]) -> tuple[str, bool]:
    """Why the file is another one, else nothing; and whether all of it has to be read to know by its hash."""
    size, then = found.size_bytes or 0, row["size_bytes"]
    small = size <= HASHED_BYTES
    if size < then or (size > then and small and not longer_edition(found, row)):
        return _CHANGED, False
    return "", small and size == then


_CHANGED: Final = "the file has changed since it was read"


def _read(found: Input, row: Mapping[str, Any], line_no: int, stop: Stop, *, to_the_end: bool) -> Around:
    reading = Reading(found)
    lines: list[tuple[int, str]] = []
    for number, data in _numbered(reading, stop):
        last = number + data.count(b"\n")
        if last >= line_no - BESIDE and number <= line_no + BESIDE:
            lines += _near(data, number, line_no)
        if not to_the_end and (last > line_no + BESIDE or reading.bytes_read > READ_BYTES):
            break
    if to_the_end and reading.hash.hexdigest() != row["sha256"]:
        return Around((), _CHANGED)
    if all(number != line_no for number, _ in lines):
        return Around((), _beyond(reading, line_no))
    return Around(tuple(lines), _sure(found, row, to_the_end=to_the_end))


def _numbered(reading: Reading, stop: Stop) -> Iterator[tuple[int, bytes]]:
    """Whole lines, and the number of the first of them."""
    number = 1
    for data in reading.chunks():
        if stop.pulled:
            raise QueryStopped("stopped")
        yield number, data
        number += data.count(b"\n")


def _near(data: bytes, number: int, line_no: int) -> Iterator[tuple[int, str]]:
    texts = data.removesuffix(b"\n").split(b"\n")
    for place in range(max(line_no - BESIDE - number, 0), min(line_no + BESIDE - number + 1, len(texts))):
        text = texts[place][: 4 * SHOWN_CHARS].decode("utf-8", "replace").rstrip("\r")
        yield number + place, text if len(text) <= SHOWN_CHARS else text[:SHOWN_CHARS] + "…"


def _beyond(reading: Reading, line_no: int) -> str:
    if reading.bytes_read > READ_BYTES:
        return f"it stands more than {READ_BYTES >> 30} GiB into the file"
    return f"{line_no} counts the entries of the file, which has fewer lines"


def _sure(found: Input, row: Mapping[str, Any], *, to_the_end: bool) -> str:
    if to_the_end:
        return "from the file, the same as when it was read"
    if (found.size_bytes or 0) > row["size_bytes"]:
        return "from the file, which has grown since it was read"
    return "from the file, of the same size as when it was read"
