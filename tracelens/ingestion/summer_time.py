"""The hour that a server's wall clock goes through twice where summer time ends, and clocks that were set in a log.

Where the zone is given, it says when that hour is; the order of lines says which of the two a stamp is of: the second one
begins where stamps go back.  Where they do not, both are possible, and the error of the stamp says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from tracelens.ingestion.clock_turns import HOUR_S, HOUR_SLACK_S, Turn
from tracelens.store import Fold, Placement

_SUNDAY: Final = 6
_NIGHT_ENDS_H: Final = 4
_DAY: Final = timedelta(days=1)
_MAX_DAYS: Final = 20_000


def folds(
    placement: Placement, turns: Sequence[Turn], ends: tuple[datetime, datetime], *, is_assumed: bool
) -> tuple[tuple[Fold, ...], list[str]]:
    """Hours that come twice, and words for them and for other turns.

    `ends` are the first and last stamp as written; `is_assumed` says that nobody gave the zone.
    """
    seen = [Turn(turn.line_no, turn.step_s, _real(turn.after_ts, turn.line_no, placement)) for turn in turns]
    found = _in_zone(placement, seen, ends) if placement.zone else []
    if is_assumed:
        found = _on_any_sunday(seen)
    placed = {line for fold in found for line in (*fold.second, *fold.first_again)}
    said = [_said(fold) if placement.zone else _said_of_any(fold) for fold in found]
    back = [turn for turn in seen if turn.step_s < 0 and turn.line_no not in placed | {*placement.steps}]
    return tuple(found), [*said, *_set_back(back)]


def _real(stamp: datetime, line_no: int, placement: Placement) -> datetime:
    """A stamp as written with its real date, on the clock that wrote it."""
    passed = sum(s <= line_no for s in placement.steps) - sum(s <= line_no for s in placement.back_steps)
    years = placement.years + (passed if placement.step_unit == "years" else 0)
    days = placement.days + (passed if placement.step_unit == "days" else 0)
    try:
        return stamp.replace(year=stamp.year + years) + timedelta(days=days)
    except ValueError:
        return stamp.replace(year=stamp.year + years, day=28) + timedelta(days=days)


def _in_zone(placement: Placement, turns: Sequence[Turn], ends: tuple[datetime, datetime]) -> list[Fold]:
    assert placement.zone is not None
    lines = (0, max((*placement.steps, *placement.back_steps), default=0))
    first, last = (_real(end, line, placement) for end, line in zip(ends, lines, strict=True))
    low, high = min(first, last), max(first, last)
    found = []
    for fold in _twice(ZoneInfo(placement.zone), low - _DAY, high + _DAY):
        inside = [turn for turn in turns if _is_inside(turn, fold)]
        if inside or (low < fold.end and high >= fold.begin):
            second = tuple(turn.line_no for turn in inside if turn.step_s < 0)
            again = tuple(turn.line_no for turn in inside if turn.step_s > 0) if second else ()
            found.append(Fold(fold.begin, fold.end, fold.early_s, fold.late_s, second, again))
    return found


def _is_inside(turn: Turn, fold: Fold) -> bool:
    before = turn.after_ts - timedelta(seconds=turn.step_s)
    return fold.begin <= turn.after_ts < fold.end and fold.begin <= before < fold.end


def _twice(zone: ZoneInfo, low: datetime, high: datetime) -> Iterator[Fold]:
    """The hours that a zone's clock goes through twice, between two dates."""
    day = low
    for _ in range(_MAX_DAYS):
        if day >= high:
            return
        early, late = _ahead(zone, day), _ahead(zone, day + _DAY)
        if late < early:
            at = _change(zone, day, day + _DAY)
            yield Fold(at + late, at + early, early.total_seconds(), late.total_seconds())
        day += _DAY


def _ahead(zone: ZoneInfo, at: datetime) -> timedelta:
    """What a zone's clock is ahead of UTC at an instant."""
    return at.replace(tzinfo=UTC).astimezone(zone).utcoffset() or timedelta(0)


def _change(zone: ZoneInfo, low: datetime, high: datetime) -> datetime:
    """The instant at which a zone's clock is set, between two instants on either side of it."""
    before = _ahead(zone, low)
    low, high = low.replace(second=0, microsecond=0), high.replace(second=0, microsecond=0)
    while high - low > timedelta(minutes=1):
        middle = low + (high - low) // timedelta(minutes=2) * timedelta(minutes=1)
        low, high = (middle, high) if _ahead(zone, middle) == before else (low, middle)
    return high


def _on_any_sunday(turns: Sequence[Turn]) -> list[Fold]:
    """No zone is known: the one step back of an hour in a night before Sunday's morning is the end of summer time."""
    below, above = HOUR_SLACK_S
    back = [
        turn for turn in turns if -below <= turn.step_s + HOUR_S <= above and _is_that_night(turn.after_ts)
    ]
    if not back or len({turn.after_ts.date() for turn in back}) > 1:
        return []
    again = [turn.line_no for turn in turns if turn.step_s > 0 and turn.line_no > back[0].line_no]
    again = [line for line in again if line < back[-1].line_no]
    lines = tuple(turn.line_no for turn in back)
    return [Fold(datetime(1, 1, 1), datetime(9999, 1, 1), HOUR_S, 0.0, lines, tuple(again))]


def _is_that_night(at: datetime) -> bool:
    return at.weekday() == _SUNDAY and at.hour < _NIGHT_ENDS_H


def _said(fold: Fold) -> str:
    hour = f"{fold.begin:%Y-%m-%d %H:%M} to {fold.end:%H:%M}"
    if fold.second:
        return f"{hour} comes twice, the second time from line {fold.second[0]} on"
    width = round(fold.early_s - fold.late_s)
    return (
        f"{hour} comes twice and the order of lines does not tell which: stamps in it may be {width} s later"
    )


def _said_of_any(fold: Fold) -> str:
    return f"line {fold.second[0]} goes back an hour as when summer time ends, lines before it are taken an hour earlier"


def _set_back(back: Sequence[Turn]) -> list[str]:
    if not back:
        return []
    more = f" (and {len(back) - 1} more)" if len(back) > 1 else ""
    far = timedelta(seconds=round(-back[0].step_s))
    return [
        f"stamps go back {far} at line {back[0].line_no}{more}: the clock was set, or logs were joined; times as written"
    ]
