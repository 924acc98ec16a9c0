"""``sar``, ``mpstat`` and ``pidstat`` of sysstat, as text: a heading names the columns, each row begins with a time of day.

``%CPU`` of a process counts one core as 100.  Stamps are the end of the interval, in 24 or 12 hours; the day stands in
the banner, whose order of month and day goes by the locale and is used only where there is no doubt.  ``Average`` rows are passed
over.  Of rows of single CPUs (``mpstat -P ALL``) the row of all above them keeps, in ``other``, how busy the busiest was and how many
were full: one full core of many does not show in the mean.  Written from sysstat 12.6 (real output) and its manual.
"""

from __future__ import annotations

import contextlib
import re
from datetime import date, datetime
from typing import Final

import polars as pl

from tracelens.formats.base import Chunk, Claim, Clock, Format, Head, Parsed, Side
from tracelens.formats.gpu.gpu_columns import number, other
from tracelens.formats.gpu.gpu_lines import finish
from tracelens.formats.gpu.gpu_stamps import time_of_day
from tracelens.formats.gpu.named_tables import Names, Tool, read_rows, table_context
from tracelens.formats.gpu.process_names import process_name

_BANNER: Final = re.compile(
    r"^Linux \S+ \(([^)]*)\)\s+(\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4})\s+_\S+_\s+\(\d+ CPU\)"
)
_DAYS: Final = ("%Y-%m-%d", "%m/%d/%y", "%d/%m/%y", "%m/%d/%Y", "%d/%m/%Y", "%d.%m.%Y", "%d-%m-%Y")
_TWELVE: Final = ("AM", "PM")
_CPU_SHARES: Final = frozenset(("CPU", "%idle"))
_LOAD: Final = "ldavg-1"
_MEMORY: Final = "kbmemused"
_MARKS: Final = ("%", "/s", "PID", _LOAD, _MEMORY)
"""One of them is in each heading: a share, a rate, a process, the load or the memory."""
_FEWEST: Final = 2
_KIB: Final = 1024
_PERCENT: Final = 100.0
_PASSED: Final = r"^\s*Average:|^Linux \S+ \(|\bLINUX RESTART\b"
_IN_TICK: Final = r"^\d\d:\d\d:\d\d[^C]*$"
"""A row below a heading; a heading of CPUs has a C in it.  Rows of CPUs are read with those directly above them."""
_SINGLE: Final = re.compile(r"^\d\d:\d\d:\d\d(?: [AP]M)?\s+\d{1,5}\s(?:\s*\d+[.,]\d\d){6,}\s*$")
_FULL_RATIO: Final = 0.95
_HOST_CELLS: Final = frozenset(
    ("CPU", "%user", "%usr", "%nice", "%system", "%sys", "%iowait", "%steal", "%idle", "%irq", "%soft", "%guest", "%gnice", _LOAD)
)  # fmt: skip


def _heading(line: str) -> Names | None:
    """Read the names behind the time: words that begin with no digit, among them one that is known."""
    names = tuple(line.removeprefix("# Time").split())
    names = names[1:] if names[:1] and names[0] in _TWELVE else names
    is_row = any(name[0].isdigit() or name == "-" for name in names)
    if is_row or len(names) < _FEWEST or line.startswith("Average:"):
        return None
    return names if any(mark in line for mark in _MARKS) else None


def _is_of_processes(names: Names) -> bool:
    return "PID" in names and ("%CPU" in names or "RSS" in names)


def _cells(text: pl.Expr) -> pl.Expr:
    return text.str.replace(r"^\s*[AP]M\s", " ").str.extract_all(r"\S+")


_TOOL: Final = Tool(_MARKS, _heading, _cells, {}, passed=_PASSED, variant="sysstat", has_tail=True)


def _day(text: str) -> date | None:
    """Read the day of a banner; None where month and day could be either."""
    days = set()
    for form in _DAYS:
        with contextlib.suppress(ValueError):
            days.add(datetime.strptime(text, form).date())
    return days.pop() if len(days) == 1 else None


