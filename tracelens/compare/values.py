"""The values that a comparison is made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from tracelens.outcomes import Outcome
from tracelens.slo import Slo

HEADLINES: Final = ("ttft", "tpot", "e2e")
"""Measures of a whole request; the others are stages."""
_LEAST_CHANGE: Final = 0.05
"""A change below this is not worth a sentence."""
_LEAST_S: Final = 0.0005
"""Stages shorter than this on both sides are not listed."""


@dataclass(frozen=True, slots=True)
class Difference:
    """Something that the runs do not have in common; `blocks` where a comparison of times would mean nothing, `why` in words."""

    kind: str
    fact: str
    before: str
    after: str
    blocks: bool = False
    why: str = ""


@dataclass(frozen=True, slots=True)
class Change:
    """One statistic of one measure, before and after, seconds.

    The change as a share of the value before, and as a difference, each with its 95 % interval; None where too few requests
    (or none) were measured.
    """

    measure: str
    statistic: str
    before_s: float | None
    after_s: float | None
    before_count: int
    after_count: int
    ratio: float | None = None
    low_ratio: float | None = None
    high_ratio: float | None = None
    low_s: float | None = None
    high_s: float | None = None

    @property
    def is_sure(self) -> bool:
        """Whether the interval leaves no doubt about the direction."""
        return self.low_s is not None and self.high_s is not None and (self.low_s > 0 or self.high_s < 0)

    @property
    def is_worse(self) -> bool:
        """Whether it surely takes longer."""
        return self.is_sure and (self.low_s or 0.0) > 0

    @property
    def told(self) -> str:
        """``better``, ``worse`` or ``not sure``."""
        if not self.is_sure:
            return "not sure"
        return "worse" if self.is_worse else "better"

    @property
    def counts(self) -> bool:
        """Whether it is sure and large enough to be told."""
        return self.is_sure and abs(self.ratio or 0.0) >= _LEAST_CHANGE


@dataclass(frozen=True, slots=True)
class Comparison:
    """What two runs have to say to each other.  Changes and findings are empty where they cannot be compared."""

    before: str
    after: str
    differences: tuple[Difference, ...]
    verdict: str
    changes: tuple[Change, ...] = ()
    goodput: tuple[Mapping[str, Any], Mapping[str, Any]] | None = None
    slo: Slo = field(default_factory=Slo)
    gone: tuple[Outcome, ...] = ()
    new: tuple[Outcome, ...] = ()
    kept: tuple[Outcome, ...] = ()

    @property
    def comparable(self) -> bool:
        """Whether nothing blocks."""
        return not any(one.blocks for one in self.differences)

    @property
    def listed(self) -> list[Change]:
        """What tables show: quantiles of whole requests, and the mean of each stage that takes any time."""
        return [
            one
            for one in self.changes
            if (one.statistic == "mean") == (one.measure not in HEADLINES)
            and max(one.before_s or 0.0, one.after_s or 0.0) >= _LEAST_S
        ]

    def regressions(self, percent: float) -> tuple[Change, ...]:
        """Whole-request measures that surely take longer, by more than `percent`."""
        return tuple(
            one
            for one in self.changes
            if one.measure in HEADLINES and one.is_worse and (one.ratio or 0.0) * 100 > percent
        )
