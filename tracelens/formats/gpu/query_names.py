"""Headings of ``nvidia-smi --query-gpu``: names and units of the columns, and what stands before or in front of them."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from tracelens.formats.gpu.gpu_columns import QUERY
from tracelens.formats.gpu.gpu_stamps import split_prefix, without_prefix

if TYPE_CHECKING:
    from collections.abc import Sequence

FIELDS: Final = (
    "utilization.", "power.draw", "power.limit", "memory.used", "memory.total", "memory.free", "temperature.gpu",
    "temperature.memory", "clocks.", "clocks_event_reasons", "clocks_throttle_reasons", "pcie.link.", "ecc.errors.",
)  # fmt: skip
"""Beginnings of field names that no other tool's heading has."""

_NAME_CELL: Final = re.compile(r"^([a-z][a-z0-9_.]*)(?: ?\[([^\]]*)\])?$")
_FIRST_NAME: Final = re.compile(
    "(?<![_.])(?:"
    + "|".join(map(re.escape, sorted(("timestamp", "count", *QUERY), key=len, reverse=True)))
    + ")"
)
_STAMP_NAMES: Final = frozenset(("timestamp", "time", "ts", "epoch", "date", "datetime", "unix_time"))


@lru_cache(maxsize=256)
def named_cells(line: str) -> tuple[tuple[str, str], ...] | None:
    """Read names and units of cells; None where one is no name, or two are the same."""
    found = [_NAME_CELL.match(cell.strip()) for cell in line.lstrip("#\ufeff ").split(",")]
    cells = tuple((cell.group(1), cell.group(2) or "") for cell in found if cell)
    return cells if len(cells) == len(found) == len({name for name, _ in cells}) else None


def heading_cells(line: str) -> tuple[tuple[str, str], ...] | None:
    """Read a heading; None where the line is no heading of this tool."""
    cells = named_cells(line)
    return cells if cells and any(name.startswith(FIELDS) for name, _ in cells) else None


def heading_text(line: str) -> str | None:
    """Find the heading on a line: all of it, behind a stamp, or behind a row that a kill cut (its next run was appended)."""
    bare = split_prefix(line.strip())[1].strip()
    for text in (line.strip(), bare):
        if heading_cells(text):
            return text
    ends = (bare[found.start() :] for found in _FIRST_NAME.finditer(bare) if found.start())
    return next((end for end in ends if heading_cells(end)), None)


def is_glued(rest: str, heading: str) -> bool:
    """Say whether something else stands on the line before its heading."""
    return rest.strip() != heading


def cells_of(line: str) -> list[str]:
    """Split a row."""
    return [cell.strip() for cell in line.split(",")]


def prefix_of(heading: str, rows: Sequence[str]) -> tuple[str | None, bool]:
    """Find the stamp that stands before each line, and whether the heading has a name for it.

    A script that puts ``date +%s`` before each row writes the heading with or without a column for it.
    """
    kind, rest = split_prefix(heading)
    if heading_cells(rest.strip()) and kind:
        return kind, False
    names = [name for name, _ in heading_cells(heading) or ()]
    kinds = [each for row in rows if (each := split_prefix(row)[0])]
    kind = max(set(kinds), key=kinds.count) if kinds else None
    widths = [len(cells_of(without_prefix(row, kind))) for row in rows]
    if kind is None or len(kinds) * 2 <= len(rows):
        return None, False
    has_name = bool(names) and names[0] in _STAMP_NAMES and widths.count(len(names) - 1) * 2 > len(rows)
    return (kind, has_name) if has_name or len(names) in widths else (None, False)
