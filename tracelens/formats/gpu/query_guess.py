"""Names for the cells of ``nvidia-smi --query-gpu`` without a heading: only those that the cells themselves make certain.

With units (``csv,noheader``): one percentage is the utilization; of two powers the first is the draw, the second the
limit; of two memory sizes the smaller is in use and the larger is the total.

Bare numbers (``csv,noheader,nounits``), by what all rows of the head have in common:

| name              | taken for it                                                                              |
|-------------------|-------------------------------------------------------------------------------------------|
| timestamp         | first cell, ``YYYY/MM/DD HH:MM:SS.mmm`` (an epoch before the row is a prefix, not a cell)   |
| index             | first cell behind it, counting 0, 1, ... n-1, 0, 1, ... at least twice                     |
| power.draw        | the one column that has decimals (no other field has) and varies                          |
| power.limit       | beside it a column with decimals that is constant and nowhere below the draw               |
| memory.total      | of two or more columns of whole numbers above 20000 (no clock of a GPU reaches 20 GHz) the  |
|                   | largest, if it is constant                                                                |
| memory.used       | the other one, if there are two                                                           |
| utilization.gpu   | the one column of whole numbers from 0 to 100, if it varies, is somewhere below 5 or       |
|                   | above 97 (no temperature of a board at work), and somewhere above 16 (no PCIe link)       |

``epoch, utilization, power, used, total`` is a form of its own: there the cell before the total is in use even where
it is small.  All other columns stay in ``other`` as ``column_N``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Final

STAMP: Final = r"^20\d\d/\d\d/\d\d \d\d:\d\d:\d\d\.\d{1,6}$"
UNIT_CELL: Final = re.compile(r"^-?\d+(?:\.\d+)? (%|W|MiB|MHz|us)$")
_WHOLE: Final = re.compile(r"\d{1,15}", re.ASCII)
_DECIMAL: Final = re.compile(r"\d{1,6}\.\d{1,6}", re.ASCII)
_ABOVE_CLOCKS: Final = 20_000
_COLD, _HOT = 5, 97
_WIDEST_LINK: Final = 16
_PERCENT: Final = 100
_FEWEST_ROWS: Final = 2
_FEWEST_SIZES: Final = 2
_EPOCH_FORM: Final = ["utilization.gpu", "power.draw", "memory.used", "memory.total"]

Column = Sequence[str]
Test = Callable[[Column], bool]


def is_stamp(cell: str) -> bool:
    """Say whether a cell is a stamp as this tool writes it."""
    return re.match(STAMP, cell) is not None


def guess_names(rows: Sequence[Sequence[str]], *, after_epoch: bool = False) -> list[str]:
    """Name the columns of rows that are equal in number of cells; ``column_N`` for those that cannot be told."""
    if any(UNIT_CELL.match(cell) for cell in rows[0]):
        return _by_units(rows)
    columns: list[Column] = list(zip(*rows, strict=True))
    names = [f"column_{at + 1}" for at in range(len(columns))]
    start = int(all(map(is_stamp, columns[0])))
    names[:start] = ["timestamp"] * start
    if len(rows) < _FEWEST_ROWS:
        return names
    if after_epoch and _is_epoch_form(columns):
        return list(_EPOCH_FORM)
    if len(columns) > start and _counts_round(columns[start]):
        names[start] = "index"
        start += 1
    for name, at in _by_ranges(columns, start).items():
        names[at] = name
    return names


def unit_of(cell: str) -> str:
    """Find the unit behind a cell's number; empty where it has none."""
    found = UNIT_CELL.match(cell)
    return found.group(1) if found else ""


def _by_units(rows: Sequence[Sequence[str]]) -> list[str]:
    """Name cells with units; more than one of a kind stay unnamed, but for what the module says."""
    first = rows[0]
    kinds = [unit_of(cell) for cell in first]
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
    stamped = is_stamp(first[0])
    if stamped:
        names[0] = "timestamp"
    index = _index_place(rows, stamped)
    if index is not None and not kinds[index]:
        names[index] = "index"
    return names


def _size(cell: str) -> float:
    return float(cell.split(" ", maxsplit=1)[0])


def _index_place(rows: Sequence[Sequence[str]], stamped: bool) -> int | None:
    """Find where the index stands: the first cell (behind the stamp), if it counts from 0 without a gap."""
    at = 1 if stamped else 0
    seen = {row[at] for row in rows}
    return at if seen == {str(index) for index in range(len(seen))} else None


