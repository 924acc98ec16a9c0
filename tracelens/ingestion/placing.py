"""What logs leave out of their stamps (year, date, zone), from where it was taken, and how sure that is.

A vLLM log has neither year nor zone, a dmon log made with ``-o T`` has no date.  The year or the date comes from
``--date``, else from the sources beside it, else from the file's own date; the zone from the options, else UTC is
assumed and said.  What is chosen here is written into ``source.time_basis``, word for word.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from tracelens.errors import UsageError
from tracelens.formats.base import PLACEHOLDER_YEAR, Clock, Side
from tracelens.ingestion import summer_time
from tracelens.ingestion.parts import ParsedSource
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
    raise UsageError(
        f"{text!r} is no time zone", hint="give a name such as Europe/Berlin, or an offset such as +02:00"
    )


def place(
    clock: Clock,
    side: Side,
    parsed: ParsedSource,
    options: TimeOptions,
    neighbours: Sequence[Neighbour],
    modified_ts: float | None,
) -> tuple[Placement, str]:
    """How the stamps of one source become UTC, and the words for it."""
    if clock is Clock.UTC:
        return Placement(), f"{parsed.written_by or 'stamps'} are UTC instants{_own_clock_said(parsed)}"
    if clock in (Clock.RELATIVE, Clock.NONE):
        return Placement(), _UNPLACED[clock]
    if parsed.first_stamp is None:
        return Placement(), "no stamps"
    name, offset, said = _zone(side, options)
    if clock is Clock.LOCAL:
        return _turned(
            Placement(zone=name, shift_s=offset.total_seconds()),
            f"{parsed.written_by or 'dates as written'}{_own_clock_said(parsed)}; {said}{_hours_said(parsed)}",
            parsed,
            (side, options),
        )
    anchor = _anchor(parsed, clock, options, neighbours, modified_ts)
    years, days, what = _shift(clock, parsed, _on_wall(anchor, name, offset))
    placed = Placement(
        years,
        days,
        tuple(parsed.steps),
        tuple(parsed.back_steps),
        "years" if clock is Clock.YEARLESS else "days",
        name,
        offset.total_seconds(),
    )
    said = f"{what}; {said}{_steps_said(clock, parsed)}{_hours_said(parsed)}"
    return _turned(placed, said, parsed, (side, options))


def _turned(
    placement: Placement, said: str, parsed: ParsedSource, given: tuple[Side, TimeOptions]
) -> tuple[Placement, str]:
    """The placement with the hours that a server's clock went through twice, and the words for them."""
    side, options = given
    if side is not Side.SERVER:  # GPU logs have one writer and a period: loading/gpu_sample.sql orders them
        return placement, said
    assert parsed.first_stamp is not None
    assert parsed.last_stamp is not None
    ends = (parsed.first_stamp, parsed.last_stamp)
    folds, more = summer_time.folds(placement, parsed.turns, ends, is_assumed=options.zone(side) is None)
    return replace(placement, folds=folds), "; ".join((said, *more))


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


def _own_clock_said(parsed: ParsedSource) -> str:
    """How far the log's own clock is off the one that a wrapper wrote beside it."""
    if not parsed.clock_steps:
        return ""
    (step, count), *others = parsed.clock_steps.most_common()
    hours, minutes = divmod(abs(step) * 15, 60)
    far = f"{hours}:{minutes:02d} h {'ahead' if step > 0 else 'behind'}" if step else "the same"
    where = f" on {count} of {parsed.clock_steps.total()} lines" if others else ""
    return f", the log's own clock is {far}{where}"


def _steps_said(clock: Clock, parsed: ParsedSource) -> str:
    count = len(parsed.steps) - len(parsed.back_steps)
    unit = "year" if clock is Clock.YEARLESS else "day"
    said = f"; runs over {count} {unit} end{'s' if count > 1 else ''}" if count > 0 else ""
    return said + ("; stamps jump to and fro, order is all they tell" if parsed.jumps_dropped else "")


def _hours_said(parsed: ParsedSource) -> str:
    """What was made of whole hours in a GPU log that come twice or are missing."""
    twice = [line for line, step in parsed.hours if step < 0]
    missing = [line for line, step in parsed.hours if step > 0]
    said = (
        f"; line {twice[0]} goes back an hour as when summer time ends, rows before it are taken an hour earlier"
        if twice
        else ""
    )
    return said + (
        f"; before line {missing[0]} an hour is missing, a clock change or a pause" if missing else ""
    )


