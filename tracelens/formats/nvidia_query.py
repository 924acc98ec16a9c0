"""``nvidia-smi --query-gpu=... --format=csv``: one row per tick and GPU, named by the heading, comma and blank between.

Heading cells are a field's name with its unit in brackets (``power.draw [W]``); ``nounits`` leaves the units out.
``timestamp`` is local wall time with milliseconds and no zone.  Without a heading only what units make certain is
read: the meaning of a bare number is not in the file.  Written from captures of drivers 470 to 610.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from tracelens.formats.base import Chunk, Claim, Clock, Format, Head, Parsed, Side
from tracelens.formats.gpu_columns import QUERY, SAMPLE_TYPES, columns, is_blank, number, places
from tracelens.formats.gpu_lines import (
    finish,
    instant,
    is_error,
    is_noise,
    last_heading,
    share,
    sort_out,
    split,
    with_heading,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

FIELDS: Final = (
    "utilization.", "power.draw", "power.limit", "memory.used", "memory.total", "memory.free", "temperature.gpu",
    "temperature.memory", "clocks.", "clocks_event_reasons", "clocks_throttle_reasons", "pcie.link.", "ecc.errors.",
)  # fmt: skip
"""Beginnings of field names that no other tool's heading has."""

_STAMP: Final = r"^\d{4}/\d\d/\d\d \d\d:\d\d:\d\d\.\d{1,6}$"
_UNIT_CELL: Final = re.compile(r"^-?\d+(?:\.\d+)? (%|W|MiB|MHz|us)$")
_BARE_CELL: Final = re.compile(
    r"^(?:-?\d+(?:\.\d+)?|\[?[NA]/?A\]?|\[[A-Z][\w ]+\]|P\d+|0x[0-9a-fA-F]+|(?:Not )?Active)$"
)
_NAME_CELL: Final = re.compile(r"^([a-z][a-z0-9_.]*)(?: ?\[([^\]]*)\])?$")
_REASON: Final = re.compile(r"^clocks_(?:event|throttle)_reasons\.(?!active$)(\w+)$")
_MIN_SHARE: Final = 0.5
_STAMP_ERROR_S: Final = 0.001
_FEW_ROWS: Final = 32


@lru_cache(maxsize=256)
def _named_cells(line: str) -> tuple[tuple[str, str], ...] | None:
    """Read names and units of cells; None where one is no name, or two are the same."""
    found = [_NAME_CELL.match(cell.strip()) for cell in line.lstrip("#\ufeff ").split(",")]
    cells = tuple((cell.group(1), cell.group(2) or "") for cell in found if cell)
    return cells if len(cells) == len(found) == len({name for name, _ in cells}) else None


def _heading(line: str) -> tuple[tuple[str, str], ...] | None:
    """Read a heading; None where the line is no heading of this tool."""
    cells = _named_cells(line)
    return cells if cells and any(name.startswith(FIELDS) for name, _ in cells) else None


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.split(",")]


def _is_stamp(cell: str) -> bool:
    return re.match(_STAMP, cell) is not None


def _is_plain(cell: str) -> bool:
    return bool(_UNIT_CELL.match(cell) or _BARE_CELL.match(cell)) or _is_stamp(cell)


def _fits(cells: Sequence[str], width: int) -> bool:
    return len(cells) == width and any(map(_is_plain, cells))


def _units_in_last(rows: list[list[str]], unit: str) -> bool:
    """Say whether the last cell of the rows carries its unit: a last cell without it was cut."""
    ends = [row[-1].endswith(" " + unit) for row in rows if not row[-1].startswith("[")]
    return bool(unit) and share(ends) > _MIN_SHARE


def _named_claim(lines: list[str], at: int) -> Claim | None:
    cells = _heading(lines[at]) or ()
    rows = [row for line in lines if not _heading(line) and _fits(row := _cells(line), len(cells))]
    own = (
        bool(_heading(line)) or _fits(_cells(line), len(cells)) or is_error(line) or is_noise(line)
        for line in lines
    )
    if share(own) <= _MIN_SHARE:
        return None
    names = [name for name, _ in cells]
    clock = Clock.LOCAL if "timestamp" in names else Clock.NONE
    units = "units" if any(unit for _, unit in cells) else "no units"
    untimed = "" if clock is Clock.LOCAL else ", no time"
    variant = f"query-gpu, {len(cells)} columns, {units}{untimed}"
    return Claim(variant, clock, {"has_units": _units_in_last(rows, cells[-1][1])})


