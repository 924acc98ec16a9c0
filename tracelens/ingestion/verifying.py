"""Whether the files that a case was made from are still the same, and whether each line of them is accounted for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from tracelens import formats
from tracelens.errors import UnknownFormat
from tracelens.ingestion.chunks import Reading, framed
from tracelens.ingestion.options import remembered
from tracelens.ingestion.recognise import longer_edition
from tracelens.opening import READ_ERRORS, Input, Unreadable, located
from tracelens.store import Store


class Fate(StrEnum):
    """What has become of a source since it was read."""

    SAME = "same"
    GROWN = "grown"
    """It begins with the bytes that were read, and goes on."""
    CHANGED = "changed"
    GONE = "gone"
    UNREADABLE = "unreadable"
    MISCOUNTED = "miscounted"
    """The file is the same, and the case's counts do not add up to it."""


@dataclass(frozen=True, slots=True)
class Verified:
    """One source beside its file: bytes on the disk and lines, as the case has them and as the file has them now."""

    run: str
    path: str
    fate: Fate
    size_bytes: int
    size_now_bytes: int | None
    line_count: int
    line_now_count: int | None
    understood_count: int
    kept_count: int
    """Lines not understood that the case keeps, a row of `ingest_issue` each."""
    note: str = ""


def verify(case: Path, run: str = "") -> Iterator[Verified]:
    """Read every source's file again; raises `CaseError` where the case cannot be opened."""
    with Store(case) as store:
        rows = store.run(
            "SELECT source.*, (SELECT count(*) FROM ingest_issue AS i WHERE i.source_id = source.source_id) AS kept_count "
            "FROM source WHERE $run IN ('', run_id) ORDER BY run_id, source_id",
            {"run": run},
        ).dicts()
    for row in rows:
        yield _verified(row, case)


def _verified(row: Mapping[str, Any], case: Path) -> Verified:
    found = where(row, case)
    if isinstance(found, Unreadable):
        return _said(row, Fate.GONE, None, None, found.reason)
    reading = Reading(found)
    try:
        lines = _lines(reading, row["format"])
        fate, note = _fate(row, found, reading.hash.hexdigest(), lines)
    except READ_ERRORS as error:
        return _said(row, Fate.UNREADABLE, found.size_bytes, None, str(error))
    return _said(row, fate, found.size_bytes, lines, note)


def where(row: Mapping[str, Any], case: Path) -> Input | Unreadable:
    """The file of a source: as its path says from here, else from where it was read."""
    _, folder = remembered(row["run_id"], row.get("options") or "{}")
    found = located(row["path"])
    if isinstance(found, Unreadable) and folder:
        return located(row["path"], case.resolve().parent / folder)
    return found


def _lines(reading: Reading, name: str) -> int:
    """Lines of a file as its format counts them."""
    try:
        kind = formats.named(name)
    except UnknownFormat:
        kind = formats.named("vllm_log")
    if kind.binary or kind.whole:
        return framed(reading.whole(), 1, binary=kind.binary)[0].height
    return sum(framed(data, 1, binary=False)[0].height for data in reading.chunks())


def _fate(row: Mapping[str, Any], found: Input, sha256: str, lines: int) -> tuple[Fate, str]:
    if sha256 != row["sha256"]:
        return (Fate.GROWN, "ingest it again") if longer_edition(found, row) else (Fate.CHANGED, "")
    kept = row["understood_count"] + row["kept_count"]
    if lines != row["line_count"] or lines != kept:
        return Fate.MISCOUNTED, f"{lines} lines, of which the case has {kept}: please report this"
    return Fate.SAME, ""


def _said(row: Mapping[str, Any], fate: Fate, size: int | None, lines: int | None, note: str) -> Verified:
    return Verified(
        row["run_id"], row["path"], fate, row["size_bytes"], size, row["line_count"], lines,
        row["understood_count"], row["kept_count"], note,
    )  # fmt: skip
