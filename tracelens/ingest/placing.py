"""What logs leave out of their stamps (year, date, zone), from where it was taken, and how sure that is.

A vLLM log has neither year nor zone, a dmon log made with ``-o T`` has no date.  The year or the date comes from
``--date``, else from the sources beside it, else from the file's own date; the zone from the options, else UTC is
assumed and said.  What is chosen here is written into ``source.time_basis``, word for word.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from tracelens.errors import UsageError
from tracelens.formats.base import PLACEHOLDER_YEAR, Clock, Side
from tracelens.ingest.parts import ParsedSource
from tracelens.store import Placement

_OPTION: Final = {Side.SERVER: "--tz", Side.GPU: "--gpu-tz", Side.CLIENT: "--client-tz"}


@dataclass(frozen=True, slots=True)
class TimeOptions:
    """``--tz``, ``--gpu-tz``, ``--client-tz`` (IANA names or ±HH:MM) and ``--date``, as given."""

    tz: str | None = None
    gpu_tz: str | None = None
    client_tz: str | None = None
    date: date | None = None

    def zone(self, side: Side) -> str | None:
        """The zone given for one side; ``--tz`` holds for GPU logs too unless they have their own."""
        if side is Side.GPU:
            return self.gpu_tz or self.tz
        return self.client_tz if side is Side.CLIENT else self.tz

    def check(self) -> None:
        """Raise `UsageError` for a zone that nobody knows."""
        for text in (self.tz, self.gpu_tz, self.client_tz):
            if text is not None:
                zone_of(text)


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A source beside the one to place, with full dates: its span in UTC and its name."""

    label: str
    first: datetime
    last: datetime
    has_zone: bool = True


def zone_of(text: str) -> tuple[str | None, timedelta]:
    """An IANA name as (name, 0), a fixed offset such as ``+02:00`` as (None, offset), UTC as (None, 0)."""
    if text.upper() in ("UTC", "Z", "GMT"):
        return None, timedelta(0)
    if text[:1] in "+-":
        try:
            offset = datetime.strptime(text, "%z").utcoffset()
        except ValueError:
            offset = None
        if offset is not None:
            return None, offset
    else:
        try:
            return ZoneInfo(text).key, timedelta(0)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            pass
    raise UsageError(f"{text!r} is no time zone", hint="give a name such as Europe/Berlin, or an offset such as +02:00")


def place(clock: Clock, side: Side, parsed: ParsedSource, options: TimeOptions, neighbours: Sequence[Neighbour],
          modified_ts: float | None) -> tuple[Placement, str]:
    """How the stamps of one source become UTC, and the words for it."""
    if clock is Clock.UTC:
        return Placement(), "stamps are UTC instants"
    if clock in (Clock.RELATIVE, Clock.NONE):
        return Placement(), _UNPLACED[clock]
    if parsed.first_stamp is None:
        return Placement(), "no stamps"
    name, offset, said = _zone(side, options)
    if clock is Clock.LOCAL:
        return Placement(zone=name, shift_s=offset.total_seconds()), f"dates as written; {said}"
    anchor, source = _anchor(parsed, clock, options, neighbours, modified_ts)
    years, days, what = _shift(clock, parsed, anchor, source)
    placed = Placement(
        years, days, tuple(parsed.steps), tuple(parsed.back_steps), "years" if clock is Clock.YEARLESS else "days",
        name, offset.total_seconds(),
    )
    return placed, f"{what}; {said}{_steps_said(clock, parsed)}"


_UNPLACED: Final = {
    Clock.RELATIVE: "seconds from an unknown zero; durations hold, times of day are not known",
    Clock.NONE: "no time in the file; its order is kept",
}


def _zone(side: Side, options: TimeOptions) -> tuple[str | None, timedelta, str]:
    given = options.zone(side)
    if given is None:
        return None, timedelta(0), f"zone not in the log, UTC assumed ({_OPTION[side]} to change)"
    name, offset = zone_of(given)
    return name, offset, f"zone {given} as given"


def _steps_said(clock: Clock, parsed: ParsedSource) -> str:
    count = len(parsed.steps) - len(parsed.back_steps)
    unit = "year" if clock is Clock.YEARLESS else "day"
    said = f"; runs over {count} {unit} end{'s' if count > 1 else ''}" if count > 0 else ""
    return said + ("; stamps jump to and fro, order is all they tell" if parsed.jumps_dropped else "")


def _anchor(parsed: ParsedSource, clock: Clock, options: TimeOptions, neighbours: Sequence[Neighbour],
            modified_ts: float | None) -> tuple[datetime, str]:
    """An instant near the log's last stamp, and where it comes from."""
    if options.date is not None:
        return datetime(options.date.year, options.date.month, options.date.day), "--date"
    if neighbours:
        best = min(neighbours, key=lambda n: (_distance(n, parsed.last_stamp, clock), not n.has_zone, -(n.last - n.first).total_seconds(), n.label))
        return best.first + (best.last - best.first) / 2, best.label
    if modified_ts is not None:
        return datetime.fromtimestamp(modified_ts, UTC).replace(tzinfo=None), "the file's own date"
    return datetime.now(UTC).replace(tzinfo=None), "today, for want of anything better"


def _distance(neighbour: Neighbour, stamp: datetime | None, clock: Clock) -> float:
    """How far a neighbour lies from a stamp at best, whatever the year: a folder may hold logs of other months."""
    if stamp is None or clock is not Clock.YEARLESS:
        return 0.0
    middle = neighbour.first + (neighbour.last - neighbour.first) / 2
    return abs((_in_year(stamp, _nearest_year(stamp, middle)) - middle).total_seconds()) // 86400


def _in_year(stamp: datetime, year: int) -> datetime:
    try:
        return stamp.replace(year=year)
    except ValueError:
        return stamp.replace(year=year, day=28)


def _nearest_year(stamp: datetime, anchor: datetime) -> int:
    years = (anchor.year - 1, anchor.year, anchor.year + 1)
    return min(years, key=lambda year: abs((_in_year(stamp, year) - anchor).total_seconds()))


def _shift(clock: Clock, parsed: ParsedSource, anchor: datetime, source: str) -> tuple[int, int, str]:
    last = parsed.last_stamp or datetime(PLACEHOLDER_YEAR, 1, 1)
    passed = len(parsed.steps) - len(parsed.back_steps)
    if clock is Clock.YEARLESS:
        year = anchor.year if source == "--date" else _nearest_year(last, anchor)
        first = year if source == "--date" else year - passed
        return first - PLACEHOLDER_YEAR, 0, f"year {first} from {source}"
    if source == "--date":
        day = anchor.date()
    else:
        end = datetime.combine(anchor.date(), last.time())
        if source == "the file's own date" and end > anchor + timedelta(hours=14):
            end -= timedelta(days=1)
        day = end.date() - timedelta(days=passed)
    return 0, (day - date(PLACEHOLDER_YEAR, 1, 1)).days, f"date {day.isoformat()} from {source}"

