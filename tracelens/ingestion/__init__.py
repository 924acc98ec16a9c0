"""Files to facts: recognise, parse into parts, place in time, load, join.

The case's lock is held from the beginning, so no two ingests read what the other is about to add; readers need no lock.
"""

from __future__ import annotations

import logging
import os
import secrets
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from tracelens.errors import CaseError
from tracelens.formats.base import Clock
from tracelens.ingestion.chunks import Reading
from tracelens.ingestion.options import IngestOptions
from tracelens.ingestion.parts import ParsedSource, parse_source
from tracelens.ingestion.placing import Neighbour, TimeOptions, place
from tracelens.ingestion.recognise import Recognised, recognised
from tracelens.ingestion.report import FileReport, IngestReport, OnProgress, Progress, ProgressCounter, State
from tracelens.ingestion.scratch import scratch_folder
from tracelens.opening import READ_ERRORS, Input, Unreadable, expand, unfolded
from tracelens.store import CaseLock, CaseWriter, SourceRow, Store

__all__ = [
    "FileReport",
    "IngestOptions",
    "IngestReport",
    "OnProgress",
    "Progress",
    "State",
    "TimeOptions",
    "ingest",
]

_LOG: Final = logging.getLogger(__name__)
"""Hears of each step when it is done, for ``--verbose``."""


@dataclass(frozen=True, slots=True)
class _Parsed:
    """A file that has been parsed and waits to be loaded."""

    recognised: Recognised
    parsed: ParsedSource
    sha256: str
    size_bytes: int

    @property
    def bytes_of(self) -> tuple[str, str]:
        """What two files of the same content share: its hash, and whose lines of it were read."""
        writer = self.recognised.writer
        return self.sha256, writer.name if writer else ""


def ingest(
    sources: Sequence[str],
    case: Path,
    options: IngestOptions | None = None,
    on_progress: OnProgress | None = None,
) -> IngestReport:
    """Read `sources` into the case; see `IngestReport`.

    Nothing is written unless at least one file was read.  Raises `CaseError` where the case cannot be written.
    """
    options = options or IngestOptions()
    options.time.check()
    if not case.absolute().parent.is_dir():
        raise CaseError(
            f"{case}: there is no folder {case.parent}",
            hint="make the folder first, or choose another --case",
        )
    return ingest_found(list(expand(list(sources))), case, options, on_progress)


def ingest_found(
    found: list[Input | Unreadable],
    case: Path,
    options: IngestOptions,
    on_progress: OnProgress | None = None,
) -> IngestReport:
    """`ingest` of sources that have been looked up already."""
    started = time.perf_counter()
    with CaseLock(case) as lock, scratch_folder() as scratch:
        options = replace(options, prompt_key=options.prompt_key or _prompt_key(case))
        read = _parse_all(found, case, options, scratch, on_progress)
        waiting = [one for one in read if isinstance(one, _Parsed)]
        loaded = _load_all(waiting, CaseWriter(case, lock), options) if waiting else {}
    files = tuple(loaded[id(one)] if isinstance(one, _Parsed) else one for one in read)
    return IngestReport(case, options.run, files, time.perf_counter() - started)


def _prompt_key(case: Path) -> int:
    """The number that keys the fingerprints of the case's prompts; a new case gets a random one."""
    kept: list[Any] = []
    if case.exists():
        with Store(case) as store:
            kept = store.run("SELECT value FROM case_property WHERE key = 'prompt_key'").rows
    return int(kept[0][0]) if kept else secrets.randbits(64) | 1


def _known_sources(case: Path, run: str) -> list[dict[str, Any]]:
    if not case.exists():
        return []
    with Store(case) as store:
        return store.run("SELECT * FROM source WHERE run_id = $run", {"run": run}).dicts()


