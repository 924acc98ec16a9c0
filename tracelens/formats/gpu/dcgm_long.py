"""DCGM values in long form: ``GPUId,TimeStampUs,Field,Values``, one field of one GPU a row, epoch microseconds.

A row fills the one column that its field has; the columns of a row are never filled up from its neighbours, whose
stamps differ.  Fields are DCGM's names in lower case, without ``DCGM_FI_DEV_`` or ``DCGM_FI_PROF_``.  Written from a public tool.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import polars as pl

from tracelens.formats.base import Chunk, Claim, Format, Head, Parsed, Side
from tracelens.formats.gpu.gpu_columns import MIB, PERCENT, Reading, is_blank, other, read
from tracelens.formats.gpu.named_tables import (
    Names,
    Tool,
    by_commas,
    cell,
    claim_of,
    layout_of,
    measures,
    parse_table,
    reason,
    stamp_columns,
    table_context,
)

_HEADING: Final = ("GPUId", "TimeStampUs", "Field", "Values")

FIELDS: Final[Mapping[str, Reading]] = {
    "gr_engine_active": Reading("gr_active_ratio"),
    "sm_active": Reading("sm_active_ratio"),
    "sm_occupancy": Reading("sm_occupancy_ratio"),
    "pipe_tensor_active": Reading("tensor_active_ratio"),
    "tensor_active": Reading("tensor_active_ratio"),
    "dram_active": Reading("dram_active_ratio"),
    "pcie_tx_bytes": Reading("pcie_tx_bps"),
    "pcie_rx_bytes": Reading("pcie_rx_bps"),
    "nvlink_tx_bytes": Reading("nvlink_tx_bps"),
    "nvlink_rx_bytes": Reading("nvlink_rx_bps"),
    "sm_clock": Reading("sm_clock_mhz"),
    "mem_clock": Reading("mem_clock_mhz"),
    "memory_temp": Reading("mem_temp_c"),
    "gpu_temp": Reading("temp_c"),
    "power_usage": Reading("power_w"),
    "power_usage_instant": Reading("power_w"),
    "gpu_util": Reading("sm_ratio", PERCENT),
    "mem_copy_util": Reading("mem_ratio", PERCENT),
    "fb_used": Reading("memory_used_bytes", MIB),
    "fb_total": Reading("memory_total_bytes", MIB),
}
"""Fields that have a column; the instant power counts as power only in a file without the average."""


def _heading(line: str) -> Names | None:
    names = tuple(part.strip() for part in line.lstrip("\ufeff").split(","))
    return names if names == _HEADING else None


_TOOL: Final = Tool(
    ("GPUId",), _heading, by_commas, {}, "TimeStampUs", "GPUId", variant="DCGM values in long form"
)


def sniff(head: Head) -> Claim | None:
    """Claim a file under that heading."""
    claim = claim_of(_TOOL, head)
    if claim is None:
        return None
    has_average = any(",power_usage," in line for line in head.lines)
    return Claim(claim.variant, claim.clock, {**claim.settings, "has_average": has_average})


def _rows_under(group: pl.DataFrame, names: Names, claim: Claim) -> pl.DataFrame:
    layout = layout_of(_TOOL, names, claim.settings.get("stamp_kind"))
    when, error = stamp_columns(layout, claim)
    rows = group.with_columns(
        sample_ts=when, error_s=error, name=cell(layout, "Field"), value=cell(layout, "Values")
    )
    known = [
        name for name in FIELDS if name != "power_usage_instant" or not claim.settings.get("has_average")
    ]
    # One column may have several names (tensor_active, pipe_tensor_active): a row has one of them.
    found: dict[str, pl.Expr] = {}
    for name in known:
        reading = FIELDS[name]
        mine = pl.when(pl.col("name") == name).then(read(pl.col("value"), reading))
        found[reading.column] = pl.coalesce(found.get(reading.column, mine), mine)
    left = pl.when(~pl.col("name").is_in(known) & ~is_blank(pl.col("value")))
    unnamed = other({"field": left.then("name"), "value": left.then("value")})
    bad = pl.coalesce(reason(layout), pl.when(is_blank(pl.col("name"))).then(pl.lit("no field")))
    index, segment = measures(layout)[-2:]
    rows = rows.with_columns(bad=bad)
    return rows.select("line_no", "bad", "sample_ts", "error_s", index, segment, unnamed, **found)


def parse(chunk: Chunk) -> Parsed:
    """Read rows, whole columns at a time."""
    return parse_table(_TOOL, chunk, _rows_under)


FORMAT: Final = Format(
    name="dcgm_long",
    title="DCGM values in long form (csv)",
    side=Side.GPU,
    fills=("gpu_sample", "log_event"),
    sniff=sniff,
    parse=parse,
    context=table_context(_TOOL),
    carried={"log_event": "event_ts"},
    versions="field names of DCGM 3 and 4",
    complete="Twenty fields; the others stay in other. Values of the sample are invented in a form that was seen.",
    record="written by a tool of its own; dcgmi dmon is the usual way",
    sample="dcgm_long.csv",
)
