"""Measures ``tracelens ingest`` beside two programs that read the same log: ``make bench``.

One invented vLLM server log (make_server_log.py), read in turns by

    tracelens ingest    every line parsed, placed in time, joined, stored
    DuckDB              the lines as one column, counted: about the least that any reader in DuckDB can do
    lnav                a regular expression per line with a format definition (lnav/), counted; where it is installed

each in a process of its own, several times, the median shown; then the time that commands take to start.  The numbers of
one machine are in docs/performance.md.  Nothing here imports a heavy module: a child's peak memory begins with its parent's.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Final

from make_server_log import write_server_log

HERE: Final = Path(__file__).parent
OUT: Final = HERE / "out"
TRACELENS: Final = Path(sys.executable).with_name("tracelens")
SEED: Final = 7
HEADS: Final = ("", "seconds", "MB/s", "times DuckDB's", "times lnav's", "peak memory")
STARTS: Final = 10
"""Times that each short command is run."""

LINE_SCAN: Final = """
import duckdb, sys
scan = "SELECT count(*), max(length(line)) FROM read_csv(?, columns={'line': 'VARCHAR'}, delim='\\x1f', quote='', escape='', \\
        header=false, auto_detect=false, strict_mode=false, null_padding=false)"
print(duckdb.execute(scan, [sys.argv[1]]).fetchone()[0])
"""
FOUND: Final = """
SELECT
    (SELECT line_count FROM source) AS lines,
    (SELECT count(*) FROM ingest_issue) AS lines_not_understood,
    (SELECT count(*) FROM request_event WHERE event = 'received') AS requests,
    (SELECT count(*) FROM request_event WHERE event = 'aborted') AS aborts,
    (SELECT count(*) FROM access_line) AS access_lines,
    (SELECT count(*) FROM engine_sample) AS stats_lines,
    (SELECT count(*) FROM log_event WHERE kind = 'traceback') AS tracebacks,
    (SELECT count(*) FROM log_event WHERE kind = 'warning') AS warnings