def _parse_all(
    found: list[Input | Unreadable],
    case: Path,
    options: IngestOptions,
    scratch: Path,
    on_progress: OnProgress | None,
) -> list[_Parsed | FileReport]:
    known = _known_sources(case, options.run)
    total = sum(one.size_bytes or 0 for one in found if isinstance(one, Input))
    results: list[_Parsed | FileReport] = []
    before = 0
    for index, one in enumerate(unfolded(found)):
        if isinstance(one, Unreadable):
            results.append(FileReport(one.label, State.UNREADABLE, note=one.reason))
            continue
        counter = ProgressCounter(on_progress, before, total)
        for result in _parse_one(one, known, options, scratch / str(index), counter):
            results.append(_same_bytes(result, results) or result)
        before += one.size_bytes or 0
    return results


def _same_bytes(result: _Parsed | FileReport, earlier: list[_Parsed | FileReport]) -> FileReport | None:
    if not isinstance(result, _Parsed):
        return None
    twin = next((e for e in earlier if isinstance(e, _Parsed) and e.bytes_of == result.bytes_of), None)
    label = result.recognised.source.label
    return (
        FileReport(label, State.UNCHANGED, note=f"the same bytes as {twin.recognised.source.label}")
        if twin
        else None
    )


def _parse_one(
    source: Input, known: list[dict[str, Any]], options: IngestOptions, folder: Path, counter: ProgressCounter
) -> Iterator[_Parsed | FileReport]:
    """Read one file: a result, or one for each program that wrote into it."""
    try:
        for index, found in enumerate(recognised(source, known, options.format)):
            if isinstance(found, FileReport):
                _LOG.info("%s: %s %s", source.label, found.state, found.note)
                yield found
            else:
                yield _parse_found(found, known, options, folder.with_name(f"{folder.name}.{index}"), counter)
    except READ_ERRORS as error:
        _LOG.info("%s: not read, %s", source.label, _reason(error))
        yield FileReport(source.label, State.UNREADABLE, note=_reason(error))


def _parse_found(
    found: Recognised,
    known: list[dict[str, Any]],
    options: IngestOptions,
    folder: Path,
    counter: ProgressCounter,
) -> _Parsed | FileReport:
    source = found.source
    _LOG.info("%s: recognised as %s (%s)", source.label, found.kind.name, found.claim.variant)
    folder.mkdir()
    reading = Reading(source, found.writer)
    parsed = parse_source(
        (found.kind, found.claim),
        reading,
        folder,
        keep_text=options.keep_text,
        prompt_key=options.prompt_key,
        on_read=counter.telling(source.label),
    )
    _LOG.info(
        "%s: parsed %s bytes, %s lines, %s of them not understood",
        source.label,
        f"{reading.bytes_read:,}",
        f"{parsed.line_count:,}",
        f"{parsed.skipped:,}",
    )
    sha256 = reading.hash.hexdigest()
    if any(row["sha256"] == sha256 for row in known):
        return FileReport(source.label, State.UNCHANGED)
    size = None if source.path and not source.compressed else source.size_bytes
    return _Parsed(found, parsed, sha256, reading.bytes_read if size is None else size)


def _reason(error: BaseException) -> str:
    if isinstance(error, EOFError):
        return "cut off in the middle of its compression"
    return getattr(error, "strerror", None) or str(error)


def _load_all(waiting: list[_Parsed], opened: CaseWriter, options: IngestOptions) -> dict[int, FileReport]:
    neighbours = [n for one in waiting if (n := _neighbour(one, options.time)) is not None]
    with opened as writer:
        writer.keep_property("prompt_key", str(options.prompt_key))
        neighbours += _neighbours_in(writer, options.run)
        loaded = {id(one): _load_one(writer, one, options, neighbours) for one in waiting}
        writer.join(options.run)
        _LOG.info("joined what the sources of run %s say of the same requests", options.run)
        writer.settle_zones(options.run)
        writer.finish_sources({source_id: sum(report.rows.values()) for source_id, report in loaded.values()})
        basis = dict(writer.rows("SELECT source_id, time_basis FROM source"))
    _LOG.info("written: %s", opened.path)
    return {key: replace(report, time_basis=basis[source_id]) for key, (source_id, report) in loaded.items()}


