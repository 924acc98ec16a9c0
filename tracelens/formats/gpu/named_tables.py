"""Tables under a heading, as columns of `gpu_sample`: what all tools with rows of named cells have in common.

A `Tool` says how to know a heading, how to split a row, and which columns are the stamp, the index and the measures.
A heading holds until the next one; rows whose cells differ from it in number are issues.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import polars as pl

from tracelens.formats.base import Chunk, Claim, Clock, Head, Parsed
from tracelens.formats.gpu.cell_stamps import CLOCKS, kind_in, resolution, stamp
from tracelens.formats.gpu.gpu_columns import Reading, columns, is_blank
from tracelens.formats.gpu.gpu_lines import (
    finish,
    is_error,
    is_noise,
    last_heading,
    layout_code,
    placed,
    share,
    sort_out,
    split,
    with_heading,
)
from tracelens.formats.gpu.gpu_stamps import (
    PREFIX_CLOCKS,
    outside_stamp,
    split_prefix,
    without_prefix,
)
from tracelens.formats.gpu.gpu_stamps import (
    resolution as outside_resolution,
)

Names = tuple[str, ...]

INDEX: Final = r"^(?i)(?:gpu|card|nvidia|cuda|device|npu|xpu)?[ :_-]?(\d{1,4})$"
"""A cell that numbers a GPU, with or without a word before it."""

_MIN_SHARE: Final = 0.5
_SPLIT_CELLS: Final = r',\s*(?:"(?:[^"]|"")*"|[^,]*)'
"""A cell behind its comma; a quoted one may hold commas."""


@dataclass(frozen=True, slots=True)
class Layout:
    """What the columns of one heading are: measures, the stamp and its kind, and what numbers the GPU.

    `hidden` columns are read by somebody else and stay out of ``other``.
    """

    names: Names
    readings: Mapping[str, Reading]
    stamp: str | None = None
    stamp_kind: str | None = None
    index: str | None = None
    hidden: frozenset[str] = field(default_factory=frozenset)
    date: str | None = None
    """The column of the day, where the stamp's is a time of day."""


@dataclass(frozen=True, slots=True)
class Tool:
    """How one tool writes its table.

    `marks` are literals one of which each heading holds; `heading` returns a heading's names, or None for another line;
    `cells` splits a row (an expression over text); `passed` matches lines that say nothing; where `has_tail`, the last
    cell may hold blanks, so that a row may have more of them than its heading.
    """

    marks: tuple[str, ...]
    heading: Callable[[str], Names | None]
    cells: Callable[[pl.Expr], pl.Expr]
    readings: Mapping[str, Reading]
    stamp: str | None = None
    index: str | None = None
    passed: str = r"^\s*$"
    variant: str = ""
    has_tail: bool = False


def by_commas(text: pl.Expr) -> pl.Expr:
    """Split at commas; blanks around a cell and the quotes of a quoted one are not part of it."""
    plain = text.str.split(",").list.eval(pl.element().str.strip_chars())
    quoted = (pl.lit(",") + text).str.extract_all(_SPLIT_CELLS)
    bare = quoted.list.eval(
        pl.element().str.slice(1).str.strip_chars().str.strip_prefix('"').str.strip_suffix('"')
    )
    return pl.when(text.str.contains('"', literal=True)).then(bare).otherwise(plain)


def by_blanks(text: pl.Expr) -> pl.Expr:
    """Split at blanks."""
    return text.str.extract_all(r"\S+")


def cells_of(cells: Callable[[pl.Expr], pl.Expr], rows: list[str]) -> list[list[str]]:
    """Split some rows of a head."""
    frame = pl.DataFrame({"rest": rows}, schema={"rest": pl.String})
    return frame.select(cells(pl.col("rest")).alias("cells"))["cells"].to_list()


def layout_of(tool: Tool, names: Names, kind: str | None) -> Layout:
    """Say what a heading's columns are."""
    return Layout(
        names,
        tool.readings,
        tool.stamp if tool.stamp in names else None,
        kind,
        tool.index if tool.index in names else None,
    )


