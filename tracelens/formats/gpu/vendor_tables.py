"""Tables of other makers' tools: amd-smi, rocm-smi, npu-smi and xpu-smi, each under its own heading.

``gfx_activity``, ``GPU use``, ``AI Core`` and ``GPU Utilization`` play the part of nvidia-smi's ``sm``: a share of time with any
work.  amd-smi writes whole epoch seconds, xpu-smi a local time of day, the other two no time; a stamp that somebody put
before their lines is read.  AMD's memory columns of ``metric`` say MB and mean MiB; those of ``monitor`` say GB.
Written from AMD SMI 26.2 (ROCm 6 and 7), rocm-smi (ROCm 5 and 6), npu-smi and xpu-smi (manuals and public issues).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

import polars as pl

from tracelens.formats.base import Chunk, Claim, Format, Head, Parsed, Side
from tracelens.formats.gpu.gpu_columns import MIB, PERCENT, Reading
from tracelens.formats.gpu.named_tables import (
    Names,
    Tool,
    by_blanks,
    by_commas,
    claim_of,
    layout_of,
    measures,
    parse_table,
    reason,
    rows_under,
    stamp_columns,
    table_context,
)

_GB: Final = 1e9

AMD_METRIC: Final[Mapping[str, Reading]] = {
    "gfx_activity": Reading("sm_ratio", PERCENT),
    "umc_activity": Reading("mem_ratio", PERCENT),
    "socket_power": Reading("power_w"),
    "current_socket_power": Reading("power_w", rank=1),
    "average_socket_power": Reading("power_w", rank=2),
    "gfx_0_clk": Reading("sm_clock_mhz"),
    "gfx_0_max_clk": Reading("sm_clock_max_mhz"),
    "mem_0_clk": Reading("mem_clock_mhz"),
    "hotspot": Reading("temp_c"),
    "edge": Reading("temp_c", rank=1),
    "mem": Reading("mem_temp_c"),
    "used_vram": Reading("memory_used_bytes", MIB),
    "total_vram": Reading("memory_total_bytes", MIB),
}
"""Columns of ``amd-smi metric --csv``.  MI300 has no edge sensor; the hotspot is what slows it down."""

AMD_MONITOR: Final[Mapping[str, Reading]] = {
    "POWER": Reading("power_w", unit="W"),
    "POWER_USAGE": Reading("power_w", unit="W"),
    "GPU_TEMP": Reading("temp_c", unit="°C"),
    "GPU_T": Reading("temp_c", unit="°C"),
    "MEM_TEMP": Reading("mem_temp_c", unit="°C"),
    "MEM_T": Reading("mem_temp_c", unit="°C"),
    "GFX_UTIL": Reading("sm_ratio", PERCENT, "%"),
    "GFX%": Reading("sm_ratio", PERCENT, "%"),
    "GFX_CLOCK": Reading("sm_clock_mhz", unit="MHz"),
    "GFX_CLK": Reading("sm_clock_mhz", unit="MHz"),
    "MEM_UTIL": Reading("mem_ratio", PERCENT, "%"),
    "MEM%": Reading("mem_ratio", PERCENT, "%"),
    "MEM_CLOCK": Reading("mem_clock_mhz", unit="MHz"),
    "MEM_CLK": Reading("mem_clock_mhz", unit="MHz"),
    "VRAM_USED": Reading("memory_used_bytes"),
    "VRAM_TOTAL": Reading("memory_total_bytes"),
}
"""Columns of ``amd-smi monitor``, whose cells carry their units; those of memory are made bytes before (`_monitor_cells`)."""

ROCM: Final[Mapping[str, Reading]] = {
    "GPU use (%)": Reading("sm_ratio", PERCENT),
    "GPU Memory Read/Write Activity (%)": Reading("mem_ratio", PERCENT),
    "Average Graphics Package Power (W)": Reading("power_w"),
    "Current Socket Graphics Package Power (W)": Reading("power_w", rank=1),
    "Max Graphics Package Power (W)": Reading("power_limit_w"),
    "Temperature (Sensor edge) (C)": Reading("temp_c"),
    "Temperature (Sensor junction) (C)": Reading("temp_c", rank=1),
    "Temperature (Sensor memory) (C)": Reading("mem_temp_c"),
    "VRAM Total Memory (B)": Reading("memory_total_bytes"),
    "VRAM Total Used Memory (B)": Reading("memory_used_bytes"),
}
"""Columns of ``rocm-smi --csv``."""

NPU: Final[Mapping[str, Reading]] = {
    "Pwr(W)": Reading("power_w"),
    "Temp(C)": Reading("temp_c"),
    "AI Core(%)": Reading("sm_ratio", PERCENT),
}
"""Columns of ``npu-smi info watch``; the shares of memory filled and of bandwidth used stay in ``other``."""

XPU: Final[Mapping[str, Reading]] = {
    "GPU Utilization (%)": Reading("sm_ratio", PERCENT),
    "GPU Power (W)": Reading("power_w"),
    "GPU Frequency (MHz)": Reading("sm_clock_mhz"),
    "GPU Core Temperature (Celsius Degree)": Reading("temp_c"),
    "GPU Memory Temperature (Celsius Degree)": Reading("mem_temp_c"),
    "GPU Memory Used (MiB)": Reading("memory_used_bytes", MIB),
}
"""Columns of ``xpu-smi dump``."""

_NPU_NAME: Final = re.compile(r"\S[^()]{0,30}\([^)]{1,10}\)")
_CHIP: Final = "ChipId(Idx)"
_MONITOR_CELL: Final = r"[^\s]+(?: (?:W|°C|C|%|MHz|GB|MB|V|KB/s|MB/s))?"


def _comma_heading(*needed: str) -> Callable[[str], Names | None]:
    """Make the function that reads a heading of comma-separated names, all of `needed` among them."""

    def read(line: str) -> Names | None:
        if not all(name in line for name in needed):
            return None
        names = tuple(cell.strip().strip('"') for cell in line.lstrip("\ufeff").split(","))
        is_own = set(needed) <= set(names) and len(set(names)) == len(names)
        return names if is_own else None

    return read


def _monitor_heading(line: str) -> Names | None:
    """Read a heading; ``VRAM_USAGE`` holds two values, ``0.3/192.0 GB``."""
    names = tuple(line.replace("VRAM_USAGE", "VRAM_USED VRAM_TOTAL").split())
    return names if "GPU" in names and "POWER" in "".join(names) and len(set(names)) == len(names) else None


def _npu_heading(line: str) -> Names | None:
    if not line.lstrip().startswith("NpuID(Idx)"):
        return None
    return tuple(_NPU_NAME.findall(line.strip()))


def _monitor_cells(text: pl.Expr) -> pl.Expr:
    """Split into numbers with their units; memory becomes bytes."""
    apart = text.str.replace(r"([\d.]+|N/A)/([\d.]+) ([GM]B)", "$1 $3 $2 $3")
    cells = apart.str.extract_all(_MONITOR_CELL)
    element = pl.element()
    size = element.str.extract(r"^([\d.]+) [GM]B$", 1).cast(pl.Float64, strict=False)
    factor = pl.when(element.str.ends_with("GB")).then(_GB).otherwise(MIB)
    in_bytes = (size * factor).round().cast(pl.Int64, strict=False).cast(pl.String)
    return cells.list.eval(pl.coalesce(in_bytes, element.str.strip_suffix(" GB").str.strip_suffix(" MB")))


_METRIC: Final = Tool(
    ("gfx_activity",), _comma_heading("gpu", "gfx_activity"), by_commas, AMD_METRIC, "timestamp", "gpu",
    variant="amd-smi metric csv",
)  # fmt: skip
_MONITOR: Final = Tool(
    ("GPU",), _monitor_heading, _monitor_cells, AMD_MONITOR, "TIMESTAMP", "GPU", variant="amd-smi monitor"
)
_ROCM: Final = Tool(
    ("device,",), _comma_heading("device"), by_commas, ROCM, None, "device", r"^\s*(?:WARNING\b|=+)",
    variant="rocm-smi csv",
)  # fmt: skip
_NPU: Final = Tool(
    ("NpuID(Idx)",), _npu_heading, by_blanks, NPU, None, "NpuID(Idx)", variant="npu-smi info watch"
)
_XPU: Final = Tool(
    ("DeviceId",), _comma_heading("Timestamp", "DeviceId"), by_commas, XPU, "Timestamp", "DeviceId",
    variant="xpu-smi dump",
)  # fmt: skip


def _sniff_amd(head: Head) -> Claim | None:
    """Claim the csv of ``metric`` or the table of ``monitor``."""
    for kind, tool in (("metric", _METRIC), ("monitor", _MONITOR)):
        claim = claim_of(tool, head)
        if claim:
            return Claim(claim.variant, claim.clock, {**claim.settings, "tool": kind})
    return None


def _amd_tool(claim: Claim) -> Tool:
    return _MONITOR if claim.settings.get("tool") == "monitor" else _METRIC


def _parse_amd(chunk: Chunk) -> Parsed:
    return parse_table(_amd_tool(chunk.claim), chunk)


def _amd_context(text: str, previous: str | None) -> str | None:
    found = table_context(_METRIC)(text, None) or table_context(_MONITOR)(text, None)
    return found or previous


def _sniff_rocm(head: Head) -> Claim | None:
    """Claim a table whose first column is ``device`` and whose rows are cards."""
    claim = claim_of(_ROCM, head)
    has_cards = any(re.match(r"card\d", line) for line in head.lines)
    return claim if has_cards else None


def _npu_rows(group: pl.DataFrame, names: Names, claim: Claim) -> pl.DataFrame:
    """Read rows of NPUs; a further chip of one has no index of its own and is named in ``other``."""
    if _CHIP not in names:
        return rows_under(group, layout_of(_NPU, names, None), claim)
    cells = pl.col("cells")
    npu, chip = (cells.list.get(names.index(name), null_on_oob=True) for name in ("NpuID(Idx)", _CHIP))
    is_further = chip != "0"
    entity = pl.when(is_further).then(pl.format("NPU {} chip {}", npu, chip)).otherwise(pl.lit(""))
    layout = layout_of(_NPU, (*names, "entity"), None)
    rows = group.with_columns(cells=cells.list.concat(pl.concat_list(entity.fill_null(""))))
    when, error = stamp_columns(layout, claim)
    rows = rows.with_columns(sample_ts=when, error_s=error)
    found = rows.select(
        "line_no", "sample_ts", "error_s", *measures(layout), bad=reason(layout), further=is_further
    )
    return found.with_columns(gpu_index=pl.when(~pl.col("further")).then("gpu_index")).drop("further")


_ABOUT: Final[Mapping[str, tuple[str, str, str, str, str]]] = {
    "amd_smi": (
        "amd-smi metric csv and amd-smi monitor",
        "AMD SMI 26.2, ROCm 6 and 7",
        "Activity, power, clocks, temperatures and memory; throttling stays in other as written. GB of monitor are read as 10^9.",
        "amd-smi metric -p -c -t -u -m -w 1 --csv > amd.csv",
        "amd_smi_metric.csv",
    ),
    "rocm_smi": (
        "rocm-smi --csv",
        "ROCm 5 and 6",
        "Use, power, temperatures and memory; clocks stay in other. Values of the sample are invented in a documented form.",
        "while sleep 1; do rocm-smi -u -P -t --showmeminfo vram --csv; done > rocm.csv",
        "rocm_smi.csv",
    ),
    "npu_smi": (
        "npu-smi info watch",
        "Ascend manual",
        "Power, temperature and AI Core; shares of memory stay in other. From the manual.",
        "npu-smi info watch > npu.txt",
        "npu_smi_watch.txt",
    ),
    "xpu_smi": (
        "xpu-smi dump",
        "xpumanager 1.2",
        "Utilization, power, frequency, temperature and memory; other metrics stay in other. From a public issue.",
        "xpu-smi dump -d 0 -m 0,1,2,3,18 > xpu.csv",
        "xpu_smi_dump.csv",
    ),
}
"""Title, versions, completeness, how to record, and sample of each."""


def _format(
    name: str,
    sniff: Callable[[Head], Claim | None],
    parse: Callable[[Chunk], Parsed],
    context: Callable[[str, str | None], str | None],
) -> Format:
    title, versions, complete, record, shown = _ABOUT[name]
    return Format(
        name=name,
        title=title,
        side=Side.GPU,
        fills=("gpu_sample", "log_event"),
        sniff=sniff,
        parse=parse,
        context=context,
        carried={"log_event": "event_ts"},
        versions=versions,
        complete=complete,
        record=record,
        sample=shown,
    )


def _parse_rocm(chunk: Chunk) -> Parsed:
    return parse_table(_ROCM, chunk)


def _sniff_npu(head: Head) -> Claim | None:
    return claim_of(_NPU, head)


def _parse_npu(chunk: Chunk) -> Parsed:
    return parse_table(_NPU, chunk, _npu_rows)


def _sniff_xpu(head: Head) -> Claim | None:
    return claim_of(_XPU, head)


def _parse_xpu(chunk: Chunk) -> Parsed:
    return parse_table(_XPU, chunk)


AMD_SMI: Final = _format("amd_smi", _sniff_amd, _parse_amd, _amd_context)
ROCM_SMI: Final = _format("rocm_smi", _sniff_rocm, _parse_rocm, table_context(_ROCM))
NPU_SMI: Final = _format("npu_smi", _sniff_npu, _parse_npu, table_context(_NPU))
XPU_SMI: Final = _format("xpu_smi", _sniff_xpu, _parse_xpu, table_context(_XPU))
