"""What stands around whole log lines: container runtimes, journals, terminals and people put it there.

One table, one row per wrapper.  A file is looked at once, in its head: the wrappers that most of its lines have are taken
off every line, outermost first.  A line that has a wrapper of its own is recognised by what stands behind it.  A wrapper's
stamp, where it has one with a zone, is better than the log's own: it has a year, a zone and fractions of a second; it is
the time the line was read from a pipe, normally less than 10 ms after it was written.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import polars as pl

_ISO: Final = r"(?P<outer>\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?)(?P<zone>Z|[+-]\d\d:?\d\d)"
_MAX_DEPTH: Final = 3
_MIN_SHARE: Final = 0.3


@dataclass(frozen=True, slots=True)
class WrapperForm:
    """One wrapper: `pattern` is anchored at the line's start and ends where the inner line begins."""

    name: str
    pattern: str
    writer: str
    sample: str
    particular: bool = False
    """Its shape is proof enough; others count on a single line only where a log line stands behind them."""


WRAPPERS: Final[tuple[WrapperForm, ...]] = (
    WrapperForm(
        "cri",
        rf"^{_ISO} (?:stdout|stderr) (?P<partial>[FP]) ",
        "containerd and CRI-O files; P parts of records over 16 KiB are joined",
        "2025-10-21T12:34:56.789012345Z stdout F ",
        particular=True,
    ),
    WrapperForm(
        "journald iso",
        rf"^{_ISO} [\w.-]+ [^\s:\[]+(?:\[\d+\])?: ",
        "journalctl -o short-iso, short-iso-precise; rsyslog",
        "2025-10-21T12:34:56.789012+0000 gpu-node-3 vllm[4021]: ",
    ),
    WrapperForm(
        "timestamps",
        rf"^{_ISO} ",
        "docker logs -t, kubectl logs --timestamps",
        "2025-10-21T12:34:56.789012345Z ",
    ),
    WrapperForm(
        "syslog",
        r"^[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d [\w.-]+ [^\s:\[]+(?:\[\d+\])?: ",
        "journalctl, syslog",
        "Oct 21 12:34:56 gpu-node-3 vllm[4021]: ",
    ),
    WrapperForm("compose", r"^[\w.-]+ *\| ", "docker compose logs", "vllm-1  | "),
    WrapperForm(
        "kubectl prefix",
        r"^\[pod/[^\]\s]+\] ",
        "kubectl logs --prefix",
        "[pod/vllm-0/server] ",
        particular=True,
    ),
    WrapperForm(
        "outer time",
        r"^\[(?P<local>\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d)(?:[.,]\d+)?\] ",
        "supervisors, ts",
        "[2024-07-08 15:17:34] ",
    ),
    WrapperForm("bullet", r"^\s*[-*•>+] ", "logs pasted as a Markdown list or quotation", "- "),
    WrapperForm("stern", r"^[a-z0-9][\w.-]*[\w] [a-z0-9][\w.-]*[\w] ", "stern", "vllm-0 vllm-container "),
)
"""Every wrapper, the more particular ones first."""

_INNER: Final = (
    r"(?:(?:\([^()]*? pid=\d+[^()]*\) ?)*(?:(?:DEBUG|INFO|WARNING|ERROR|CRITICAL|TRACE)(?: \d\d-\d\d \d\d:\d\d:\d\d |:\s)|\{\"|\d\d-\d\d \d\d:\d\d:\d\d \S+:\d+\])"
    r"|\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)"
)
"""What shows that a wrapper has been taken off rightly: a log header, an access line, a JSON record, or another stamp."""

_SURE: Final = {form.name: re.compile(form.pattern.replace("?P<", "?P<_") + _INNER) for form in WRAPPERS}
_COMPILED: Final = {form.name: re.compile(form.pattern) for form in WRAPPERS}
_BY_NAME: Final = {form.name: form for form in WRAPPERS}


def detect(lines: Sequence[str]) -> tuple[str, ...]:
    """Names of the wrappers that most of these lines have, outermost first."""
    found: list[str] = []
    left = [line for line in lines if line.strip()]
    while left and len(found) < _MAX_DEPTH:
        name = _commonest(left)
        if name is None:
            break
        found.append(name)
        left = [_COMPILED[name].sub("", line, count=1) for line in left]
    return tuple(found)


def _commonest(lines: list[str]) -> str | None:
    plain = sum(1 for line in lines if re.match(_INNER, line))
    for form in WRAPPERS:
        sure = sum(1 for line in lines if _SURE[form.name].match(line))
        if sure and sure >= _MIN_SHARE * len(lines) and sure > plain:
            return form.name
    return None


