"""From one input to Parquet parts, one per table and chunk, on all cores.

The calling thread reads and cuts; worker threads parse (Polars lets go of the interpreter lock) and write the parts;
the calling thread takes the results back in file order and carries the last stamp over the cuts.  A piece of a line that
fills chunks is parsed alone: what is made of a line takes many times its room.
"""

from __future__ import annotations

import os
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import date, datetime
from pathlib import Path
from typing import Final

import polars as pl

from tracelens.errors import CaseError
from tracelens.formats.base import Chunk, Claim, Clock, Format, Parsed, Side
from tracelens.formats.privacy import scrubbed
from tracelens.ingestion import clock_turns
from tracelens.ingestion.chunks import CHUNK_BYTES, Reading, framed
from tracelens.ingestion.writers import Writer

WORKERS: Final = max(1, os.cpu_count() or 1)
_PLAUSIBLE: Final = (datetime(1970, 1, 1), datetime(2200, 1, 1))
_WALL_CLOCKS: Final = (Clock.LOCAL, Clock.YEARLESS, Clock.DAYLESS)


@dataclass(frozen=True, slots=True)
class _Done:
    """What a worker hands back: parts it has written, frames that still lack the stamp before them, and counts."""

    line_count: int
    understood: int
    written: dict[str, Path]
    waiting: dict[str, pl.DataFrame]
    reasons: dict[str, tuple[int, int]]
    first_stamp: datetime | None
    last_stamp: datetime | None
    first_stamp_line: int
    ends: list[tuple[int, datetime]]
    jumps: list[tuple[int, float]]
    hours: list[tuple[int, float]]
    turns: list[clock_turns.Turn]
    clock_steps: Mapping[int, int]


@dataclass
class ParsedSource:
    """A file, parsed: its parts by table, its counts, and the stamps that tell how to place it in time."""

    parts: dict[str, list[Path]] = field(default_factory=dict)
    line_count: int = 0
    understood: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    first_issue_line: dict[str, int] = field(default_factory=dict)
    first_stamp: datetime | None = None
    last_stamp: datetime | None = None
    steps: list[int] = field(default_factory=list)
    back_steps: list[int] = field(default_factory=list)
    jumps_dropped: bool = False
    clock_steps: Counter[int] = field(default_factory=Counter)
    """Lines with two clocks, by how many quarter hours the log's own is ahead of the one outside."""
    written_by: str = ""
    """What wrote the stamps (`Claim.stamps`)."""
    day: date | None = None
    """The day of the first stamp (`Claim.day`)."""
    hours: list[tuple[int, float]] = field(default_factory=list)
    """GPU logs in wall time: lines before which an hour is missing (seconds above 0) or comes again (below 0)."""

    ends: list[tuple[int, datetime]] = field(default_factory=list)
    """Server logs: lines and stamps as written, the first and the last of all are among them."""
    turns: list[clock_turns.Turn] = field(default_factory=list)
    """Server logs in wall time: where the clock seems to have been set."""

    @property
    def skipped(self) -> int:
        """Lines not understood."""
        return self.reasons.total()


