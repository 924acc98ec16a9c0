"""``nvidia-smi -q``: snapshots of all GPUs as indented text, one or several in one file (``-l``).

A key stands before ``:``, a section has none; ``-d`` leaves sections out.  Names of sections changed with the drivers
(``Power Readings`` became ``GPU Power Readings``, ``Clocks Throttle Reasons`` became ``Clocks Event Reasons``): both are read.
Written from the manual and from public dumps of drivers 418 to 575.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import polars as pl

from tracelens.formats.base import Chunk, Claim, Clock, Format, Head, Parsed, Side
from tracelens.formats.gpu.smi_snapshots import Gpu, Snapshot, parsed

_BANNER: Final = "NVSMI LOG"
_PAIR: Final = r"^ *(\S.*?)\s+:(?: (.*))?$"
_GPU: Final = r"^GPU ([0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.\d)\s*$"
_OWN: Final = r"^(?:=+\s*NVSMI LOG\s*=+|\s{4,}\S.*|\S[^:]*\s+:.*|GPU \S+)\s*$"
_DEPTH: Final = 4

_FIELDS: Final[Mapping[str, str]] = {
    "/GPU UUID": "gpu_uuid",
    "/Product Name": "name",
    "/Performance State": "pstate",
    "/Fan Speed": "fan.speed",
    "Utilization/Gpu": "utilization.gpu",
    "Utilization/GPU": "utilization.gpu",
    "Utilization/Memory": "utilization.memory",
    "Utilization/Encoder": "utilization.encoder",
    "Utilization/Decoder": "utilization.decoder",
    "Power Readings/Power Draw": "power.draw",
    "Power Readings/Enforced Power Limit": "enforced.power.limit",
    "Power Readings/Power Limit": "power.limit",
    "GPU Power Readings/Power Draw": "power.draw",
    "GPU Power Readings/Average Power Draw": "power.draw.average",
    "GPU Power Readings/Instantaneous Power Draw": "power.draw.instant",
    "GPU Power Readings/Current Power Limit": "power.limit",
    "Temperature/GPU Current Temp": "temperature.gpu",
    "Temperature/Memory Current Temp": "temperature.memory",
    "Clocks/SM": "clocks.sm",
    "Clocks/Graphics": "clocks.gr",
    "Clocks/Memory": "clocks.mem",
    "Max Clocks/SM": "clocks.max.sm",
    "FB Memory Usage/Used": "memory.used",
    "FB Memory Usage/Total": "memory.total",
    "PCI/Tx Throughput": "pcie.tx",
    "PCI/Rx Throughput": "pcie.rx",
}
_LINK: Final[Mapping[str, str]] = {
    "PCI/Current": "current",
    "PCI/Max": "max",
}
"""Of the generation and of the width of the PCIe link, which ends with ``x``."""
_REASONS: Final = ("Clocks Event Reasons/", "Clocks Throttle Reasons/")
_PROCESS: Final = {
    "Processes/Process ID": "pid",
    "Processes/Type": "kind",
    "Processes/Name": "command",
    "Processes/Used GPU Memory": "memory",
}
_ABOVE: Final = {"/Timestamp": "stamp", "/Attached GPUs": "attached"}


def sniff(head: Head) -> Claim | None:
    """Claim a file with the banner of ``-q`` and pairs below it."""
    lines = [line for line in head.lines if line.strip()]
    at = next((at for at, line in enumerate(lines[:40]) if _BANNER in line and "==" in line), None)
    if at is None:
        return None
    below = lines[at + 1 :]
    own = sum(" : " in line or line.startswith(("    ", "GPU ")) or "==" in line for line in below)
    has_stamp = any(line.startswith("Timestamp ") for line in below)
    if own * 2 <= len(below) or not has_stamp:
        return None
    driver = next((line.partition(":")[2].strip() for line in below if line.startswith("Driver Version")), "")
    return Claim("nvidia-smi -q" + (f", driver {driver[:20]}" if driver else ""), Clock.LOCAL)


def _pairs(chunk: Chunk) -> pl.DataFrame:
    """Return the lines that are read: ``line_no, path, value, bus`` (set where a GPU or a snapshot begins)."""
    text = pl.col("text").str.strip_chars_end("\r\n ")
    lines = chunk.lines.select("line_no", text=text)
    key, value = (pl.col("text").str.extract(_PAIR, group) for group in (1, 2))
    depth = pl.col("text").str.len_chars() - pl.col("text").str.strip_chars_start(" ").str.len_chars()
    lines = lines.with_columns(key=key, value=value, bus=pl.col("text").str.extract(_GPU, 1), depth=depth)
    bare = pl.col("text").str.strip_chars()
    is_section = (pl.col("depth") == _DEPTH) & pl.col("key").is_null() & (bare != "")
    is_top = (pl.col("depth") < _DEPTH) | ((pl.col("depth") == _DEPTH) & pl.col("key").is_not_null())
    section = pl.when(is_section).then(bare).when(is_top & (bare != "")).then(pl.lit(""))
    lines = lines.with_columns(section=section.forward_fill().fill_null(""))
    path = pl.col("section") + pl.lit("/") + pl.col("key")
    lines = lines.with_columns(
        path=pl.when(pl.col("text").str.contains(_BANNER, literal=True)).then(pl.lit(_BANNER)).otherwise(path)
    )
    known = [*_FIELDS, *_LINK, *_PROCESS, *_ABOVE, "/Minor Number", _BANNER]
    is_reason = pl.any_horizontal([pl.col("path").str.starts_with(each) for each in _REASONS])
    return lines.filter(pl.col("path").is_in(known) | is_reason | pl.col("bus").is_not_null())


class _Reader:
    """Takes the pairs in order and puts them where they belong."""

    def __init__(self) -> None:
        self.snapshots: list[Snapshot] = []

    def take(self, line_no: int, path: str, value: str, bus: str | None) -> None:
        if path == _BANNER:
            self.snapshots.append(Snapshot("", "", []))
        elif not self.snapshots:
            return
        elif bus is not None:
            gpu = Gpu(line_no)
            gpu.fields["pci.bus_id"] = bus
            self.snapshots[-1].gpus.append(gpu)
        elif path in _ABOVE and not self.snapshots[-1].gpus:
            setattr(self.snapshots[-1], _ABOVE[path], value)
        elif self.snapshots[-1].gpus:
            _put(self.snapshots[-1].gpus[-1], line_no, path, value)


def _put(gpu: Gpu, line_no: int, path: str, value: str) -> None:
    if path in _FIELDS:
        gpu.fields.setdefault(_FIELDS[path], value)
    elif path in _LINK:
        name = "width" if value.endswith("x") else "gen"
        gpu.fields.setdefault(f"pcie.link.{name}.{_LINK[path]}", value)
    elif path == "/Minor Number":
        gpu.minor = value
    elif path in _PROCESS:
        if _PROCESS[path] == "pid":
            gpu.processes.append((line_no, {}))
        if gpu.processes:
            gpu.processes[-1][1][_PROCESS[path]] = value[:200]
    elif path.startswith(_REASONS):
        gpu.has_reasons = True
        if value == "Active":
            gpu.reasons.append(path.partition("/")[2].lower().replace(" ", "_"))


def parse(chunk: Chunk) -> Parsed:
    """Read the GPUs of all snapshots, and their processes; the last line of a file that stops inside it is an issue."""
    last = chunk.lines["line_no"][-1] if chunk.lines.height else None
    refused = {int(last): "line cut"} if chunk.is_open and last is not None else {}
    pairs = _pairs(chunk).filter(~pl.col("line_no").is_in(list(refused)))
    reader = _Reader()
    for line_no, path, value, bus in pairs.select("line_no", "path", "value", "bus").iter_rows():
        reader.take(line_no, path or "", (value or "").strip(), bus)
    return parsed(chunk, reader.snapshots, refused, pl.col("rest").str.contains(_OWN))


FORMAT: Final = Format(
    name="nvidia_smi_q",
    title="nvidia-smi -q, snapshots as text",
    side=Side.GPU,
    fills=("gpu_sample", "gpu_process_sample", "log_event"),
    sniff=sniff,
    parse=parse,
    whole=True,
    versions="418 to 575",
    complete="The same fields as of the XML. MIG devices, ECC counters and sampled minima and maxima are left out. From the manual and public dumps.",
    record="nvidia-smi -q -l 5 > gpu_q.txt",
    sample="q_r535_loop.txt",
)
