"""What the columns of ``nvidia-smi dmon`` are: from a heading, or from the cells where the heading is missing or false.

``--format csv,noheader`` leaves rows without names, and scripts put headings of their own over the tool's rows.  Such rows
are read only where they fit a layout of the tool by their number and every value lies in its column's range.
Layouts are those of R367-R384 (``temp``), R390-R52x (``gtemp mtemp``) and R535-R610 (``jpg ofa``, ``ccpm``).
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from tracelens.formats.gpu.gpu_columns import DMON, DMON_OTHER, NO_VALUE

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

GENERATIONS: Final[Mapping[str, Mapping[str, tuple[str, ...]]]] = {
    "R535 and later": {
        "p": ("pwr", "gtemp", "mtemp"), "u": ("sm", "mem", "enc", "dec", "jpg", "ofa"), "c": ("mclk", "pclk"),
        "v": ("pviol", "tviol"), "m": ("fb", "bar1", "ccpm"), "e": ("sbecc", "dbecc", "pci"), "t": ("rxpci", "txpci"),
    },
    "R390 to R52x": {
        "p": ("pwr", "gtemp", "mtemp"), "u": ("sm", "mem", "enc", "dec"), "c": ("mclk", "pclk"),
        "v": ("pviol", "tviol"), "m": ("fb", "bar1"), "e": ("sbecc", "dbecc", "pci"), "t": ("rxpci", "txpci"),
    },
    "R367 to R384": {
        "p": ("pwr", "temp"), "u": ("sm", "mem", "enc", "dec"), "c": ("mclk", "pclk"),
        "v": ("pviol", "tviol"), "m": ("fb", "bar1"), "e": ("sbecc", "dbecc", "pci"), "t": ("rxpci", "txpci"),
    },
}  # fmt: skip
"""Columns of the groups that ``-s`` names, by generation of the driver."""

HIGHEST: Final[Mapping[str, int]] = {
    "gpu": 255, "pwr": 3000, "temp": 130, "gtemp": 130, "mtemp": 130, "sm": 100, "mem": 100, "enc": 100, "dec": 100,
    "jpg": 100, "ofa": 100, "mclk": 30_000, "pclk": 5_000, "pviol": 100, "tviol": 1, "fb": 2_000_000, "bar1": 2_000_000,
    "ccpm": 2_000_000, "rxpci": 1_000_000, "txpci": 1_000_000,
}  # fmt: skip
"""No reading is above these (lowest 0); a cell that is says that a guessed layout is wrong."""

MIG_COLUMNS: Final = frozenset(("mig", "gi", "ci", "migdev"))
"""A number under one of these makes a row that of a MIG instance, not of the device."""

_GROUPS: Final = {
    "pwr": "p", "gtemp": "p", "temp": "p", "sm": "u", "mclk": "c", "pclk": "c", "pviol": "v",
    "fb": "m", "sbecc": "e", "rxpci": "t",
}  # fmt: skip
_GPM: Final = frozenset(("gract", "smutil", "smocc", "mmaact", "dram"))
_HAND_WRITTEN: Final = {"gpu_idx": "gpu", "idx": "gpu", "index": "gpu", "timestamp": "", "epoch": ""}
_ROW_BEGUN: Final = re.compile(r"^[\s\d.:,–—-]*$")
_WHOLE: Final = re.compile(r"[0-9]{1,15}")
_LOWEST_CLOCK: Final = 100
_FEWEST_ROWS: Final = 2
_MOST_COLUMNS: Final = 400
"""Seven MIG instances side by side with all groups are half of it."""


@dataclass(frozen=True, slots=True)
class Layout:
    """A heading: the names of its columns, and where three of them stand (character positions).

    `padded` says that a blank ends the heading, and so each whole row.
    """

    names: tuple[str, ...]
    comma: bool
    index_start: int
    index_end: int
    last_but_one_end: int
    width: int
    padded: bool


def _name(token: str) -> str:
    """Give a column its own name: those of a heading written by hand lose their unit."""
    plain = token.rstrip("%").removesuffix("_util").removesuffix("_mb")
    return _HAND_WRITTEN.get(plain, plain if plain in DMON else token)


def _apart(names: Sequence[str]) -> tuple[str, ...]:
    """Number the columns of one name (MIG instances side by side): which is the device's is not told, so none is."""
    times, seen = Counter(names), Counter[str]()
    numbered: list[str] = []
    for name in names:
        seen[name] += 1
        numbered.append(f"{name}#{seen[name]}" if times[name] > 1 else name)
    return tuple(numbered)


