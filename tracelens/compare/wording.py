"""A comparison in a sentence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from tracelens import units
from tracelens.compare.values import HEADLINES, Change
from tracelens.outcomes import Outcome

_LEAST_MOVE_S: Final = 0.001
_MANY_TIMES: Final = 9.0
_NO_CHANGE: Final = 0.0005
_MOVES: Final = 2
_NAMED: Final = 3
"""Findings that a sentence names."""


def verdict(
    changes: Sequence[Change],
    gone: Sequence[Outcome],
    new: Sequence[Outcome],
    cached: tuple[float, float] | None,
) -> str:
    """What got better, what worse, through which stages, which findings went or came, and over how many requests.

    `cached` is the share of input tokens from the prefix cache on either side where it is not about the same.
    """
    told = [one for one in changes if one.measure in HEADLINES and one.statistic != "mean" and one.counts]
    better = _strongest(one for one in told if not one.is_worse)
    worse = _strongest(one for one in told if one.is_worse)
    parts = [f"{word}: {_in_words(one)}" for word, one in (("better", better), ("worse", worse)) if one]
    if not any(one.measure == HEADLINES[0] for one in told):
        parts = [_no_change(changes), *parts]
    parts.extend(_moved(changes))
    parts.extend(_cached(cached, gone))
    parts.extend(f"{word}: {_names(found)}" for word, found in (("gone", gone), ("new", new)) if found)
    parts.extend(_counts(changes))
    sentence = "; ".join(parts)
    return f"{sentence[:1].upper()}{sentence[1:]}."


def _cached(shares: tuple[float, float] | None, gone: Sequence[Outcome]) -> Iterator[str]:
    """That prompts hit the cache on one side only: the fix itself, or no fair comparison."""
    if shares:
        moved = " → ".join(map(units.percent, shares))
        is_fix = any(one.rule.startswith("cache.") for one in gone)
        yield f"input tokens from the prefix cache {moved}" + (
            "" if is_fix else ", so the runs do not do the same work (a warm cache?)"
        )


def _names(found: Sequence[Outcome]) -> str:
    more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
    return ", ".join(one.rule for one in found[:_NAMED]) + more


def _counts(changes: Sequence[Change]) -> Iterator[str]:
    known = next((one for one in changes if one.before_count and one.after_count), None)
    if known:
        yield f"{units.count(known.before_count)} and {units.count(known.after_count)} requests"


def _strongest(changes: Iterator[Change]) -> Change | None:
    """The first measure that changed, in the order of `HEADLINES`, at the quantile where it changed most."""
    found = list(changes)
    if not found:
        return None
    first = min(found, key=lambda one: HEADLINES.index(one.measure)).measure
    return max((one for one in found if one.measure == first), key=lambda one: abs(one.ratio or 0.0))


def _in_words(one: Change) -> str:
    return (
        f"{one.statistic} {one.measure.upper()} {units.duration(one.before_s)} → {units.duration(one.after_s)} "
        f"({signed(one.ratio)}, 95 % interval {signed(one.low_ratio)} to {signed(one.high_ratio)})"
    )


def _no_change(changes: Sequence[Change]) -> str:
    known = [
        one
        for one in changes
        if one.measure in HEADLINES and one.statistic == "p50" and one.low_s is not None
    ]
    if not known:
        return "no time was measured often enough on both sides"
    return f"no sure change of {_in_words(known[0])}"


def _moved(changes: Sequence[Change]) -> Iterator[str]:
    """The stages whose means surely moved most."""
    moves = [
        (one.after_s - one.before_s, one.measure)
        for one in changes
        if one.statistic == "mean" and one.measure not in HEADLINES and one.is_sure
        if one.before_s is not None and one.after_s is not None
    ]
    most = sorted(moves, key=lambda move: -abs(move[0]))[:_MOVES]
    told = [
        f"{stage} {'−' if moved < 0 else '+'}{units.duration(abs(moved))}"
        for moved, stage in most
        if abs(moved) >= _LEAST_MOVE_S
    ]
    if told:
        yield f"on average {', '.join(told)}"


def signed(ratio: float | None) -> str:
    """A change as ``+12 %`` or ``−84 %``; from ten times on as ``×54``."""
    if ratio is None:
        return units.UNKNOWN
    if abs(ratio) < _NO_CHANGE:
        return "0 %"
    if ratio >= _MANY_TIMES:
        return f"×{ratio + 1:,.0f}"
    return f"{'−' if ratio < 0 else '+'}{units.percent(abs(ratio))}"
