"""``nvidia-smi dmon``: one row per tick and GPU, named by the heading above it.

Written from three generations of the tool: R367-R384 (``temp``), R390-R52x (``gtemp mtemp``) and R535-R610
(``jpg ofa``, ``ccpm``, GPM columns).  The order of the columns follows the letters given to ``-s``, so a cell's
meaning comes from the heading alone, never from its place.  ``-o T``, ``-o D`` and ``-o DT`` put local wall time
in whole seconds before the index; a row describes the interval that ends there.  A day without a time is no stamp.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import polars as pl

from tracelens.formats.base import Chunk, Claim, Clock, Format, Head, Parsed, Side
from tracelens.formats.gpu_columns import DMON, DMON_OTHER, columns
from tracelens.formats.gpu_lines import (
    PREFIX_CLOCKS,
    finish,
    instant,
    is_error,
    is_noise,
    last_heading,
    outside_stamp,
    resolution,
    share,
    sort_out,
    split,
    split_prefix,
    time_of_day,
    with_heading,
    without_prefix,
)

_GROUPS: Final = {
    "pwr": "p", "gtemp": "p", "temp": "p", "sm": "u", "mclk": "c", "pclk": "c", "pviol": "v",
    "fb": "m", "sbecc": "e", "rxpci": "t",
}  # fmt: skip
_GPM: Final = frozenset(("gract", "smutil", "smocc", "mmaact", "dram"))
_HAND_WRITTEN: Final = {"gpu_idx": "gpu", "idx": "gpu", "index": "gpu", "timestamp": "", "epoch": ""}
_COMMENT: Final = r"^# .*[A-Za-z]{2} [a-z]+ [a-z]+ "
"""A line of prose that somebody put into the log."""

_UNIT_LINE: Final = r"^\s*#\s*(?:Idx|YYYYMMDD|HH:MM:SS)\b"
_ROW: Final = r"^[\s#]*\d"
_ROW_ALONE: Final = re.compile(r"^[\s#]*\d[\d\s.,:NA/\[\]+–—-]*$")
_MIN_SHARE: Final = 0.5
_MARKS: Final = ("gpu",)
_TIME_NAMES: Final = frozenset(("Date", "Time"))


@dataclass(frozen=True, slots=True)
class _Layout:
    """A heading: the names of its columns, and where three of them stand (character positions)."""

    names: tuple[str, ...]
    comma: bool
    index_start: int
    index_end: int
    last_but_one_end: int
    width: int


def _name(token: str) -> str:
    """Give a column its own name: those of a heading written by hand lose their unit."""
    plain = token.rstrip("%").removesuffix("_util").removesuffix("_mb")
    return _HAND_WRITTEN.get(plain, plain if plain in DMON else token)


@lru_cache(maxsize=256)
def _layout(heading: str) -> _Layout | None:
    """Read a heading without its stamp; None where the line is no heading of dmon."""
    if not heading.lstrip().startswith("#"):
        return None
    spans = [found.span() for found in re.finditer(r"[^\s,#]+", heading)]
    named = [(_name(heading[start:end]), start, end) for start, end in spans]
    named = [each for each in named if each[0]]
    names = tuple(name for name, _, _ in named)
    measures = (set(names) & (DMON.keys() | DMON_OTHER)) - {"gpu"}
    if names.count("gpu") != 1 or not measures or "pid" in names or len(set(names)) != len(names):
        return None
    at = names.index("gpu")
    before_last = named[-2][2]
    return _Layout(names, "," in heading, named[at][1], named[at][2], before_last, len(heading.rstrip()))


def _own_clock(names: tuple[str, ...]) -> Clock:
    if "Time" not in names:
        return Clock.NONE
    return Clock.LOCAL if "Date" in names else Clock.DAYLESS


_WORTH: Final = (Clock.UTC, Clock.LOCAL, Clock.YEARLESS, Clock.DAYLESS, Clock.NONE)


def _best_clock(kind: str | None, layouts: list[_Layout]) -> Clock:
    found = {_own_clock(each.names) for each in layouts} | {PREFIX_CLOCKS.get(kind or "", Clock.NONE)}
    return min(found, key=_WORTH.index)


def _prefix_kind(lines: list[str]) -> str | None:
    """Find the stamp that stands before the headings, or before the rows alone where the heading was written by hand."""
    for at, line in enumerate(lines):
        kind, rest = split_prefix(line)
        if _layout(rest):
            below = next((split_prefix(row)[0] for row in lines[at + 1 :] if _ROW_ALONE.match(row)), None)
            return kind or ("epoch" if below == "epoch" else None)
    return None


def _variant(layouts: list[_Layout], kind: str | None) -> str:
    names = layouts[0].names
    stamped = "".join(letter for name, letter in (("Date", "D"), ("Time", "T")) if name in names)
    groups = "".join(dict.fromkeys(_GROUPS[name] for name in names if name in _GROUPS))
    notes = [
        f"dmon -o {stamped}" if stamped else "dmon, no time" if kind is None else "dmon",
        groups,
        "gpm" if _GPM & set(names) else "",
        "csv" if layouts[0].comma else "",
        f"{kind} prefix" if kind else "",
        f"{len(set(layouts))} headings" if len(set(layouts)) > 1 else "",
    ]
    return ", ".join(note for note in notes if note)


def _errors_only(lines: list[str], complete: bool) -> Claim | None:
    """Claim a short file that holds nothing but the tool's error sentences: the reading was never taken."""
    errors_only = any(map(is_error, lines)) and all(is_error(line) or is_noise(line) for line in lines)
    return Claim("error sentences only", Clock.NONE) if complete and errors_only else None


