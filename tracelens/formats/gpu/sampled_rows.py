"""Rows of a home-made log as columns of `gpu_sample` and `host_sample`, by the plan of its columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import polars as pl

from tracelens.formats.gpu.gpu_columns import Reading, columns, is_blank, number, other, places, read
from tracelens.formats.gpu.gpu_lines import layout_code
from tracelens.formats.gpu.named_tables import INDEX
from tracelens.formats.gpu.sampled_plan import Plan

Names = Sequence[str]
_BASE = ("line_no", "sample_ts", "error_s")


def _at(names: Names, name: str) -> pl.Expr:
    return pl.col("cells").list.get(names.index(name), null_on_oob=True)


def _filled(names: Names, readings: Mapping[str, Reading]) -> list[pl.Expr]:
    return [read(_at(names, names[at]), each) for at, each in places(names, readings).items()]


def _taken(names: Names, plan: Plan, *, with_host: bool) -> frozenset[str]:
    """Name the columns that are no matter of ``other``."""
    wide = {name for each in plan.wide.values() for name in each}
    host = {names[at] for at in places(names, plan.host)} if with_host else set()
    placed_by = {name for name in (plan.stamp if plan.stamp_kind else None, plan.index, plan.date) if name}
    return frozenset(wide | host | placed_by)


def _index(names: Names, plan: Plan) -> pl.Expr:
    if plan.index is not None and plan.index in names:
        return _at(names, plan.index).str.extract(INDEX, 1).cast(pl.Int32, strict=False).alias("gpu_index")
    return pl.lit(None if plan.unnumbered else 0, pl.Int32).alias("gpu_index")


def gpu_rows(rows: pl.DataFrame, names: Names, plan: Plan) -> pl.DataFrame:
    """Rows with ``cells`` (texts, as many as `names`) as rows of `gpu_sample`; a wide row gives one for each GPU."""
    return pl.concat(list(_gpu_rows(rows, names, plan)), how="diagonal").sort("line_no", maintain_order=True)


def _gpu_rows(rows: pl.DataFrame, names: Names, plan: Plan) -> Iterator[pl.DataFrame]:
    segment = layout_code(names).alias("segment")
    hidden = _taken(names, plan, with_host=True)
    if not plan.wide:
        yield rows.select(*_BASE, *columns(names, plan.gpu, hidden), _index(names, plan), segment)
        return
    for gpu, readings in sorted(plan.wide.items()):
        index = pl.lit(gpu, pl.Int32).alias("gpu_index")
        both = {**plan.gpu, **readings}
        yield rows.select(*_BASE, *columns(names, both, hidden - set(readings)), index, segment)


def host_rows(rows: pl.DataFrame, names: Names, plan: Plan) -> pl.DataFrame:
    """Rows with ``cells`` as rows of `host_sample`; what no column holds stands with the GPUs, where there are any."""
    filled = {names[at] for at in places(names, plan.host)}
    hidden = _taken(names, plan, with_host=False)
    rest = {name: _at(names, name) for name in names if name not in filled and name not in hidden}
    left = other({} if plan.gpu or plan.wide else rest)
    return rows.select(*_BASE, *_filled(names, plan.host), left)


def has_measure(names: Names, plan: Plan) -> pl.Expr:
    """Say whether some measure of a row is a number or says that it has none."""
    measured = [*plan.gpu, *plan.host, *(name for each in plan.wide.values() for name in each)]
    found = [
        number(_at(names, name)).is_not_null() | is_blank(_at(names, name))
        for name in measured
        if name in names
    ]
    return pl.any_horizontal(found) if found else pl.lit(value=False)
