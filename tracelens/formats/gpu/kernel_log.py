"""The kernel's log, where the driver tells of lost GPUs and the kernel of processes that it killed.

    [Sat Nov  1 10:00:00 2025] NVRM: Xid (PCI:0000:06:00): 79, GPU has fallen off the bus.         dmesg -T
    [ 1843.308145] NVRM: The NVIDIA GPU 0000:b3:00.0                                                dmesg
    Nov 01 10:00:00 gpu-1 kernel: Out of memory: Killed process 4711 (VLLM::EngineCor)              journalctl -k, syslog
    2025-11-01T10:00:00+00:00 gpu-1 kernel: NVRM: Xid (PCI:0000:06:00): 63, pid=9, Row Remapper     journalctl -o short-iso

Seconds since boot are no time of day: such lines keep their order alone.  Lines of other programs in a syslog, and kernel lines
about neither GPUs nor killed processes, are understood and say nothing.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Final

import polars as pl

from tracelens.formats.base import (
    PLACEHOLDER_YEAR,
    Chunk,
    Claim,
    Clock,
    Format,
    Head,
    Parsed,
    Side,
    issues_of,
)
from tracelens.formats.gpu.gpu_stamps import instant, resolution, zoned

_HOST_TAG: Final = r"\S+ [^\s:\[\]]+(?:\[\d+\])?: "
_BOOT: Final = r"(?:\[ *\d+\.\d{6}\] )?"
_LEVEL: Final = r"(?:<\d{1,3}>)?(?:[a-z]+ *:[a-z]+ *: )?"
_FORMS: Final = {
    # name: what stands before the message, with the stamp as its first group, and whose clock it is
    "ctime": (rf"^{_LEVEL}\[[A-Z][a-z]{{2}} ([A-Z][a-z]{{2}} [ \d]\d \d\d:\d\d:\d\d \d{{4}})\] ", Clock.LOCAL),
    "iso": (
        rf"^{_LEVEL}(\d{{4}}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)) (?:{_HOST_TAG})?{_BOOT}",
        Clock.UTC,
    ),
    "syslog": (rf"^{_LEVEL}([A-Z][a-z]{{2}} [ \d]\d \d\d:\d\d:\d\d)(?:\.\d+)? {_HOST_TAG}{_BOOT}", Clock.YEARLESS),
    "boot": (rf"^{_LEVEL}\[( *\d+\.\d{{6}})\] ", Clock.NONE),
    "bare": (r"^((?:kernel: )?NVRM: )", Clock.NONE),
}  # fmt: skip
_PATTERNS: Final = {name: re.compile(pattern) for name, (pattern, _) in _FORMS.items()}
_KERNEL: Final = re.compile(
    r"\bkernel: |NVRM: |\bnvidia\b|Linux version |Killed process |oom-kill|segfault at |pcieport "
)
_SERVERS_OWN: Final = re.compile(
    r"Avg prompt throughput|HTTP/1\.1\" \d|\b(?:DEBUG|INFO|WARNING|ERROR|CRITICAL) \d\d-\d\d \d\d:|Decode batch"
)
"""A journal in which a server's lines stand too is that server's."""
_MIN_SHARE: Final = 0.8

_SERVER: Final = r"(?i:python|vllm|sglang|ray::|text-gen|pt_main|enginecor|worker_tp)"
_KINDS: Final = (
    ("gpu", r"NVRM: Xid|fallen off the bus|NVRM: .*(?i:uncorrect|double bit|row remap|RmInitAdapter failed|GPU (?:is )?lost)"),
    ("dead", rf"Killed process \d+ \({_SERVER}|\b{_SERVER}\S*\[\d+\]:? (?:segfault at|general protection)|traps: {_SERVER}"),
    ("warning", r"Killed process \d+|oom-kill:|AER: .*(?i:uncorrect|fatal)|PCIe Bus Error|clock throttled|blocked for more than \d+ seconds"),
)  # fmt: skip


def sniff(head: Head) -> Claim | None:
    """Claim a file nearly all of whose lines have one of the kernel log's shapes, and that names the kernel or the driver."""
    lines = [line for line in head.lines if line.strip() and not line.startswith((" ", "-- "))]
    if not any(_KERNEL.search(line) for line in lines) or any(
        map(_SERVERS_OWN.search, (*lines, *head.sampled))
    ):
        return None
    found = Counter(
        next((name for name, pattern in _PATTERNS.items() if pattern.match(line)), None) for line in lines
    )
    name, _ = found.most_common(1)[0]
    if name is None or found[None] > (1 - _MIN_SHARE) * len(lines):
        return None
    return Claim(f"kernel log, {name}", _FORMS[name][1], {"form": name})


def parse(chunk: Chunk) -> Parsed:
    """Read the driver's and the kernel's own words as events."""
    form = chunk.claim.settings["form"]
    pattern, _ = _FORMS[form]
    text = pl.col("text").str.strip_chars_end("\r\n")
    lines = chunk.lines.with_columns(stamp=_stamp(form, text.str.extract(pattern, 1)), message=_message(text))
    lines = lines.with_columns(
        kind=_kind(pl.col("message")), error_s=resolution(text.str.extract(pattern, 1))
    )
    known = pl.any_horizontal([text.str.contains(each) for each, _ in _FORMS.values()])
    is_known = known | ~text.str.contains(r"^\S") | text.str.starts_with("-- ")
    issues = issues_of(lines.filter(~is_known), "no line of a kernel log")
    events = lines.drop_nulls("kind").select(
        "line_no",
        "kind",
        "error_s",
        last_line_no="line_no",
        event_ts="stamp",
        level=pl.when(pl.col("kind") == "warning").then(pl.lit("WARNING")).otherwise(pl.lit("ERROR")),
        process=pl.lit("kernel"),
        origin=pl.lit(None, pl.String),
        message=pl.col("message").str.slice(0, 2048),
    )
    stamps = lines.drop_nulls("stamp").select("line_no", "stamp")
    return Parsed({"log_event": events}, issues, lines.height - issues.height, stamps)


def _message(text: pl.Expr) -> pl.Expr:
    """What stands behind the stamp and the host; a bare line of the driver is its own."""
    for name, (pattern, _) in _FORMS.items():
        if name != "bare":
            text = text.str.replace(pattern, "")
    return text.str.strip_chars()


def _kind(message: pl.Expr) -> pl.Expr:
    kind = pl.lit(None, pl.String)
    for name, pattern in reversed(_KINDS):
        kind = pl.when(message.str.contains(pattern)).then(pl.lit(name)).otherwise(kind)
    return kind


def _stamp(form: str, text: pl.Expr) -> pl.Expr:
    if form == "iso":
        return zoned(text)
    one_blank = text.str.replace(r" +", " ")
    if form == "ctime":
        return instant(one_blank, "%b %d %H:%M:%S %Y")
    if form == "syslog":
        return instant(pl.lit(f"{PLACEHOLDER_YEAR} ") + one_blank, "%Y %b %d %H:%M:%S")
    return pl.lit(None, pl.Datetime("us"))


FORMAT: Final = Format(
    name="kernel_log",
    title="kernel log (dmesg, journalctl -k, syslog)",
    side=Side.GPU,
    fills=("log_event",),
    sniff=sniff,
    parse=parse,
    versions="util-linux 2.3x, systemd 25x, NVIDIA driver 470 to 595",
    complete="Forms as in public reports. Xid, lost GPUs, ECC errors and killed processes; all else is passed over.",
    record="dmesg -T > dmesg.txt; journalctl -k -o short-iso > kernel.log",
    sample="journal_xid.txt",
)