def sniff(head: Head) -> Claim | None:
    """Claim a file that begins with the banner of sysstat and has a heading of CPUs, load, memory or processes."""
    lines = [stripped for line in head.lines if (stripped := line.rstrip("\r")).strip()]
    banner = _BANNER.match(lines[0]) if lines else None
    if banner is None:
        return None
    found = re.compile(r"^(?:# Time|\d\d:\d\d:\d\d)\s")
    headings = [names for line in lines if found.match(line) and (names := _heading(found.sub("", line)))]
    tools = {
        "pidstat": any(map(_is_of_processes, headings)),
        "mpstat": any({"CPU", "%usr", "%idle"} <= set(names) for names in headings),
        "sar": any("%user" in names or _LOAD in names or _MEMORY in names for names in headings),
    }
    tool = next((name for name, is_it in tools.items() if is_it), None)
    if tool is None:
        return None
    has_singles = any(map(_SINGLE.match, lines))
    settings = {"prefix": "clock", "host": banner.group(1) or None, "has_singles": has_singles}
    return Claim(tool, Clock.DAYLESS, settings, day=_day(banner.group(2)))


def may_cut(tail: bytes, claim: Claim) -> bool:
    """Whether a chunk may end after these lines: not among the rows of single CPUs of a tick."""
    last = tail.removesuffix(b"\n").rpartition(b"\n")[2].decode("utf-8", "replace")
    return not (claim.settings.get("has_singles") and re.match(_IN_TICK, last.rstrip("\r")))


def _stamp() -> pl.Expr:
    """Read the time of day before the row, and AM or PM behind it."""
    half = pl.col("rest").str.extract(r"^\s*([AP]M)\s", 1)
    hour, rest = (
        pl.col("outside").str.slice(0, 2).cast(pl.Int64, strict=False),
        pl.col("outside").str.slice(2),
    )
    twelve = (hour % 12 + pl.when(half == "PM").then(12).otherwise(0)).cast(pl.String).str.zfill(2) + rest
    return time_of_day(pl.when(half.is_null()).then("outside").otherwise(twelve))


def _rows_under(group: pl.DataFrame, names: Names, claim: Claim) -> pl.DataFrame:
    """Read rows under one heading, with ``bad``: why a row is none, and ``what`` it is."""
    rows = group.with_columns(sample_ts=_stamp())
    cell = {name: pl.col("cells").list.get(at, null_on_oob=True) for at, name in enumerate(names)}
    if _is_of_processes(names):
        what, columns = "process", _process(names, cell)
    elif set(names) >= _CPU_SHARES or _LOAD in names or _MEMORY in names:
        what, columns = "host", _host(names, cell)
    else:
        what, columns = "", {}
    is_single = cell["CPU"] != "all" if what == "host" and "CPU" in names else pl.lit(value=False)
    measured = [column.is_not_null() for name, column in columns.items() if name in _MEASURES]
    bad = (
        pl.when("is_open")
        .then(pl.lit("row cut in its last cell"))
        .when(pl.col("sample_ts").is_null())
        .then(pl.lit("stamp cannot be read"))
        .when(pl.lit(not what))
        .then(pl.lit("a table of sysstat that is not read: no CPU, load, memory or process"))
        .when(~is_single & ~(pl.any_horizontal(measured) if measured else pl.lit(value=True)))
        .then(pl.lit("no measure can be read"))
    )
    told = pl.when(is_single).then(pl.lit("single")).otherwise(pl.lit(what))
    host = pl.lit(claim.settings.get("host"), pl.String)
    return rows.select("line_no", "sample_ts", bad=bad, what=told, host=host, error_s=pl.lit(1.0), **columns)


_MEASURES: Final = frozenset(("cpu_ratio", "load_1m", "memory_used_bytes", "cpu_cores"))


def _process(names: Names, cell: dict[str, pl.Expr]) -> dict[str, pl.Expr]:
    command = pl.col("rest").str.extract(rf"^\s*(?:[AP]M\s+)?(?:\S+\s+){{{len(names) - 1}}}(\S.*?)\s*$", 1)
    none = pl.lit(None, pl.String)
    return {
        "position": pl.lit(0, pl.Int32),
        "pid": cell["PID"].cast(pl.Int64, strict=False),
        "process": process_name(command.str.strip_prefix("|__")),
        "cpu_cores": (number(cell.get("%CPU", none)) / _PERCENT).round(12),
        "memory_used_bytes": (number(cell.get("RSS", none)) * _KIB).cast(pl.Int64, strict=False),
    }


