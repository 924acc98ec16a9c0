"""``dcgmi dmon``: one row per tick and entity, under short tags of DCGM fields.

A cell that does not exist for an entity is blank, so cells are cut out by the heading's positions where a row has
fewer of them than the heading.  Shares are from 0 to 1, PCIe and NVLink are bytes per second.  The tool writes no time; a
stamp that someone put before each line is read.  Rows of MIG instances and links name no GPU of their own: they
have no index, and their label is in ``other``.  Written from DCGM 2.0 to 4.6 (source, manual and issues).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import polars as pl

from tracelens.formats.base import Chunk, Claim, Clock, Format, Head, Parsed, Side
from tracelens.formats.gpu.gpu_columns import DCGM, columns
from tracelens.formats.gpu.gpu_lines import (
    finish,
    is_error,
    is_noise,
    last_heading,
    layout_code,
    period_options,
    share,
    sort_out,
    split,
    with_heading,
)
from tracelens.formats.gpu.gpu_stamps import (
    PREFIX_CLOCKS,
    PREFIXES,
    outside_stamp,
    resolution,
    split_prefix,
    without_prefix,
)

_LABEL: Final = r"^\s*((?:GPU(?:-C?I)?|SW|CPU|CORE|NIC)\s+\d+(?:\s+LINK\s+\d+)?)(?:\s|$)"
_GPU: Final = r"^GPU\s+([0-9]{1,4})$"
_UNIT_LINE: Final = r"^\s*I[Dd](?:\s|$)"
_STOPPED: Final = "dmon was stopped"
_MARKS: Final = ("Entity",)
_MIN_SHARE: Final = 0.5


@dataclass(frozen=True, slots=True)
class _Layout:
    """A heading: its tags, where each begins, and whether blanks fill it up behind the last one."""

    names: tuple[str, ...]
    starts: tuple[int, ...]
    width: int
    padded: bool


@lru_cache(maxsize=256)
def _layout(heading: str) -> _Layout | None:
    """Read a heading without its stamp; None where the line is no heading of dcgmi."""
    found = re.match(r"^\s*#\s*Entity\b", heading)
    if not found:
        return None
    tags = [
        (each.group(), each.start()) for each in re.finditer(r"\S+", heading) if each.start() >= found.end()
    ]
    names = tuple(name for name, _ in tags)
    if not names or len(set(names)) != len(names):
        return None
    return _Layout(names, tuple(start for _, start in tags), len(heading), heading != heading.rstrip())


def _heading(line: str) -> str | None:
    """Find the heading on a line, without a stamp or a row before it that a kill cut; None for any other line."""
    bare = split_prefix(line)[1]
    return next((text for text in (line, bare, bare[bare.rfind("#") :]) if _layout(text)), None)


def _is_own(rest: str) -> bool:
    """Say whether a line is one that this tool writes, a shell prompt or an error sentence."""
    written = _layout(rest) or re.match(_LABEL, rest) or re.match(_UNIT_LINE, rest) or _STOPPED in rest
    return bool(written) or is_error(rest) or is_noise(rest)


def sniff(head: Head) -> Claim | None:
    """Claim a file that has a heading of dcgmi dmon and little beside its rows."""
    lines = [stripped for line in head.lines if (stripped := line.rstrip("\r")).strip()]
    first = next((line for line in lines if _heading(line)), None)
    if first is None:
        return None
    kind = None if _layout(first) else split_prefix(first)[0]
    if share(_is_own(without_prefix(line, kind)) for line in lines) <= _MIN_SHARE:
        return None
    layout = _layout(_heading(first) or "")
    tags = " ".join(layout.names) if layout else ""
    period = period_options(lines)
    prefix = (f", {kind} prefix" if kind else ", no time") + (f", {period} ms" if period else "")
    return Claim(f"dcgmi dmon, {tags}{prefix}", PREFIX_CLOCKS.get(kind or "", Clock.NONE), {"prefix": kind})


def context(text: str, previous: str | None) -> str | None:
    """Return the last heading of a chunk."""
    return last_heading(text, previous, _MARKS, _heading)


def _by_position(layout: _Layout) -> pl.Expr:
    """Cut cells out at the heading's positions; NULL for a row whose text does not lie under them."""
    row = pl.col("rest")
    ends = (*layout.starts[1:], None)
    cells = [
        row.str.slice(at, None if end is None else end - at).str.strip_chars()
        for at, end in zip(layout.starts, ends, strict=True)
    ]
    clean = [row.str.slice(at - 1, 1) == " " for at in layout.starts]
    whole = [~cell.str.contains(" ", literal=True) for cell in cells]
    reaches = row.str.len_chars() > layout.starts[-1]
    return pl.when(pl.all_horizontal([reaches, *clean, *whole])).then(pl.concat_list(cells))


