"""A check for other programs and for tickets: one JSON object, a row per outcome, or a Markdown page."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from tracelens.collect import to_collect
from tracelens.text.findings import evidence, measures, names, step_text, steps_of, summary, unlike, where
from tracelens.text.paths import common_folder
from tracelens.text.rows import marked, plain
from tracelens.text.terminal import clean

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from tracelens.check import Check, Outcome
    from tracelens.store import Result

_ROW: Final = {
    "rule": "VARCHAR", "cause": "VARCHAR", "run": "VARCHAR", "subject": "VARCHAR", "outcome": "VARCHAR",
    "severity": "VARCHAR", "confidence": "VARCHAR", "weight": "DOUBLE", "from": "TIMESTAMP", "to": "TIMESTAMP",
    "message": "VARCHAR", "measured": "STRUCT", "threshold": "STRUCT", "evidence": "STRUCT[]", "missing": "VARCHAR[]",
    "remedies": "STRUCT[]", "title": "VARCHAR", "belief": "VARCHAR",
}  # fmt: skip
"""Columns of a row, and their types."""
_LINKING: Final = re.compile(r"@|#\d|://|www\.|`", re.IGNORECASE)
_MARKUP: Final = re.compile(r"([\\*{}\[\]<>|~&]|(?<!\w)_|_(?!\w))")


def as_json(check: Check, more: Mapping[str, Any] | None = None) -> Iterator[str]:
    """The whole check as one object; `more` are further keys of it."""
    import orjson

    yield orjson.dumps(plain({**whole(check), **(more or {})}), option=orjson.OPT_INDENT_2).decode()


def whole(check: Check) -> dict[str, Any]:
    """The whole check as one mapping: verdict, outcomes, plan, what is not advised, what to collect."""
    return {
        "case": str(check.case),
        "runs": list(check.runs),
        "verdict": check.verdict,
        "outcomes": [outcome_object(check, outcome) for outcome in check.outcomes],
        "plan": [_step_object(step) for step in check.plan.steps],
        "not_advised": [
            {"run": held.run, "kind": held.kind, "text": held.text, "rule": held.rule, "reason": held.reason}
            for held in check.plan.withheld
        ],
        "collect": [{"what": gap.collect, "rules": list(gap.rules)} for gap in to_collect(check.outcomes)],
        "set": dict(check.given),
    }


def outcome_object(check: Check, outcome: Outcome) -> dict[str, Any]:
    """One outcome; a remedy's step is its number in the plan of the run."""
    return {
        "rule": outcome.rule,
        "cause": outcome.cause,
        "title": outcome.title,
        "belief": outcome.belief,
        "outcome": outcome.outcome,
        "severity": outcome.severity,
        "confidence": outcome.confidence,
        "run": outcome.run,
        "subject": outcome.subject,
        "from": outcome.from_ts,
        "to": outcome.to_ts,
        "message": outcome.message,
        "measured": dict(outcome.measured),
        "threshold": dict(outcome.threshold),
        "evidence": [
            {"source": line.source, "line": line.line, "text": line.text} for line in outcome.evidence
        ],
        "missing": list(outcome.missing),
        "remedies": _remedies(check, outcome),
        "weight": outcome.weight,
        "measures": measures(outcome),
    }


def _remedies(check: Check, outcome: Outcome) -> list[dict[str, Any]]:
    return [
        {
            "step": check.plan.step_of(outcome.run, remedy),
            "kind": remedy.kind,
            "text": remedy.text,
            "moves": remedy.moves,
            "next_limit": remedy.next_limit,
        }
        for remedy in outcome.remedies
    ]


def _step_object(step: Any) -> dict[str, Any]:
    keys = ("run", "step", "kind", "text", "moves", "next_limit", "note", "causes", "rules")
    return {key: getattr(step, key) for key in keys}


def as_rows(check: Check) -> Result:
    """A row per outcome."""
    from tracelens.store import Result

    objects = [outcome_object(check, outcome) for outcome in check.outcomes]
    return Result(tuple(_ROW), tuple(_ROW.values()), [tuple(one[name] for name in _ROW) for one in objects])


def as_markdown(check: Check) -> Iterator[str]:
    """A page for a ticket or a post-mortem; nothing that a log says acts as markup."""
    yield f"**{prose(check.verdict)}**"
    yield ""
    yield prose(summary(check))
    folder, inside = common_folder([line.source for one in check.fired() for line in one.evidence])
    if folder:
        yield ""
        yield f"Files in {marked(folder)}"
    for number, finding in enumerate(check.fired(), start=1):
        yield from _finding(check, finding, number, inside)
    yield from _plan(check)
    yield from _rest(check)


def _finding(check: Check, finding: Outcome, number: int, inside: Callable[[str], str]) -> Iterator[str]:
    yield ""
    yield f"## {number}. {prose(finding.title)} ({finding.severity}, {finding.confidence} confidence)"
    yield ""
    yield prose(where(finding, several=len(check.runs) > 1))
    yield ""
    parts = (
        ("People assume", [finding.belief]),
        ("The data says", [finding.message]),
        ("Measured", measures(finding)),
        ("What to do", [f"step {step}: {text}" for step, text in steps_of(check.plan, finding)]),
    )
    for label, texts in parts:
        yield from _bullets(f"{label}: ", [prose(text) for text in texts])
    yield from _bullets("Evidence: ", [marked(evidence(line, inside)) for line in finding.evidence])


def _bullets(label: str, texts: Sequence[str]) -> Iterator[str]:
    if len(texts) == 1:
        yield f"- {label}{texts[0]}"
    elif texts:
        yield f"- {label.rstrip()}"
        yield from (f"  - {text}" for text in texts)


def _plan(check: Check) -> Iterator[str]:
    if check.plan.steps:
        yield ""
        yield "## What to do, in this order"
        yield ""
        several = len(check.runs) > 1
        for step in check.plan.steps:
            run = f"run {step.run}, " if several else ""
            yield f"{step.step}. {prose(f'{run}{step.kind}: {step_text(step)}')}"
    if check.plan.withheld:
        yield ""
        yield "Not advised:"
        yield ""
        yield from (f"- {prose(held.text)}: {prose(held.reason)}" for held in unlike(check.plan.withheld))


def _rest(check: Check) -> Iterator[str]:
    clear = names(check, "clear")
    if clear:
        yield ""
        yield f"Clear: {', '.join(prose(name) for name in clear)}"
    gaps = to_collect(check.outcomes)
    if gaps:
        yield ""
        yield "## Not decided; to decide it next time, record"
        yield ""
        yield from (f"- {prose(gap.collect)}: {', '.join(map(prose, gap.rules))}" for gap in gaps)
    for failed in check.failed():
        yield ""
        yield f"Failed: {prose(failed.rule)}: {prose(failed.message)}"


def prose(text: str) -> str:
    """Words in which nothing acts as markup; what could become a link or a mention is a code span."""
    words = " ".join(_word(word) for word in clean(text).split(" "))
    return f"\\{words}" if words[:1] in tuple("#>+-=") else words


def _word(word: str) -> str:
    if _LINKING.search(word):
        return marked(word)
    return _MARKUP.sub(r"\\\1", word)
