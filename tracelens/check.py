"""Run the rules on a case: which beliefs the data refutes, which it bears out, and which it cannot decide.

Three values, never two: `fired`, `clear` and `not_evaluated`; a rule whose SQL breaks is `failed` and stops no other.
Outcomes come ranked: the most severe first, and among those the one that explains most of the lost time.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from tracelens import units
from tracelens.collect import still_missing, switches
from tracelens.errors import QueryError, RuleError, UsageError, near
from tracelens.named import named_query
from tracelens.outcomes import CONFIDENCES, OUTCOMES, Evidence, Outcome, outcome_of, plain_outcome
from tracelens.plan import Plan, keep_planned, make_plan
from tracelens.rulebook import SEVERITIES, Rule
from tracelens.store import Sitting, Stop, Store
from tracelens.switch_names import other_engines, renamed, renamed_plan

__all__ = ["OUTCOMES", "Check", "Evidence", "Outcome", "run_rules"]

_LOG: Final = logging.getLogger(__name__)
"""Hears of each step when it is done, for ``--verbose``."""
_AT_ONCE: Final = 2


@dataclass(frozen=True, slots=True)
class Check:
    """All outcomes of a case, ranked, the sentence that sums them up, and the one plan that follows from them.

    `given` are the parameters that were not the rules' own.
    """

    case: Path
    runs: tuple[str, ...]
    verdict: str
    outcomes: tuple[Outcome, ...]
    plan: Plan = field(default_factory=Plan)
    given: Mapping[str, Any] = field(default_factory=dict)

    def fired(self) -> tuple[Outcome, ...]:
        """The findings."""
        return tuple(outcome for outcome in self.outcomes if outcome.outcome == "fired")

    def verdict_of(self, run: str) -> str:
        """The sentence for one run."""
        return _verdict_of([outcome for outcome in self.outcomes if outcome.run == run])

    def failed(self) -> tuple[Outcome, ...]:
        """Rules that broke."""
        return tuple(outcome for outcome in self.outcomes if outcome.outcome == "failed")

    def reaches(self, severity: str) -> bool:
        """Whether a finding is at least as severe."""
        least = SEVERITIES.index(severity)
        return any(SEVERITIES.index(finding.severity) >= least for finding in self.fired())


@dataclass(frozen=True, slots=True)
class _Scene:
    """What all rules share: the case, its runs, the paths of its sources, what is there at all."""

    sitting: Sitting
    runs: tuple[str, ...]
    paths: Mapping[int, str]
    present: _Presence
    engines: Mapping[str, str]


def run_rules(
    store: Store,
    rules: Iterable[Rule],
    given: Mapping[str, Any] | None = None,
    *,
    run: str = "",
    stop: Stop | None = None,
) -> Check:
    """Run `rules` on an open case, or on one `run` of it; `given` maps ``RULE.PARAM`` to a value.

    Raises `UsageError` for a parameter or a run that does not exist, `QueryStopped` when `stop` was pulled.
    """
    rules = list(rules)
    params = parameters(rules, given or {})
    stop = stop or Stop()
    with store.sitting(stop) as sitting:
        scene = _scene(sitting, run)
        ranked = sorted(_said(store, scene, rules, params, stop), key=_rank)
        plan = make_plan((one for one in ranked if one.outcome == "fired"), _settings(sitting))
        kept = [renamed(keep_planned(one, plan), scene.engines) for one in ranked]
        plan = renamed_plan(plan, scene.engines)
        final = _with_texts(scene, kept)
    changed = {key: params[key.rpartition(".")[0]][key.rpartition(".")[2]] for key in sorted(given or {})}
    return Check(store.path, scene.runs, _verdict(final, scene.runs), tuple(final), plan, changed)


def _said(
    store: Store, scene: _Scene, rules: Sequence[Rule], params: Mapping[str, Mapping[str, Any]], stop: Stop
) -> list[Outcome]:
    """What each rule says, some at a time: planning a SELECT keeps one core busy, and the rules do not share any."""

    def ask(rule: Rule) -> list[Outcome]:
        with store.sitting(stop) as sitting:
            return _outcomes(replace(scene, sitting=sitting), rule, params[rule.name])

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        try:
            answers = zip(rules, pool.map(ask, rules), strict=True)
            return [one for rule, said in answers for one in _heard(rule, said)]
        except BaseException:
            stop.pull()
            raise


def parameters(rules: Sequence[Rule], given: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Each rule's parameters with what was given in their place; raises `UsageError`."""
    settings = {rule.name: dict(rule.params) for rule in rules}
    for key, value in given.items():
        name, _, param = key.rpartition(".")
        if param not in settings.get(name, {}):
            raise UsageError(f"no rule has a parameter {key!r}", hint=_nearest(key, settings))
        settings[name][param] = _as(type(settings[name][param]), value, key)
    return settings


def _nearest(key: str, settings: Mapping[str, Mapping[str, Any]]) -> str:
    known = (f"{name}.{param}" for name, params in settings.items() for param in params)
    return near(key, known, "tracelens rules show RULE lists its parameters")


def _as(kind: type, value: Any, key: str) -> Any:
    if kind is bool and isinstance(value, str):
        return value.lower() in ("1", "true", "yes", "on")
    try:
        return kind(value)
    except (TypeError, ValueError) as error:
        raise UsageError(f"{key}={value!r} is no {units.kind_of_number(kind)}") from error


def _scene(sitting: Sitting, run: str) -> _Scene:
    sources = _ask(sitting, "sources")
    known = tuple(dict.fromkeys(str(row["run_id"]) for row in sources))
    if run and run not in known:
        raise UsageError(
            f"there is no run {run!r} in this case", hint=f"it has: {', '.join(known) or 'none'}"
        )
    paths = {row["source_id"]: str(row["path"]) for row in sources}
    return _Scene(sitting, (run,) if run else known, paths, _Presence(sitting), other_engines(sources))


