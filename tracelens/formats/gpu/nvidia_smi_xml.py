"""``nvidia-smi -q -x``: snapshots of all GPUs as XML, one document or several in one file (``-l``).

Only what lies between the tags of the root is read: a document type, and with it any entity, is never looked at.  A document
that a kill cut gives its whole GPUs.  Written from the document types v11, v12 and v13 (drivers 418 to 575).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final
from xml.etree import ElementTree

import polars as pl

from tracelens.formats.base import Chunk, Claim, Clock, Format, Head, Parsed, Side
from tracelens.formats.gpu.smi_snapshots import Gpu, Lines, Snapshot, parsed

MAX_DOCUMENT_CHARS: Final = 4 << 20
"""A GPU takes about 12 KB; sixteen of them with a thousand processes stay below this."""

_DOCUMENT: Final = re.compile(
    r"<nvidia_smi_log>.*?(?:</nvidia_smi_log>|(?=<\?xml|<!DOCTYPE|<nvidia_smi_log>)|\Z)", re.DOTALL
)
_ROOT: Final = "<nvidia_smi_log>"
_END: Final = "</nvidia_smi_log>"
_GPU: Final = re.compile(r"<gpu[ >]")
_PROCESS: Final = re.compile(r"<process_info>")
_PROLOGUE: Final = (
    r"^\s*(?:<\?xml [^<>]*\?>\s*)?(?:<!DOCTYPE nvidia_smi_log SYSTEM \"[\w.]+\">)?\s*(?:<nvidia_smi_log>.*)?$"
)

_PATHS: Final[Mapping[str, tuple[str, ...]]] = {
    "gpu_uuid": ("uuid",),
    "name": ("product_name",),
    "pstate": ("performance_state",),
    "fan.speed": ("fan_speed",),
    "utilization.gpu": ("utilization/gpu_util",),
    "utilization.memory": ("utilization/memory_util",),
    "utilization.encoder": ("utilization/encoder_util",),
    "utilization.decoder": ("utilization/decoder_util",),
    "power.draw": ("gpu_power_readings/power_draw", "power_readings/power_draw"),
    "power.draw.average": ("gpu_power_readings/average_power_draw",),
    "power.draw.instant": ("gpu_power_readings/instant_power_draw",),
    "enforced.power.limit": ("power_readings/enforced_power_limit",),
    "power.limit": ("gpu_power_readings/current_power_limit", "power_readings/power_limit"),
    "temperature.gpu": ("temperature/gpu_temp",),
    "temperature.memory": ("temperature/memory_temp",),
    "clocks.sm": ("clocks/sm_clock",),
    "clocks.gr": ("clocks/graphics_clock",),
    "clocks.mem": ("clocks/mem_clock",),
    "clocks.max.sm": ("max_clocks/sm_clock",),
    "memory.used": ("fb_memory_usage/used",),
    "memory.total": ("fb_memory_usage/total",),
    "pcie.tx": ("pci/tx_util",),
    "pcie.rx": ("pci/rx_util",),
    "pcie.link.gen.current": ("pci/pci_gpu_link_info/pcie_gen/current_link_gen",),
    "pcie.link.gen.max": ("pci/pci_gpu_link_info/pcie_gen/max_link_gen",),
    "pcie.link.width.current": ("pci/pci_gpu_link_info/link_widths/current_link_width",),
    "pcie.link.width.max": ("pci/pci_gpu_link_info/link_widths/max_link_width",),
}
_REASONS: Final = ("clocks_event_reasons", "clocks_throttle_reasons")
_PROCESS_PATHS: Final = {"pid": "pid", "kind": "type", "command": "process_name", "memory": "used_memory"}


def sniff(head: Head) -> Claim | None:
    """Claim a file that begins, maybe after a prologue, with the root of such a document."""
    start = "\n".join(head.lines[:40])
    if _ROOT not in start or not start.lstrip("\ufeff \r\n").startswith(
        ("<?xml", "<!DOCTYPE nvidia_smi_log", _ROOT)
    ):
        return None
    version = re.search(r"nvsmi_device_(v\d+)\.dtd", start)
    driver = re.search(r"<driver_version>([\w.]{1,20})<", start)
    notes = (version.group(1) if version else "", f"driver {driver.group(1)}" if driver else "")
    return Claim(", ".join(["nvidia-smi -q -x", *filter(None, notes)]), Clock.LOCAL)


def _element(text: str) -> ElementTree.Element | None:
    """Read one document without a prologue; None where it is no XML.  There are no entities but XML's own."""
    try:
        return ElementTree.fromstring(text)
    except (ElementTree.ParseError, ValueError):
        return None