def heading_text(tool: Tool) -> Callable[[str], str | None]:
    """Make the function that finds a heading on a line, with or without a stamp before it."""

    def read(line: str) -> str | None:
        bare = split_prefix(line)[1]
        return next((text for text in (line, bare) if tool.heading(text)), None)

    return read


def claim_of(tool: Tool, head: Head) -> Claim | None:
    """Claim a file with a heading of the tool and little beside its rows."""
    lines = [stripped for line in head.lines if (stripped := line.rstrip("\r")).strip()]
    read = heading_text(tool)
    at = next((at for at, line in enumerate(lines) if read(line)), None)
    if at is None:
        return None
    names = tool.heading(read(lines[at]) or "") or ()
    below = [line for line in lines[at + 1 :] if not read(line)]
    prefix = None if tool.stamp in names else next((split_prefix(line)[0] for line in below), None)
    rests = [without_prefix(line, prefix) for line in below]
    rows = [row for row in cells_of(tool.cells, rests) if row and len(row) == len(names)]
    own = len(rows) + sum(is_error(line) or is_noise(line) for line in rests)
    if rests and own / len(rests) <= _MIN_SHARE:
        return None
    # The last row may be cut inside its stamp.
    sure = rows[:-1] or rows
    kind = kind_in([row[names.index(tool.stamp)] for row in sure]) if tool.stamp in names else None
    clock = CLOCKS[kind] if kind else PREFIX_CLOCKS.get(prefix or "", Clock.NONE)
    timed = f", {prefix} prefix" if prefix else "" if kind else ", no time"
    variant = f"{tool.variant}, {len(names)} columns{timed}"
    return Claim(variant, clock, {"prefix": prefix, "stamp_kind": kind})


def rows_under(group: pl.DataFrame, layout: Layout, claim: Claim) -> pl.DataFrame:
    """Read rows under one heading (``cells``) as columns of `gpu_sample`, with ``bad``: why a row is none."""
    when, error = stamp_columns(layout, claim)
    rows = group.with_columns(sample_ts=when, error_s=error).with_columns(bad=reason(layout))
    return rows.select("line_no", "bad", "sample_ts", "error_s", *measures(layout))


def cell(layout: Layout, name: str) -> pl.Expr:
    """Take one cell of a row."""
    return pl.col("cells").list.get(layout.names.index(name), null_on_oob=True)


def stamp_columns(layout: Layout, claim: Claim) -> tuple[pl.Expr, pl.Expr]:
    """Make stamp and resolution: the table's own, else the one before the line."""
    if layout.stamp and layout.stamp_kind:
        own = cell(layout, layout.stamp)
        own = cell(layout, layout.date) + pl.lit(" ") + own if layout.date else own
        when, error = stamp(own, layout.stamp_kind), resolution(own, layout.stamp_kind)
    else:
        when = outside_stamp(claim.settings.get("prefix"))
        error = outside_resolution(pl.col("outside"))
    return when, pl.when(when.is_not_null()).then(error)


def reason(layout: Layout) -> pl.Expr:
    """Say why a row cannot be used; NULL for a good one."""
    found = [
        pl.when(pl.col("is_open") & ~is_blank(pl.col("cells").list.last())).then(
            pl.lit("row cut in its last cell")
        )
    ]
    if layout.stamp and layout.stamp_kind:
        found.append(pl.when(pl.col("sample_ts").is_null()).then(pl.lit("stamp cannot be read")))
    if layout.index:
        found.append(pl.when(~cell(layout, layout.index).str.contains(INDEX)).then(pl.lit("no GPU index")))
    return pl.coalesce(found)


def measures(layout: Layout) -> list[pl.Expr]:
    """Make the columns of `gpu_sample` beside the stamp."""
    placed_by = [name for name in (layout.stamp if layout.stamp_kind else None, layout.index) if name]
    found = columns(layout.names, layout.readings, layout.hidden | frozenset(placed_by))
    index = (
        cell(layout, layout.index).str.extract(INDEX, 1).cast(pl.Int32, strict=False)
        if layout.index
        else pl.lit(0, pl.Int32)
    )
    return [*found, index.alias("gpu_index"), layout_code(layout.names).alias("segment")]


Rows = Callable[[pl.DataFrame, Names, Claim], pl.DataFrame]


