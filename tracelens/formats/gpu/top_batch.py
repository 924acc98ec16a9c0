"""``top -b``: at each tick a head of the host's load, CPUs and memory, and one row per process.

``%CPU`` of a process counts one core as 100; ``RES`` is KiB, or has m, g, t behind it; ``TIME+`` is minutes, seconds and
hundredths of CPU since the process began.  Only the head has a time, a time of day.  Rows of single CPUs (``%Cpu0``) are
passed over.  The first tick's CPU line is the mean since boot, so it says nothing of its tick.  Written from procps 3.3 and 4.0 (real output).
"""

from __future__ import annotations

import re
from typing import Final

import polars as pl

from tracelens.formats.base import Chunk, Claim, Clock, Format, Head, Parsed, Side, issues_of
from tracelens.formats.gpu.gpu_lines import share
from tracelens.formats.gpu.gpu_stamps import time_of_day
from tracelens.formats.gpu.process_names import process_name

_TOP: Final = r"^top - (\d\d:\d\d:\d\d) up .*load average: +(\d+[.,]\d+)"
_TOTAL: Final = r"^%?Cpu\(s\) ?:"
_MEMORY: Final = r"^(?:[KMGT]iB )?Mem ?:"
_SWAP: Final = r"^(?:[KMGT]iB )?Swap ?:"
_HEAD_LINE: Final = r"^(?:top - |(?:Tasks|Threads): +\d|%?Cpu(?:\(s\)|\d+) ?:|(?:[KMGT]iB )?(?:Mem|Swap) ?:)"
_HEADING: Final = re.compile(r"^\s*PID\s+USER\s.*\sCOMMAND\s*$")
_NEEDED: Final = ("PID", "%CPU", "COMMAND")
_UNITS: Final = {"k": 1024.0, "m": 1024.0**2, "g": 1024.0**3, "t": 1024.0**4}
_MIN_SHARE: Final = 0.5
_HOST: Final = ("cpu_ratio", "load_1m", "memory_used_bytes", "memory_available_bytes", "memory_total_bytes")


def sniff(head: Head) -> Claim | None:
    """Claim ticks of top with a table of processes below."""
    lines = [stripped for line in head.lines if (stripped := line.rstrip("\r")).strip()]
    heading = next((line for line in lines if _HEADING.match(line)), None)
    if heading is None or not any(re.match(_TOP, line) for line in lines):
        return None
    names = tuple(heading.split())
    own = (
        bool(re.match(_HEAD_LINE, line) or _HEADING.match(line) or re.match(r"^\s*\d+\s", line))
        for line in lines
    )
    if share(own) <= _MIN_SHARE or not set(_NEEDED) <= set(names) or names[0] != "PID":
        return None
    return Claim(f"top -b, {len(names)} columns", Clock.DAYLESS, {"names": names})


def may_cut(tail: bytes, claim: Claim) -> bool:
    """Whether a chunk may end after these lines: not inside the head of a tick, which is one sample."""
    last = tail.removesuffix(b"\n").rpartition(b"\n")[2].decode("utf-8", "replace")
    return not re.match(_HEAD_LINE, last)


def context(text: str, previous: str | None) -> str | None:
    """Find the line with the last time of a chunk."""
    at = text.rfind("\ntop - ") + 1
    line = text[at:].partition("\n")[0]
    return line if re.match(_TOP, line) else previous


def _decimal(text: pl.Expr) -> pl.Expr:
    return text.str.replace(",", ".", literal=True).cast(pl.Float64, strict=False)


def _bytes(text: pl.Expr, unit: pl.Expr) -> pl.Expr:
    scale = unit.str.to_lowercase().replace_strict(_UNITS, default=None, return_dtype=pl.Float64)
    return (_decimal(text) * scale).round().cast(pl.Int64, strict=False)


def _lines(chunk: Chunk) -> pl.DataFrame:
    """The lines with their tick: its number in the chunk, and its time of day."""
    text = pl.col("text").str.strip_chars_end()
    last = pl.lit(chunk.is_open) & (pl.int_range(pl.len()) == pl.len() - 1)
    carried = re.match(_TOP, chunk.context or "")
    before = pl.lit(carried.group(1) if carried else None, pl.String)
    lines = chunk.lines.with_columns(rest=text, is_open=last).with_columns(
        time=pl.col("rest").str.extract(_TOP, 1), is_head=pl.col("rest").str.contains(_HEAD_LINE)
    )
    return lines.with_columns(
        tick=pl.col("time").is_not_null().cum_sum(),
        sample_ts=time_of_day(pl.col("time").forward_fill().fill_null(before)),
    ).with_columns(error_s=pl.when(pl.col("sample_ts").is_not_null()).then(1.0))


