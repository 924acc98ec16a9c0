"""Rows of nvitop's collector, as a data frame saves them: one column per GPU, measure and statistic.

    "serve/cuda:0 (gpu:3)/gpu_utilization (%)/mean","serve/cuda:0 (gpu:3)/power_usage (W)/mean","serve/timestamp"

The number behind ``gpu:`` is the GPU on its host.  A row becomes one sample per GPU, of the means; the stamp is the end of
the interval, epoch seconds.  Smallest, largest and last values stay in ``other``.  Written from nvitop 1.x (collector API).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

import polars as pl

from tracelens.formats.base import Chunk, Claim, Format, Head, Parsed, Side
from tracelens.formats.gpu.gpu_columns import MIB, PERCENT, Reading
from tracelens.formats.gpu.named_tables import (
    Layout,
    Names,
    Tool,
    by_commas,
    claim_of,
    measures,
    parse_table,
    reason,
    stamp_columns,
    table_context,
)

_COLUMN: Final = re.compile(
    r"^(?:.*/)?(?:cuda:\d+ \(gpu:(\d{1,4})\)|gpu:(\d{1,4}))/(\w+) \(([^)]+)\)/(\w+)$", re.ASCII
)
_MEASURES: Final[Mapping[str, Reading]] = {
    "gpu_utilization (%)": Reading("sm_ratio", PERCENT),
    "memory_utilization (%)": Reading("mem_ratio", PERCENT),
    "encoder_utilization (%)": Reading("enc_ratio", PERCENT),
    "decoder_utilization (%)": Reading("dec_ratio", PERCENT),
    "memory_used (MiB)": Reading("memory_used_bytes", MIB),
    "power_usage (W)": Reading("power_w"),
    "temperature (C)": Reading("temp_c"),
    "sm_clock (MHz)": Reading("sm_clock_mhz"),
    "memory_clock (MHz)": Reading("mem_clock_mhz"),
}


@lru_cache(maxsize=64)
def _heading(line: str) -> Names | None:
    """Read a heading: names of GPUs' measures, and the stamp."""
    names = tuple(part.strip().strip('"') for part in line.lstrip("\ufeff").split(","))
    is_own = any(map(_COLUMN.match, names)) and any(name.endswith("timestamp") for name in names)
    return names if is_own and len(set(names)) == len(names) else None


_TOOL: Final = Tool(("gpu:",), _heading, by_commas, {}, variant="nvitop collector")


def _stamp_name(names: Names) -> str:
    return next(name for name in names if name.endswith("timestamp"))


def _tool(names: Names) -> Tool:
    return Tool(("gpu:",), _heading, by_commas, {}, _stamp_name(names), variant="nvitop collector")


def sniff(head: Head) -> Claim | None:
    """Claim a file under such a heading."""
    names = next((names for line in head.lines if (names := _heading(line))), None)
    return claim_of(_tool(names), head) if names else None


def _layouts(names: Names, kind: str | None) -> dict[int, Layout]:
    """Make a layout per GPU: its means are measures, its other statistics stay, other GPUs' columns are hidden."""
    owner = {name: int(found.group(1) or found.group(2)) for name in names if (found := _COLUMN.match(name))}
    readings = {
        name: _MEASURES[f"{found.group(3)} ({found.group(4)})"]
        for name in names
        if (found := _COLUMN.match(name))
        and found.group(5) == "mean"
        and f"{found.group(3)} ({found.group(4)})" in _MEASURES
    }
    return {
        gpu: Layout(
            names,
            {name: each for name, each in readings.items() if owner[name] == gpu},
            _stamp_name(names),
            kind,
            hidden=frozenset(name for name in owner if owner[name] != gpu),
        )
        for gpu in sorted(set(owner.values()))
    }


def _rows_under(group: pl.DataFrame, names: Names, claim: Claim) -> pl.DataFrame:
    found = []
    for gpu, layout in _layouts(names, claim.settings.get("stamp_kind")).items():
        when, error = stamp_columns(layout, claim)
        rows = group.with_columns(sample_ts=when, error_s=error).with_columns(bad=reason(layout))
        kept = rows.select("line_no", "bad", "sample_ts", "error_s", *measures(layout))
        found.append(kept.with_columns(gpu_index=pl.lit(gpu, pl.Int32)))
    return pl.concat(found, how="diagonal")


def parse(chunk: Chunk) -> Parsed:
    """Read rows, whole columns at a time; a row gives one sample per GPU."""
    return parse_table(_TOOL, chunk, _rows_under)


FORMAT: Final = Format(
    name="nvitop",
    title="nvitop collector (csv)",
    side=Side.GPU,
    fills=("gpu_sample", "log_event"),
    sniff=sniff,
    parse=parse,
    context=table_context(_TOOL),
    carried={"log_event": "event_ts"},
    versions="1.x",
    complete="Means of GPU measures; other statistics stay in other. Made from the API, no raw file was seen.",
    record="nvitop.ResourceMetricCollector, its rows saved as csv",
    sample="nvitop_collector.csv",
)
