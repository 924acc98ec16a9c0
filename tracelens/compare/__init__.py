"""Two runs side by side: whether they can be compared at all, what changed, how sure that is, and which findings went or came.

Every number is a row of a named query (`bootstrap`, `run_profile`, `goodput`); what happens here is pairing the two sides: the
interval of a change is the 2.5 % and 97.5 % quantile of the change over paired draws.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tracelens.case import Case
from tracelens.compare import changes as changed
from tracelens.compare import comparable, wording
from tracelens.compare.values import HEADLINES, Change, Comparison, Difference
from tracelens.compare.wording import signed
from tracelens.outcomes import Outcome
from tracelens.slo import Slo

__all__ = ["HEADLINES", "Change", "Comparison", "Difference", "Side", "compare", "signed"]


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two runs."""

    case: Case
    run: str
    label: str


def compare(before: Side, after: Side, slo: Slo | None = None) -> Comparison:
    """Compare two runs; never raises because they differ."""
    slo = slo or Slo()
    profiles = (_profile(before), _profile(after))
    differences = tuple(comparable.differences(*profiles))
    if any(one.blocks for one in differences):
        return Comparison(before.label, after.label, differences, comparable.refusal(differences), slo=slo)
    changes = tuple(changed.changes(_statistics(before, "a"), _statistics(after, "b")))
    gone, new, kept = _findings(before, after)
    goodput = (_goodput(before, slo), _goodput(after, slo)) if slo else None
    verdict = wording.verdict(changes, gone, new, comparable.cached(*profiles))
    return Comparison(before.label, after.label, differences, verdict, changes, goodput, slo, gone, new, kept)


def _profile(side: Side) -> comparable.Profile:
    return comparable.profile(side.case.query("run_profile", run=side.run).dicts())


def _statistics(side: Side, place: str) -> changed.Statistics:
    return changed.statistics(side.case.query("bootstrap", run=side.run, side=place).dicts())


def _goodput(side: Side, slo: Slo) -> Mapping[str, Any]:
    params: dict[str, Any] = {"run": side.run, **slo.params()}
    rows = side.case.query("goodput", **params).dicts()
    return rows[0] if rows else {}


def _findings(
    before: Side, after: Side
) -> tuple[tuple[Outcome, ...], tuple[Outcome, ...], tuple[Outcome, ...]]:
    old, now = (
        {one.rule: one for one in reversed(found) if one.severity != "info"}
        for found in _fired(before, after)
    )
    gone = tuple(one for rule, one in old.items() if rule not in now)
    new = tuple(one for rule, one in now.items() if rule not in old)
    return gone, new, tuple(one for rule, one in now.items() if rule in old)


def _fired(before: Side, after: Side) -> tuple[Sequence[Outcome], Sequence[Outcome]]:
    """The findings of each side; two runs of one case are checked in one go, which takes half the time."""
    if before.case.path.resolve() != after.case.path.resolve():
        return before.case.check(run=before.run).fired(), after.case.check(run=after.run).fired()
    both = before.case.check().fired()
    old, now = ([one for one in both if one.run == side.run] for side in (before, after))
    return old, now
