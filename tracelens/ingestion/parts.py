"""From one input to Parquet parts, one per table and chunk, on all cores.

The calling thread reads and cuts; worker threads parse (Polars lets go of the interpreter lock) and write the parts;
the calling thread takes the results back in file order and carries the last stamp over the cuts.  A piece of a line that
fills chunks is parsed alone: what is made of a line takes many times its room.  The few rows that a chunk has for some tables are
gathered into parts of many chunks: a thousand files that are read at once take more memory than their rows.
"""

from __future__ import annotations

import os
from collections import Counter, deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import date, datetime
from pathlib import Path
from typing import Final

import polars as pl

from tracelens.formats.base import Claim, Format
from tracelens.ingestion import clock_turns
from tracelens.ingestion.chunks import CHUNK_BYTES, Reading
from tracelens.ingestion.task import FEW_BYTES, Done, Task, packed

WORKERS: Final = max(1, os.cpu_count() or 1)


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
    work = Task(kind, claim, folder, keep_text, prompt_key, reading.writer)
    stitched = _Stitcher(work, ParsedSource(written_by=claim.stamps, day=claim.day))
    pending: deque[tuple[Future[Done], int]] = deque()
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
    stitched.write_gathered()
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

    work: Task
    whole: ParsedSource
    gathered: dict[str, list[bytes]] = field(default_factory=dict)
    index: int = 0

    def take(self, done: Done) -> None:
        whole = self.whole
        for table, path in done.written.items():
            self._write(table)
            whole.parts.setdefault(table, []).append(path)
        for table, few in done.few.items():
            self._gather(table, few)
        for table, frame in done.waiting.items():
            column = self.work.kind.carried[table]
            last = pl.lit(whole.last_stamp, pl.Datetime("us"))
            self._gather(table, packed(frame.with_columns(pl.col(column).fill_null(last))))
        whole.line_count += done.line_count
        whole.understood += done.understood
        for reason, (count, first) in done.reasons.items():
            whole.reasons[reason] += count
            whole.first_issue_line.setdefault(reason, first)
        whole.clock_steps.update(done.clock_steps)
        whole.ends += done.ends
        self._step(done)
        self.index += 1

    def write_gathered(self) -> None:
        for table in list(self.gathered):
            self._write(table)

    def _gather(self, table: str, few: bytes) -> None:
        gathered = self.gathered.setdefault(table, [])
        gathered.append(few)
        if sum(map(len, gathered)) >= FEW_BYTES:
            self._write(table)

    def _write(self, table: str) -> None:
        """Write what was gathered for a table, before what comes behind it in the file."""
        gathered = self.gathered.pop(table, None)
        if gathered:
            frames = [pl.read_parquet(few) for few in gathered]
            path = self.work.write(f"{table}-to-{self.index:06d}", pl.concat(frames, how="diagonal_relaxed"))
            self.whole.parts.setdefault(table, []).append(path)

    def _step(self, done: Done) -> None:
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