def _index_place(rows: list[list[str]], stamped: bool) -> int | None:
    """Find where the index stands: the first cell (behind the stamp), if it counts from 0 without a gap."""
    at = 1 if stamped else 0
    seen = {row[at] for row in rows}
    return at if seen == {str(index) for index in range(len(seen))} else None


def _sure_names(rows: list[list[str]]) -> list[str]:
    """Name the cells of rows without a heading, as far as their units make them certain.

    One percentage is the utilization; the first of two powers is the draw, the second the limit; of two
    memory sizes the smaller is in use and the larger is the total.  More of a kind stay unnamed.
    """
    first = rows[0]
    kinds = [found.group(1) if (found := _UNIT_CELL.match(cell)) else "" for cell in first]
    names = [f"column_{at + 1}" for at in range(len(first))]
    spots = {unit: [at for at, kind in enumerate(kinds) if kind == unit] for unit in ("%", "W", "MiB")}
    wanted = {
        "%": ["utilization.gpu"],
        "W": ["power.draw", "power.limit"],
        "MiB": ["memory.used", "memory.total"],
    }
    if len(spots["MiB"]) > 1 and _size(first[spots["MiB"][0]]) > _size(first[spots["MiB"][1]]):
        wanted["MiB"].reverse()
    for unit, at in spots.items():
        for spot, name in zip(at, wanted[unit], strict=False):
            names[spot] = name
    if _is_stamp(first[0]):
        names[0] = "timestamp"
    index = _index_place(rows, _is_stamp(first[0]))
    if index is not None and not kinds[index]:
        names[index] = "index"
    return names


def _size(cell: str) -> float:
    return float(cell.split(" ", maxsplit=1)[0])


def _is_bare_row(cells: list[str]) -> bool:
    """Say whether cells are as this tool prints them: numbers, numbers with units, states; a product name may be among them."""
    marked = any(_UNIT_CELL.match(cell) for cell in cells) or _is_stamp(cells[0])
    return marked and len(cells) > 1 and sum(map(_is_plain, cells)) >= len(cells) - 1


def _bare_claim(lines: list[str]) -> Claim | None:
    """Claim rows without a heading."""
    cells = [_cells(line) for line in lines]
    rows = [row for row in cells if _is_bare_row(row) and len(row) == len(cells[0])]
    if not rows or len(rows) / len(lines) <= _MIN_SHARE:
        return None
    if not any(_UNIT_CELL.match(cell) for cell in rows[0]):
        return Claim("query-gpu without heading and units: columns have no names", Clock.NONE)
    names = _sure_names(rows[:_FEW_ROWS])
    clock = Clock.LOCAL if "timestamp" in names else Clock.NONE
    units = [found.group(1) if (found := _UNIT_CELL.match(cell)) else "" for cell in rows[0]]
    made_up = ", ".join(f"{name} [{unit}]" if unit else name for name, unit in zip(names, units, strict=True))
    settings: dict[str, Any] = {"heading": made_up, "has_units": bool(units[-1])}
    return Claim(f"query-gpu without heading, {len(names)} columns guessed from units", clock, settings)


def sniff(head: Head) -> Claim | None:
    """Claim a file with a heading of ``--query-gpu``, or with rows that only this tool writes."""
    lines = [stripped for line in head.lines if (stripped := line.strip())]
    at = next((at for at, line in enumerate(lines) if _heading(line)), None)
    if at is not None:
        return _named_claim(lines, at)
    return _bare_claim(lines) if lines else None


def _heading_text(line: str) -> str | None:
    return line.strip() if _heading(line.strip()) else None


def context(text: str, previous: str | None) -> str | None:
    """Return the last heading of a chunk; rows have no field names in them."""
    return last_heading(text, previous, FIELDS, _heading_text)


