"""Where the columns of GPU tools go: names of NVIDIA's tools to columns of `gpu_sample`, with their units.

Percentages become ratios from 0 to 1, MiB become bytes, transfer rates become bytes per second.  What no
column of the table holds is kept in ``other``, a JSON object under the tool's own names and in its own units.
Names are from the manual of nvidia-smi (R367 to R610), nvml.h and the field list of DCGM (2.0 to 4.6).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import orjson
import polars as pl

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

PERCENT: Final = 0.01
MIB: Final = 1_048_576.0
MB: Final = 1e6
KB: Final = 1e3

SAMPLE_TYPES: Final[Mapping[str, type[pl.DataType]]] = {
    "gpu_index": pl.Int32,
    "gpu_uuid": pl.String,
    "gpu_name": pl.String,
    "host": pl.String,
    "memory_used_bytes": pl.Int64,
    "memory_total_bytes": pl.Int64,
    "memory_available_bytes": pl.Int64,
    "disk_read_bytes": pl.Int64,
    "disk_write_bytes": pl.Int64,
    "net_rx_bytes": pl.Int64,
    "net_tx_bytes": pl.Int64,
    "thermal_violation": pl.Boolean,
    "clock_reasons": pl.String,
    "ecc_single_bit_count": pl.Int64,
    "ecc_double_bit_count": pl.Int64,
}
"""Types of the columns of `gpu_sample` and `host_sample` that are not Float64."""

NO_VALUE: Final = (
    "", "-", "–", "—", "N/A", "[N/A]", "N/A %", "[N/A] %", "[Not Supported]", "Not Supported", "[Unknown Error]",
    "[Insufficient Permissions]", "[GPU is lost]", "[GPU requires reset]", "ERR!", "Requested functionality has been deprecated",
    "[Requested functionality has been deprecated]", "nan", "NaN",
)  # fmt: skip
"""How the tools say that there is no value.  Dashes of other lengths come from copying through a word processor."""

_SENTINEL: Final = 140_737_488_355_328.0
"""The lowest of NVIDIA's numbers that mean "no value" (the others are next to 2**63); no reading comes near it."""


@dataclass(frozen=True, slots=True)
class Reading:
    """The column of `gpu_sample` that a file's column fills, the factor to its unit, and the unit its cells may carry.

    Several columns of one file may want the same place (``power.draw`` and ``power.draw.instant``): the lowest
    `rank` has it, the others stay in ``other``.
    """

    column: str
    scale: float = 1.0
    unit: str = ""
    rank: int = 0


DMON: Final[Mapping[str, Reading]] = {
    "gpu": Reading("gpu_index"),
    "pwr": Reading("power_w"),
    "temp": Reading("temp_c"),
    "gtemp": Reading("temp_c"),
    "mtemp": Reading("mem_temp_c"),
    "sm": Reading("sm_ratio", PERCENT),
    "mem": Reading("mem_ratio", PERCENT),
    "enc": Reading("enc_ratio", PERCENT),
    "dec": Reading("dec_ratio", PERCENT),
    "mclk": Reading("mem_clock_mhz"),
    "pclk": Reading("sm_clock_mhz"),
    "pviol": Reading("power_violation_ratio", PERCENT),
    "tviol": Reading("thermal_violation"),
    "fb": Reading("memory_used_bytes", MIB),
    "sbecc": Reading("ecc_single_bit_count"),
    "dbecc": Reading("ecc_double_bit_count"),
    "rxpci": Reading("pcie_rx_bps", MB),
    "txpci": Reading("pcie_tx_bps", MB),
    "gract": Reading("gr_active_ratio", PERCENT),
    "smutil": Reading("sm_active_ratio", PERCENT),
    "smocc": Reading("sm_occupancy_ratio", PERCENT),
    "mmaact": Reading("tensor_active_ratio", PERCENT),
    "dram": Reading("dram_active_ratio", PERCENT),
    "pcirx": Reading("pcie_rx_bps", MIB, rank=1),
    "pcitx": Reading("pcie_tx_bps", MIB, rank=1),
    "nvlrx": Reading("nvlink_rx_bps", MIB),
    "nvltx": Reading("nvlink_tx_bps", MIB),
}
"""Columns of ``nvidia-smi dmon``.  ``fb`` says MB and means MiB; ``pci`` is a count of replays, not traffic."""

