"""Rows of ``nvidia-smi dmon`` as columns of `gpu_sample`, under one heading at a time."""

from __future__ import annotations

from typing import Any, Final

import polars as pl

from tracelens.formats.base import Claim, Clock
from tracelens.formats.gpu.aligned import aligned_cells
from tracelens.formats.gpu.dmon_layout import HIGHEST, MIG_COLUMNS, Layout, layout_of
from tracelens.formats.gpu.gpu_columns import DMON, columns, is_blank, listed, number
from tracelens.formats.gpu.gpu_lines import layout_code
from tracelens.formats.gpu.gpu_stamps import PREFIX_CLOCKS, instant, outside_stamp, resolution, time_of_day

FEWEST_ALIGNED: Final = 1000
"""Fewer rows are split sooner than looked at by their places, which costs some milliseconds whatever their number."""

_TIME_NAMES: Final = frozenset(("Date", "Time"))


def _cell(at: int) -> pl.Expr:
    """Take a cell: text, or a number where the rows stand under each other."""
    return pl.col(f"cell_{at}")


def _text(names: tuple[str, ...], name: str) -> pl.Expr:
    return _cell(names.index(name)).cast(pl.String)


def own_clock(names: tuple[str, ...]) -> Clock:
    """Say what the tool's own stamps are worth under a heading."""
    if "Time" not in names:
        return Clock.NONE
    return Clock.LOCAL if "Date" in names else Clock.DAYLESS


def _own_stamp(names: tuple[str, ...], clock: Clock) -> pl.Expr:
    """Read the tool's own stamp, as far as it is of the clock that the file was claimed with."""
    own = own_clock(names)
    if own is Clock.NONE or (clock is Clock.LOCAL and own is not Clock.LOCAL):
        return pl.lit(None, pl.Datetime("us"))
    time = _text(names, "Time")
    if clock is Clock.LOCAL:
        date = _text(names, "Date")
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


def _cut_lines(rows: pl.DataFrame, layout: Layout) -> list[int]:
    """Number the rows that are cut in their last cell; nearly all are as long as their heading, and not looked at."""
    is_short = pl.col("rest").str.strip_chars_end().str.len_chars() < layout.width
    return rows.filter(pl.col("is_open") | is_short).filter(_is_cut(layout))["line_no"].to_list()


def _is_cut(layout: Layout) -> pl.Expr:
    """Say whether what is left of a row's last cell may be a part of it: a kill cuts anywhere, and that still looks like a number.

    A row that lies right-aligned under its heading down to the last cell, and ends short of it, is cut; one that
    reaches it is whole.  Of other rows only the last of a file can be cut: it is, unless a blank follows its last cell
    (under a heading with commas, which may be a script's own, that proves nothing).
    """
    if layout.comma:
        return pl.col("is_open")
    is_open = pl.col("is_open") & ~pl.col("rest").str.contains(r"\s$")
    row = pl.col("rest").str.strip_chars_end()
    at = {place: row.str.slice(place, 1) for place in (layout.index_start, layout.index_end - 1)}
    aligned = (at[layout.index_start] == " ") & (at[layout.index_end - 1] != " ")
    end = layout.last_but_one_end
    under = (row.str.slice(end - 1, 1) != " ") & (row.str.slice(end, 1) == " ")
    reaches = row.str.len_chars() >= layout.width
    # A row of a padded heading is never open when it is whole.
    proven = aligned & under & reaches & ~pl.lit(layout.padded)
    return (aligned & under & ~reaches) | (is_open & ~proven)


def _unplaced(names: tuple[str, ...], clock: Clock) -> frozenset[str]:
    """Name the stamp's columns that the sample's stamp holds; the others stay in ``other``."""
    own = own_clock(names)
    if own is Clock.LOCAL and clock in (Clock.LOCAL, Clock.UTC):
        return _TIME_NAMES
    return (
        frozenset(("Time",)) if own is not Clock.NONE and clock in (Clock.DAYLESS, Clock.UTC) else frozenset()
    )


def _out_of_range(names: tuple[str, ...]) -> pl.Expr:
    """Say whether a cell cannot be what the guessed layout takes it for."""
    found = [number(_cell(at)) > HIGHEST[name] for at, name in enumerate(names) if name in HIGHEST]
    return pl.any_horizontal(found)


def _reason(rows: pl.DataFrame, layout: Layout, claim: Claim) -> pl.Expr:
    """Say why a row cannot be used; NULL for a good one."""
    index = _text(layout.names, "gpu")
    needs_stamp = claim.clock is not Clock.NONE and own_clock(layout.names) is claim.clock
    return (
        pl.when(pl.col("line_no").is_in(_cut_lines(rows, layout)))
        .then(pl.lit("row cut in its last cell"))
        .when(~index.str.contains(r"^[0-9]{1,4}$"))
        .then(pl.lit("no GPU index"))
        .when(pl.col("sample_ts").is_null() & needs_stamp)
        .then(pl.lit("stamp cannot be read"))
    )