def parse_table(tool: Tool, chunk: Chunk, rows_of: Rows | None = None) -> Parsed:
    """Read rows by heading, whole columns at a time; `rows_of` reads those under one heading, as many ``cells`` as it has names."""

    def of_tool(group: pl.DataFrame, names: Names, claim: Claim) -> pl.DataFrame:
        layout = layout_of(tool, names, claim.settings.get("stamp_kind"))
        return rows_under(group, layout, claim)

    lines, rows = read_rows(tool, chunk, rows_of or of_tool)
    return finish(lines, rows.filter(pl.col("bad").is_null()).drop("bad"))


def read_rows(tool: Tool, chunk: Chunk, rows_of: Rows) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Sort out the lines of a chunk (`gpu_lines.finish` wants them so), and read its rows with ``bad``."""
    settings: Mapping[str, Any] = chunk.claim.settings
    lines = with_heading(split(chunk, settings.get("prefix")), chunk.context, tool.marks, heading_text(tool))
    passed = pl.col("rest").str.contains(tool.passed) | (pl.col("rest").str.strip_chars() == "")
    lines = lines.with_columns(passed=passed | pl.col("is_heading"))
    rows = _all_rows(tool, lines.filter(~pl.col("passed")), chunk.claim, rows_of)
    found = rows.select("line_no", "bad", "sample_ts", is_row=pl.col("bad").is_null()).unique(
        "line_no", keep="first", maintain_order=True
    )
    lines = lines.join(found, on="line_no", how="left", maintain_order="left")
    good = pl.col("is_row").fill_null(value=False)
    lines = sort_out(lines, pl.col("passed") | good, pl.col("bad"))
    return placed(lines, good, chunk.claim), rows


_EMPTY: Final[dict[str, Any]] = {
    "line_no": pl.Int64, "bad": pl.String, "sample_ts": pl.Datetime("us"), "error_s": pl.Float64
}  # fmt: skip


def _all_rows(tool: Tool, lines: pl.DataFrame, claim: Claim, rows_of: Rows) -> pl.DataFrame:
    """Read rows by heading.  Those that do not fit theirs are told for all at once: a file may have thousands of broken ones."""
    known, table = _headings(tool, lines["heading"].unique())
    count = pl.col("cells").list.len()
    misfit = count < pl.col("width") if tool.has_tail else count != pl.col("width")
    bad = (
        pl.when(pl.col("width").is_null())
        .then(pl.lit("no heading above: columns have no names"))
        .when(misfit)
        .then(pl.lit("cells differ from heading"))
    )
    rows = lines.join(table, on="heading", how="left", nulls_equal=True, maintain_order="left")
    rows = rows.with_columns(cells=tool.cells(pl.col("rest"))).with_columns(bad=bad)
    misfits = rows.filter(pl.col("bad").is_not_null()).select("line_no", "bad")
    fitting = rows.filter(pl.col("bad").is_null()).partition_by("names", maintain_order=True)
    read = [rows_of(group, known[group["names"][0]], claim) for group in fitting]
    return pl.concat([pl.DataFrame(schema=_EMPTY), misfits, *read], how="diagonal").sort(
        "line_no", maintain_order=True
    )


def _headings(tool: Tool, headings: pl.Series) -> tuple[list[Names], pl.DataFrame]:
    """The names of some headings, each list of them once; and which heading has which, and how many."""
    found = [tool.heading(heading) if heading else None for heading in headings]
    places = {names: at for at, names in enumerate(dict.fromkeys(names for names in found if names))}
    columns = {
        "heading": headings,
        "names": [places.get(names or ()) for names in found],
        "width": [len(names) if names else None for names in found],
    }
    return list(places), pl.DataFrame(
        columns, schema={"heading": pl.String, "names": pl.Int64, "width": pl.Int64}
    )


def table_context(tool: Tool) -> Callable[[str, str | None], str | None]:
    """Make the function that finds the heading a chunk leaves in force."""

    def context(text: str, previous: str | None) -> str | None:
        return last_heading(text, previous, tool.marks, heading_text(tool))

    return context


def is_mostly(lines: list[str], own: Callable[[str], bool]) -> bool:
    """Say whether more than half of some lines are a tool's own."""
    return share(map(own, lines)) > _MIN_SHARE
