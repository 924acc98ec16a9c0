"""The kernel's log of a host, alone or in the journal: ``dmesg``, ``journalctl -k``, ``/var/log/kern.log``, syslog.

    [1234567.123456] NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.
    [Tue Nov 25 03:12:44 2025] Memory cgroup out of memory: Killed process 2871 (VLLM::EngineCor) ...
    Nov 25 03:12:44 gpu-7 kernel: NVRM: Xid (PCI:0000:3b:00): 31, pid=2871, name=python3, ...

It says what no server log can: that a GPU failed, that the out-of-memory killer ended a process.  Those sentences become
events, all other lines only show until when the log goes.  Seconds since boot have no date.  Written from the manuals of
dmesg (util-linux 2.36 to 2.41) and journalctl (systemd 239 to 257) and from reports with such lines.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import polars as pl

from tracelens.formats import host_words
from tracelens.formats.base import Chunk, Claim, Clock, Format, Head, Parsed, Side, issues_of
from tracelens.formats.gpu.gpu_lines import share
from tracelens.formats.gpu.gpu_stamps import instant, outside_stamp, resolution

if TYPE_CHECKING:
    from collections.abc import Callable

_FACILITY: Final = r"(?:<\d{1,3}>|[a-z]+ *:[a-z]+ *: )?"
"""Facility and level in front of a line (``dmesg -r``, ``dmesg -x``)."""
_HOST: Final = r"(?:[\w.-]+ (?P<process>[^\s:\[]+)(?:\[\d+\])?: )"
_UPTIME: Final = r"\[ *\d+\.\d{6}\](?:\[ *[TC]\d+\])? "
_MIN_SHARE: Final = 0.6
_MAX_CHARS: Final = 8192

_SERVER_LINE: Final = re.compile(
    r"\b(?:DEBUG|INFO|WARNING|ERROR|CRITICAL)(?: \d\d-\d\d \d\d:|:\s{2,}\S)|\"[A-Z]+ /\S* HTTP/|\] (?:Decode|Prefill) batch|text_generation"
)
"""A line of a server or a gateway: then the file is its log, and the kernel's lines only stand between.  Web servers pad their
levels; the kernel, which writes ``INFO: task python3:812 blocked ...`` too, does not."""
_HOST_WRITERS: Final = re.compile(r" (?:kernel|systemd(?:\[\d+\])?): ")


@dataclass(frozen=True, slots=True)
class _Layout:
    """How the lines of a file begin: a pattern with the groups ``outside`` and perhaps ``process``, and the clock."""

    pattern: str
    clock: Clock
    stamp: Callable[[], pl.Expr]
    kept: str = ""
    """What of the beginning belongs to the message."""


def _as_boot() -> pl.Expr:
    return pl.lit(None, pl.Datetime("us"))


def _as_ctime() -> pl.Expr:
    return instant(pl.col("outside").str.replace_all(r" +", " "), "%a %b %d %H:%M:%S %Y")


def _reader(kind: str) -> Callable[[], pl.Expr]:
    return lambda: outside_stamp(kind)


def _as_utc() -> pl.Expr:
    return instant(pl.col("outside"), "%Y-%m-%d %H:%M:%S%.f")


_DAY_AND_TIME: Final = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?"
_KERNEL_SIGNS: Final = ("NVRM:", "oom-kill", "pcieport ", "systemd[")
_LAYOUTS: Final[dict[str, _Layout]] = {
    "dmesg": _Layout(rf"^{_FACILITY}(?P<outside>{_UPTIME})", Clock.RELATIVE, _as_boot),
    "dmesg -T": _Layout(
        rf"^{_FACILITY}\[(?P<outside>[A-Z][a-z]{{2}} [A-Z][a-z]{{2}} [ \d]\d \d\d:\d\d:\d\d \d{{4}})\] ",
        Clock.LOCAL,
        _as_ctime,
    ),
    "kernel's lines without stamps": _Layout(r"^(?P<outside>kernel: )", Clock.NONE, _as_boot),
    "driver's lines without stamps": _Layout(r"^(?P<outside>)NVRM: ", Clock.NONE, _as_boot, "NVRM: "),
    "ISO": _Layout(
        rf"^{_FACILITY}(?P<outside>{_DAY_AND_TIME}(?:Z|[+-]\d\d:?\d\d)) {_HOST}(?:{_UPTIME})?",
        Clock.UTC,
        _reader("zoned"),
    ),
    "dmesg --time-format iso": _Layout(
        rf"^{_FACILITY}(?P<outside>{_DAY_AND_TIME}(?:Z|[+-]\d\d:?\d\d)) ", Clock.UTC, _reader("zoned")
    ),
    "syslog": _Layout(
        rf"^{_FACILITY}(?P<outside>[A-Z][a-z]{{2}} [ \d]\d \d\d:\d\d:\d\d(?:\.\d{{1,9}})?) {_HOST}(?:{_UPTIME})?",
        Clock.YEARLESS,
        _reader("ts"),
    ),
    "journal in UTC": _Layout(
        rf"^[A-Z][a-z]{{2}} (?P<outside>{_DAY_AND_TIME}) UTC {_HOST}(?:{_UPTIME})?", Clock.UTC, _as_utc
    ),
    "journal": _Layout(
        rf"^[A-Z][a-z]{{2}} (?P<outside>{_DAY_AND_TIME}) (?:[A-Z]{{2,5}}|[+-]\d\d(?:\d\d)?) {_HOST}(?:{_UPTIME})?",
        Clock.LOCAL,
        _reader("dated"),
    ),
}
_COMPILED: Final = {name: re.compile(layout.pattern) for name, layout in _LAYOUTS.items()}
_KERNEL_ONLY: Final = ("dmesg", "dmesg -T", "kernel's lines without stamps", "driver's lines without stamps")
"""Layouts that nothing else has."""


def sniff(head: Head) -> Claim | None:
    """Claim a file most of whose lines begin like a host's log, with the kernel or systemd among the writers."""
    lines = [
        line for line in (*head.lines, *head.sampled) if line.strip() and not line.startswith((" ", "-- "))
    ]
    if any(_SERVER_LINE.search(line) for line in lines):
        return None
    for name, pattern in _COMPILED.items():
        if share(bool(pattern.match(line)) for line in lines) < _MIN_SHARE:
            continue
        if name in _KERNEL_ONLY or any(_is_of_host(line) for line in lines):
            return Claim(name, _LAYOUTS[name].clock, {"layout": name})
    return None