@lru_cache(maxsize=256)
def layout_of(heading: str) -> Layout | None:
    """Read a heading without its stamp; None where the line is no heading of dmon."""
    if not heading.lstrip().startswith("#"):
        return None
    spans = [found.span() for found in re.finditer(r"[^\s,#]+", heading)]
    named = [(_name(heading[start:end]), start, end) for start, end in spans]
    named = [each for each in named if each[0]]
    raw = [name for name, _, _ in named]
    measures = (set(raw) & (DMON.keys() | DMON_OTHER)) - {"gpu"}
    if raw.count("gpu") != 1 or not measures or "pid" in raw or len(raw) > _MOST_COLUMNS:
        return None
    _, start, end = named[raw.index("gpu")]
    padded = heading != heading.rstrip()
    return Layout(
        _apart(raw), "," in heading, start, end, named[-2][2], len(heading.rstrip()), padded
    )  # fmt: skip


def glued_heading(line: str) -> str | None:
    """Find a heading behind the beginning of a row: the tool was killed there, and its next run appended to the file."""
    at = line.rfind("#")
    return (
        line[at:]
        if at > 0 and line[:at].strip() and _ROW_BEGUN.match(line[:at]) and layout_of(line[at:])
        else None
    )


def groups_of(names: Iterable[str]) -> str:
    """Name the groups of ``-s`` that the columns belong to, in their order."""
    return "".join(dict.fromkeys(_GROUPS[name] for name in names if name in _GROUPS))


def has_gpm(names: Iterable[str]) -> bool:
    """Say whether there are columns of ``--gpm-metrics``."""
    return any(name.split("#")[0] in _GPM for name in names)


def has_mig(names: Iterable[str]) -> bool:
    """Say whether there are MIG instances beside the device, in rows or in columns of their own."""
    return any("#" in name or name in MIG_COLUMNS for name in names)


def cells_of(row: str) -> list[str]:
    """Split a row."""
    return row.replace("#", " ").replace(",", " ").split()


def _in_range(name: str, cell: str) -> bool:
    return cell in NO_VALUE or bool(_WHOLE.fullmatch(cell) and int(cell) <= HIGHEST.get(name, 1 << 62))


def _fit(names: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
    """Say whether every cell is in its column's range, and a clock is one."""
    clocks = [cell for row in rows for name, cell in zip(names, row, strict=True) if name in ("mclk", "pclk")]
    awake = not clocks or any(
        cell not in NO_VALUE and _in_range("", cell) and int(cell) >= _LOWEST_CLOCK for cell in clocks
    )
    return awake and all(_in_range(name, cell) for row in rows for name, cell in zip(names, row, strict=True))


def _made_up(times: Sequence[str], names: Sequence[str]) -> str:
    return "# " + ", ".join((*times, "gpu", *names))


@dataclass(frozen=True, slots=True)
class Guess:
    """A heading made for rows that lack one, and the words for what it was made of."""

    heading: str
    said: str


def guess_columns(rows: Sequence[Sequence[str]], groups: str) -> Guess | None:
    """Find the one generation in which rows of these groups have that many cells, all within their ranges."""
    rows = _alike(rows)
    if not rows:
        return None
    times = _times(rows[0])
    width = len(rows[0]) - len(times) - 1
    bare = [row[len(times) :] for row in rows]
    layouts: dict[tuple[str, ...], str] = {}
    for drivers, columns in GENERATIONS.items():
        names = tuple(name for letter in groups for name in columns[letter])
        if len(names) == width and _fit(("gpu", *names), bare):
            layouts.setdefault(names, drivers)
    if len(layouts) != 1:
        return None
    ((names, drivers),) = layouts.items()
    return Guess(_made_up(times, names), f"{groups} of {drivers} guessed from {len(rows[0])} cells")


def _alike(rows: Sequence[Sequence[str]]) -> list[Sequence[str]]:
    """Those of the most frequent number of cells: a kill cuts rows, and other lines may be between."""
    counts = Counter(len(row) for row in rows)
    return [row for row in rows if len(row) == max(counts, key=lambda count: counts[count])]


def _times(row: Sequence[str]) -> tuple[str, ...]:
    """Name the stamp's cells before the index, told by their shape: ``-o D``, ``-o T``, ``-o DT``."""
    date = bool(row and re.fullmatch(r"20\d\d[01]\d[0-3]\d", row[0]))
    time = len(row) > date and bool(re.fullmatch(r"\d\d:\d\d:\d\d", row[date]))
    return ("Date",) * date + ("Time",) * time


def guess_without_heading(rows: Sequence[str]) -> Guess | None:
    """Read rows without any heading as those of the default groups; a single row is too little to tell."""
    return guess_columns([cells_of(row) for row in rows], "puc") if len(rows) >= _FEWEST_ROWS else None


def guess_under(heading: str, rows: Sequence[str]) -> Guess | None:
    """Find the layout of rows that all differ from their heading in number; its names still tell the groups."""
    layout, cells = layout_of(heading), [cells_of(row) for row in rows]
    if layout is None or len(cells) < _FEWEST_ROWS or any(len(row) == len(layout.names) for row in cells):
        return None
    found = guess_columns(cells, groups_of(layout.names))
    return (
        Guess(found.heading, f"heading of {len(layout.names)} names does not fit: {found.said}")
        if found
        else None
    )