@dataclass(frozen=True, slots=True)
class _Task:
    kind: Format
    claim: Claim
    folder: Path
    keep_text: bool
    prompt_key: int
    writer: Writer | None

    def run(self, data: bytes, first_line_no: int, index: int, context: str | None) -> _Done:
        """Parse one chunk and write its parts (in a worker thread)."""
        read, raw = framed(data, first_line_no, binary=self.kind.binary)
        lines = self.writer.own(read) if self.writer else read
        # A lone carriage return is half a line end: what stands before it is whole.
        is_open = not data.endswith((b"\n", b"\r"))
        parsed = self.kind.parse(
            Chunk(lines, self.claim, context, self.keep_text, is_open, raw, self.prompt_key)
        )
        stamps = _sane(parsed.stamps)
        tables = {name: _sane(frame) for name, frame in parsed.tables.items() if frame.height}
        if parsed.issues.height:
            tables["ingest_issue"] = parsed.issues
        tables = scrubbed(tables, keep_text=self.keep_text, prompt_key=self.prompt_key)
        waiting = {name: tables.pop(name) for name in list(tables) if name in self.kind.carried}
        written = {name: self.write(name, index, frame) for name, frame in tables.items()}
        return _Done(
            read.height,
            parsed.understood + read.height - lines.height,
            written,
            waiting,
            _reasons(parsed),
            *_ends(stamps),
            _extremes(stamps) if self.may_turn or self.is_server_in_utc else [],
            clock_turns.jumps(stamps, self.half_period_s),
            clock_turns.hours(clock_turns.jumps(stamps, self.hour_jump_s)),
            clock_turns.turns(stamps) if self.may_turn else [],
            parsed.clock_steps,
        )

    @property
    def half_period_s(self) -> float | None:
        """A step of the stamps beyond this begins a new year or day; None where they hold both."""
        if self.kind.side is Side.GPU and self.claim.clock is Clock.DAYLESS:
            return clock_turns.GPU_DAY_STEP_S
        return clock_turns.HALF_PERIOD_S.get(self.claim.clock)

    @property
    def hour_jump_s(self) -> float | None:
        """Steps to look at for changes of summer time: none but in the wall clock of a GPU tool, which keeps its period."""
        return (
            clock_turns.HOUR_S / 2
            if self.kind.side is Side.GPU and self.claim.clock in _WALL_CLOCKS
            else None
        )

    @property
    def may_turn(self) -> bool:
        """Whether to look for a clock that was set: in the wall clock of a server."""
        return self.kind.side is Side.SERVER and self.claim.clock in _WALL_CLOCKS

    @property
    def is_server_in_utc(self) -> bool:
        """Whether the stamps are instants of a server."""
        return self.kind.side is Side.SERVER and self.claim.clock is Clock.UTC

    def write(self, table: str, index: int, frame: pl.DataFrame) -> Path:
        """Write one part."""
        path = self.folder / f"{table}-{index:06d}.parquet"
        try:
            frame.write_parquet(path, compression="lz4", statistics=False)
        except (OSError, pl.exceptions.PolarsError) as error:
            raise CaseError(
                f"temporary files cannot be written into {self.folder.parent.parent} ({str(error).partition(chr(10))[0]})",
                hint="free space there, or set TMPDIR to a folder on another disk",
            ) from error
        return path


def _reasons(parsed: Parsed) -> dict[str, tuple[int, int]]:
    grouped = parsed.issues.group_by("reason").agg(
        pl.len().alias("count"), pl.col("line_no").min().alias("first")
    )
    return {reason: (count, first) for reason, count, first in grouped.iter_rows()}


def _sane(frame: pl.DataFrame) -> pl.DataFrame:
    """Stamps that no log can have are not known: a year 0 is a slip of the writer, and Python cannot even hold it."""
    stamps = [name for name, kind in frame.schema.items() if kind == pl.Datetime("us")]
    plausible = [
        pl.when(pl.col(name).is_between(*_PLAUSIBLE)).then(pl.col(name)).alias(name) for name in stamps
    ]
    return frame.with_columns(plausible) if plausible else frame


def _ends(stamps: pl.DataFrame) -> tuple[datetime | None, datetime | None, int]:
    seen = stamps.drop_nulls("stamp")
    return (seen["stamp"][0], seen["stamp"][-1], int(seen["line_no"][0])) if seen.height else (None, None, 0)


def _extremes(stamps: pl.DataFrame) -> list[tuple[int, datetime]]:
    """Lines and stamps among which a chunk's first and last instant are, wherever a year or an hour begins in it."""
    seen = stamps.drop_nulls("stamp")
    if not seen.height:
        return []
    low, high = seen["stamp"].arg_min(), seen["stamp"].arg_max()
    assert low is not None
    assert high is not None
    return [(int(line), stamp) for line, stamp in seen[[0, low, high, seen.height - 1]].unique().iter_rows()]


