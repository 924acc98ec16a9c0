"""What a rule says of a run: the values that travel from the rules to the plan, the command line, screens and reports."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from tracelens import units
from tracelens.errors import RuleError
from tracelens.rulebook import REQUIRED_COLUMNS, SEVERITIES, Remedy, Rule

OUTCOMES: Final = ("fired", "failed", "not_evaluated", "clear")
"""Three values and the accident, in the order in which they are listed."""
CONFIDENCES: Final = ("low", "medium", "high")

EVIDENCE_KEPT: Final = 5
_SAID: Final = ("fired", "clear", "not_evaluated")
_MEASURED: Final = "measured_"
_THRESHOLD: Final = "threshold_"


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


def plain_outcome(rule: Rule, run: str, outcome: str, message: str) -> Outcome:
    """What is said of a run of which no row speaks."""
    return Outcome(
        rule.name, rule.cause, rule.title, rule.belief, outcome, rule.severity, "low", run, "", message
    )


def outcome_of(
    rule: Rule, row: Mapping[str, Any], params: Mapping[str, Any], paths: Mapping[int, str]
) -> Outcome:
    """A row of a rule's SELECT; `paths` are those of the sources.  Raises `RuleError` for a row that is no outcome."""
    _check_row(rule, row)
    shown = {key: units.spoken(key, value) for key, value in {**params, **row}.items()}
    return Outcome(
        rule.name, rule.cause, rule.title, rule.belief, row["outcome"], row.get("severity") or rule.severity,
        row["confidence"] or "low", str(row["run_id"]), str(row["subject"] or ""), _filled(rule.message, shown),
        _filled(rule.verdict, shown), row["from_ts"], row["to_ts"], float(row["weight"] or 0.0),
        _named(row, _MEASURED), _named(row, _THRESHOLD) or dict(params), _evidence(paths, row["evidence"]),
        tuple(row.get("missing") or ()), rule.remedies if row["outcome"] == "fired" else (),
    )  # fmt: skip


def _check_row(rule: Rule, row: Mapping[str, Any]) -> None:
    """Raise `RuleError` for a row that is no outcome."""
    lacking = [column for column in REQUIRED_COLUMNS if column not in row]
    if lacking:
        raise RuleError(f"{rule.name}: its SELECT has no column {', '.join(lacking)}")
    for column, known in (("outcome", _SAID), ("confidence", CONFIDENCES), ("severity", SEVERITIES)):
        value = row.get(column)
        if value not in known and not (value is None and column != "outcome"):
            raise RuleError(f"{rule.name}: {column} {value!r} is none of {', '.join(known)}")


def _named(row: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    return {key.removeprefix(prefix): value for key, value in row.items() if key.startswith(prefix)}


def _filled(template: str, shown: Mapping[str, str]) -> str:
    """A template with ``{name}`` replaced by what is shown for it; a name that is not known stays."""
    return re.sub(r"\{(\w+)\}", lambda match: shown.get(match[1], match[0]), template)


def _evidence(paths: Mapping[int, str], places: Sequence[Mapping[str, Any]] | None) -> tuple[Evidence, ...]:
    """Pairs of source and line as paths and lines."""
    known = [place for place in places or () if place and place.get("source_id") in paths]
    lines = (
        Evidence(paths[place["source_id"]], int(place.get("line_no") or 0), str(place.get("text") or ""))
        for place in known
    )
    return tuple(dict.fromkeys(lines))[:EVIDENCE_KEPT]