def _whole_part(text: str) -> tuple[str, int]:
    """Cut a document behind its last whole GPU; returns it closed, and how many characters of it were kept."""
    end = text.rfind("</gpu>")
    kept = end + len("</gpu>") if end >= 0 else 0
    return (text[:kept] + _END if kept else ""), kept


def _text(element: ElementTree.Element, path: str) -> str:
    return (element.findtext(path) or "").strip()


def _gpu(element: ElementTree.Element, line_no: int) -> Gpu:
    found = Gpu(line_no, minor=_text(element, "minor_number"))
    for name, paths in _PATHS.items():
        said = next((text for path in paths if (text := _text(element, path))), "")
        if said:
            found.fields[name] = said
    found.fields["pci.bus_id"] = element.get("id", "")[:32]
    for tag in _REASONS:
        reasons = element.find(tag)
        for each in reasons if reasons is not None else ():
            found.has_reasons = True
            if (each.text or "").strip() == "Active":
                found.reasons.append(each.tag.partition("_reason_")[2] or each.tag)
    return found


def _snapshot(root: ElementTree.Element, lines: Lines, start: int, text: str) -> Snapshot:
    places = [lines.line_no(start + found.start()) for found in _GPU.finditer(text)]
    processes = iter([lines.line_no(start + found.start()) for found in _PROCESS.finditer(text)])
    gpus = []
    for element, line_no in zip(root.findall("gpu"), places, strict=False):
        gpu = _gpu(element, line_no)
        for process in element.iter("process_info"):
            said = {name: _text(process, tag)[:200] for name, tag in _PROCESS_PATHS.items()}
            gpu.processes.append((next(processes, line_no), said))
        gpus.append(gpu)
    attached = _text(root, "attached_gpus") if text.endswith(_END) else ""
    return Snapshot(_text(root, "timestamp"), attached, gpus)


def _refused(lines: Lines, span: tuple[int, int], why: str) -> Iterator[tuple[int, str]]:
    for line_no in range(lines.line_no(span[0]), lines.line_no(max(span[0], span[1] - 1)) + 1):
        yield line_no, why


def _read(lines: Lines) -> tuple[list[Snapshot], dict[int, str], set[int]]:
    """Read all documents: snapshots, lines that cannot be read with the reason, and lines that lie in a document."""
    snapshots: list[Snapshot] = []
    refused: dict[int, str] = {}
    inside: set[int] = set()
    for found in _DOCUMENT.finditer(lines.text):
        text, start = found.group(), found.start()
        inside.update(range(lines.line_no(start), lines.line_no(max(start, found.end() - 1)) + 1))
        if len(text) > MAX_DOCUMENT_CHARS:
            refused.update(_refused(lines, found.span(), "document too large"))
            continue
        root, kept = _element(text), len(text)
        if root is None:
            text, kept = _whole_part(text)
            root = _element(text) if text else None
            if root is None:
                refused.update(_refused(lines, found.span(), "not XML"))
                continue
            refused.update(_refused(lines, (start + kept, found.end()), "document cut"))
        snapshots.append(_snapshot(root, lines, start, text))
    return snapshots, refused, inside


def parse(chunk: Chunk) -> Parsed:
    """Read the GPUs of all documents, and their processes."""
    lines = Lines(chunk)
    snapshots, refused, inside = _read(lines)
    # The line that a cut begins on may hold the end of the last whole GPU.
    told = {gpu.line_no for each in snapshots for gpu in each.gpus}
    refused = {line_no: why for line_no, why in refused.items() if line_no not in told}
    own = pl.col("line_no").is_in(sorted(inside)) | pl.col("rest").str.contains(_PROLOGUE)
    return parsed(chunk, snapshots, refused, own)


FORMAT: Final = Format(
    name="nvidia_smi_xml",
    title="nvidia-smi -q -x, snapshots as XML",
    side=Side.GPU,
    fills=("gpu_sample", "gpu_process_sample", "log_event"),
    sniff=sniff,
    parse=parse,
    whole=True,
    versions="document types v11 to v13",
    complete="Utilization, power, clocks, memory, temperatures, PCIe, reasons and processes of v11 to v13. MIG devices and ECC counters are left out.",
    record="nvidia-smi -q -x -l 5 > gpu_q.xml",
    sample="nvidia_smi_q_v12.xml",
)
