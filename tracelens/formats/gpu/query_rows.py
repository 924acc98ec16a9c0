"""Rows of ``nvidia-smi --query-gpu`` as columns of `gpu_sample`, under one heading at a time."""

from __future__ import annotations

import re
from typing import Final

import polars as pl

from tracelens.formats.base import Claim, Clock
from tracelens.formats.gpu.gpu_columns import QUERY, SAMPLE_TYPES, columns, is_blank, number, places
from tracelens.formats.gpu.gpu_lines import layout_code
from tracelens.formats.gpu.gpu_stamps import PREFIX_CLOCKS, instant, outside_stamp, resolution
from tracelens.formats.gpu.query_names import named_cells

_REASON: Final = re.compile(r"^clocks_(?:event|throttle)_reasons\.(?!active$)(\w+)$")
_STAMP_ERROR_S: Final = 0.001


def _at(names: tuple[str, ...], name: str) -> pl.Expr:
    return pl.col("cells").list.get(names.index(name), null_on_oob=True)


def _is_cut(last_unit: str) -> pl.Expr:
    """Say whether the last cell may be a part of what it was: it lacks its unit, or the file stops in it.

    A cell without a value, whole or cut, is NULL in any case, and a bracket closes one.
    """
    last = pl.col("cells").list.last()
    if last_unit:
        return ~last.str.ends_with(last_unit) & ~is_blank(last)
    return pl.col("is_open") & ~last.str.ends_with("]") & ~is_blank(last)


def _reason(names: tuple[str, ...], last_unit: str, needs_stamp: bool) -> pl.Expr:
    """Say why a row cannot be used; NULL for a good one."""
    stamp = pl.col("sample_ts").is_null() if needs_stamp else pl.lit(None, pl.Boolean)
    index = (
        ~_at(names, "index").str.contains(r"^[0-9]{1,4}$") if "index" in names else pl.lit(None, pl.Boolean)
    )
    return (
        pl.when(pl.col("cells").list.len() != len(names))
        .then(pl.lit("cells differ from heading"))
        .when(_is_cut(last_unit))
        .then(pl.lit("row cut in its last cell"))
        .when(stamp)
        .then(pl.lit("stamp cannot be read"))
        .when(index)
        .then(pl.lit("no GPU index"))
        .when(~_has_a_cell(names))
        .then(pl.lit("no cell can be read"))
    )


def _has_a_cell(names: tuple[str, ...]) -> pl.Expr:
    """Say whether some measure is a number or says that it has none: a sentence with as many commas is no row."""
    filled = places(names, QUERY).items()
    measures = [(at, reading) for at, reading in filled if SAMPLE_TYPES.get(reading.column) is not pl.String]
    cell = {at: pl.col("cells").list.get(at, null_on_oob=True) for at, _ in measures}
    found = [number(cell[at], reading.unit).is_not_null() | is_blank(cell[at]) for at, reading in measures]
    return pl.any_horizontal(found) if found else pl.lit("timestamp" in names)


def _reasons(names: tuple[str, ...]) -> pl.Expr | None:
    """Join the names of the active clock reasons, ``none`` where none of those asked for is active; NULL where none is told.

    Which were asked for stays in ``other``.
    """
    found = {name: match.group(1) for name in names if (match := _REASON.match(name))}
    if not found:
        return None
    active = [pl.when(_at(names, name) == "Active").then(pl.lit(short)) for name, short in found.items()]
    told = pl.any_horizontal([_at(names, name).is_in(["Active", "Not Active"]) for name in found])
    joined = pl.concat_str(active, separator=", ", ignore_nulls=True)
    return pl.when(told).then(pl.when(joined == "").then(pl.lit("none")).otherwise(joined))


def _clock_reasons(names: tuple[str, ...], rows: pl.DataFrame) -> pl.DataFrame:
    """Take the bit mask where the file has it, else the reasons' names."""
    told = _reasons(names)
    if told is None:
        return rows
    return rows.with_columns(
        clock_reasons=pl.coalesce("clock_reasons", told) if "clock_reasons" in rows.columns else told
    )


def _stamp(names: tuple[str, ...], claim: Claim) -> tuple[pl.Expr, pl.Expr, bool]:
    """Choose stamp, resolution, and whether each row must have it: the tool's own, else the one before the line."""
    if "timestamp" in names and claim.clock is Clock.LOCAL:
        return instant(_at(names, "timestamp"), "%Y/%m/%d %H:%M:%S%.f"), pl.lit(_STAMP_ERROR_S), True
    kind = claim.settings.get("prefix")
    if PREFIX_CLOCKS.get(kind or "") is claim.clock:
        return outside_stamp(kind), resolution(pl.col("outside")), False
    return pl.lit(None, pl.Datetime("us")), pl.lit(None, pl.Float64), False


def rows_under(group: pl.DataFrame, claim: Claim) -> pl.DataFrame:
    """Read rows under one heading as columns of `gpu_sample`, with ``bad``: why a row is none."""
    heading, settings = group["heading"][0], claim.settings
    if heading is None:
        return group.select("line_no", bad=pl.lit("no heading above: columns have no names"))
    cells = (named_cells(heading) or ())[bool(settings.get("names_stamp")) :]
    names = tuple(name for name, _ in cells)
    last_unit = cells[-1][1] if settings.get("has_units") and cells else ""
    stamp, error, is_own = _stamp(names, claim)
    trimmed = pl.col("rest").str.split(",").list.eval(pl.element().str.strip_chars())
    rows = group.with_columns(cells=trimmed).with_columns(sample_ts=stamp)
    rows = rows.with_columns(
        columns(names, QUERY, frozenset(("timestamp",)) if is_own else frozenset()),
        bad=_reason(names, last_unit, is_own),
        error_s=pl.when(pl.col("sample_ts").is_not_null()).then(error),
        segment=layout_code(names),
    )
    if "index" not in names and not settings.get("is_unnumbered"):
        rows = rows.with_columns(gpu_index=pl.lit(0, pl.Int32))
    rows = _clock_reasons(names, rows)
    return rows.drop("cells", "rest", "outside", "text", "heading", "is_heading", "is_open", "glued")