def _rows(group: pl.DataFrame) -> pl.DataFrame:
    """Read rows under one heading as columns of `gpu_sample`, with ``bad``: why a row is none."""
    heading = group["heading"][0]
    layout = _layout(heading) if heading is not None else None
    if layout is None:
        return group.select("line_no", bad=pl.lit("no heading above"))
    tokens = pl.col("rest").str.replace(_LABEL, "").str.extract_all(r"\S+")
    split_rows = group.with_columns(label=pl.col("rest").str.extract(_LABEL, 1), tokens=tokens)
    full = pl.col("tokens").list.len() == len(layout.names)
    cells = split_rows.with_columns(cells=pl.when(full).then("tokens").otherwise(_by_position(layout)))
    short = pl.lit(layout.padded) & (pl.col("rest").str.len_chars() < layout.width)
    cut = (short | pl.col("is_open")) & (pl.col("rest") == pl.col("rest").str.strip_chars_end())
    bad = pl.when(pl.col("cells").is_null()).then(pl.lit("cells differ from heading"))
    index = pl.col("label").str.extract(_GPU, 1).cast(pl.Int32, strict=False)
    entity = pl.when(index.is_null()).then(pl.col("label"))
    named = cells.with_columns(
        bad=bad.when(cut).then(pl.lit("row cut in its last cell")),
        gpu_index=index,
        cells=pl.col("cells").list.concat(pl.concat_list(entity.fill_null(""))),
    )
    return named.select(
        "line_no",
        "bad",
        "gpu_index",
        *columns((*layout.names, "entity"), DCGM),
        segment=layout_code(layout.names),
    )


def _all_rows(rows: pl.DataFrame) -> pl.DataFrame:
    groups = rows.partition_by("heading", maintain_order=True) if rows.height else []
    empty = pl.DataFrame(schema={"line_no": pl.Int64, "bad": pl.String})
    return pl.concat([empty, *map(_rows, groups)], how="diagonal").sort("line_no")


def parse(chunk: Chunk) -> Parsed:
    """Read rows by heading, whole columns at a time; error sentences between them become `log_event`."""
    kind = chunk.claim.settings.get("prefix")
    lines = with_heading(split(chunk, kind), chunk.context, _MARKS, _heading)
    rest = pl.col("rest")
    glued = pl.col("is_heading") & ~rest.str.contains(r"^\s*#")
    named = pl.col("is_heading") & ~glued
    known = named | rest.str.contains(_UNIT_LINE) | rest.str.contains(_STOPPED, literal=True)
    outside = outside_stamp(kind if kind in PREFIXES else None)
    lines = lines.with_columns(
        known=known, glued=glued, outside_ts=outside, outside_s=resolution(pl.col("outside"))
    )
    rows = _all_rows(lines.filter(~pl.col("known") & ~pl.col("glued") & rest.str.contains(_LABEL)))
    found = rows.select("line_no", "bad", is_row=pl.col("bad").is_null())
    lines = lines.join(found, on="line_no", how="left", maintain_order="left")
    good = pl.col("is_row").fill_null(value=False)
    cut = pl.when("glued").then(pl.lit("row cut, a heading behind it"))
    reason = pl.coalesce("bad", cut, pl.lit("not a line of dcgmi dmon"))
    lines = sort_out(lines, pl.col("known") | good, reason)
    stamp = pl.when(good | pl.col("is_event")).then("outside_ts")
    error = pl.when(stamp.is_not_null()).then("outside_s")
    lines = lines.with_columns(stamp=stamp, event_ts=stamp.forward_fill(), error_s=error)
    stamps = lines.select("line_no", sample_ts="stamp", error_s="error_s")
    samples = (
        rows.filter(pl.col("bad").is_null())
        .drop("bad")
        .join(stamps, on="line_no", how="left", maintain_order="left")
    )
    return finish(lines, samples)


FORMAT: Final = Format(
    name="dcgmi_dmon",
    title="dcgmi dmon",
    side=Side.GPU,
    fills=("gpu_sample", "log_event"),
    sniff=sniff,
    parse=parse,
    context=context,
    carried={"log_event": "event_ts"},
    versions="DCGM 2.0 to 4.6",
    complete="DCGM 2.0 to 4.6, MIG rows included; values of the samples are invented in forms that were seen.",
    record="dcgmi dmon -e 1001,1002,1003,1004,1005,155,203 -d 1000 > dcgmi_dmon.log",
    sample="dcgmi_dmon_v4.log",
)
