"""AIPerf's ``gpu_telemetry_export.jsonl``: one GPU and instant a line, scraped from a DCGM exporter.

Power in watts, energy in megajoules, memory in decimal gigabytes, utilisation in per cent.  0.13 puts the vendor before the
names (``nvidia_power_usage``), 0.3 to 0.11 wrote ``gpu_power_usage``.  Read in AIPerf 0.13.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import polars as pl

from tracelens.formats.base import Chunk, Claim, Clock, Format, Head, Parsed, Side
from tracelens.formats.json_lines import count, dump, number, objects_in, read_objects, refusals, text_of
from tracelens.formats.notes import is_note
from tracelens.formats.stamps import instant_on

NO_GPU: Final = "no GPU reading in it"
_VENDOR: Final = re.compile(r"^(?:nvidia|gpu|amd)_(?=power|energy|gpu_util|util|memory|temp|sm_|mem_|xid)")
_READINGS: Final[Mapping[str, tuple[str, float]]] = {
    "power_usage": ("power_w", 1.0),
    "power_management_limit": ("power_limit_w", 1.0),
    "gpu_utilization": ("sm_ratio", 0.01),
    "utilization": ("sm_ratio", 0.01),
    "memory_copy_utilization": ("mem_ratio", 0.01),
    "memory_used": ("memory_used_bytes", 1e9),
    "temperature": ("temp_c", 1.0),
    "gpu_temperature": ("temp_c", 1.0),
    "memory_temperature": ("mem_temp_c", 1.0),
    "sm_clock_frequency": ("sm_clock_mhz", 1.0),
    "memory_clock_frequency": ("mem_clock_mhz", 1.0),
}
"""AIPerf's names to columns of `gpu_sample`, and the factor to the column's unit."""

_ROW: Final[Mapping[str, Any]] = {
    "line_no": pl.Int64,
    "sample_ts": pl.Int64,
    "gpu_index": pl.Int32,
    **dict.fromkeys(("host", "gpu_uuid", "gpu_name", "other"), pl.String),
    **dict.fromkeys((column for column, _ in _READINGS.values()), pl.Float64),
    "memory_used_bytes": pl.Int64,
}
_NAMES: Final = {"host": "hostname", "gpu_uuid": "gpu_uuid", "gpu_name": "gpu_model_name"}


def is_reading(values: Mapping[str, Any]) -> bool:
    """Whether an object is one GPU's reading."""
    return isinstance(values.get("telemetry_data"), dict) and "gpu_index" in values


def sniff(head: Head) -> Claim | None:
    """Claim lines of JSON objects most of which are readings of a GPU."""
    found = objects_in(head.lines)
    if found is None or sum(map(is_reading, found)) * 2 <= len(found):
        return None
    return Claim("AIPerf, GPU telemetry", Clock.UTC)


def parse(chunk: Chunk) -> Parsed:
    """Read one row of `gpu_sample` per line."""
    objects = read_objects(chunk.lines)
    empty = {line_no: NO_GPU for line_no, values in objects if not is_reading(values)}
    rows = [{"line_no": line_no, **_reading(values)} for line_no, values in objects if line_no not in empty]
    issues = pl.concat([objects.issues, refusals(chunk.lines, empty)]).sort("line_no")
    frame = pl.DataFrame(
        {name: [row.get(name) for row in rows] for name in _ROW}, schema=dict(_ROW)
    ).with_columns(pl.col("sample_ts").cast(pl.Datetime("us")), error_s=pl.lit(1e-6))
    stamps = frame.select("line_no", stamp="sample_ts").drop_nulls("stamp")
    return Parsed({"gpu_sample": frame}, issues, chunk.lines.height - issues.height, stamps)


def _reading(values: Mapping[str, Any]) -> dict[str, Any]:
    row: dict[str, Any] = {column: text_of(values.get(key)) for column, key in _NAMES.items()}
    row["sample_ts"] = instant_on(Clock.UTC, values.get("timestamp_ns"), "ns")
    index = count(values["gpu_index"])
    row["gpu_index"] = index if index is not None and index < 10_000 else None  # noqa: PLR2004 - no host has more
    rest: dict[str, Any] = {}
    for key, value in values["telemetry_data"].items():
        amount = number(value)
        place = _READINGS.get(_VENDOR.sub("", str(key)))
        if place is not None and amount is not None and abs(amount) < 1e12:  # noqa: PLR2004 - a sentinel is no reading
            row[place[0]] = _scaled(float(amount), place)
        elif amount is not None and is_note(str(key), value):
            rest[str(key)] = value
    return {**row, "other": dump(rest)}


def _scaled(amount: float, place: tuple[str, float]) -> float | int:
    column, factor = place
    return round(amount * factor) if column.endswith("_bytes") else round(amount * factor, 12)


FORMAT: Final = Format(
    name="aiperf_gpu",
    title="AIPerf gpu_telemetry_export.jsonl",
    side=Side.GPU,
    fills=("gpu_sample",),
    sniff=sniff,
    parse=parse,
    versions="AIPerf 0.13",
)