def _ask(sitting: Sitting, name: str, **params: Any) -> list[dict[str, Any]]:
    query = named_query(name)
    return sitting.run(query.sql, query.bind(params)).dicts()


class _Presence:
    """Whether a relation has a row of a run; asked once of each."""

    def __init__(self, sitting: Sitting) -> None:
        self._sitting = sitting
        self._known: dict[tuple[str, str], bool] = {}
        self._lock = threading.Lock()

    def lacking(self, needs: Sequence[str], run: str) -> list[str]:
        """Those of `needs` that have no row in a run; raises `QueryError` for a relation that does not exist."""
        return [need for need in needs if not self._has(need, run)]

    def _has(self, relation: str, run: str) -> bool:
        with self._lock:
            if (relation, run) not in self._known:
                self._known[relation, run] = self._sitting.has_rows(relation, run)
            return self._known[relation, run]


def _outcomes(scene: _Scene, rule: Rule, params: Mapping[str, Any]) -> list[Outcome]:
    try:
        lacking = {run: scene.present.lacking(rule.needs, run) for run in scene.runs}
        able = [run for run in scene.runs if not lacking[run]]
        rows = scene.sitting.run(rule.sql, params or None).dicts() if able else []
        said = [_outcome(scene, rule, row, params) for row in rows if row.get("run_id") in able]
    except (QueryError, RuleError) as error:
        return [plain_outcome(rule, run, "failed", str(error)) for run in scene.runs]
    spoken_for = {one.run for one in said}
    return [
        *said,
        *(_not_evaluated(scene, rule, run, lacking[run]) for run in scene.runs if run not in spoken_for),
    ]


def _heard(rule: Rule, outcomes: list[Outcome]) -> list[Outcome]:
    _LOG.info("rule %s: %s", rule.name, ", ".join(dict.fromkeys(one.outcome for one in outcomes)))
    return outcomes


def _not_evaluated(scene: _Scene, rule: Rule, run: str, lacking: Sequence[str]) -> Outcome:
    said = (
        f"the case has no {', '.join(lacking)} of this run"
        if lacking
        else "what the case holds of this run does not decide it"
    )
    return _asking(scene, rule, plain_outcome(rule, run, "not_evaluated", said))


def _asking(scene: _Scene, rule: Rule, undecided: Outcome) -> Outcome:
    """An undecided outcome with what to record: what the SELECT says, else what the rule says and the run has not."""

    def having(relation: str) -> bool:
        return not scene.present.lacking((relation,), undecided.run)

    missing = undecided.missing or still_missing(rule.missing, having)
    return replace(undecided, missing=missing, collect=switches(missing, having))


def _outcome(scene: _Scene, rule: Rule, row: Mapping[str, Any], params: Mapping[str, Any]) -> Outcome:
    said = outcome_of(rule, row, params, scene.paths)
    return _asking(scene, rule, said) if said.outcome == "not_evaluated" else said


def _with_texts(scene: _Scene, outcomes: Sequence[Outcome]) -> list[Outcome]:
    """The findings' evidence with what each line says, where the rule did not."""
    ids = {path: source_id for source_id, path in scene.paths.items()}
    lines = [line for one in outcomes if one.outcome == "fired" for line in one.evidence]
    silent = sorted({(ids[line.source], line.line) for line in lines if not line.text})
    if not silent:
        return list(outcomes)
    rows = _ask(scene.sitting, "lines", places=",".join(f"{source_id}:{line}" for source_id, line in silent))
    texts = {(row["path"], row["line_no"]): row["says"] or "" for row in rows}
    return [_told(one, texts) if one.outcome == "fired" else one for one in outcomes]


def _told(outcome: Outcome, texts: Mapping[tuple[str, int], str]) -> Outcome:
    told = (
        line if line.text else replace(line, text=texts.get((line.source, line.line), ""))
        for line in outcome.evidence
    )
    return replace(outcome, evidence=tuple(told))


def _settings(sitting: Sitting) -> dict[str, dict[str, str]]:
    settings: dict[str, dict[str, str]] = {}
    for row in _ask(sitting, "run_settings"):
        settings.setdefault(str(row["run_id"]), {})[row["key"]] = str(row["value"])
    return settings


def _rank(outcome: Outcome) -> tuple[Any, ...]:
    fired = outcome.outcome == "fired"
    severity = -SEVERITIES.index(outcome.severity) if fired else 0
    confidence = -CONFIDENCES.index(outcome.confidence) if fired else 0
    return (
        OUTCOMES.index(outcome.outcome), severity, -outcome.weight, confidence, outcome.rule, outcome.run, outcome.subject,
    )  # fmt: skip


def _verdict(ranked: Sequence[Outcome], runs: Sequence[str]) -> str:
    """One sentence per run: the first finding, and the first thing to change."""
    said = [(run, _verdict_of([one for one in ranked if one.run == run])) for run in runs]
    if len(said) == 1:
        return said[0][1]
    return " ".join(f"Run {run}: {sentence}" for run, sentence in said) or "The case is empty."


def _verdict_of(ranked: Sequence[Outcome]) -> str:
    findings = [one for one in ranked if one.outcome == "fired"]
    if findings:
        return findings[0].verdict
    counts = {said: len({one.rule for one in ranked if one.outcome == said}) for said in OUTCOMES}
    if counts["clear"]:
        undecided = f"; {units.plural(counts['not_evaluated'], 'rule')} could not be decided from these files"
        return f"Nothing stands out: {units.plural(counts['clear'], 'rule')} clear{undecided if counts['not_evaluated'] else ''}."
    return "These files do not hold enough to say what happened."