def parse_source(  # noqa: PLR0913 - four of them have a default or a name
    task: tuple[Format, Claim],
    reading: Reading,
    folder: Path,
    *,
    keep_text: bool,
    prompt_key: int = 0,
    on_read: Callable[[int], None] | None = None,
    chunk_bytes: int | None = None,
) -> ParsedSource:
    """Read and parse one input into Parquet parts under `folder`; `on_read` hears how many bytes have passed."""
    kind, claim = task
    work = _Task(kind, claim, folder, keep_text, prompt_key, reading.writer)
    stitched = _Stitcher(work, ParsedSource(written_by=claim.stamps, day=claim.day))
    pending: deque[tuple[Future[_Done], int]] = deque()
    with ThreadPoolExecutor(WORKERS) as pool:
        try:
            for index, (data, first_line_no, context) in enumerate(_cut(kind, claim, reading, chunk_bytes)):
                weight = 1 if b"\n" in data else WORKERS + 1
                while pending and sum(one for _, one in pending) + weight > WORKERS + 1:
                    stitched.take(pending.popleft()[0].result())
                pending.append((pool.submit(work.run, data, first_line_no, index, context), weight))
                if on_read:
                    on_read(reading.bytes_read)
            while pending:
                stitched.take(pending.popleft()[0].result())
        except BaseException:
            for future, _ in pending:
                future.cancel()
            raise
    return stitched.whole


def _cut(
    kind: Format, claim: Claim, reading: Reading, chunk_bytes: int | None
) -> Iterator[tuple[bytes, int, str | None]]:
    if kind.whole or kind.binary:
        yield reading.whole(), 1, None
        return
    line_no, context = 1, None
    stateless = kind.context.__name__ == "_no_context"
    for data in reading.chunks(chunk_bytes or CHUNK_BYTES, lambda tail: kind.may_cut(tail, claim)):
        yield data, line_no, context
        line_no += data.count(b"\n")
        if not stateless:
            text = data.decode("utf-8", "replace")
            context = kind.context(reading.writer.text(text) if reading.writer else text, context)


@dataclass
class _Stitcher:
    """Takes chunks back in file order and adds them up."""

    work: _Task
    whole: ParsedSource
    index: int = 0

    def take(self, done: _Done) -> None:
        whole = self.whole
        for table, path in done.written.items():
            whole.parts.setdefault(table, []).append(path)
        for table, frame in done.waiting.items():
            column = self.work.kind.carried[table]
            filled = frame.with_columns(pl.col(column).fill_null(pl.lit(whole.last_stamp, pl.Datetime("us"))))
            whole.parts.setdefault(table, []).append(self.work.write(table, self.index, filled))
        whole.line_count += done.line_count
        whole.understood += done.understood
        for reason, (count, first) in done.reasons.items():
            whole.reasons[reason] += count
            whole.first_issue_line.setdefault(reason, first)
        whole.clock_steps.update(done.clock_steps)
        whole.ends += done.ends
        self._step(done)
        self.index += 1

    def _step(self, done: _Done) -> None:
        if done.first_stamp is None:
            return
        whole = self.whole
        half = self.work.half_period_s
        jumps, hours = list(done.jumps), list(done.hours)
        if whole.last_stamp is not None:
            step = (done.first_stamp - whole.last_stamp).total_seconds()
            if half and abs(step) > half:
                jumps.insert(0, (done.first_stamp_line, step))
            if self.work.hour_jump_s:
                hours = clock_turns.hours([(done.first_stamp_line, step)]) + hours
            if self.work.may_turn:
                cut = {"line_no": [0, done.first_stamp_line], "stamp": [whole.last_stamp, done.first_stamp]}
                whole.turns += clock_turns.turns(pl.DataFrame(cut))
        whole.hours += hours[: clock_turns.MAX_JUMPS - len(whole.hours)]
        whole.turns += done.turns[: clock_turns.MAX_JUMPS - len(whole.turns)]
        self._count(jumps)
        whole.first_stamp = whole.first_stamp or done.first_stamp
        whole.last_stamp = done.last_stamp

    def _count(self, jumps: list[tuple[int, float]]) -> None:
        """Take steps back as new years or days, and steps as far forward again as their end."""
        whole = self.whole
        far_s = clock_turns.RETURN_SHARE * clock_turns.HALF_PERIOD_S.get(self.work.claim.clock, 0)
        for line_no, step in jumps:
            if len(whole.steps) >= clock_turns.MAX_JUMPS:
                whole.jumps_dropped = True
            elif step < 0:
                whole.steps.append(line_no)
            elif len(whole.steps) > len(whole.back_steps) and step > far_s:
                whole.back_steps.append(line_no)
