"""Programs measured beside each other, and the words for what came out: what every part of the benchmark shares.

Each run is a process of its own, with an empty home, and contenders take turns, so that a slow minute of the machine hits all of
them.  Nothing here imports a heavy module: a child's peak memory begins with its parent's.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Final

OUT: Final = Path(__file__).parent / "out"
"""Where logs, cases and measurements of the benchmark lie."""
PYTHON: Final = sys.executable
TRACELENS: Final = (PYTHON, "-m", "tracelens")


@dataclass(frozen=True, slots=True)
class Run:
    """One finished process: wall and CPU seconds, its peak memory, what it printed."""

    seconds: float
    cpu_s: float
    peak_bytes: int
    output: str


@dataclass(frozen=True, slots=True)
class Contender:
    """A command to measure, what to do before each run, and the runs so far."""

    name: str
    command: Sequence[str | Path]
    before: Callable[[], None] = lambda: None
    runs: list[Run] = field(default_factory=list)

    @property
    def seconds(self) -> float:
        """Median wall time."""
        return statistics.median(run.seconds for run in self.runs)

    @property
    def cpu_s(self) -> float:
        """Median CPU time of all threads."""
        return statistics.median(run.cpu_s for run in self.runs)

    @property
    def peak_bytes(self) -> int:
        """Highest peak memory."""
        return max(run.peak_bytes for run in self.runs)


@dataclass(frozen=True, slots=True)
class Figure:
    """A measured number that has a target: at most it, or at least it."""

    what: str
    value: float
    target: float
    unit: str = ""
    at_least: bool = False

    @property
    def is_met(self) -> bool:
        """Whether the target is reached."""
        return self.value >= self.target if self.at_least else self.value <= self.target


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the report: its Markdown and its figures."""

    text: str
    figures: Sequence[Figure] = ()

    def keep(self, path: Path) -> None:
        """Write it to a file, for a report that is put together later."""
        path.write_text(json.dumps({"text": self.text, "figures": [asdict(one) for one in self.figures]}))

    @classmethod
    def kept(cls, path: Path) -> Section:
        """What ``keep`` wrote."""
        found = json.loads(path.read_text())
        return cls(found["text"], [Figure(**one) for one in found["figures"]])


def run(command: Sequence[str | Path], home: Path) -> Run:
    """Run a command to its end, with an empty home; raises where it fails."""
    with tempfile.TemporaryFile() as captured:
        begin = time.perf_counter()
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=captured,
            stderr=captured,
            env=os.environ | {"HOME": str(home)},
        )
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - begin
        process.returncode = os.waitstatus_to_exitcode(status)
        captured.seek(0)
        output = captured.read().decode(errors="replace")
    if process.returncode:
        raise SystemExit(f"{' '.join(map(str, command))} exited {process.returncode}:\n{output}")
    peak = usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return Run(seconds, usage.ru_utime + usage.ru_stime, peak, output)


def take_turns(contenders: Sequence[Contender], times: int) -> None:
    """Run each contender once, then each again, so many times."""
    with tempfile.TemporaryDirectory() as home:
        for _ in range(times):
            for contender in contenders:
                contender.before()
                contender.runs.append(run(contender.command, Path(home)))


def ingest(name: str, sources: Iterable[Path], case: Path, *before: str) -> Contender:
    """``tracelens ingest`` of files into a case that is new each time; ``before`` stands before the command."""
    command: Sequence[str | Path] = (*before, *TRACELENS, "ingest", *sources, "-c", case)
    return Contender(name, command, lambda: case.unlink(missing_ok=True))


def race(contenders: Sequence[Contender], size_bytes: int) -> list[str]:
    """A table of readers of one file; each ratio is to a contender behind the first, the first's time over its."""
    first, *others = contenders
    heads = (
        "",
        "seconds",
        "CPU s",
        "MB/s",
        *(f"times {other.name.partition(',')[0]}" for other in others),
        "peak memory",
    )
    rows = [
        (
            one.name,
            f"{one.seconds:.2f}",
            f"{one.cpu_s:.2f}",
            f"{size_bytes / 1e6 / one.seconds:,.0f}",
            *(f"{one.seconds / other.seconds:.1f}" for other in others),
            f"{one.peak_bytes / 2**20:,.0f} MiB",
        )
        for one in (first, *others)
    ]
    return table(heads, rows)


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines of a Markdown table, padded so that it reads well on a terminal too."""
    widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
    rule = ["-" * (width - 1) + ":" if place else "-" * width for place, width in enumerate(widths)]
    return [f"| {' | '.join(_padded(row, widths))} |" for row in (heads, rule, *rows)]


def _padded(row: Sequence[str], widths: Sequence[int]) -> list[str]:
    """Cells of a row as wide as their columns, all but the first flush right."""
    cells = zip(row, widths, strict=True)
    return [cell.rjust(width) if place else cell.ljust(width) for place, (cell, width) in enumerate(cells)]


def machine() -> str:
    """Cores and memory, and nothing that tells whose they are."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return f"{os.cpu_count()} cores, {memory:.0f} GiB"


def versions() -> str:
    """What was measured."""
    names = {"DuckDB": "duckdb", "Polars": "polars", "Textual": "textual"}
    known = [f"{name} {version(package)}" for name, package in names.items()]
    python = ".".join(map(str, sys.version_info[:3]))
    lnav = [subprocess.check_output(["lnav", "-V"], text=True).strip()] if shutil.which("lnav") else []
    return ", ".join([*known, f"Python {python}", *lnav])
