"""The table that a bare ``nvidia-smi`` prints: one snapshot of every GPU, or several one after the other.

A GPU takes two or three lines of the table; its sample carries the number of the first.  The date line above a
table is local wall time in whole seconds, and the stamp of its GPUs.  Written from drivers 410 to 580, Linux and Windows.
"""

from __future__ import annotations

import re
from typing import Final

import polars as pl

from tracelens.formats.base import Chunk, Claim, Clock, Format, Head, Parsed, Side
from tracelens.formats.gpu.gpu_columns import MIB, number, other
from tracelens.formats.gpu.gpu_lines import finish, share, sort_out, split
from tracelens.formats.gpu.gpu_stamps import instant

_NAME_LINE: Final = (
    r"^\|\s*([0-9]{1,4})\s{1,3}(\S.*?)\s+\S+\s*\|\s*([0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.\d)\s"
)
_VALUE_LINE: Final = r"^\|[^|]*/[^|]*\|[^|]*/[^|]*\|[^|]*\|\s*$"
_DATE_LINE: Final = r"^([A-Z][a-z]{2} [A-Z][a-z]{2} +\d{1,2} \d\d:\d\d:\d\d \d{4})\s*$"
_BOX: Final = r"^[|+]"
_WATCH: Final = r"^Every [\d.]+s?: "
_MIN_SHARE: Final = 0.5


def sniff(head: Head) -> Claim | None:
    """Claim a file that is little but tables of nvidia-smi."""
    lines = [stripped for line in head.lines if (stripped := line.strip())]
    version = next((found for line in lines if (found := re.match(r"\| NVIDIA-SMI +(\S+)", line))), None)
    dated = any(re.match(_DATE_LINE, line) for line in lines)
    if (
        version is None
        or share(line[0] in "|+" or bool(re.match(_DATE_LINE, line)) for line in lines) <= _MIN_SHARE
    ):
        return None
    variant = f"nvidia-smi {version.group(1)} table" + ("" if dated else ", no time")
    return Claim(variant, Clock.LOCAL if dated else Clock.NONE)


def _values(lines: pl.DataFrame) -> pl.DataFrame:
    """Turn lines with ``rest`` into the columns of `gpu_sample` that they and the line behind them hold."""
    below = pl.col("rest").shift(-1)
    name = [pl.col("rest").str.extract(_NAME_LINE, group) for group in (1, 2, 3)]
    cells = below.str.split("|")
    fan, memory, load = (cells.list.get(at, null_on_oob=True) for at in (1, 2, 3))
    texts = lines.with_columns(
        index=name[0],
        gpu_name=name[1],
        bus_id=name[2],
        is_whole=below.str.contains(_VALUE_LINE),
        temp=fan.str.extract(r"\s(-?\d+)C\b", 1),
        pstate=fan.str.extract(r"\s(P\d+)\s", 1),
        power=fan.str.extract(r"(\d+)W\s*/", 1),
        limit=fan.str.extract(r"/\s*(\d+)W", 1),
        used=memory.str.extract(r"(\d+)MiB\s*/", 1),
        total=memory.str.extract(r"/\s*(\d+)MiB", 1),
        load=load.str.extract(r"^\s*(\d+)%", 1),
    )
    return texts.filter(pl.col("index").is_not_null())


def _samples(found: pl.DataFrame) -> pl.DataFrame:
    def size(column: str) -> pl.Expr:
        return (number(pl.col(column)) * MIB).cast(pl.Int64, strict=False)

    return found.filter("is_whole").select(
        "line_no",
        sample_ts="stamp",
        error_s=pl.when(pl.col("stamp").is_not_null()).then(1.0),
        gpu_index=pl.col("index").cast(pl.Int32, strict=False),
        gpu_name="gpu_name",
        temp_c=number(pl.col("temp")),
        power_w=number(pl.col("power")),
        power_limit_w=number(pl.col("limit")),
        memory_used_bytes=size("used"),
        memory_total_bytes=size("total"),
        sm_ratio=(number(pl.col("load")) * 0.01).round(12),
        other=other({"pstate": pl.col("pstate").fill_null(""), "pci.bus_id": pl.col("bus_id")}),
    )


def parse(chunk: Chunk) -> Parsed:
    """Read the GPUs of all tables; a GPU whose second line is missing is an issue."""
    rest = pl.col("rest")
    lines = split(chunk, None)
    day = instant(rest.str.extract(_DATE_LINE, 1).str.replace_all(r" +", " "), "%a %b %d %H:%M:%S %Y")
    lines = lines.with_columns(date=day)
    in_force = pl.col("date").forward_fill()
    found = _values(lines.with_columns(stamp=in_force))
    cut = found.filter(~pl.col("is_whole").fill_null(value=False)).select(
        "line_no", cut=pl.lit("GPU without its second line")
    )
    lines = lines.join(cut, on="line_no", how="left", maintain_order="left")
    boxed = rest.str.contains(_BOX) | rest.str.contains(_WATCH) | pl.col("date").is_not_null()
    reason = pl.coalesce("cut", pl.lit("not a line of the table"))
    lines = sort_out(lines, boxed & pl.col("cut").is_null(), reason)
    lines = lines.with_columns(stamp="date", event_ts=in_force, error_s=pl.lit(None, pl.Float64))
    return finish(lines, _samples(found))


FORMAT: Final = Format(
    name="nvidia_smi_table",
    title="the table of a bare nvidia-smi",
    side=Side.GPU,
    fills=("gpu_sample", "log_event"),
    sniff=sniff,
    parse=parse,
    whole=True,
    versions="410 to 580",
    complete="The table of 410 to 580, once or in a loop. Processes below the table are left out.",
    record="nvidia-smi > gpu.txt",
    sample="table_r470.txt",
)