def _is_own(rest: str) -> bool:
    written = _ROW_ALONE.match(rest) or re.match(_UNIT_LINE, rest) or _layout(rest)
    return bool(written) or is_error(rest) or is_noise(rest)


def sniff(head: Head) -> Claim | None:
    """Claim a file that has a heading of dmon and little beside its rows."""
    lines = [stripped for line in head.lines if (stripped := line.rstrip("\r")).strip()]
    kind = _prefix_kind(lines)
    rests = [without_prefix(line, kind) for line in lines]
    layouts = [layout for rest in rests if (layout := _layout(rest))]
    if not layouts:
        return _errors_only(lines, head.complete)
    if share(map(_is_own, rests)) <= _MIN_SHARE:
        return None
    return Claim(_variant(layouts, kind), _best_clock(kind, layouts), {"prefix": kind})


def _heading(line: str) -> str | None:
    """Find the heading on a line, without a stamp before it; None for any other line."""
    if _layout(line):
        return line
    bare = split_prefix(line)[1]
    return bare if _layout(bare) else None


def context(text: str, previous: str | None) -> str | None:
    """Return the last heading of a chunk; no other line but a few sentences has ``gpu`` in it."""
    return last_heading(text, previous, _MARKS, _heading)


def _own_stamp(names: tuple[str, ...], clock: Clock) -> pl.Expr:
    """Read the tool's own stamp, as far as it is of the clock that the file was claimed with."""
    own = _own_clock(names)
    if own is Clock.NONE or (clock is Clock.LOCAL and own is not Clock.LOCAL):
        return pl.lit(None, pl.Datetime("us"))
    time = pl.col("cells").list.get(names.index("Time"), null_on_oob=True)
    if clock is Clock.LOCAL:
        date = pl.col("cells").list.get(names.index("Date"), null_on_oob=True)
        return instant(date + pl.lit(" ") + time, "%Y%m%d %H:%M:%S")
    return time_of_day(time) if clock is Clock.DAYLESS else pl.lit(None, pl.Datetime("us"))


def _stamp(names: tuple[str, ...], claim: Claim) -> tuple[pl.Expr, pl.Expr]:
    """Choose stamp and resolution: the tool's own, else the one before the line if it is of the claimed clock."""
    kind = claim.settings.get("prefix")
    own = _own_stamp(names, claim.clock)
    if PREFIX_CLOCKS.get(kind or "") is not claim.clock:
        return own, pl.lit(1.0)
    outside = resolution(pl.col("outside"))
    return pl.coalesce(own, outside_stamp(kind)), pl.when(own.is_not_null()).then(1.0).otherwise(outside)


def _is_cut(layout: _Layout) -> pl.Expr:
    """Say whether a row lies right-aligned under its heading down to the last cell, and that one ends short of it.

    A kill cuts the last row anywhere, and what is left of a number still looks like one.
    """
    if layout.comma:
        return pl.lit(value=False)
    row = pl.col("rest").str.strip_chars_end()
    at = {place: row.str.slice(place, 1) for place in (layout.index_start, layout.index_end - 1)}
    aligned = (at[layout.index_start] == " ") & (at[layout.index_end - 1] != " ")
    end = layout.last_but_one_end
    under = (row.str.slice(end - 1, 1) != " ") & (row.str.slice(end, 1) == " ")
    return aligned & under & (row.str.len_chars() < layout.width)


def _unplaced(names: tuple[str, ...], clock: Clock) -> frozenset[str]:
    """Name the stamp's columns that the sample's stamp holds; the others stay in ``other``."""
    own = _own_clock(names)
    if own is Clock.LOCAL and clock in (Clock.LOCAL, Clock.UTC):
        return _TIME_NAMES
    return (
        frozenset(("Time",)) if own is not Clock.NONE and clock in (Clock.DAYLESS, Clock.UTC) else frozenset()
    )