def unwrap(lines: pl.DataFrame, names: Sequence[str]) -> pl.DataFrame:
    """Take wrappers off ``text``; adds ``outer_ts`` (UTC), ``outer_local`` (no zone) and ``is_partial``."""
    lines = lines.with_columns(
        outer_ts=pl.lit(None, pl.Datetime("us")),
        outer_local=pl.lit(None, pl.Datetime("us")),
        is_partial=pl.lit(value=False),
    )
    for name in names:
        lines = _peel(lines, _BY_NAME[name], pl.col("text").str.contains(_BY_NAME[name].pattern))
    return lines


def unwrap_by_line(lines: pl.DataFrame) -> pl.DataFrame:
    """Take wrappers off single lines that are no log lines as they stand, where a log line stands behind."""
    is_plain = lines["text"].str.contains("^" + _INNER)
    rest = lines.filter(~is_plain)
    for form in WRAPPERS:
        pattern = form.pattern if form.particular else form.pattern + _INNER
        rest = _peel(rest, form, pl.col("text").str.contains(pattern))
    return pl.concat([lines.filter(is_plain), rest]).sort("line_no") if rest.height else lines


def _peel(lines: pl.DataFrame, form: WrapperForm, fits: pl.Expr) -> pl.DataFrame:
    text = pl.col("text")
    taken = lines.with_columns(fits=fits)
    if not taken["fits"].any():
        return lines
    here = pl.col("fits")
    changes = {"text": pl.when(here).then(text.str.replace(form.pattern, "")).otherwise(text)}
    if "outer" in form.pattern and form.name != "outer time":
        changes["outer_ts"] = (
            pl.when(here).then(pl.coalesce("outer_ts", _instant(form.pattern))).otherwise(pl.col("outer_ts"))
        )
    if "(?P<local>" in form.pattern:
        local = (
            text.str.extract_groups(form.pattern)
            .struct.field("local")
            .str.replace("T", " ")
            .str.to_datetime("%Y-%m-%d %H:%M:%S", strict=False, time_unit="us")
        )
        changes["outer_local"] = pl.when(here).then(local).otherwise(pl.col("outer_local"))
    if form.name == "cri":
        partial = text.str.extract_groups(form.pattern).struct.field("partial") == "P"
        changes["is_partial"] = pl.when(here).then(partial).otherwise(pl.col("is_partial"))
    return taken.with_columns(**changes).drop("fits")


def _instant(pattern: str) -> pl.Expr:
    """UTC instant of a wrapper's stamp; nanoseconds are cut to microseconds."""
    groups = pl.col("text").str.extract_groups(pattern)
    stamp = groups.struct.field("outer").str.replace(",", ".", literal=True).str.replace("T", " ")
    whole = stamp.str.slice(0, 19).str.to_datetime("%Y-%m-%d %H:%M:%S", strict=False, time_unit="us")
    fraction = stamp.str.extract(r"\.(\d{1,6})").str.pad_end(6, "0").cast(pl.Int64, strict=False).fill_null(0)
    zone = (
        groups.struct.field("zone").str.replace("Z", "+0000", literal=True).str.replace(":", "", literal=True)
    )
    minutes = zone.str.slice(1, 2).cast(pl.Int64, strict=False) * 60 + zone.str.slice(3, 2).cast(
        pl.Int64, strict=False
    )
    offset = pl.when(zone.str.starts_with("-")).then(-minutes).otherwise(minutes)
    return whole + pl.duration(microseconds=fraction) - pl.duration(minutes=offset)


def join_partials(lines: pl.DataFrame) -> pl.DataFrame:
    """Join records that a runtime cut into parts: adds ``last_line_no``; a record keeps its first line's number."""
    if not lines["is_partial"].any():
        return lines.with_columns(last_line_no=pl.col("line_no"))
    begins = ~pl.col("is_partial").shift(1, fill_value=False)
    grouped = lines.with_columns(record=begins.cum_sum()).group_by("record", maintain_order=True)
    return grouped.agg(
        pl.col("line_no").first(),
        pl.col("text").str.join(""),
        pl.col("outer_ts").last(),
        pl.col("outer_local").first(),
        pl.col("is_partial").last(),
        last_line_no=pl.col("line_no").last(),
    ).drop("record")


_PARTIAL: Final = re.compile(rb"^(?:\S+ ){1,3}(?:stdout|stderr) P ")


def goes_on(line: bytes) -> bool:
    """Whether a physical line is a part whose record goes on in the next line."""
    if line.startswith(b'{"log"'):
        return b'\\n"' not in line
    return _PARTIAL.match(line) is not None
