"""Which files are to be read, with which format: content decides, and files that the case has already are left alone."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from tracelens import formats
from tracelens.errors import SourceError
from tracelens.formats.base import Claim, Format, Head, Side
from tracelens.formats.privacy import scrubbed_text
from tracelens.ingestion.chunks import Reading, head_of, lines_frame, peeked
from tracelens.ingestion.report import FileReport, State
from tracelens.ingestion.writers import Writer, are_several, form_of, leftover, told_apart
from tracelens.opening import Input

_BLOCK: Final = 4 << 20
_SHOWN: Final = 120
_ZIP_BEGINS: Final = "PK\x03\x04"
_TAR_MAGIC_AT: Final = 257
_ARCHIVED: Final = "a zip in a pipe, or an archive inside another archive; make it a file of its own and name that: tracelens ingest FILE"
"""A file that is an archive never comes here: its members do.  Logs in a tar look like one log with odd lines in it."""
_SEVERAL: Final = "several programs wrote this, and a pipe is read once: put it into a file, and each is a source of its own"


@dataclass(frozen=True, slots=True)
class Recognised:
    """A file that will be read, or what one `writer` wrote into it: its format, and the source that its rows take the place of."""

    source: Input
    kind: Format
    claim: Claim
    replaces: int | None = None
    note: str = ""
    writer: Writer | None = None


def recognised(
    source: Input, known: Sequence[Mapping[str, Any]], forced: str | None
) -> Sequence[Recognised | FileReport]:
    """What is to be read of a file: one source, or several where several programs wrote into it.

    May raise `SourceError` or `OSError`.
    """
    whole = recognise(source, known, forced)
    settled = isinstance(whole, FileReport) and whole.state is not State.UNKNOWN
    if forced or settled or source.size_bytes is None:
        return [whole]
    form = form_of(head_of(source)[0])
    if form is None:
        return [whole]
    found = [
        one
        for part in told_apart((lines_frame(data, 1) for data in Reading(source).chunks()), form)
        if isinstance(one := recognise(source, known, None, part), Recognised)
        and not (one.kind.whole or one.kind.binary)
        # A client's or a gateway's records name the server that answered: they are one log.
        and (form.stands_before or one.kind.side is Side.SERVER)
    ]
    if not found or (len(found) == 1 and isinstance(whole, Recognised)):
        return [whole]
    first = next((one for one in found if one.kind.side is Side.SERVER), found[0])
    names = [one.writer for one in found if one.writer]
    return [
        replace(one, writer=leftover(one.writer, names)) if one is first and one.writer else one
        for one in found
    ]


def recognise(
    source: Input,
    known: Iterable[Mapping[str, Any]],
    forced: str | None,
    part: tuple[Writer | None, Head | None] = (None, None),
) -> Recognised | FileReport:
    """Find the format of a file, or of the `part` that a writer wrote and that begins so, or say what became of it instead."""
    writer, own = part
    if writer:
        source = replace(source, label=f"{source.label}!{writer.label}")
    earlier = [row for row in known if row["path"] == source.label]
    if writer is None and source.size_bytes is not None and _already_in(source, known):
        return FileReport(source.label, State.UNCHANGED)
    beginning = source
    is_pipe = source.size_bytes is None
    if is_pipe:
        beginning, source = peeked(source)
    head, has_nul = head_of(beginning)
    head = own or head
    if not any(line.strip() for line in (*head.lines, *head.sampled)):
        return FileReport(source.label, State.EMPTY)
    if has_nul and _is_archive(head):
        return FileReport(source.label, State.UNKNOWN, note=_ARCHIVED)
    found = _forced(head, forced) if forced else formats.claims(head)
    if len(found) != 1:
        return FileReport(source.label, State.UNKNOWN, note=_unknown(head, has_nul, found, forced))
    kind, claim = found[0]
    if claim.refusal:
        return FileReport(source.label, State.UNREADABLE, note=claim.refusal)
    replaced, note = _replaced(source, earlier)
    claim = replace(claim, variant=scrubbed_text(claim.variant))
    return Recognised(
        source, kind, claim, replaced, _SEVERAL if is_pipe and are_several(head) else note, writer
    )


def _forced(head: Head, name: str) -> list[tuple[Format, Claim]]:
    """The named format, with what it can make of the head, or of any single line of it."""
    kind = formats.named(name)
    views = [head, *(Head((line,)) for line in (*head.lines, *head.sampled) if line.strip())]
    claim = next((claim for view in views if (claim := kind.sniff(view)) is not None), None)
    return [(kind, claim)] if claim else []


def _unknown(head: Head, has_nul: bool, found: list[tuple[Format, Claim]], forced: str | None) -> str:
    if found:
        return (
            "claimed by several formats: "
            + ", ".join(kind.name for kind, _ in found)
            + "; choose with --format"
        )
    if has_nul:
        return "binary data"
    tried = forced or f"none of {len(formats.FORMATS)} formats (tracelens formats) knows it"
    return f"begins with {head.first.strip()[:_SHOWN]!r}; {tried}"


def _is_archive(head: Head) -> bool:
    first = head.lines[0] if head.lines else ""
    return first.startswith(_ZIP_BEGINS) or first[_TAR_MAGIC_AT:].startswith("ustar")


def _already_in(source: Input, known: Iterable[Mapping[str, Any]]) -> bool:
    same_size = {row["sha256"] for row in known if row["size_bytes"] == source.size_bytes}
    return bool(same_size) and _hash(source, None) in same_size


def _replaced(source: Input, earlier: list[Mapping[str, Any]]) -> tuple[int | None, str]:
    """The earlier source that this one is a longer edition of."""
    for row in earlier:
        if source.label == "-" or source.size_bytes is None:
            continue
        if longer_edition(source, row):
            return int(row["source_id"]), "grown since it was read"
    return None, "another file of this name is in the case; both are kept" if earlier else ""


def longer_edition(source: Input, row: Mapping[str, Any]) -> bool:
    """Whether an input begins with the bytes of a source in the case."""
    begins = (
        _hash_of_lines(source, row["line_count"]) if source.compressed else _hash(source, row["size_bytes"])
    )
    return begins == str(row["sha256"])


def _hash_of_lines(source: Input, count: int) -> str:
    """SHA-256 of an input's first `count` lines: of a compressed file the case does not know the bytes it had."""
    digest = hashlib.sha256()
    stream = source.open()
    try:
        while count > 0 and (block := stream.read(_BLOCK)):
            ends = block.count(b"\n")
            digest.update(block if ends < count else b"\n".join(block.split(b"\n", count)[:count]) + b"\n")
            count -= ends
    finally:
        stream.close()
    return digest.hexdigest()


def _hash(source: Input, size: int | None) -> str:
    """SHA-256 of an input's (decompressed) bytes, or of its first `size`."""
    digest = hashlib.sha256()
    left = size
    stream = source.open()
    try:
        while block := stream.read(_BLOCK if left is None else min(left, _BLOCK)):
            digest.update(block)
            left = None if left is None else left - len(block)
            if left == 0:
                break
    except EOFError as error:
        raise SourceError(f"{source.label}: cut off in the middle of its compression") from error
    finally:
        stream.close()
    return digest.hexdigest()