def _reason(layout: _Layout, stamp: pl.Expr, claim: Claim) -> pl.Expr:
    """Say why a row cannot be used; NULL for a good one."""
    index = pl.col("cells").list.get(layout.names.index("gpu"), null_on_oob=True)
    needs_stamp = claim.clock is not Clock.NONE and _own_clock(layout.names) is claim.clock
    return (
        pl.when(pl.col("cells").list.len() != len(layout.names))
        .then(pl.lit("cells differ from heading"))
        .when(_is_cut(layout))
        .then(pl.lit("row cut in its last cell"))
        .when(~index.str.contains(r"^[0-9]{1,4}$"))
        .then(pl.lit("no GPU index"))
        .when(stamp.is_null() & needs_stamp)
        .then(pl.lit("stamp cannot be read"))
    )


def _rows(group: pl.DataFrame, claim: Claim) -> pl.DataFrame:
    """Read rows under one heading as columns of `gpu_sample`, with ``bad``: why a row is none."""
    heading = group["heading"][0]
    layout = _layout(heading) if heading is not None else None
    if layout is None:
        return group.select("line_no", bad=pl.lit("no heading above"))
    stamp, error = _stamp(layout.names, claim)
    cells = group.with_columns(cells=pl.col("rest").str.extract_all(r"[^\s,#]+"))
    placed = cells.with_columns(sample_ts=stamp, bad=_reason(layout, stamp, claim))
    return placed.select(
        "line_no",
        "bad",
        "sample_ts",
        pl.when(pl.col("sample_ts").is_not_null()).then(error).alias("error_s"),
        *columns(layout.names, DMON, _unplaced(layout.names, claim.clock)),
    )


def _all_rows(rows: pl.DataFrame, claim: Claim) -> pl.DataFrame:
    groups = rows.partition_by("heading", maintain_order=True) if rows.height else []
    empty = pl.DataFrame(
        schema={"line_no": pl.Int64, "bad": pl.String, "sample_ts": pl.Datetime("us"), "error_s": pl.Float64}
    )
    return pl.concat([empty, *(_rows(group, claim) for group in groups)], how="diagonal").sort("line_no")


def parse(chunk: Chunk) -> Parsed:
    """Read rows by heading, whole columns at a time; error sentences between them become `log_event`."""
    kind = chunk.claim.settings.get("prefix")
    lines = with_heading(split(chunk.lines, kind), chunk.context, _MARKS, _heading)
    unit_line = pl.col("rest").str.contains(_UNIT_LINE)
    comment = pl.col("rest").str.contains(_COMMENT)
    lines = lines.with_columns(known=pl.col("is_heading") | unit_line | comment)
    maybe = lines.filter(~pl.col("known") & pl.col("rest").str.contains(_ROW))
    rows = _all_rows(maybe, chunk.claim)
    lines = lines.join(
        rows.select("line_no", "bad", "sample_ts", "error_s", is_row=pl.lit(value=True)),
        on="line_no",
        how="left",
    )
    good = pl.col("is_row").fill_null(value=False) & pl.col("bad").is_null()
    lines = sort_out(lines, pl.col("known") | good, pl.coalesce("bad", pl.lit("not a line of dmon")))
    return finish(_placed(lines, good, chunk.claim), rows.filter(pl.col("bad").is_null()).drop("bad"))


def _placed(lines: pl.DataFrame, good: pl.Expr, claim: Claim) -> pl.DataFrame:
    """Add ``stamp`` (of rows, and of other lines that have one before them) and ``event_ts``."""
    kind = claim.settings.get("prefix")
    outside = (
        outside_stamp(kind)
        if PREFIX_CLOCKS.get(kind or "") is claim.clock
        else pl.lit(None, pl.Datetime("us"))
    )
    stamped = lines.with_columns(
        stamp=pl.when(good).then("sample_ts").otherwise(pl.when("is_event").then(outside))
    )
    error = pl.when(pl.col("stamp").is_not_null() & pl.col("is_event")).then(resolution(pl.col("outside")))
    return stamped.with_columns(event_ts=pl.col("stamp").forward_fill(), error_s=error)


FORMAT: Final = Format(
    name="nvidia_dmon",
    title="nvidia-smi dmon, blank-separated or csv",
    side=Side.GPU,
    fills=("gpu_sample", "log_event"),
    sniff=sniff,
    parse=parse,
    context=context,
    carried={"log_event": "event_ts"},
    versions="R367 to R610",
)
