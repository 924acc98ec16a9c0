"""What the snapshots of ``nvidia-smi -q`` have in common, as text and as XML: fields, stamps and the rows they become.

Fields have the names that ``--query-gpu`` gives them.  The stamp is local wall time in whole seconds.  GPUs stand in
the order of their indices where all that are attached are listed; a selection (``-i``) goes by its minor numbers.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, Final

import polars as pl

from tracelens.formats.base import Chunk, Parsed
from tracelens.formats.gpu.cell_stamps import stamp
from tracelens.formats.gpu.gpu_columns import KB, MIB, QUERY, Reading, columns, number
from tracelens.formats.gpu.gpu_lines import finish, layout_code, sort_out, split

FIELDS: Final[Mapping[str, Reading]] = {
    **QUERY,
    "pcie.tx": Reading("pcie_tx_bps", KB, "KB/s"),
    "pcie.rx": Reading("pcie_rx_bps", KB, "KB/s"),
}
NAMES: Final = (
    "gpu_uuid", "name", "utilization.gpu", "utilization.memory", "utilization.encoder", "utilization.decoder",
    "power.draw", "power.draw.average", "power.draw.instant", "enforced.power.limit", "power.limit", "temperature.gpu",
    "temperature.memory", "clocks.sm", "clocks.gr", "clocks.mem", "clocks.max.sm", "memory.used", "memory.total",
    "clocks_event_reasons.active", "pcie.tx", "pcie.rx", "pstate", "fan.speed", "pci.bus_id",
    "pcie.link.gen.current", "pcie.link.gen.max", "pcie.link.width.current", "pcie.link.width.max",
)  # fmt: skip
"""What is read of a GPU, in this order."""

_STAND_INS: Final = (
    ("enforced.power.limit", "power.limit"),
    ("power.draw", "power.draw.average"),
    ("power.draw", "power.draw.instant"),
    ("clocks.sm", "clocks.gr"),
)
"""A field that a driver does not have, and the one that stands in for it."""

_PROCESS: Final = ("pid", "kind", "command", "memory")


@dataclass(slots=True)
class Gpu:
    """One GPU of one snapshot: the line it begins on, its fields by name, its processes, and why its clock is down."""

    line_no: int
    fields: dict[str, str] = field(default_factory=dict)
    processes: list[tuple[int, dict[str, str]]] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)
    has_reasons: bool = False
    minor: str = ""


@dataclass(slots=True)
class Snapshot:
    """One document: its stamp as text, how many GPUs are attached, and those it lists."""

    stamp: str
    attached: str
    gpus: list[Gpu]


class Lines:
    """The text of a chunk, and which line each place in it is on."""

    def __init__(self, chunk: Chunk) -> None:
        texts = chunk.lines["text"].fill_null("").to_list()
        self.first = int(chunk.lines["line_no"][0]) if chunk.lines.height else 1
        self.text = "\n".join(texts)
        self._starts = list(accumulate((len(text) + 1 for text in texts), initial=0))

    def line_no(self, place: int) -> int:
        """Return the number of the line that a place of the text is on."""
        return self.first + bisect_right(self._starts, place) - 1


def _lists_all(snapshots: Sequence[Snapshot]) -> bool:
    """Say whether snapshots list all GPUs that are attached; one that a kill cut is no word against it."""
    return any(each.attached == str(len(each.gpus)) for each in snapshots)


def _index(snapshot: Snapshot, at: int, *, is_all: bool) -> int | None:
    if is_all:
        return at
    minor = snapshot.gpus[at].minor
    return int(minor) if minor.isdecimal() and len(minor) <= 4 else None  # noqa: PLR2004


def _cells(gpu: Gpu) -> list[str]:
    if gpu.has_reasons:
        gpu.fields.setdefault("clocks_event_reasons.active", ", ".join(gpu.reasons) or "none")
    for wanted, other in _STAND_INS:
        if wanted not in gpu.fields and other in gpu.fields:
            gpu.fields[wanted] = gpu.fields.pop(other)
    return [gpu.fields.get(name, "") for name in NAMES]


def _sample_rows(snapshots: Sequence[Snapshot]) -> pl.DataFrame:
    is_all = _lists_all(snapshots)
    found = [
        (gpu.line_no, snapshot.stamp, _index(snapshot, at, is_all=is_all), _cells(gpu))
        for snapshot in snapshots
        for at, gpu in enumerate(snapshot.gpus)
    ]
    schema: dict[str, Any] = {
        "line_no": pl.Int64,
        "text": pl.String,
        "gpu_index": pl.Int32,
        "cells": pl.List(pl.String),
    }
    rows = pl.DataFrame(found, schema=schema, orient="row").with_columns(stamped())
    return rows.select(
        "line_no", "sample_ts", "error_s", "gpu_index", *columns(NAMES, FIELDS), layout_code(NAMES).alias("segment")
    )  # fmt: skip


def stamped() -> list[pl.Expr]:
    """Make stamp and resolution of a snapshot's ``text``."""
    when = stamp(pl.col("text"), "ctime")
    return [when.alias("sample_ts"), pl.when(when.is_not_null()).then(1.0).alias("error_s")]


def _process_rows(snapshots: Sequence[Snapshot]) -> pl.DataFrame:
    is_all = _lists_all(snapshots)
    found = [
        (
            line_no,
            snapshot.stamp,
            _index(snapshot, at, is_all=is_all),
            gpu.fields.get("gpu_uuid"),
            *map(process.get, _PROCESS),
        )
        for snapshot in snapshots
        for at, gpu in enumerate(snapshot.gpus)
        for line_no, process in gpu.processes
    ]
    schema = {"line_no": pl.Int64, "text": pl.String, "gpu_index": pl.Int32, "gpu_uuid": pl.String}
    schema |= dict.fromkeys(_PROCESS, pl.String)
    rows = pl.DataFrame(found, schema=schema, orient="row").with_columns(stamped())
    size = (number(pl.col("memory"), "MiB") * MIB).cast(pl.Int64, strict=False)
    return rows.select(
        "line_no", "sample_ts", "error_s", "gpu_index", "gpu_uuid", "kind", "command",
        pid=number(pl.col("pid")).cast(pl.Int64, strict=False), memory_used_bytes=size,
    )  # fmt: skip


def parsed(chunk: Chunk, snapshots: Sequence[Snapshot], reasons: Mapping[int, str], own: pl.Expr) -> Parsed:
    """Put a chunk's result together: `reasons` tells the lines that cannot be read, `own` those of the tool."""
    why = pl.DataFrame(
        {"line_no": list(reasons), "bad": list(reasons.values())},
        schema={"line_no": pl.Int64, "bad": pl.String},
    )
    lines = split(chunk, None).join(why, on="line_no", how="left", maintain_order="left")
    reason = pl.coalesce("bad", pl.lit("not a line of nvidia-smi -q"))
    lines = sort_out(lines, own & pl.col("bad").is_null(), reason)
    samples = _sample_rows(snapshots)
    first = samples.select("line_no", stamp="sample_ts")
    lines = lines.join(first, on="line_no", how="left", maintain_order="left")
    lines = lines.with_columns(event_ts=pl.col("stamp").forward_fill(), error_s=pl.lit(None, pl.Float64))
    return finish(lines, samples, gpu_process_sample=_process_rows(snapshots))