def _at(names: tuple[str, ...], name: str) -> pl.Expr:
    return pl.col("cells").list.get(names.index(name), null_on_oob=True)


def _reason(names: tuple[str, ...], last_unit: str) -> pl.Expr:
    """Say why a row cannot be used; NULL for a good one."""
    last = pl.col("cells").list.last()
    cut = ~last.str.ends_with(last_unit) & ~is_blank(last) if last_unit else pl.lit(None, pl.Boolean)
    stamp = pl.col("sample_ts").is_null() if "timestamp" in names else pl.lit(None, pl.Boolean)
    index = (
        ~_at(names, "index").str.contains(r"^[0-9]{1,4}$") if "index" in names else pl.lit(None, pl.Boolean)
    )
    return (
        pl.when(pl.col("cells").list.len() != len(names))
        .then(pl.lit("cells differ from heading"))
        .when(cut)
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


def _rows(group: pl.DataFrame, has_units: bool) -> pl.DataFrame:
    """Read rows under one heading as columns of `gpu_sample`, with ``bad``: why a row is none."""
    heading = group["heading"][0]
    if heading is None:
        return group.select("line_no", bad=pl.lit("no heading above: columns have no names"))
    cells = _named_cells(heading) or ()
    names = tuple(name for name, _ in cells)
    last_unit = cells[-1][1] if has_units and cells else ""
    trimmed = pl.col("rest").str.split(",").list.eval(pl.element().str.strip_chars())
    split_rows = group.with_columns(cells=trimmed)
    stamp = _at(names, "timestamp") if "timestamp" in names else pl.lit(None, pl.String)
    placed = split_rows.with_columns(sample_ts=instant(stamp, "%Y/%m/%d %H:%M:%S%.f")).with_columns(
        bad=_reason(names, last_unit)
    )
    placed = placed.with_columns(columns(names, QUERY, frozenset(("timestamp",))))
    if "index" not in names:
        placed = placed.with_columns(gpu_index=pl.lit(0, pl.Int32))
    placed = placed.with_columns(error_s=pl.when(pl.col("sample_ts").is_not_null()).then(_STAMP_ERROR_S))
    return _clock_reasons(names, placed).drop("cells", "rest", "outside", "text", "heading", "is_heading")


def parse(chunk: Chunk) -> Parsed:
    """Read rows by heading, whole columns at a time; error sentences between them become `log_event`."""
    settings = chunk.claim.settings
    carried = chunk.context or settings.get("heading")
    lines = with_heading(split(chunk.lines, None), carried, FIELDS, _heading_text)
    blank = pl.col("rest").str.strip_chars() == ""
    maybe = lines.filter(~pl.col("is_heading") & ~blank)
    groups = maybe.partition_by("heading", maintain_order=True) if maybe.height else []
    empty = pl.DataFrame(schema={"line_no": pl.Int64, "bad": pl.String, "sample_ts": pl.Datetime("us")})
    rows = pl.concat(
        [empty, *(_rows(group, bool(settings.get("has_units"))) for group in groups)], how="diagonal"
    )
    rows = rows.sort("line_no")
    found = rows.select("line_no", "bad", stamp="sample_ts", is_row=pl.col("bad").is_null())
    lines = lines.join(found, on="line_no", how="left", maintain_order="left")
    good = pl.col("is_row").fill_null(value=False)
    lines = sort_out(lines, pl.col("is_heading") | good, pl.col("bad"))
    stamp = pl.when(good).then("stamp")
    lines = lines.with_columns(stamp=stamp, event_ts=stamp.forward_fill(), error_s=pl.lit(None, pl.Float64))
    return finish(lines, rows.filter(pl.col("bad").is_null()).drop("bad"))


FORMAT: Final = Format(
    name="nvidia_query",
    title="nvidia-smi --query-gpu, csv with or without units and heading",
    side=Side.GPU,
    fills=("gpu_sample", "log_event"),
    sniff=sniff,
    parse=parse,
    context=context,
    carried={"log_event": "event_ts"},
    versions="R470 to R610",
)
