"""Names that people give to measures of GPUs and hosts in their own logs, and what each means.

A name is compared in lower case, with ``_`` for every other sign (``Power (W)`` is ``power_w``, ``%`` is ``pct``).  It may end in a
unit.  Without one the values of the file's head decide, where only one unit makes sense of them; else the value stays in
``other``.  ``mb`` of a GPU means MiB, as NVIDIA's tools use it; other decimal units are decimal.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from tracelens.formats.gpu.gpu_columns import MB, MIB, Reading

GPU, HOST, EITHER = "gpu", "host", "either"

_SHARE: Final = {
    "pct": 0.01, "percent": 0.01, "perc": 0.01, "percentage": 0.01, "ratio": 1.0, "frac": 1.0, "fraction": 1.0,
}  # fmt: skip
_POWER: Final = {
    "w": 1.0,
    "watt": 1.0,
    "watts": 1.0,
    "mw": 1e-3,
    "milliwatt": 1e-3,
    "milliwatts": 1e-3,
    "kw": 1e3,
}
_TEMP: Final = {"c": 1.0, "celsius": 1.0, "degc": 1.0, "deg_c": 1.0, "degrees_c": 1.0, "deg": 1.0}
_CLOCK: Final = {"mhz": 1.0, "ghz": 1e3, "hz": 1e-6, "khz": 1e-3}
_SIZE: Final = {
    "b": 1.0, "bytes": 1.0, "byte": 1.0, "kib": 1024.0, "kb": 1e3, "mib": 2.0**20, "mb": 1e6, "gib": 2.0**30, "gb": 1e9,
}  # fmt: skip
_RATE: Final = {
    **{f"{unit}{per}": scale for unit, scale in _SIZE.items() for per in ("_s", "ps", "_per_s", "_per_sec")},
    "bps": 1.0, "mbs": 1e6, "gbs": 1e9, "kbs": 1e3, "kib_s": 1024.0,
}  # fmt: skip
_PLAIN: Final[Mapping[str, float]] = {}


@dataclass(frozen=True, slots=True)
class Measure:
    """A column of a table, the units its names may end in, whose measure it is, and the names without a unit."""

    column: str
    units: Mapping[str, float]
    owner: str
    names: tuple[str, ...]
    bare: float | None = None
    """Factor of a name without a unit, where it has only one; None where the values must tell."""


# fmt: off
MEASURES: Final = (
    Measure("sm_ratio", _SHARE, GPU, (
        "gpu_util", "gpu_utilization", "utilization_gpu", "util_gpu", "gpu_usage", "gpu_use", "gpu_load", "gpu_busy", "gpu",
        "sm", "sm_util", "sm_utilization", "util", "utilization", "nvidia_gpu_utilization", "gpu_core_util", "gpu_percent")),
    Measure("mem_ratio", _SHARE, GPU, (
        "utilization_memory", "util_memory", "memory_activity", "mem_activity", "mem_copy_util", "gpu_utilization_memory")),
    Measure("enc_ratio", _SHARE, GPU, ("utilization_encoder", "enc_util", "encoder_util", "utilization_enc")),
    Measure("dec_ratio", _SHARE, GPU, ("utilization_decoder", "dec_util", "decoder_util", "utilization_dec")),
    Measure("power_w", _POWER, GPU, (
        "power_draw", "power", "gpu_power", "power_usage", "gpu_power_draw", "gpu_power_usage", "power_draw_average",
        "power_draw_instant", "nvidia_power_usage", "board_power", "pwr")),
    Measure("power_limit_w", _POWER, GPU, (
        "enforced_power_limit", "power_limit", "power_cap", "gpu_power_limit", "power_management_limit", "pwr_limit")),
    Measure("temp_c", _TEMP, GPU, (
        "temperature_gpu", "gpu_temp", "gpu_temperature", "temp", "temperature", "temp_gpu", "nvidia_temperature", "gtemp",
        "core_temp"), 1.0),
    Measure("mem_temp_c", _TEMP, GPU, (
        "temperature_memory", "mem_temp", "memory_temp", "memory_temperature", "temp_memory", "hbm_temp", "vram_temp", "mtemp"), 1.0),
    Measure("sm_clock_mhz", _CLOCK, GPU, (
        "clocks_sm", "clock_sm", "sm_clock", "sm_clk", "clk_sm", "clocks_current_sm", "pclk", "clocks_gr", "clocks_graphics",
        "graphics_clock", "clock_graphics", "gpu_clock", "clocks_current_graphics", "core_clock", "gfx_clock"), 1.0),
    Measure("sm_clock_max_mhz", _CLOCK, GPU, ("clocks_max_sm", "max_sm_clock", "sm_clock_max", "clocks_max_graphics"), 1.0),
    Measure("mem_clock_mhz", _CLOCK, GPU, (
        "clocks_mem", "clock_mem", "mem_clock", "mem_clk", "clk_mem", "memory_clock", "clocks_memory", "mclk",
        "clocks_current_memory"), 1.0),
    Measure("memory_used_bytes", _SIZE, GPU, (
        "gpu_mem_used", "gpu_memory_used", "vram_used", "used_vram", "fb_used", "gpu_mem", "vram", "fb", "mem_used_gpu",
        "gpu_memory_usage", "gpu_used_memory", "memory_used_gpu")),
    # AIPerf's telemetry export: decimal GB, before 0.13 under names without the maker.
    Measure("memory_used_bytes", _SIZE, GPU, ("nvidia_memory_used", "telemetry_data_gpu_memory_used"), 1e9),
    Measure("memory_total_bytes", _SIZE, GPU, (
        "gpu_mem_total", "gpu_memory_total", "vram_total", "total_vram", "fb_total", "gpu_total_memory")),
    Measure("pcie_rx_bps", _RATE, GPU, ("pcie_rx", "rx_pci", "rxpci", "pcie_rx_throughput", "pcie_read", "pcie_rx_bytes")),
    Measure("pcie_tx_bps", _RATE, GPU, ("pcie_tx", "tx_pci", "txpci", "pcie_tx_throughput", "pcie_write", "pcie_tx_bytes")),
    Measure("nvlink_rx_bps", _RATE, GPU, ("nvlink_rx", "nvlink_rx_throughput")),
    Measure("nvlink_tx_bps", _RATE, GPU, ("nvlink_tx", "nvlink_tx_throughput")),
    Measure("gr_active_ratio", _SHARE, GPU, ("gr_active", "gr_engine_active", "prof_gr_engine_active", "gract")),
    Measure("sm_active_ratio", _SHARE, GPU, ("sm_active", "prof_sm_active", "smact")),
    Measure("sm_occupancy_ratio", _SHARE, GPU, ("sm_occupancy", "prof_sm_occupancy", "smocc")),
    Measure("tensor_active_ratio", _SHARE, GPU, ("tensor_active", "pipe_tensor_active", "prof_pipe_tensor_active", "tenso")),
    Measure("dram_active_ratio", _SHARE, GPU, ("dram_active", "prof_dram_active", "drama")),
    Measure("cpu_ratio", _SHARE, HOST, (
        "cpu", "cpu_util", "cpu_utilization", "cpu_usage", "cpu_load", "cpu_busy", "cpu_total", "system_cpu", "host_cpu", "sys_cpu",
        "total_cpu")),
    Measure("load_1m", _PLAIN, HOST, (
        "load1", "load_1m", "load_1", "load_1min", "loadavg", "loadavg1", "loadavg_1m", "loadavg_1", "load_avg", "load_avg_1m",
        "load_avg_1", "load_average", "load_average_1m", "loadavg_1min"), 1.0),
    Measure("memory_used_bytes", _SIZE, HOST, (
        "ram_used", "host_mem_used", "host_memory_used", "sys_mem_used", "system_memory_used", "cpu_mem_used", "used_ram", "ram",
        "cpu_memory_used")),
    Measure("memory_total_bytes", _SIZE, HOST, ("ram_total", "host_mem_total", "host_memory_total", "system_memory_total", "total_ram")),
    Measure("memory_available_bytes", _SIZE, HOST, (
        "ram_available", "mem_available", "memory_available", "host_mem_available", "available_memory", "memavailable")),
    Measure("memory_ratio", _SHARE, HOST, (
        "ram", "ram_used", "ram_usage", "host_mem", "host_memory", "system_memory", "virtual_memory", "ram_util")),
    Measure("disk_read_bps", _RATE, HOST, ("disk_read", "disk_rd", "read", "io_read")),
    Measure("disk_write_bps", _RATE, HOST, ("disk_write", "disk_wr", "write", "io_write")),
    Measure("net_rx_bps", _RATE, HOST, ("net_rx", "net_recv", "network_rx", "net_in", "rx", "network_in", "network_recv", "network_received")),
    Measure("net_tx_bps", _RATE, HOST, ("net_tx", "net_sent", "network_tx", "net_out", "tx", "network_out", "network_sent")),
    Measure("disk_read_bytes", _SIZE, HOST, ("disk_read", "disk_io_read", "disk_read_total")),
    Measure("disk_write_bytes", _SIZE, HOST, ("disk_write", "disk_io_write", "disk_write_total")),
    Measure("net_rx_bytes", _SIZE, HOST, ("net_rx", "net_recv", "network_rx", "network_recv", "network_received", "net_rx_total")),
    Measure("net_tx_bytes", _SIZE, HOST, ("net_tx", "net_sent", "network_tx", "network_sent", "net_tx_total")),
    Measure("net_rx_bytes", _PLAIN, HOST, ("net_bytes_recv", "bytes_recv"), 1.0),
    Measure("net_tx_bytes", _PLAIN, HOST, ("net_bytes_sent", "bytes_sent"), 1.0),
    Measure("disk_read_bytes", _PLAIN, HOST, ("disk_read_bytes", "disk_io_read_bytes"), 1.0),
    Measure("disk_write_bytes", _PLAIN, HOST, ("disk_write_bytes", "disk_io_write_bytes"), 1.0),
    # Whose memory it is, the other columns tell; of a GPU a share of memory could be that in use or that touched.
    Measure("memory_ratio", _SHARE, EITHER, ("mem", "memory", "mem_used", "memory_used", "mem_usage", "memory_usage")),
    Measure("memory_used_bytes", _SIZE, EITHER, ("memory_used", "mem_used", "used_memory", "mem_usage", "memory_usage")),
    Measure("memory_total_bytes", _SIZE, EITHER, ("memory_total", "mem_total", "total_memory")),
)

TIMES: Final = (
    "timestamp", "ts", "time", "epoch", "utc", "datetime", "date_time", "unix_time", "unix_ts", "unixtime", "wall_time", "iso",
    "iso_time", "time_iso", "timestamp_iso", "timestamp_utc", "utc_time", "ts_utc", "time_utc", "sample_ts", "sampled_at", "at",
    "wall", "wall_clock", "walltime", "t", "now", "date", "collected_at", "recorded_at",
)
"""Names of stamps; the first that holds instants counts."""

INDEXES: Final = ("index", "gpu_index", "gpu_id", "gpuid", "gpu_idx", "idx", "gpu", "gpu_num", "device_index", "device_id",
                  "device", "card", "gpu_no", "minor_number", "id")
UUIDS: Final = ("gpu_uuid", "uuid")
PRODUCTS: Final = ("gpu_name", "gpu_model", "gpu_model_name", "product_name", "device_name", "model_name_gpu")
HOSTS: Final = ("hostname", "host", "node", "nodename", "node_name", "instance", "host_name")
REASONS: Final = ("clocks_event_reasons", "clocks_event_reasons_active", "clocks_throttle_reasons", "throttle_reasons",
                  "clock_reasons", "clocks_throttle_reasons_active", "throttle_reason", "throttle_reasons_active")
# fmt: on

WEAK: Final = frozenset(
    ("temp", "temperature", "core_temp", "power", "pwr", "util", "utilization", "power_limit", "power_cap")
)
"""Measures that other things than a GPU have as well, by their names without a unit."""

_TIME_UNITS: Final = ("_s", "_ms", "_us", "_ns", "_sec", "_seconds", "_millis", "_micros", "_nanos")
_WIDE: Final = re.compile(r"^(?:gpu|cuda|device|card|nvidia)_?(\d{1,3})_(.+)$")
_SIGNS: Final = re.compile(r"[^a-z0-9%]+")
_HUMP: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])(?!(?<=i)B)")

_BY_NAME: Final[dict[str, list[Measure]]] = {}
for _measure in MEASURES:
    for _name in _measure.names:
        _BY_NAME.setdefault(_name, []).append(_measure)


@dataclass(frozen=True, slots=True)
class Found:
    """What a name means: the measure, the factor (None where the values must tell), and its rank among the names."""

    measure: Measure
    scale: float | None
    rank: int


@lru_cache(maxsize=4096)
def plain(name: str) -> str:
    """Write a name as it is compared."""
    lower = _SIGNS.sub("_", _HUMP.sub("_", name).lower().replace("%", "_pct_"))
    return re.sub(r"_+", "_", lower.replace("%", "pct")).strip("_")


def split_unit(name: str, units: Mapping[str, float]) -> tuple[str, float] | None:
    """``power_w`` as (``power``, 1.0); None where the name ends in no such unit."""
    endings = [unit for unit in units if name.endswith("_" + unit)]
    if not endings:
        return None
    unit = max(endings, key=len)
    return name[: -len(unit) - 1], units[unit]


@lru_cache(maxsize=4096)
def meanings(name: str) -> tuple[Found, ...]:
    """Say what a plain name may mean, the measures of GPUs first."""
    found = []
    for measure in MEASURES:
        ended = split_unit(name, measure.units)
        if ended and ended[0] in measure.names:
            scale = ended[1]
            if measure.units is _SIZE and name.endswith("_mb") and measure.owner == GPU:
                scale = MIB
            found.append(Found(measure, scale, measure.names.index(ended[0])))
        elif name in measure.names and not (measure.owner == EITHER and measure.units is _SHARE):
            found.append(Found(measure, measure.bare, measure.names.index(name)))
    return tuple(found)


def wide(name: str) -> tuple[int, str] | None:
    """``gpu0_util`` as (0, ``util``): a column of one GPU in a row of several; None for any other name."""
    found = _WIDE.match(name)
    return (int(found.group(1)), found.group(2)) if found else None


def is_time(name: str) -> bool:
    """Say whether a plain name is that of a stamp."""
    bare = next((name[: -len(end)] for end in _TIME_UNITS if name.endswith(end)), name)
    return name in TIMES or bare in TIMES


def time_rank(name: str) -> int:
    """Order names of stamps: the lowest counts."""
    bare = next((name[: -len(end)] for end in _TIME_UNITS if name.endswith(end)), name)
    return TIMES.index(name if name in TIMES else bare)


_HIGHEST_RATIO: Final = 1.0
_BYTES: Final = (2.0**28, 1e18, 1.0)
_BOUNDS: Final = {
    id(_SHARE): ((1.5, 100.5, 0.01),),
    id(_POWER): ((5.0, 3000.0, 1.0), (5000.0, 3_000_000.0, 1e-3)),
    id(_SIZE): (_BYTES,),
}
"""Between which bounds the highest value of a column must lie for a factor: by the units that the measure has."""
_BOUNDS_OF_GPU: Final = ((2000.0, 1_000_000.0, MIB), _BYTES)
"""The same for memory of a GPU: whole MiB, or bytes."""


def scale_by(values: Sequence[float], measure: Measure) -> float | None:
    """Tell the unit of a name without one by its values in the head; None where they do not tell."""
    if not values or min(values) < 0:
        return None
    high = max(values)
    if measure.units is _SHARE and high <= _HIGHEST_RATIO:
        return 1.0 if any(0 < each < 1 for each in values) else None
    bounds = (
        _BOUNDS_OF_GPU
        if measure.units is _SIZE and measure.owner == GPU
        else _BOUNDS.get(id(measure.units), ())
    )
    return next((scale for low, top, scale in bounds if low <= high <= top), None)


def is_size(measure: Measure) -> bool:
    """Say whether a measure is an amount of memory."""
    return measure.units is _SIZE


def is_weak(name: str, found: Found) -> bool:
    """Say whether a plain name could be a measure of something else than a GPU."""
    ended = split_unit(name, found.measure.units)
    return name in WEAK or (ended is not None and ended[0] in WEAK)


def reading(found: Found, scale: float) -> Reading:
    """Make the reading that fills a measure's column."""
    return Reading(found.measure.column, scale, rank=found.rank)


def owners(founds: Iterable[Found]) -> set[str]:
    """Name whose measures some meanings are."""
    return {found.measure.owner for found in founds}


def scale_of_gpu_memory(stated: float | None, values: Sequence[float]) -> float | None:
    """Find the factor of a column that turned out to be GPU memory: MB means MiB, a bare number what its size says."""
    if stated is not None:
        return MIB if stated == MB else stated
    return scale_by(values, next(each for each in MEASURES if each.names[0] == "gpu_mem_used"))
