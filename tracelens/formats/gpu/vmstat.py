"""``vmstat N``, with or without ``-t``: one row per tick of the host's CPUs, disks and queues.

``us sy id wa st`` are whole percentages of all CPUs; waiting for disks counts as idle.  ``bi bo`` are KiB per second.
``-t`` puts local wall time behind each row; without it a stamp before the line is read.  The first row of a run is the mean
since boot, so it is no sample.  Memory stays in ``other``: its unit depends on ``-S``, which is not in the file.
Written from procps 3.3 and 4.0 (manual).
"""

from __future__ import annotations

from typing import Final

import polars as pl

from tracelens.formats.base import Chunk, Claim, Clock, Format, Head, Parsed, Side
from tracelens.formats.gpu.cell_stamps import resolution, stamp
from tracelens.formats.gpu.gpu_columns import number, other
from tracelens.formats.gpu.gpu_lines import finish, share
from tracelens.formats.gpu.gpu_stamps import PREFIX_CLOCKS, outside_stamp, split_prefix, without_prefix
from tracelens.formats.gpu.gpu_stamps import resolution as outside_resolution
from tracelens.formats.gpu.named_tables import Names, Tool, by_blanks, read_rows, table_context

_NEEDED: Final = frozenset(("r", "b", "swpd", "free", "us", "sy", "id", "wa"))
_PLACED: Final = ("us", "sy", "ni", "id", "wa", "st", "gu", "bi", "bo")
_BLOCK: Final = 1024.0
_PERCENT: Final = 100.0
_DIGITS: Final = r"^\d{1,18}$"
_MIN_SHARE: Final = 0.5


def _heading(line: str) -> Names | None:
    """Read the second heading line; with ``-t`` its last word is the zone, which names two cells."""
    names = tuple(line.split())
    if not set(names) >= _NEEDED or names[0] != "r":
        return None
    if names[-1].isupper() or not names[-1].isalpha():
        names = (*names[:-1], "date", "time")
    return names if len(set(names)) == len(names) else None


_TOOL: Final = Tool((" swpd",), _heading, by_blanks, {}, passed=r"^\s*procs\b", variant="vmstat")


def sniff(head: Head) -> Claim | None:
    """Claim a file with the heading of vmstat and little beside its rows."""
    lines = [stripped for line in head.lines if (stripped := line.rstrip("\r")).strip()]
    found = next((line for line in lines if _heading(split_prefix(line)[1])), None)
    if found is None:
        return None
    kind, rest = split_prefix(found)
    names = _heading(rest) or ()
    rests = [without_prefix(line, kind) for line in lines]
    own = (
        bool(_heading(rest)) or rest.split()[:1] == ["procs"] or len(rest.split()) == len(names)
        for rest in rests
    )
    if share(own) <= _MIN_SHARE:
        return None
    at = next(at for at, line in enumerate(head.lines, 1) if _heading(split_prefix(line.rstrip("\r"))[1]))
    clock = Clock.LOCAL if "date" in names else PREFIX_CLOCKS.get(kind or "", Clock.NONE)
    return Claim("vmstat" + (" -t" if "date" in names else ""), clock, {"prefix": kind, "boot_line": at + 1})


def _rows_under(group: pl.DataFrame, names: Names, claim: Claim) -> pl.DataFrame:
    """Read rows under one heading as columns of `host_sample`, with ``bad``: why a row is none."""
    cell = {name: pl.col("cells").list.get(at, null_on_oob=True) for at, name in enumerate(names)}
    kind = claim.settings.get("prefix")
    when, error = outside_stamp(kind), outside_resolution(pl.col("outside"))
    if claim.clock is Clock.LOCAL and "date" in names:
        both = cell["date"] + pl.lit(" ") + cell["time"]
        when, error = stamp(both, "dated"), resolution(both, "dated")
    rows = group.with_columns(sample_ts=when)
    shares = [cell[name].str.contains(_DIGITS) for name in ("us", "sy", "id", "wa")]
    bad = (
        pl.when("is_open")
        .then(pl.lit("row cut in its last cell"))
        .when(~pl.all_horizontal(shares))
        .then(pl.lit("no measure can be read"))
        .when(pl.lit(claim.clock is Clock.LOCAL) & pl.col("sample_ts").is_null())
        .then(pl.lit("stamp cannot be read"))
    )
    idle = number(cell["id"]) + number(cell["wa"])
    rest = {name: each for name, each in cell.items() if name not in (*_PLACED, "date", "time")}
    blocks = {
        column: number(cell[name]) * _BLOCK
        for column, name in (("disk_read_bps", "bi"), ("disk_write_bps", "bo"))
        if name in names
    }
    return rows.select(
        "line_no",
        "sample_ts",
        bad=bad,
        error_s=pl.when(pl.col("sample_ts").is_not_null()).then(error),
        cpu_ratio=(1 - idle / _PERCENT).round(12),
        other=other(rest),
        **blocks,
    )


def parse(chunk: Chunk) -> Parsed:
    """Read rows by heading, whole columns at a time; the first of a file is left out as it says nothing of its tick."""
    lines, rows = read_rows(_TOOL, chunk, _rows_under)
    good = rows.filter(pl.col("bad").is_null()).drop("bad")
    good = good.filter(pl.col("line_no") != chunk.claim.settings.get("boot_line", 0))
    found = finish(lines, rows.clear())
    tables = {"host_sample": good, "log_event": found.tables["log_event"]}
    return Parsed(tables, found.issues, found.understood, found.stamps)


FORMAT: Final = Format(
    name="vmstat",
    title="vmstat of a host",
    side=Side.GPU,
    fills=("host_sample", "log_event"),
    sniff=sniff,
    parse=parse,
    context=table_context(_TOOL),
    carried={"log_event": "event_ts"},
    versions="procps 3.3 and 4.0",
    complete="CPU shares and disk traffic; memory and queues stay in other. From the manual, no raw file was seen.",
    record="vmstat -t 1 > vmstat.txt",
    sample="vmstat_t.txt",
)