def _is_of_host(line: str) -> bool:
    return bool(_HOST_WRITERS.search(line)) or any(sign in line for sign in _KERNEL_SIGNS)


def parse(chunk: Chunk) -> Parsed:
    """Read the events of one chunk; lines that say nothing to us count as understood where they begin like the others."""
    layout = _LAYOUTS[chunk.claim.settings["layout"]]
    text = pl.col("text").str.strip_chars_end("\r")
    groups = text.str.extract_groups(layout.pattern).struct
    has_process = "(?P<process>" in layout.pattern
    lines = chunk.lines.with_columns(
        outside=groups.field("outside"),
        process=groups.field("process") if has_process else pl.lit("kernel"),
        message=text.str.replace(layout.pattern, layout.kept),
    ).with_columns(stamp=layout.stamp())
    framed = pl.col("outside").is_not_null()
    goes_on = text.str.contains(r"^(?:\s|-- |$)")
    issues = issues_of(lines.filter(~framed & ~goes_on), "no stamp as the other lines have it")
    return Parsed(
        {"log_event": _events(lines)},
        issues,
        lines.height - issues.height,
        lines.filter(pl.col("stamp").is_not_null()).select("line_no", "stamp"),
    )


def _events(lines: pl.DataFrame) -> pl.DataFrame:
    message = pl.col("message")
    placed = lines.with_columns(
        form_no=host_words.form_no(lines["message"]), before=pl.col("stamp").forward_fill()
    )
    numbered = placed.drop_nulls("form_no")
    return numbered.select(
        "line_no",
        last_line_no="line_no",
        event_ts="before",
        error_s=pl.when(pl.col("stamp").is_not_null()).then(resolution(pl.col("outside"))),
        level=host_words.level_of(pl.col("form_no")),
        kind=host_words.kind_of(pl.col("form_no")),
        process=pl.col("process").fill_null("kernel"),
        origin=pl.lit(None, pl.String),
        message=message.str.strip_chars_start().str.slice(0, _MAX_CHARS),
    )


FORMAT: Final = Format(
    name="kernel_log",
    title="kernel log of a host (dmesg, journalctl -k, syslog)",
    side=Side.SERVER,
    fills=("log_event",),
    sniff=sniff,
    parse=parse,
    carried={"log_event": "event_ts"},
    versions="util-linux 2.36 to 2.41, systemd 239 to 257",
    complete="Xid and SXid, out-of-memory kills, hangs, hardware errors and ends of services; other lines say nothing to us. "
    "Seconds since boot give no date: better dmesg -T or journalctl -k.",
    record="journalctl -k -o short-iso > kernel.log; dmesg -T > dmesg.txt",
    sample="journalctl_k.log",
)
