"""What a rule says of a run: the values that travel from the rules to the plan, the command line, screens and reports."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from tracelens.rulebook import Remedy

OUTCOMES: Final = ("fired", "failed", "not_evaluated", "clear")
"""Three values and the accident, in the order in which they are listed."""
CONFIDENCES: Final = ("low", "medium", "high")


@dataclass(frozen=True, slots=True)
class Evidence:
    """A line behind a finding; `text` is what the line says, in short, where the case knows it."""

    source: str
    line: int
    text: str = ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one rule says of one run and subject.  `weight` is the share of lost time it explains, 0 to 1.

    `measured` and `threshold` have the names of the SELECT's columns without their prefix, units as in those names.
    `remedies` are those that the plan keeps; only a finding has any.  `missing` is what an undecided rule asks for in its own
    words, `collect` the switches that record it.
    """

    rule: str
    cause: str
    title: str
    belief: str
    outcome: str
    severity: str
    confidence: str
    run: str
    subject: str
    message: str
    verdict: str = ""
    from_ts: datetime | None = None
    to_ts: datetime | None = None
    weight: float = 0.0
    measured: Mapping[str, Any] = field(default_factory=dict)
    threshold: Mapping[str, Any] = field(default_factory=dict)
    evidence: tuple[Evidence, ...] = ()
    missing: tuple[str, ...] = ()
    remedies: tuple[Remedy, ...] = ()
    collect: tuple[str, ...] = ()