DMON_OTHER: Final = frozenset(
    ("jpg", "ofa", "bar1", "ccpm", "pci", "intact", "dfmaact", "hmmaact", "immaact", "fp64", "fp32", "fp16")
)
"""Columns of dmon that are known and kept in ``other``."""

QUERY: Final[Mapping[str, Reading]] = {
    "index": Reading("gpu_index"),
    "gpu_uuid": Reading("gpu_uuid"),
    "uuid": Reading("gpu_uuid"),
    "name": Reading("gpu_name"),
    "gpu_name": Reading("gpu_name"),
    "utilization.gpu": Reading("sm_ratio", PERCENT, "%"),
    "utilization.memory": Reading("mem_ratio", PERCENT, "%"),
    "utilization.encoder": Reading("enc_ratio", PERCENT, "%"),
    "utilization.decoder": Reading("dec_ratio", PERCENT, "%"),
    "power.draw": Reading("power_w", unit="W"),
    "power.draw.average": Reading("power_w", unit="W", rank=1),
    "power.draw.instant": Reading("power_w", unit="W", rank=2),
    "enforced.power.limit": Reading("power_limit_w", unit="W"),
    "power.limit": Reading("power_limit_w", unit="W", rank=1),
    "temperature.gpu": Reading("temp_c", unit="C"),
    "temperature.memory": Reading("mem_temp_c", unit="C"),
    "clocks.current.sm": Reading("sm_clock_mhz", unit="MHz"),
    "clocks.sm": Reading("sm_clock_mhz", unit="MHz"),
    "clocks.current.graphics": Reading("sm_clock_mhz", unit="MHz", rank=1),
    "clocks.gr": Reading("sm_clock_mhz", unit="MHz", rank=1),
    "clocks.max.sm": Reading("sm_clock_max_mhz", unit="MHz"),
    "clocks.max.graphics": Reading("sm_clock_max_mhz", unit="MHz", rank=1),
    "clocks.max.gr": Reading("sm_clock_max_mhz", unit="MHz", rank=1),
    "clocks.current.memory": Reading("mem_clock_mhz", unit="MHz"),
    "clocks.mem": Reading("mem_clock_mhz", unit="MHz"),
    "memory.used": Reading("memory_used_bytes", MIB, "MiB"),
    "memory.total": Reading("memory_total_bytes", MIB, "MiB"),
    "clocks_event_reasons.active": Reading("clock_reasons"),
    "clocks_throttle_reasons.active": Reading("clock_reasons"),
    "ecc.errors.corrected.volatile.total": Reading("ecc_single_bit_count"),
    "ecc.errors.uncorrected.volatile.total": Reading("ecc_double_bit_count"),
}
"""Fields of ``nvidia-smi --query-gpu``.  The SM runs on the graphics clock: that one stands in where SM is not asked for."""

DCGM: Final[Mapping[str, Reading]] = {
    "GRACT": Reading("gr_active_ratio"),
    "SMACT": Reading("sm_active_ratio"),
    "SMOCC": Reading("sm_occupancy_ratio"),
    "TENSO": Reading("tensor_active_ratio"),
    "DRAMA": Reading("dram_active_ratio"),
    "PCITX": Reading("pcie_tx_bps"),
    "PCIRX": Reading("pcie_rx_bps"),
    "TXTPT": Reading("pcie_tx_bps", KB, rank=1),
    "RXTPT": Reading("pcie_rx_bps", KB, rank=1),
    "NVLTX": Reading("nvlink_tx_bps"),
    "NVLRX": Reading("nvlink_rx_bps"),
    "SMCLK": Reading("sm_clock_mhz"),
    "MMCLK": Reading("mem_clock_mhz"),
    "MMTMP": Reading("mem_temp_c"),
    "TMPTR": Reading("temp_c"),
    "POWER": Reading("power_w"),
    "POWINST": Reading("power_w", rank=1),
    "GPUTL": Reading("sm_ratio", PERCENT),
    "MCUTL": Reading("mem_ratio", PERCENT),
    "FBUSD": Reading("memory_used_bytes", MIB),
    "FBTTL": Reading("memory_total_bytes", MIB),
}
"""Short tags of DCGM fields.  Shares are from 0 to 1 already, a little over 1 on MIG; PCIe and NVLink are bytes/s."""