def _counts_round(column: Column) -> bool:
    """Say whether a column counts the GPUs of a tick, over and over: anything that idles may be 0 all the time."""
    count = len(set(column))
    return 1 < count <= len(column) // 2 and list(column) == [str(at % count) for at in range(len(column))]


def _all(column: Column, pattern: re.Pattern[str]) -> bool:
    return all(map(pattern.fullmatch, column))


def _is_constant(column: Column) -> bool:
    return len(set(column)) == 1


def _only(columns: Sequence[Column], start: int, test: Test) -> int | None:
    """Find the one column from `start` on for which a test holds; None for none or several."""
    found = [at for at in range(start, len(columns)) if test(columns[at])]
    return found[0] if len(found) == 1 else None


def _is_load(column: Column) -> bool:
    """Say whether a column is a percentage that varies, and neither a temperature nor a link's width or generation."""
    numbers = list(map(int, column))
    wide = max(numbers) > _WIDEST_LINK and not _is_constant(column)
    return wide and (min(numbers) < _COLD or max(numbers) > _HOT)


def _is_total(column: Column) -> bool:
    return _all(column, _WHOLE) and _is_constant(column) and int(column[0]) > _ABOVE_CLOCKS


def _is_percent(column: Column) -> bool:
    return _all(column, _WHOLE) and max(map(int, column)) <= _PERCENT


def _by_ranges(columns: Sequence[Column], start: int) -> dict[str, int]:
    """Tell columns of bare numbers by their values."""
    load = _only(columns, start, _is_percent)
    found = {
        **_powers(columns, start),
        **_sizes(columns, start),
        "utilization.gpu": load if load is not None and _is_load(columns[load]) else None,
    }
    return {name: at for name, at in found.items() if at is not None}


def _sizes(columns: Sequence[Column], start: int) -> dict[str, int | None]:
    """Tell memory sizes: one alone may be in use, free or all there is."""
    highest = {
        at: max(map(int, columns[at])) for at in range(start, len(columns)) if _all(columns[at], _WHOLE)
    }
    large = sorted((at for at, most in highest.items() if most > _ABOVE_CLOCKS), key=lambda at: highest[at])
    if (
        len(large) < _FEWEST_SIZES
        or not _is_constant(columns[large[-1]])
        or highest[large[-2]] == highest[large[-1]]
    ):
        return {}
    return {"memory.total": large[-1], "memory.used": large[0] if len(large) == _FEWEST_SIZES else None}


def _powers(columns: Sequence[Column], start: int) -> dict[str, int | None]:
    """Tell draw and limit among the columns with decimals; of several that vary none is told."""
    power = [at for at in range(start, len(columns)) if _all(columns[at], _DECIMAL)]
    draws = [at for at in power if not _is_constant(columns[at])]
    limits = [at for at in power if at not in draws]
    if len(draws) != 1:
        return {}
    highest = max(map(float, columns[draws[0]]))
    limit = limits[0] if len(limits) == 1 and float(columns[limits[0]][0]) >= highest else None
    return {"power.draw": draws[0], "power.limit": limit}


def _is_epoch_form(columns: Sequence[Column]) -> bool:
    """Say whether cells behind an epoch are utilization, power, memory in use and in all."""
    if len(columns) != len(_EPOCH_FORM):
        return False
    load, power, used, total = columns
    shapes = _is_percent(load) and _all(power, _DECIMAL) and _all(used, _WHOLE) and _is_total(total)
    return shapes and max(map(int, used)) <= int(total[0])


def rows_per_tick(stamps: Sequence[float]) -> int:
    """Count the rows of one tick by their stamps (seconds): rows of several GPUs are milliseconds apart, ticks a period.

    1 where ticks do not all have the same number of rows.
    """
    gaps = [later - earlier for earlier, later in pairwise(stamps)]
    if not gaps or max(gaps) <= 0:
        return 1
    period = sorted(gap for gap in gaps if gap >= max(gaps) / 2)[0]
    sizes = [1]
    for gap in gaps:
        if gap > period / 4:
            sizes.append(0)
        sizes[-1] += 1
    inner = sizes[:-1] or sizes
    return inner[0] if len(set(inner)) == 1 else 1