"""


@dataclass(frozen=True, slots=True)
class Run:
    """One finished process: wall seconds, peak memory of it, what it printed."""

    seconds: float
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
    def peak_bytes(self) -> int:
        """Highest peak memory."""
        return max(run.peak_bytes for run in self.runs)


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
    return Run(seconds, usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024), output)


@dataclass(frozen=True, slots=True)
class Results:
    """Everything that was measured: lines by kind as they were written and as ingest found them, sizes, runs."""

    log_bytes: int
    written: Mapping[str, int]
    readers: Sequence[Contender]
    found: Mapping[str, int]
    case_bytes: int
    starts: Sequence[Contender]


def take_turns(contenders: Sequence[Contender], times: int, home: Path) -> None:
    """Run each contender once, then each again, so that a slow minute of the machine hits all of them."""
    for _ in range(times):
        for contender in contenders:
            contender.before()
            contender.runs.append(run(contender.command, home))


def readers(log: Path, case: Path, home: Path) -> list[Contender]:
    """The programs that read the log."""
    found = [
        Contender(
            "tracelens ingest", (TRACELENS, "ingest", log, "-c", case), lambda: case.unlink(missing_ok=True)
        ),
        Contender("DuckDB, lines counted", (sys.executable, "-c", LINE_SCAN, log)),
    ]
    lnav = shutil.which("lnav")
    if lnav is not None:
        formats = home / "formats" / "vllm"
        formats.mkdir(parents=True)
        shutil.copy(HERE / "lnav" / "vllm_log.json", formats)
        counted = (lnav, "-I", home, "-n", "-c", ";SELECT count(*) FROM all_logs", log)
        found.append(Contender("lnav, messages counted", counted))
    return found


def starts(case: Path) -> list[Contender]:
    """Short commands; the first one is what any Python program pays."""
    return [
        Contender("python -c pass", [sys.executable, "-c", "pass"]),
        Contender("tracelens --help", [TRACELENS, "--help"]),
        Contender('tracelens sql "SELECT 1"', [TRACELENS, "sql", "SELECT 1", "-c", case]),
    ]


def found_in(case: Path, home: Path) -> dict[str, int]:
    """What ingest found, by kind."""
    rows: list[dict[str, int]] = json.loads(
        run([TRACELENS, "sql", FOUND, "-c", case, "--format", "json"], home).output
    )
    return rows[0]


def report(results: Results) -> str:
    """The results as Markdown."""
    size, readers = results.log_bytes, results.readers
    kinds = [
        (kind.replace("_", " "), f"{results.written[kind]:,}", f"{count:,}")
        for kind, count in results.found.items()
    ]
    lines = [
        "# Performance",
        "",
        f"Measured by `make bench` on {machine()}; {versions()}.",
        "",
        f"## Reading a vLLM server log of {size / 1e6:,.0f} MB, {results.written['lines']:,} lines",
        "",
        f"Medians of {len(readers[0].runs)} runs each, in turns, each in a fresh process; the file is in the page cache.",
        "",
        *table(HEADS, [measured(one, readers, size) for one in readers]),
        "",
        "tracelens parses every line, places it in time, joins and stores; DuckDB reads the lines as one column and counts them;",
        "lnav matches one regular expression per line and counts the messages"
        + ("." if len(readers) > 2 else " (not installed here)."),
        "",
        *table(("kind", "in the log", "found"), kinds),
        "",
        f"The case takes {results.case_bytes / 1e6:,.0f} MB, {results.case_bytes / size:.0%} of the log.",
        "",
        "## Starting a command",
        "",
        f"Medians of {len(results.starts[0].runs)} runs.",
        "",
        *table(("command", "time"), [(one.name, f"{one.seconds * 1000:.0f} ms") for one in results.starts]),
    ]
    return "\n".join(lines) + "\n"


def measured(one: Contender, readers: Sequence[Contender], size: int) -> tuple[str, ...]:
    """Cells of one reader's row."""
    _, duckdb, *lnav = readers
    return (
        one.name,
        f"{one.seconds:.2f}",
        f"{size / 1e6 / one.seconds:,.0f}",
        f"{one.seconds / duckdb.seconds:.1f}",
        f"{one.seconds / lnav[0].seconds:.1f}" if lnav else "–",
        f"{one.peak_bytes / 2**20:,.0f} MiB",
    )


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines of a Markdown table, padded so that it reads well on a terminal too."""
    widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
    rule = ["-" * (width - 1) + ":" if place else "-" * width for place, width in enumerate(widths)]
    return [f"| {' | '.join(padded(row, widths))} |" for row in (heads, rule, *rows)]


def padded(row: Sequence[str], widths: Sequence[int]) -> list[str]:
    """Cells of a row as wide as their columns, all but the first flush right."""
    cells = zip(row, widths, strict=True)
    return [cell.rjust(width) if place else cell.ljust(width) for place, (cell, width) in enumerate(cells)]


def machine() -> str:
    """Cores and memory, and nothing that tells whose they are."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return f"{os.cpu_count()} cores, {memory:.0f} GiB"


def versions() -> str:
    """What was measured."""
    names = {"tracelens": "tracelens-vllm", "DuckDB": "duckdb", "Polars": "polars"}
    known = [f"{name} {version(package)}" for name, package in names.items()]
    python = ".".join(map(str, sys.version_info[:3]))
    lnav = [subprocess.check_output(["lnav", "-V"], text=True).strip()] if shutil.which("lnav") else []
    return ", ".join([*known, f"Python {python}", *lnav])


def main() -> None:
    """Write the log, take the measurements, print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--size-mb", type=float, default=200, help="size of the log (default: 200)")
    parser.add_argument("--times", type=int, default=5, help="runs of each reader (default: 5)")
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the table to this file too")
    asked = parser.parse_args()
    OUT.mkdir(exist_ok=True)
    log, case = OUT / "server.log", OUT / "bench.duckdb"
    written = write_server_log(log, int(asked.size_mb * 1e6), SEED)
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        reading = readers(log, case, home)
        take_turns(reading, asked.times, home)
        found = found_in(case, home)
        starting = starts(case)
        take_turns(starting, STARTS, home)
    sizes = log.stat().st_size, case.stat().st_size
    text = report(Results(sizes[0], written, reading, found, sizes[1], starting))
    print(text)
    if asked.write:
        asked.write.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