def _hosts(lines: pl.DataFrame, *, is_start: bool) -> pl.DataFrame:
    """One sample of the host per head, on its first line; at the start of a file the first says nothing of the CPUs."""
    rest = pl.col("rest")
    is_total, is_memory, is_swap = (rest.str.contains(pattern) for pattern in (_TOTAL, _MEMORY, _SWAP))
    is_total &= pl.col("tick") > int(is_start)
    idle = _decimal(rest.str.extract(r"(\d+(?:[.,]\d+)?)[ %]*id\b", 1))
    waiting = _decimal(rest.str.extract(r"(\d+(?:[.,]\d+)?)[ %]*wa\b", 1))
    unit = pl.coalesce(rest.str.extract(r"^([KMGT])iB ", 1), rest.str.extract(r"\d(k) total", 1))

    def amount(name: str) -> pl.Expr:
        return _bytes(rest.str.extract(rf"(\d+(?:[.,]\d+)?)k?\+? *{name}", 1), unit)

    parts = lines.filter(pl.col("is_head") & (pl.col("tick") > 0) & ~pl.col("is_open")).select(
        "line_no", "tick", "sample_ts", "error_s",
        load_1m=_decimal(rest.str.extract(_TOP, 2)),
        cpu_ratio=pl.when(is_total).then((1 - (idle + waiting.fill_null(0)) / 100).clip(0, 1).round(12)),
        memory_total_bytes=pl.when(is_memory).then(amount("total")),
        memory_used_bytes=pl.when(is_memory).then(amount("used")),
        memory_available_bytes=pl.when(is_swap).then(amount("avail")),
    )  # fmt: skip
    found = parts.group_by("tick", maintain_order=True).agg(
        pl.col("line_no", "sample_ts", "error_s").first(),
        *(pl.col(name).drop_nulls().first() for name in _HOST),
    )
    return found.drop("tick")


def _cell(names: tuple[str, ...], name: str) -> pl.Expr:
    return (
        pl.col("cells").list.get(names.index(name), null_on_oob=True)
        if name in names
        else pl.lit(None, pl.String)
    )


def _processes(lines: pl.DataFrame, names: tuple[str, ...]) -> pl.DataFrame:
    """Rows under a heading; ``bad`` says why a line is none."""
    rows = lines.filter(
        ~pl.col("is_head") & (pl.col("rest") != "") & ~pl.col("rest").str.contains(_HEADING.pattern)
    )
    rows = rows.with_columns(cells=pl.col("rest").str.extract_all(r"\S+"))
    used, spent = _cell(names, "RES"), _cell(names, "TIME+")
    clock = spent.str.extract_groups(r"^(\d{1,9}):(\d\d)(?:[.,](\d\d))?$")
    minutes, seconds, hundredths = (
        clock.struct.field(name).cast(pl.Float64, strict=False) for name in ("1", "2", "3")
    )
    command = pl.col("rest").str.extract(rf"^\s*(?:\S+\s+){{{len(names) - 1}}}(\S.*)$", 1)
    unit = pl.coalesce(used.str.extract(r"([kmgt])$", 1), pl.lit("k"))
    rows = rows.with_columns(
        cpu=_decimal(_cell(names, "%CPU")), pid=_cell(names, "PID").cast(pl.Int64, strict=False)
    )
    bad = (
        pl.when("is_open")
        .then(pl.lit("row cut in its last cell"))
        .when((pl.col("cells").list.len() < len(names)) | pl.col("pid").is_null() | pl.col("cpu").is_null())
        .then(pl.lit("not a line of top"))
        .when(pl.col("sample_ts").is_null())
        .then(pl.lit("no time above"))
    )
    return rows.select(
        "line_no", "sample_ts", "error_s", "pid",
        bad=bad,
        position=pl.lit(0, pl.Int32),
        process=process_name(command),
        cpu_s=(minutes * 60 + seconds + hundredths.fill_null(0) / 100).round(2),
        cpu_cores=(pl.col("cpu") / 100).round(12),
        memory_used_bytes=_bytes(used.str.extract(r"^([\d.,]+)", 1), unit),
    )  # fmt: skip


def parse(chunk: Chunk) -> Parsed:
    """Read heads and rows, whole columns at a time; a line that is neither is an issue."""
    lines = _lines(chunk)
    rows = _processes(lines, chunk.claim.settings["names"])
    bad = rows.filter(pl.col("bad").is_not_null()).select("line_no", "bad")
    issues = issues_of(chunk.lines.join(bad, on="line_no", maintain_order="left"), pl.col("bad"))
    tables = {
        "host_sample": _hosts(lines, is_start=chunk.context is None),
        "host_process_sample": rows.filter(pl.col("bad").is_null()).drop("bad"),
    }
    stamps = lines.filter(pl.col("time").is_not_null()).select("line_no", stamp="sample_ts").drop_nulls()
    return Parsed(tables, issues, chunk.lines.height - issues.height, stamps)


FORMAT: Final = Format(
    name="top_batch",
    title="top -b of a host",
    side=Side.GPU,
    fills=("host_sample", "host_process_sample"),
    sniff=sniff,
    parse=parse,
    may_cut=may_cut,
    context=context,
    versions="procps 3.3 and 4.0",
    complete="Load, CPU and memory of the host; CPU, memory and name of each process. Arguments and users are not kept.",
    record="top -b -d 1 > top.txt",
    sample="top_vllm.txt",
)