def _host(names: Names, cell: dict[str, pl.Expr]) -> dict[str, pl.Expr]:
    found = {}
    if set(names) >= _CPU_SHARES:
        idle = number(cell["%idle"]) + (number(cell["%iowait"]) if "%iowait" in names else 0.0)
        found["cpu_ratio"] = (1 - idle / _PERCENT).clip(0, 1).round(12)
    if _LOAD in names:
        found["load_1m"] = number(cell[_LOAD])
    memory = {"memory_used_bytes": _MEMORY, "memory_available_bytes": "kbavail"}
    for column, name in memory.items():
        if name in names:
            found[column] = (number(cell[name]) * _KIB).cast(pl.Int64, strict=False)
    left = {
        name: each for name, each in cell.items() if name not in _HOST_CELLS and name not in memory.values()
    }
    return {**found, "other": other(left)}


_HOST_COLUMNS: Final = ("line_no", "sample_ts", "error_s", "host", "cpu_ratio", "load_1m", "memory_used_bytes", "memory_available_bytes", "other")  # fmt: skip
_PROCESS_COLUMNS: Final = ("line_no", "sample_ts", "error_s", "host", "position", "pid", "process", "cpu_cores", "memory_used_bytes")  # fmt: skip


def _of(rows: pl.DataFrame, what: str, columns: tuple[str, ...]) -> pl.DataFrame:
    mine = rows.filter(pl.col("what") == what) if "what" in rows.columns else rows.clear()
    return mine.select(name for name in columns if name in mine.columns)


def _with_busiest(hosts: pl.DataFrame, good: pl.DataFrame, lines: pl.DataFrame) -> pl.DataFrame:
    """Add to rows of all CPUs what the rows of single ones directly below them say."""
    singles = good.filter(pl.col("what") == "single") if "what" in good.columns else good.clear()
    if not singles.height:
        return hosts
    begins = ~pl.col("text").str.contains(_IN_TICK) | pl.col("line_no").is_in(hosts["line_no"].implode())
    ticks = lines.select("line_no", tick=pl.when(begins).then("line_no").forward_fill())
    ratio = pl.col("cpu_ratio")
    below = singles.join(ticks, on="line_no").group_by("tick").agg(
        busiest=ratio.max(), full=(ratio >= _FULL_RATIO).sum(), count=ratio.count()
    )  # fmt: skip
    parts = {"cpu_count": "count", "full_cpu_count": "full", "busiest_cpu_ratio": "busiest"}
    told = pl.concat_str(
        *(pl.lit(f',"{key}":') + pl.col(name).cast(pl.String) for key, name in parts.items())
    )
    told = pl.lit("{") + told.str.slice(1) + pl.lit("}")
    joined = hosts.join(below, left_on="line_no", right_on="tick", how="left", maintain_order="left")
    return joined.with_columns(other=pl.coalesce(told, "other")).select(hosts.columns)


def parse(chunk: Chunk) -> Parsed:
    """Read rows by heading, whole columns at a time; tables that say nothing of CPU, load, memory or processes are issues."""
    lines, rows = read_rows(_TOOL, chunk, _rows_under)
    good = rows.filter(pl.col("bad").is_null())
    found = finish(lines, rows.clear())
    tables = {
        "host_sample": _with_busiest(_of(good, "host", _HOST_COLUMNS), good, lines),
        "host_process_sample": _of(good, "process", _PROCESS_COLUMNS),
        "log_event": found.tables["log_event"],
    }
    return Parsed(tables, found.issues, found.understood, found.stamps)


FORMAT: Final = Format(
    name="sysstat",
    title="sar, mpstat and pidstat of a host",
    side=Side.GPU,
    fills=("host_sample", "host_process_sample", "log_event"),
    sniff=sniff,
    parse=parse,
    may_cut=may_cut,
    context=table_context(_TOOL),
    carried={"log_event": "event_ts"},
    versions="sysstat 12.6",
    complete="CPU of host and processes, load, memory; of single CPUs the busiest and how many are full. Disks, network and others are counted as not understood.",
    record="pidstat -u -r 1 > pidstat.txt; sar -u 1 > sar.txt",
    sample="pidstat_vllm.txt",
)
