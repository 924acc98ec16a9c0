"""What a worker makes of one chunk of an input: Parquet parts, frames that are not parts yet, counts and stamps."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

import polars as pl

from tracelens.errors import CaseError
from tracelens.formats.base import Chunk, Claim, Clock, Format, Parsed, Side
from tracelens.formats.privacy import scrubbed
from tracelens.ingestion import clock_turns
from tracelens.ingestion.chunks import framed
from tracelens.ingestion.writers import Writer

FEW_BYTES: Final = 1 << 20
"""Rows of a table and chunk that take less are no part of their own."""
_PLAUSIBLE: Final = (datetime(1970, 1, 1), datetime(2200, 1, 1))
_WALL_CLOCKS: Final = (Clock.LOCAL, Clock.YEARLESS, Clock.DAYLESS)


@dataclass(frozen=True, slots=True)
class Done:
    """What a worker hands back: parts it has written, packed frames of few rows, those that lack the stamp before them, and counts."""

    line_count: int
    understood: int
    written: dict[str, Path]
    few: dict[str, bytes]
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


@dataclass(frozen=True, slots=True)
class Task:
    """How the chunks of one input are parsed, and where their parts go."""

    kind: Format
    claim: Claim
    folder: Path
    keep_text: bool
    prompt_key: int
    writer: Writer | None

    def run(self, data: bytes, first_line_no: int, index: int, context: str | None) -> Done:
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
        few = {name: packed(frame) for name, frame in tables.items() if frame.estimated_size() < FEW_BYTES}
        written = {
            name: self.write(f"{name}-{index:06d}", frame)
            for name, frame in tables.items()
            if name not in few
        }
        return Done(
            read.height,
            parsed.understood + read.height - lines.height,
            written,
            few,
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

    def write(self, name: str, frame: pl.DataFrame) -> Path:
        """Write one part."""
        path = self.folder / f"{name}.parquet"
        try:
            _write_parquet(frame, path)
        except (OSError, pl.exceptions.PolarsError) as error:
            raise CaseError(
                f"temporary files cannot be written into {self.folder.parent.parent} ({str(error).partition(chr(10))[0]})",
                hint="free space there, or set TMPDIR to a folder on another disk",
            ) from error
        return path


def packed(frame: pl.DataFrame) -> bytes:
    """A frame as Parquet, free of the chunk: its texts are views into the buffers of all texts that they were taken from."""
    buffer = io.BytesIO()
    _write_parquet(frame, buffer)
    return buffer.getvalue()


def _write_parquet(frame: pl.DataFrame, to: Path | io.BytesIO) -> None:
    """In the quickest way: a part is read once, and soon."""
    frame.write_parquet(to, compression="lz4", statistics=False)


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