def _mig(names: tuple[str, ...]) -> pl.Expr | None:
    """Name the MIG instance that a row is of (``GPU 0 mig 1``), empty for a row of the device; None where no column tells."""
    found = [name for name in names if name in MIG_COLUMNS]
    if not found:
        return None
    cell = {name: _text(names, name) for name in (*found, "gpu")}
    instance = pl.concat_str(
        [pl.when(~is_blank(cell[name])).then(pl.lit(f" {name} ") + cell[name]) for name in found],
        ignore_nulls=True,
    )
    return pl.when(instance == "").then(instance).otherwise(pl.lit("GPU ") + cell["gpu"] + instance)


def _samples(rows: pl.DataFrame, layout: Layout, clock: Clock) -> pl.DataFrame:
    """Turn cells into columns of `gpu_sample`; the row of a MIG instance has no index, as it is not the device."""
    names, entity = layout.names, _mig(layout.names)
    if entity is not None:
        rows = rows.with_columns(entity=entity).with_columns(pl.col("entity").alias(f"cell_{len(names)}"))
        names = (*names, "entity")
    samples = rows.select(
        "line_no", "bad", "sample_ts", "error_s", *columns(names, DMON, _unplaced(names, clock), _cell),
        segment=layout_code(names),
    )  # fmt: skip
    if entity is None:
        return samples
    of_device = rows["entity"] == ""
    return samples.with_columns(gpu_index=pl.when(of_device).then("gpu_index"))


_EMPTY: Final[dict[str, Any]] = {
    "line_no": pl.Int64, "bad": pl.String, "sample_ts": pl.Datetime("us"), "error_s": pl.Float64
}  # fmt: skip


def all_rows(rows: pl.DataFrame, claim: Claim) -> pl.DataFrame:
    """Read rows (``heading`` is the one above) as columns of `gpu_sample`, with ``bad``: why a row is none.

    Rows that do not fit their heading are told for all headings at once: a file may have thousands of broken ones.
    """
    layouts, table = _layouts(rows["heading"].unique(), claim)
    found = rows.join(table, on="heading", how="left", nulls_equal=True, maintain_order="left")
    read = [found.filter(pl.col("layout").is_null()).select("line_no", bad=pl.lit("no heading above"))]
    for group in found.filter(pl.col("layout").is_not_null()).partition_by("layout", maintain_order=True):
        layout, guessed = layouts[group["layout"][0]]
        fitting, misfits = _with_cells(group, len(layout.names))
        read += [misfits, *(rows_under(each, (layout, guessed), claim) for each in fitting)]
    return pl.concat([pl.DataFrame(schema=_EMPTY), *read], how="diagonal").sort("line_no")


def _with_cells(group: pl.DataFrame, count: int) -> tuple[list[pl.DataFrame], pl.DataFrame]:
    """Split rows into as many cells (``cell_0`` and so on), those that are as long as most in one go; and those that have others."""
    names = [f"cell_{at}" for at in range(count)]
    length = pl.col("rest").str.len_bytes()
    even = group.filter(length == length.mode().min())
    cells = aligned_cells(even["rest"], names) if even.height >= FEWEST_ALIGNED else None
    odd = group if cells is None else group.filter(length != length.mode().min())
    plain = pl.col("rest").str.replace_all(",", " ", literal=True).str.replace_all("#", " ", literal=True)
    split = odd.with_columns(cells=plain.str.extract_all(r"\S+"))
    fits = pl.col("cells").list.len() == count
    fitting = [split.filter(fits).with_columns(listed(at).alias(name) for at, name in enumerate(names))]
    if cells is not None:
        fitting.append(even.hstack(cells))
    return [each for each in fitting if each.height], split.filter(~fits).select(
        "line_no", bad=pl.lit("cells differ from heading")
    )


def _layouts(headings: pl.Series, claim: Claim) -> tuple[list[tuple[Layout, bool]], pl.DataFrame]:
    """The layouts of some headings, each once and with whether it was guessed; and which heading has which."""
    instead = claim.settings.get("instead", {})
    texts = [heading or "" for heading in headings]
    made = [(layout_of(instead.get(text, text)), text in instead) for text in texts]
    numbers: dict[tuple[Layout, bool], int] = {}
    found = [
        None if layout is None else numbers.setdefault((layout, guessed), len(numbers))
        for layout, guessed in made
    ]
    schema = {"heading": pl.String, "layout": pl.Int64}
    return list(numbers), pl.DataFrame({"heading": headings, "layout": found}, schema=schema)


def rows_under(group: pl.DataFrame, under: tuple[Layout, bool], claim: Claim) -> pl.DataFrame:
    """Read rows of one layout (and whether it was guessed), with as many cells as it has names; ``bad`` says why a row is none."""
    layout, guessed = under
    stamp, error = _stamp(layout.names, claim)
    placed = group.with_columns(sample_ts=stamp)
    placed = placed.with_columns(bad=_reason(placed, layout, claim))
    if guessed:
        wrong = pl.when(_out_of_range(layout.names)).then(pl.lit("value out of range in the guessed layout"))
        placed = placed.with_columns(bad=pl.coalesce("bad", wrong))
    placed = placed.with_columns(error_s=pl.when(pl.col("sample_ts").is_not_null()).then(error))
    return _samples(placed, layout, claim.clock)
