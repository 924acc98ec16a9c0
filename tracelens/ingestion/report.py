"""What an ingest did, file by file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path


class State(StrEnum):
    """What became of one file."""

    READ = "read"
    REPLACED = "replaced"
    """Read again: it had grown, and its earlier rows gave way."""
    UNCHANGED = "unchanged"
    """Its bytes are in the run already."""
    EMPTY = "empty"
    """It has no bytes, or nothing but blanks: there is nothing to be read."""
    UNKNOWN = "unknown"
    """No format claims it."""
    UNREADABLE = "unreadable"


@dataclass(frozen=True, slots=True)
class FileReport:
    """One file: how it was read, what it gave, and what nobody understood in it."""

    path: str
    state: State
    format: str = ""
    variant: str = ""
    lines: int = 0
    understood: int = 0
    skipped: int = 0
    rows: Mapping[str, int] = field(default_factory=dict)
    commonest_issue: str = ""
    commonest_issue_count: int = 0
    first_issue_line: int = 0
    time_basis: str = ""
    note: str = ""
    """Why it is unreadable; the first line of an unknown one."""


@dataclass(frozen=True, slots=True)
class IngestReport:
    """All files of one ingest."""

    case: Path
    run: str
    files: tuple[FileReport, ...]
    elapsed_s: float

    @property
    def recognised(self) -> bool:
        """Whether every file was read (or was in the case already)."""
        return all(f.state not in (State.UNKNOWN, State.UNREADABLE) for f in self.files)

    @property
    def nothing(self) -> bool:
        """Whether not one file could be read."""
        return not any(f.state in (State.READ, State.REPLACED, State.UNCHANGED) for f in self.files)


@dataclass(frozen=True, slots=True)
class Progress:
    """How far an ingest is: bytes read of the bytes there are (0 where unknown), and the file at hand."""

    done_bytes: int
    total_bytes: int
    path: str


OnProgress = Callable[[Progress], None]


@dataclass(frozen=True, slots=True)
class ProgressCounter:
    """Progress over all files, from the place where one begins."""

    on_progress: OnProgress | None
    before_bytes: int
    total_bytes: int

    def telling(self, label: str) -> Callable[[int], None] | None:
        """What to call with the bytes read of one file."""
        tell = self.on_progress
        if tell is None:
            return None
        return lambda done_bytes: tell(Progress(self.before_bytes + done_bytes, self.total_bytes, label))
