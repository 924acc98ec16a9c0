"""``nvidia-smi pmon``: one row per tick, GPU and process.

Columns are named by the heading; ``jpg ofa`` came with R550, ``-s m`` adds ``fb ccpm``, ``-o DT`` local wall time in whole
seconds.  The command is the last column, may hold blanks and is cut at about 15 characters.  A GPU without a process has
one row of dashes.  Written from R545 to R550 (public issues and captures).
"""

from __future__ import annotations

from typing import Final

import polars as pl

from tracelens.formats.base import Chunk, Claim, Clock, Format, Head, Parsed, Side
from tracelens.formats.gpu.dmon_rows import own_clock
from tracelens.formats.gpu.gpu_columns import MIB, PERCENT, Reading, is_blank, number, other, places, read
from tracelens.formats.gpu.gpu_lines import finish, is_error, is_noise, share
from tracelens.formats.gpu.gpu_stamps import (
    PREFIX_CLOCKS,
    best_clock,
    instant,
    outside_stamp,
    resolution,
    split_prefix,
    time_of_day,
    without_prefix,
)
from tracelens.formats.gpu.named_tables import Names, Tool, read_rows, table_context

_UNIT_LINE: Final = r"^\s*#\s*(?:Idx|YYYYMMDD|HH:MM:SS)\b"
_READINGS: Final = {
    "sm": Reading("sm_ratio", PERCENT),
    "mem": Reading("mem_ratio", PERCENT),
    "enc": Reading("enc_ratio", PERCENT),
    "dec": Reading("dec_ratio", PERCENT),
    "fb": Reading("memory_used_bytes", MIB),
}
_NAMED: Final = frozenset(("gpu", "pid", "type", "command", "name", "Date", "Time"))
_COMMANDS: Final = ("command", "name")
_MIN_SHARE: Final = 0.5


def _heading(line: str) -> Names | None:
    """Read a heading of pmon: it has ``gpu`` and ``pid``, and the command stands last."""
    if not line.lstrip().startswith("#"):
        return None
    names = tuple(line.replace("#", " ").split())
    is_own = {"gpu", "pid", "type"} <= set(names) and names[-1] in _COMMANDS
    return names if is_own else None


def _cells(text: pl.Expr) -> pl.Expr:
    return text.str.extract_all(r"\S+")


_TOOL: Final = Tool((" pid",), _heading, _cells, {}, passed=_UNIT_LINE, variant="pmon", has_tail=True)


def _bare(line: str) -> str:
    found = split_prefix(line)
    return found[1] if _heading(found[1]) else line


def sniff(head: Head) -> Claim | None:
    """Claim a file with a heading of pmon and little beside its rows."""
    lines = [stripped for line in head.lines if (stripped := line.rstrip("\r")).strip()]
    heading = next((line for line in lines if _heading(_bare(line))), None)
    if heading is None:
        return None
    kind = split_prefix(heading)[0] if _heading(split_prefix(heading)[1]) else None
    names = _heading(_bare(heading)) or ()
    rests = [without_prefix(line, kind) for line in lines]
    own = (
        rest.lstrip().startswith("#") or len(rest.split()) >= len(names) or is_error(rest) or is_noise(rest)
        for rest in rests
    )
    if share(own) <= _MIN_SHARE:
        return None
    clock = best_clock(kind, own_clock(names))
    timed = f", {kind} prefix" if kind else "" if clock is not Clock.NONE else ", no time"
    return Claim(f"pmon, {len(names)} columns{timed}", clock, {"prefix": kind})


def _cell(names: Names, name: str) -> pl.Expr:
    return pl.col("cells").list.get(names.index(name), null_on_oob=True)


def _stamp(names: Names, claim: Claim) -> tuple[pl.Expr, pl.Expr]:
    """Choose the stamp before the line where it is of the claimed clock, else the tool's own."""
    kind = claim.settings.get("prefix")
    if PREFIX_CLOCKS.get(kind or "") is claim.clock:
        return outside_stamp(kind), resolution(pl.col("outside"))
    if claim.clock is Clock.LOCAL and {"Date", "Time"} <= set(names):
        both = _cell(names, "Date") + pl.lit(" ") + _cell(names, "Time")
        return instant(both, "%Y%m%d %H:%M:%S"), pl.lit(1.0)
    if claim.clock is Clock.DAYLESS and "Time" in names:
        return time_of_day(_cell(names, "Time")), pl.lit(1.0)
    return pl.lit(None, pl.Datetime("us")), pl.lit(None, pl.Float64)


def _rows_under(group: pl.DataFrame, names: Names, claim: Claim) -> pl.DataFrame:
    """Read rows under one heading as columns of `gpu_process_sample`, with ``bad``: why a row is none."""
    stamp, error = _stamp(names, claim)
    rows = group.with_columns(sample_ts=stamp)
    # The command is what stands behind the other cells, blanks within it kept.
    command = pl.col("rest").str.extract(rf"^\s*(?:\S+\s+){{{len(names) - 1}}}(\S.*?)\s*$", 1)
    needs_stamp = own_clock(names) is claim.clock and claim.clock is not Clock.NONE
    bad = (
        pl.when(pl.col("is_open") & ~pl.col("rest").str.contains(r"\s$"))
        .then(pl.lit("row cut in its last cell"))
        .when(~_cell(names, "gpu").str.contains(r"^[0-9]{1,4}$"))
        .then(pl.lit("no GPU index"))
        .when(~_cell(names, "pid").str.contains(r"^[0-9]{1,10}$") & ~is_blank(_cell(names, "pid")))
        .then(pl.lit("no process id"))
        .when(pl.lit(needs_stamp) & pl.col("sample_ts").is_null())
        .then(pl.lit("stamp cannot be read"))
    )
    filled = places(names, _READINGS)
    left = {
        name: _cell(names, name) for at, name in enumerate(names) if at not in filled and name not in _NAMED
    }
    kind = _cell(names, "type")
    measures = [read(pl.col("cells").list.get(at, null_on_oob=True), each) for at, each in filled.items()]
    return rows.select(
        "line_no",
        "sample_ts",
        *measures,
        bad=bad,
        error_s=pl.when(pl.col("sample_ts").is_not_null()).then(error),
        gpu_index=_cell(names, "gpu").cast(pl.Int32, strict=False),
        pid=number(_cell(names, "pid")).cast(pl.Int64, strict=False),
        kind=pl.when(~is_blank(kind)).then(kind),
        command=pl.when(~is_blank(command)).then(command),
        other=other(left),
    )


def parse(chunk: Chunk) -> Parsed:
    """Read rows by heading, whole columns at a time; error sentences between them become `log_event`."""
    lines, rows = read_rows(_TOOL, chunk, _rows_under)
    found = finish(lines, rows.clear())
    processes = rows.filter(pl.col("bad").is_null()).drop("bad")
    tables = {"gpu_process_sample": processes, "log_event": found.tables["log_event"]}
    return Parsed(tables, found.issues, found.understood, found.stamps)


FORMAT: Final = Format(
    name="nvidia_pmon",
    title="nvidia-smi pmon, per process",
    side=Side.GPU,
    fills=("gpu_process_sample", "log_event"),
    sniff=sniff,
    parse=parse,
    context=table_context(_TOOL),
    carried={"log_event": "event_ts"},
    versions="R545 to R550",
    complete="Layouts of R545 to R550 with any groups and -o; older ones by their headings. Values of the samples are invented.",
    record="nvidia-smi pmon -s um -o DT > gpu_pmon.log",
    sample="pmon_r550.log",
)
