"""What the columns of a home-made log are: found once in the head of the file, the same for all of it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from tracelens.formats.gpu import measure_names as known
from tracelens.formats.gpu.cell_stamps import kind_in
from tracelens.formats.gpu.gpu_columns import Reading
from tracelens.formats.gpu.measure_names import EITHER, GPU, HOST, Found, meanings, plain

FEWEST_MEASURES: Final = 2
_TICKS: Final = ("tick", "elapsed", "elapsed_s", "elapsed_time", "monotonic", "mono", "monotonic_s", "uptime", "uptime_s", "sample",
                 "step", "seq", "offset_s", "seconds", "rel_time")  # fmt: skip
"""Names of what puts rows in order where there is no instant."""

_MOST_GPUS: Final = 64
_FEWEST_WEAK: Final = 3
"""A power, a temperature and a utilization together are a GPU's; one of them alone is anybody's."""

_DAY: Final = re.compile(r"\d{4}([-/])\d\d\1\d\d", re.ASCII)
_LABELS: Final = (
    (known.UUIDS, Reading("gpu_uuid")),
    (known.PRODUCTS, Reading("gpu_name")),
    (known.REASONS, Reading("clock_reasons")),
)


@dataclass(frozen=True, slots=True)
class Plan:
    """Columns by what they are: measures of GPUs and of the host, by name; the stamp and its kind; the index."""

    stamp: str | None
    stamp_kind: str | None
    index: str | None
    gpu: Mapping[str, Reading] = field(default_factory=dict)
    host: Mapping[str, Reading] = field(default_factory=dict)
    wide: Mapping[int, Mapping[str, Reading]] = field(default_factory=dict)
    """Measures of several GPUs in one row, by GPU."""
    date: str | None = None
    """The column of the day, where the stamp is a time of day."""
    unnumbered: bool = False
    """Rows have nothing to tell GPUs by, and several come at once."""

    @property
    def measure_count(self) -> int:
        """How many columns are measures."""
        labels = {"gpu_uuid", "gpu_name", "host", "clock_reasons"}
        all_of = [
            *self.gpu.values(),
            *self.host.values(),
            *(each for w in self.wide.values() for each in w.values()),
        ]
        return sum(each.column not in labels for each in all_of)


def numbers(cells: Sequence[Any]) -> list[float]:
    """Take the numbers among some cells."""
    found = []
    for cell in cells:
        try:
            found.append(float(cell))
        except (TypeError, ValueError):
            continue
    return [each for each in found if each == each and abs(each) < 1e18]  # noqa: PLR0124, PLR2004


def _stamp(names: Sequence[str], texts: Mapping[str, Sequence[str]]) -> tuple[str | None, str | None]:
    """Find the stamp: the first name of one that holds instants, those with a zone and epochs before local ones."""
    named = sorted(
        (name for name in names if known.is_time(plain(name))), key=lambda name: known.time_rank(plain(name))
    )
    kinds = [(name, kind) for name in named if (kind := kind_in([cell for cell in texts[name] if cell]))]
    instants = [pair for pair in kinds if pair[1].startswith("epoch") or pair[1] == "zoned"]
    dated = [pair for pair in kinds if pair[1] in ("dated", "ctime")]
    return next(iter([*instants, *dated, *kinds]), (None, None))


def _date(names: Sequence[str], texts: Mapping[str, Sequence[str]]) -> str | None:
    """Find the column of the day."""
    for name in names:
        cells = [cell for cell in texts[name] if cell]
        if plain(name) in ("date", "day") and cells and all(map(_DAY.fullmatch, cells)):
            return name
    return None


def _index(names: Sequence[str], texts: Mapping[str, Sequence[str]]) -> str | None:
    by_plain = {plain(name): name for name in reversed(names)}
    for wanted in known.INDEXES:
        name = by_plain.get(wanted)
        cells = {cell.strip() for cell in texts[name] if cell} if name else set()
        digits = [cell.lower().removeprefix("gpu").removeprefix("cuda:").strip(" :_") for cell in cells]
        if cells and all(each.isdecimal() and int(each) < _MOST_GPUS for each in digits):
            return name
    return None


def _measure(name: str, values: Sequence[float]) -> tuple[Found, float] | None:
    """Say what a column measures, with the factor; None where its name says nothing or its unit cannot be told."""
    for found in meanings(name):
        scale = found.scale if found.scale is not None else known.scale_by(values, found.measure)
        if scale is not None:
            return found, scale
    return None


def _owner(found: Sequence[Found]) -> str | None:
    """Say whose memory a bare name means; None where GPUs and host are both in the file."""
    owners = known.owners(found) - {EITHER}
    return next(iter(owners)) if len(owners) == 1 else None


def _bare_scale(found: Found, owner: str | None, values: Sequence[float]) -> float | None:
    """Tell the unit of a memory column whose owner the other columns told."""
    if owner == GPU:
        return known.scale_of_gpu_memory(found.scale, values)
    return found.scale if found.scale is not None else known.scale_by(values, found.measure)


@dataclass(slots=True)
class _Draft:
    """A plan while it is made."""

    gpu: dict[str, Reading] = field(default_factory=dict)
    host: dict[str, Reading] = field(default_factory=dict)
    wide: dict[int, dict[str, Reading]] = field(default_factory=dict)
    either: dict[str, Found] = field(default_factory=dict)
    told: list[Found] = field(default_factory=list)
    weak: set[str] = field(default_factory=set)

    def take(self, name: str, values: Sequence[float]) -> None:
        """Put a column where its name and values say it belongs."""
        simple = plain(name)
        found = _measure(simple, values)
        if found is None:
            self._take_wide(name, values)
            bare = [each for each in meanings(simple) if each.measure.owner == EITHER]
            self.either.update((name, each) for each in bare)
        elif found[0].measure.owner == EITHER:
            self.either[name] = found[0]
        else:
            self.told.append(found[0])
            of_gpu = found[0].measure.owner == GPU
            (self.gpu if of_gpu else self.host)[name] = known.reading(*found)
            if of_gpu and known.is_weak(simple, found[0]):
                self.weak.add(name)

    def _take_wide(self, name: str, values: Sequence[float]) -> None:
        split = known.wide(plain(name))
        inner = _measure(split[1], values) if split else None
        if split and inner and inner[0].measure.owner != HOST:
            found, scale = inner
            if found.measure.owner == EITHER:
                scale = known.scale_of_gpu_memory(found.scale, values) or scale
            self.wide.setdefault(split[0], {})[name] = known.reading(found, scale)
            self.told.append(found)

    def settle(self, texts: Mapping[str, Sequence[str]], *, is_gpu: bool, is_list: bool) -> None:
        """Decide what could be of a GPU or of something else.

        `is_gpu` says that rows name their GPU, `is_list` that what is of one stands apart from the rest of its line.
        """
        only_weak = bool(self.gpu) and not self.wide and set(self.gpu) == self.weak
        if only_weak and not is_gpu and (self.host or len(self.weak) < _FEWEST_WEAK):
            self.gpu.clear()
            self.told = [found for found in self.told if found.measure.owner == HOST]
        of_file = _owner(self.told)
        for name, each in self.either.items():
            owner = (GPU if name.startswith("gpu.") else HOST) if is_list else of_file
            scale = _bare_scale(each, owner, numbers(texts[name]))
            fits = owner == HOST or (owner == GPU and known.is_size(each.measure))
            if fits and scale is not None:
                (self.gpu if owner == GPU else self.host)[name] = known.reading(each, scale)


def plan_of(names: Sequence[str], texts: Mapping[str, Sequence[str]], *, is_list: bool = False) -> Plan:
    """Plan a file by the names of its columns and their cells in the head; `is_list` says that its lines list GPUs."""
    stamp, kind = _stamp(names, texts)
    date = _date(names, texts) if kind == "clock" else None
    index = _index(names, texts)
    draft = _Draft()
    for name in names:
        if name not in (stamp, date, index):
            draft.take(name, numbers(texts[name]))
    named = is_list or index is not None or any(plain(name) in known.UUIDS for name in names)
    draft.settle(texts, is_gpu=named, is_list=is_list)
    _label(names, draft.gpu, draft.host, has_gpus=bool(draft.gpu or draft.wide))
    unnumbered = _is_unnumbered(stamp, index, draft.gpu, texts)
    kind = "dated" if date else kind
    return Plan(stamp, kind, index, draft.gpu, draft.host, draft.wide, date, unnumbered)


def _label(
    names: Sequence[str], gpu: dict[str, Reading], host: dict[str, Reading], *, has_gpus: bool
) -> None:
    """Add the columns that are texts: whose row it is, and why the clock is down."""
    for name in names:
        if plain(name) in known.HOSTS:
            if has_gpus:
                gpu[name] = Reading("host", rank=known.HOSTS.index(plain(name)))
            if host:
                host[name] = Reading("host", rank=known.HOSTS.index(plain(name)))
        for among, reading in _LABELS:
            if has_gpus and plain(name) in among:
                gpu.setdefault(name, reading)


def _is_unnumbered(
    stamp: str | None, index: str | None, gpu: Mapping[str, Reading], texts: Mapping[str, Sequence[str]]
) -> bool:
    if index is not None or not gpu:
        return False
    if any(reading.column == "gpu_uuid" for reading in gpu.values()):
        return True
    cells = [cell for cell in texts[stamp] if cell] if stamp else []
    return bool(cells) and len(set(cells)) * 2 <= len(cells)


def is_ordered(names: Sequence[str], plan: Plan) -> bool:
    """Say whether rows have a time or a tick."""
    return plan.stamp is not None or any(
        known.is_time(plain(name)) or plain(name) in _TICKS for name in names
    )


def said(plan: Plan) -> str:
    """Name for people what was found."""
    count = plan.measure_count
    owners = [who for who, has in (("GPU", plan.gpu or plan.wide), ("host", plan.host)) if has]
    notes = [
        f"{count} measure{'s' * (count != 1)} of {' and '.join(owners)}" if owners else "",
        f"{len(plan.wide)} GPUs in a row" if plan.wide else "",
        "GPUs without an index, numbered in their order" if plan.unnumbered else "",
        "" if plan.stamp else "no time",
    ]
    return ", ".join(note for note in notes if note)