def number(cell: pl.Expr, unit: str = "") -> pl.Expr:
    """Read the number in a cell, with or without `unit` behind it; NULL for anything else and for NVIDIA's sentinels."""
    bare = cell.str.strip_suffix(unit).str.strip_chars_end() if unit else cell
    value = bare.cast(pl.Float64, strict=False)
    return pl.when(value.abs() < _SENTINEL).then(value)


def is_blank(cell: pl.Expr) -> pl.Expr:
    """Say whether a cell states that it has no value."""
    return cell.is_in(NO_VALUE)


def read(cell: pl.Expr, reading: Reading) -> pl.Expr:
    """Make one column of `gpu_sample` of its cells."""
    kind = SAMPLE_TYPES.get(reading.column, pl.Float64)
    if kind is pl.String:
        return pl.when(~is_blank(cell)).then(cell).alias(reading.column)
    value = number(cell, reading.unit)
    if kind is pl.Boolean:
        value = value > 0
    elif kind is not pl.Float64:
        value = (value * reading.scale).round().cast(kind, strict=False)
    elif reading.scale != 1:
        # 47 % is 0.47; the bare product would be 0.47000000000000003.
        value = (value * reading.scale).round(12)
    return value.alias(reading.column)


def places(names: Sequence[str], known: Mapping[str, Reading]) -> dict[int, Reading]:
    """Tell which columns of a file (by position) fill a column of the table; one each, the lowest rank first."""
    wanted = [(known[name].rank, at) for at, name in enumerate(names) if name in known]
    taken: dict[str, int] = {}
    for _, at in sorted(wanted):
        taken.setdefault(known[names[at]].column, at)
    return {at: known[names[at]] for at in sorted(taken.values())}


_JSON_NUMBER: Final = re.compile(r"(-?(?:0|[1-9]\d*)(?:\.\d+)?)(?: ?(?:%|W|MiB|MHz|us|C))?", re.ASCII)
"""A number that JSON can hold as it stands, with or without one of the units that nvidia-smi writes."""


_FEW: Final = 100
"""Cells up to which a column is written one by one: finding the different ones takes a millisecond."""


def _json(cell: str) -> str | None:
    """Write a cell as JSON, a number without its unit; None where it has no value."""
    if cell in NO_VALUE:
        return None
    plain = _JSON_NUMBER.fullmatch(cell)
    return plain.group(1) if plain else orjson.dumps(cell).decode()


def _pair(name: str, cell: pl.Expr) -> pl.Expr:
    """``"name":cell`` as JSON; NULL where the cell has no value.  A column's cells repeat, so each is written once."""
    key = orjson.dumps(name).decode() + ":"

    def pair(cell: object) -> str | None:
        value = None if cell is None else _json(str(cell))
        return None if value is None else key + value

    def write(cells: pl.Series) -> pl.Series:
        if cells.len() <= _FEW:
            return pl.Series(cells.name, [pair(cell) for cell in cells], pl.String)
        seen = cells.unique().drop_nulls()
        written = [pair(each) for each in seen]
        if seen.len() == 1 and not cells.null_count():
            return pl.repeat(written[0], cells.len(), dtype=pl.String, eager=True)
        return cells.replace_strict(seen, written, default=None, return_dtype=pl.String)

    return cell.map_batches(write, return_dtype=pl.String)


def other(cells: Mapping[str, pl.Expr]) -> pl.Expr:
    """Write the JSON object of the cells that have no column of their own; NULL where none has a value."""
    if not cells:
        return pl.lit(None, pl.String).alias("other")
    pairs = [_pair(name, cell) for name, cell in cells.items()]
    joined = pl.concat_str(pairs, separator=",", ignore_nulls=True)
    return pl.when(joined != "").then(pl.concat_str(pl.lit("{"), joined, pl.lit("}"))).alias("other")


def listed(at: int) -> pl.Expr:
    """Take a cell by its place in ``cells``, a list per row."""
    return pl.col("cells").list.get(at, null_on_oob=True)


def columns(
    names: Sequence[str],
    known: Mapping[str, Reading],
    skip: frozenset[str] = frozenset(),
    cell: Callable[[int], pl.Expr] = listed,
) -> list[pl.Expr]:
    """Make columns of `gpu_sample` out of cells (as many as `names`, each by its place); `skip` names those left out."""
    filled = places(names, known)
    rest = {name: cell(at) for at, name in enumerate(names) if at not in filled and name not in skip}
    return [read(cell(at), reading) for at, reading in filled.items()] + [other(rest)]
