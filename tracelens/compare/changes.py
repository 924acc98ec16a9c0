"""What changed, with the interval of the change: the 2.5 % and 97.5 % quantile of the change over paired draws."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from tracelens.compare.values import Change

Statistics = Mapping[tuple[str, str], Mapping[str, Any]]
_QUANTILES: Final = (0.025, 0.975)


def statistics(rows: Sequence[Mapping[str, Any]]) -> Statistics:
    """Rows of the query `bootstrap` by measure and statistic."""
    return {(row["measure"], row["statistic"]): row for row in rows}


def changes(before: Statistics, after: Statistics) -> Iterator[Change]:
    """Each statistic of each measure that either side knows."""
    nothing: Mapping[str, Any] = {"measured_s": None, "known_count": 0, "draws_s": []}
    for key in dict.fromkeys((*before, *after)):
        yield _change(key, before.get(key, nothing), after.get(key, nothing))


def _change(key: tuple[str, str], before: Mapping[str, Any], after: Mapping[str, Any]) -> Change:
    values = (before["measured_s"], after["measured_s"])
    counts = (before["known_count"], after["known_count"])
    pairs = list(zip(before["draws_s"], after["draws_s"], strict=False))
    differences = sorted(other - one for one, other in pairs)
    ratios = sorted(other / one - 1 for one, other in pairs if one > 0)
    ratio = values[1] / values[0] - 1 if values[0] and values[1] is not None else None
    low_ratio, high_ratio = _interval(ratios) if ratio is not None else (None, None)
    low_s, high_s = _interval(differences)
    return Change(*key, *values, *counts, ratio, low_ratio, high_ratio, low_s, high_s)


def _interval(ordered: Sequence[float]) -> tuple[float | None, float | None]:
    if not ordered:
        return None, None
    low, high = (ordered[round((len(ordered) - 1) * quantile)] for quantile in _QUANTILES)
    return low, high
