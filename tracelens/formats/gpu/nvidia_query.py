"""``nvidia-smi --query-gpu=... --format=csv``: one row per tick and GPU, named by the heading, comma and blank between.

Heading cells are a field's name with its unit in brackets (``power.draw [W]``); ``nounits`` leaves the units out.
``timestamp`` is local wall time with milliseconds and no zone.  Without a heading only what units or values make
certain is read (`query_guess`): the meaning of a bare number is not in the file.  Written from captures of drivers 470 to 610.
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from tracelens.formats.base import Chunk, Claim, Clock, Format, Head, Parsed, Side
from tracelens.formats.gpu.gpu_lines import (
    finish,
    is_error,
    is_noise,
    last_heading,
    period_options,
    placed,
    share,
    sort_out,
    split,
    whole_lines,
    with_heading,
)
from tracelens.formats.gpu.gpu_stamps import best_clock, split_prefix, without_prefix
from tracelens.formats.gpu.query_guess import UNIT_CELL, guess_names, is_stamp, rows_per_tick, unit_of
from tracelens.formats.gpu.query_names import (
    FIELDS,
    cells_of,
    heading_cells,
    heading_text,
    prefix_of,
)
from tracelens.formats.gpu.query_rows import rows_under

if TYPE_CHECKING:
    from collections.abc import Sequence

_BARE_CELL: Final = re.compile(
    r"^(?:-?\d+(?:\.\d+)?|\[?[NA]/?A\]?|\[[A-Z][\w ]+\]|P\d+|0x[0-9a-fA-F]+|(?:Not )?Active)$"
)
_MIN_SHARE: Final = 0.5
_FEWEST_NAMES: Final = 2


def _is_plain(cell: str) -> bool:
    return bool(UNIT_CELL.match(cell) or _BARE_CELL.match(cell)) or is_stamp(cell)


def _fits(cells: Sequence[str], width: int) -> bool:
    return len(cells) == width and any(map(_is_plain, cells))


def _units_in_last(rows: list[list[str]], unit: str) -> bool:
    """Say whether the last cell of the rows carries its unit: a last cell without it was cut."""
    ends = [row[-1].endswith(" " + unit) for row in rows if not row[-1].startswith("[")]
    return bool(unit) and share(ends) > _MIN_SHARE


def _has_many(names: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
    """Say whether rows without an index are of several GPUs, by their UUIDs or by several rows in one tick."""
    if "index" in names or not rows:
        return False
    if "uuid" in names or "gpu_uuid" in names:
        at = names.index("uuid" if "uuid" in names else "gpu_uuid")
        return len({row[at] for row in rows}) > 1
    stamps = [_seconds(row[names.index("timestamp")]) for row in rows] if "timestamp" in names else []
    return rows_per_tick([stamp for stamp in stamps if stamp is not None]) > 1


def _seconds(cell: str) -> float | None:
    try:
        return (datetime.strptime(cell, "%Y/%m/%d %H:%M:%S.%f") - datetime(2000, 1, 1)).total_seconds()
    except ValueError:
        return None


def _claim(
    variant: Sequence[str],
    names: Sequence[str],
    rows: Sequence[Sequence[str]],
    settings: dict[str, Any],
    period: str = "",
) -> Claim:
    """Say what was seen; what every kind of file of this tool has in common is added here."""
    kind = settings["prefix"]
    clock = best_clock(kind, Clock.LOCAL if "timestamp" in names else Clock.NONE)
    many = _has_many(names, rows)
    notes = [
        *variant,
        f"{kind} prefix" if kind else "",
        "GPUs without an index, numbered in their order" if many else "",
        "no time" if clock is Clock.NONE else "",
        period,
    ]
    return Claim(", ".join(note for note in notes if note), clock, {**settings, "is_unnumbered": many})


def _named_claim(lines: list[str], at: int) -> Claim | None:
    below = [line for line in lines if not heading_text(line) and "," in line]
    kind, has_name = prefix_of(lines[at], below)
    cells = (heading_cells(heading_text(lines[at]) or "") or ())[has_name:]
    rests = [without_prefix(line, kind).strip() for line in lines]
    rows = [row for rest in rests if not heading_text(rest) and _fits(row := cells_of(rest), len(cells))]
    widths = {
        len(named) - has_name for rest in rests if (named := heading_cells(heading_text(rest) or ""))
    } | {len(cells)}
    own = (
        bool(heading_text(rest)) or len(cells_of(rest)) in widths or is_error(rest) or is_noise(rest)
        for rest in rests
    )
    if share(own) <= _MIN_SHARE:
        return None
    units = "units" if any(unit for _, unit in cells) else "no units"
    variant = ["query-gpu", f"{len(cells)} columns", units]
    settings = {
        "prefix": kind, "names_stamp": has_name, "has_units": _units_in_last(rows, cells[-1][1]),
    }  # fmt: skip
    return _claim(variant, [name for name, _ in cells], rows, settings, period_options(rests))


def _is_bare_row(cells: list[str], kind: str | None) -> bool:
    """Say whether cells are as this tool prints them: numbers, numbers with units, states; a product name may be among them."""
    marked = kind is not None or any(UNIT_CELL.match(cell) for cell in cells) or is_stamp(cells[0])
    return marked and len(cells) > 1 and sum(map(_is_plain, cells)) >= len(cells) - 1


def _bare_claim(lines: list[str], whole: list[str]) -> Claim | None:
    """Claim rows without a heading; where only the stamp before them is known, no fewer than two columns must be told."""
    kind = split_prefix(lines[0])[0]
    cells = [cells_of(without_prefix(line, kind)) for line in lines]
    rows = [row for row in cells if _is_bare_row(row, kind) and len(row) == len(cells[0])]
    if not rows or rows[0] is not cells[0] or len(rows) / len(lines) <= _MIN_SHARE:
        return None
    evidence = [row for line in whole if len(row := cells_of(without_prefix(line, kind))) == len(rows[0])]
    evidence = [row for row in evidence if _is_bare_row(row, kind)]
    names = guess_names(evidence or rows[:1], after_epoch=kind == "epoch")
    told = [name for name in names if not name.startswith("column_")]
    units = [unit_of(cell) for cell in rows[0]]
    if not any(units) and not is_stamp(rows[0][0]) and len(told) < _FEWEST_NAMES:
        return None
    made_up = ", ".join(f"{name} [{unit}]" if unit else name for name, unit in zip(names, units, strict=True))
    settings = {"prefix": kind, "heading": made_up, "has_units": bool(units[-1])}
    return _claim(["query-gpu without heading", _guessed(names, told, any(units))], names, rows, settings)


def _guessed(names: Sequence[str], told: Sequence[str], from_units: bool) -> str:
    if from_units:
        return f"{len(names)} columns guessed from units"
    unnamed = len(names) - len(told)
    rest = f", {unnamed} columns without a name" if unnamed else ""
    return f"{' '.join(told) or 'nothing'} guessed from values{rest}"


def sniff(head: Head) -> Claim | None:
    """Claim a file with a heading of ``--query-gpu``, or with rows that only this tool writes."""
    lines = [stripped for line in head.lines if (stripped := line.strip())]
    at = next((at for at, line in enumerate(lines) if heading_text(line)), None)
    if at is not None:
        return _named_claim(lines, at)
    return _bare_claim(lines, whole_lines(head)) if lines else None


def context(text: str, previous: str | None) -> str | None:
    """Return the last heading of a chunk; rows have no field names in them."""
    return last_heading(text, previous, FIELDS, heading_text)


def _all_rows(lines: pl.DataFrame, claim: Claim) -> pl.DataFrame:
    groups = lines.partition_by("heading", maintain_order=True) if lines.height else []
    empty = pl.DataFrame(schema={"line_no": pl.Int64, "bad": pl.String, "sample_ts": pl.Datetime("us")})
    return pl.concat([empty, *(rows_under(group, claim) for group in groups)], how="diagonal").sort("line_no")


def parse(chunk: Chunk) -> Parsed:
    """Read rows by heading, whole columns at a time; error sentences between them become `log_event`."""
    settings = chunk.claim.settings
    carried = chunk.context or settings.get("heading")
    lines = with_heading(split(chunk, settings.get("prefix")), carried, FIELDS, heading_text)
    rest = pl.col("rest").str.strip_chars()
    lines = lines.with_columns(glued=pl.col("is_heading") & (rest != pl.col("heading")))
    rows = _all_rows(lines.filter(~pl.col("is_heading") & (rest != "")), chunk.claim)
    found = rows.select("line_no", "bad", "sample_ts", is_row=pl.col("bad").is_null())
    lines = lines.join(found, on="line_no", how="left", maintain_order="left")
    good = pl.col("is_row").fill_null(value=False)
    cut = pl.when("glued").then(pl.lit("row cut, a heading behind it"))
    lines = sort_out(lines, (pl.col("is_heading") & ~pl.col("glued")) | good, pl.coalesce("bad", cut))
    return finish(placed(lines, good, chunk.claim), rows.filter(pl.col("bad").is_null()).drop("bad"))


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
    complete="Every layout of R470 to R610. Without a heading the columns are guessed by their contents, and that is said.",
    record="nvidia-smi --query-gpu=timestamp,index,utilization.gpu,power.draw,clocks.sm,memory.used --format=csv -l 1 > gpu.csv",
    sample="query_units.csv",
)