@dataclass(frozen=True, slots=True)
class _Anchor:
    """An instant that tells a log's year or day, and where it comes from.

    The log `begins` on that date (--date), `ends` then (a file's date), or lies around it.  `slack` is how far the
    log's last stamp may lie behind its end: the zone may not be known.
    """

    at: datetime
    said: str
    begins: bool = False
    ends: bool = False
    in_utc: bool = True
    slack: timedelta = timedelta(hours=14)


def _anchor(
    parsed: ParsedSource,
    clock: Clock,
    options: TimeOptions,
    neighbours: Sequence[Neighbour],
    modified_ts: float | None,
) -> _Anchor:
    if options.date is not None:
        return _Anchor(datetime.combine(options.date, time()), "--date", begins=True, in_utc=False)
    if parsed.day is not None:
        return _Anchor(datetime.combine(parsed.day, time()), "its heading", begins=True, in_utc=False)
    if neighbours:
        best = min(
            neighbours,
            key=lambda n: (
                _distance(n, parsed.last_stamp, clock),
                not n.has_zone,
                -(n.last - n.first).total_seconds(),
                n.label,
            ),
        )
        return _Anchor(best.first + (best.last - best.first) / 2, best.label, in_utc=best.has_zone)
    if modified_ts is not None:
        return _Anchor(
            datetime.fromtimestamp(modified_ts, UTC).replace(tzinfo=None), "the file's own date", ends=True
        )
    return _Anchor(datetime.now(UTC).replace(tzinfo=None), "today, for want of anything better", ends=True)


def _on_wall(anchor: _Anchor, zone: str | None, offset: timedelta) -> _Anchor:
    """The anchor on the log's own wall clock, as far as its zone was given."""
    if not anchor.in_utc or (zone is None and not offset):
        return anchor
    if zone is not None:
        offset = anchor.at.replace(tzinfo=UTC).astimezone(ZoneInfo(zone)).utcoffset() or offset
    return replace(anchor, at=anchor.at + offset, slack=timedelta(hours=1))


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
    """The year that brings a stamp nearest to the anchor; the 29th of February needs one that has it."""
    years = range(anchor.year - 8, anchor.year + 2)
    exact = [year for year in years if _in_year(stamp, year).day == stamp.day]
    return min(exact, key=lambda year: abs((_in_year(stamp, year) - anchor).total_seconds()))


def _year(last: datetime, anchor: _Anchor) -> int:
    """The year of the last stamp: a file is dated after what is in it, so its date is never before the stamp."""
    if not anchor.ends:
        return _nearest_year(last, anchor.at)
    latest = anchor.at + max(anchor.slack, timedelta(days=1))
    return next(
        year
        for year in range(latest.year, 0, -1)
        if _in_year(last, year) <= latest and _in_year(last, year).day == last.day
    )


def _shift(clock: Clock, parsed: ParsedSource, anchor: _Anchor) -> tuple[int, int, str]:
    """Years and days to add to the placeholder date of the first stamp, and the words for it."""
    passed = len(parsed.steps) - len(parsed.back_steps)
    last = parsed.last_stamp or datetime(PLACEHOLDER_YEAR, 1, 1)
    if clock is Clock.YEARLESS:
        first = anchor.at.year if anchor.begins else _year(last, anchor) - passed
        return first - PLACEHOLDER_YEAR, 0, f"year {first} from {anchor.said}"
    day = anchor.at.date() if anchor.begins else _last_day(parsed, anchor, passed) - timedelta(days=passed)
    return 0, (day - date(PLACEHOLDER_YEAR, 1, 1)).days, f"date {day.isoformat()} from {anchor.said}"


def _last_day(parsed: ParsedSource, anchor: _Anchor, passed: int) -> date:
    """The day of the last stamp of a log that has times of day only."""
    first, last = parsed.first_stamp, parsed.last_stamp
    assert first is not None
    assert last is not None
    if anchor.ends:
        end = datetime.combine(anchor.at.date(), last.time())
        return (end if end <= anchor.at + anchor.slack else end - timedelta(days=1)).date()
    half = (last - first + timedelta(days=passed)) / 2
    ends = [
        datetime.combine((anchor.at + half).date() + timedelta(days=day), last.time()) for day in (-1, 0, 1)
    ]
    return min(ends, key=lambda end: abs(end - half - anchor.at)).date()