def _neighbour(one: _Parsed, options: TimeOptions) -> Neighbour | None:
    """A parsed source with full dates, as a hint for the others."""
    parsed, clock = one.parsed, one.recognised.claim.clock
    if clock not in (Clock.UTC, Clock.LOCAL) or parsed.first_stamp is None or parsed.last_stamp is None:
        return None
    low, high = sorted((parsed.first_stamp, parsed.last_stamp))
    return Neighbour(Path(one.recognised.source.label).name, low, high, clock is Clock.UTC)


def _neighbours_in(writer: CaseWriter, run: str) -> list[Neighbour]:
    dated = (Clock.UTC.value, Clock.LOCAL.value)
    return [
        Neighbour(
            Path(row["path"]).name,
            _naive(row["first_ts"]),
            _naive(row["last_ts"]),
            row["clock"] == Clock.UTC.value,
        )
        for row in writer.sources(run)
        if row["clock"] in dated and row["first_ts"] is not None
    ]


def _naive(stamp: datetime) -> datetime:
    return stamp.replace(tzinfo=None)


def _load_one(
    writer: CaseWriter, one: _Parsed, options: IngestOptions, neighbours: list[Neighbour]
) -> tuple[int, FileReport]:
    found, parsed = one.recognised, one.parsed
    placement, said = place(
        found.claim.clock, found.kind.side, parsed, options.time, neighbours, found.source.modified_ts
    )
    if found.replaces is not None:
        writer.drop_source(found.replaces)
    source_id = writer.add_source(_source_row(one, options, writer.path, said))
    writer.span(source_id, parsed.ends, placement)
    rows = {
        table: writer.load(table, files, (options.run, source_id), placement)
        for table, files in sorted(parsed.parts.items())
    }
    if rows.get("metric_sample"):
        rows |= writer.derive(options.run, source_id)
    if found.kind.defaults is not None:
        assumed = found.kind.defaults(
            found.claim.settings.get("implies", {}) | writer.stated_settings(source_id)
        )
        rows["server_setting"] = rows.get("server_setting", 0) + writer.add_defaults(source_id, assumed)
    issues = rows.pop("ingest_issue", 0)
    _LOG.info("%s: loaded %s rows; time: %s", found.source.label, f"{sum(rows.values()):,}", said)
    assert issues == parsed.skipped
    reason, count = parsed.reasons.most_common(1)[0] if parsed.reasons else ("", 0)
    return source_id, FileReport(
        found.source.label,
        State.READ if found.replaces is None else State.REPLACED,
        found.kind.name,
        found.claim.variant,
        parsed.line_count,
        parsed.understood,
        parsed.skipped,
        rows,
        reason,
        count,
        parsed.first_issue_line.get(reason, 0),
        said,
        found.note,
    )


def _source_row(one: _Parsed, options: IngestOptions, case: Path, said: str) -> SourceRow:
    found, parsed = one.recognised, one.parsed
    return SourceRow(
        run_id=options.run,
        path=found.source.label,
        format=found.kind.name,
        variant=found.claim.variant,
        side=found.kind.side.value,
        sha256=one.sha256,
        size_bytes=one.size_bytes,
        line_count=parsed.line_count,
        understood_count=parsed.understood,
        skipped_count=parsed.skipped,
        clock=found.claim.clock.value,
        time_basis=said,
        options=options.kept(_folder(found.source.label, case)),
    )


def _folder(label: str, case: Path) -> str:
    """Where a relative path begins, seen from the case; nothing for an absolute one."""
    return "" if Path(label).is_absolute() else os.path.relpath(Path.cwd(), case.resolve().parent)
