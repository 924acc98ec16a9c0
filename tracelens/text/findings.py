"""A check as text: the verdict, the findings, one plan, what is clear, and what to record next time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tracelens.collect import to_collect
from tracelens.text.grid import Column, grid
from tracelens.text.paths import common_folder
from tracelens.text.rows import instant
from tracelens.text.terminal import clean, shorten, wrap
from tracelens.units import plural, spoken

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from tracelens.check import Check, Evidence, Outcome
    from tracelens.plan import Plan, Step, Withheld

EVIDENCE_SHOWN: Final = 3
_LABEL: Final = 15
"""Columns of the label of a finding's part."""
_LIMITS: Final = ("", "min_", "max_")
"""What stands before the name of a measure in the name of its threshold."""


def check_lines(check: Check, width: int) -> Iterator[str]:
    """The whole check."""
    yield from wrap(clean(check.verdict), width)
    yield ""
    yield from wrap(summary(check), width)
    folder, inside = common_folder([line.source for one in check.fired() for line in one.evidence])
    if folder:
        yield f"files in {clean(folder)}"
    for number, finding in enumerate(check.fired(), start=1):
        yield ""
        yield from finding_lines(check, finding, number, width, inside)
    yield from _plan_lines(check, width)
    yield from _rest_lines(check, width)


def summary(check: Check) -> str:
    """How many rules said what."""
    faults = sum(finding.severity != "info" for finding in check.fired())
    notes = len(check.fired()) - faults
    counts = {said: len(names(check, said)) for said in ("clear", "not_evaluated", "failed")}
    parts = [plural(faults, "finding")] if faults or not notes else []
    parts += [f"{notes} for information"] if notes else []
    parts += [f"{counts['clear']} clear", f"{counts['not_evaluated']} not decided"]
    parts += [f"{counts['failed']} failed"] if counts["failed"] else []
    rules = len({outcome.rule for outcome in check.outcomes})
    runs = (
        f" in {plural(len(check.runs), 'run')} ({', '.join(map(clean, check.runs))})"
        if len(check.runs) > 1
        else ""
    )
    return f"{plural(rules, 'rule')}{runs}: {', '.join(parts)}"


def finding_lines(
    check: Check, finding: Outcome, number: int, width: int, inside: Callable[[str], str] = str
) -> Iterator[str]:
    """One finding: how bad, how sure, what people assume, what was measured, where, and what to do."""
    sure = f"{finding.severity.upper()}, {finding.confidence} confidence"
    yield from wrap(f"{number}  {sure}: {clean(finding.title)}", width)
    parts = (
        ("people assume", finding.belief),
        ("the data says", finding.message),
        ("measured", "; ".join(measures(finding))),
        ("known by", where(finding, several=len(check.runs) > 1)),
    )
    for label, text in parts:
        if text:
            yield from _part(label, clean(text), width)
    for place, line in enumerate(finding.evidence[:EVIDENCE_SHOWN]):
        yield shorten(f"   {'' if place else 'evidence':<{_LABEL}}{evidence(line, inside)}", width)
    for place, (step, remedy) in enumerate(steps_of(check.plan, finding)):
        yield shorten(f"   {'' if place else 'what to do':<{_LABEL}}step {step}: {clean(remedy)}", width)


def where(finding: Outcome, *, several: bool) -> str:
    """Rule, cause, and of what and when it says it."""
    parts = [f"{finding.rule}, cause {finding.cause}"]
    parts += [f"run {finding.run}"] if several else []
    parts += [finding.subject] if finding.subject else []
    if finding.from_ts or finding.to_ts:
        start, end = (instant(stamp)[:19].replace("T", " ") for stamp in (finding.from_ts, finding.to_ts))
        parts.append(start if start == end else f"{start} to {end[11:] if end[:10] == start[:10] else end}")
    return " · ".join(parts)


def measures(finding: Outcome) -> list[str]:
    """What was held against a threshold, and how far it lies from it; where nothing was, all that was measured."""
    said, compared = [], False
    for name, value in finding.measured.items():
        limit = next((before + name for before in _LIMITS if before + name in finding.threshold), None)
        if limit is not None and value is not None:
            against = finding.threshold[limit]
            held = f"threshold {spoken(name, against)}{_margin(value, against)}"
            said.append((True, f"{_words(name)} {spoken(name, value)} ({held})"))
            compared = True
        elif value is not None:
            said.append((False, f"{_words(name)} {spoken(name, value)}"))
    return [text for is_held, text in said if is_held or not compared]


def _words(name: str) -> str:
    for unit in ("_s", "_ratio", "_tps"):
        name = name.removesuffix(unit)
    return name.replace("_", " ")


def _margin(value: Any, limit: Any) -> str:
    """The value in multiples of its threshold."""
    numbers = all(isinstance(one, int | float) and not isinstance(one, bool) for one in (value, limit))
    return f", ×{value / limit:.2g}" if numbers and limit and value / limit > 0 else ""


def evidence(line: Evidence, inside: Callable[[str], str] = str) -> str:
    """A line as ``path:line  what it says``."""
    return f"{clean(inside(line.source))}:{line.line}  {clean(line.text)}".rstrip()


def steps_of(plan: Plan, finding: Outcome) -> Iterator[tuple[int, str]]:
    """Numbers and texts of the steps that a finding asks for."""
    for remedy in finding.remedies:
        number = plan.step_of(finding.run, remedy)
        if number is not None:
            yield number, remedy.text


def _part(label: str, text: str, width: int) -> Iterator[str]:
    first, *more = wrap(text, width - _LABEL - 3)
    yield f"   {label:<{_LABEL}}{first}"
    yield from (" " * (_LABEL + 3) + line for line in more)


def _plan_lines(check: Check, width: int) -> Iterator[str]:
    for run in check.runs:
        steps = [step for step in check.plan.steps if step.run == run]
        if steps:
            yield ""
            yield f"What to do{f' for run {clean(run)}' if len(check.runs) > 1 else ''}, in this order:"
            yield from grid(_PLAN_HEADS, [_step(step) for step in steps], width)
    if check.plan.withheld:
        yield ""
        yield "Not advised:"
        for held in unlike(check.plan.withheld):
            yield from _bullet(f"{clean(held.text)} ({clean(held.rule)}): {clean(held.reason)}", width)


_PLAN_HEADS: Final = (
    Column("", right=True),
    Column("kind", fixed=True),
    Column("finding", middle=True),
    Column("what", wraps=True),
)


def _step(step: Step) -> list[str]:
    return [f"{step.step}", step.kind, ", ".join(step.causes), clean(step_text(step))]


def step_text(step: Step) -> str:
    """What to do, what it should move, and what binds next."""
    moves = f" Moves {step.moves}" if step.moves else ""
    limit = f"{'; then' if moves else ' Then'} look at {step.next_limit}" if step.next_limit else ""
    note = f" ({step.note})" if step.note else ""
    return f"{step.text.rstrip('.')}{note}.{moves}{limit}{'.' if moves or limit else ''}"


def unlike(withheld: Sequence[Withheld]) -> list[Withheld]:
    """What is not advised, each text once."""
    return list({(held.run, held.text): held for held in reversed(withheld)}.values())[::-1]


def _bullet(text: str, width: int) -> Iterator[str]:
    first, *more = wrap(text, width - 3)
    yield f" - {first}"
    yield from (f"   {line}" for line in more)


def _rest_lines(check: Check, width: int) -> Iterator[str]:
    clear = names(check, "clear")
    if clear:
        yield ""
        yield from wrap(f"Clear: {', '.join(map(clean, clear))}", width)
    gaps = to_collect(check.outcomes)
    if gaps:
        yield ""
        yield "Not decided; to decide it next time, record:"
        for gap in gaps:
            yield from _bullet(f"{clean(gap.collect)}: {', '.join(map(clean, gap.rules))}", width)
    for failed in check.failed():
        yield ""
        yield from wrap(f"FAILED  {clean(failed.rule)}: {clean(failed.message.partition(chr(10))[0])}", width)
    if check.given:
        yield ""
        yield from wrap(
            "Set: " + ", ".join(f"{clean(key)} = {clean(str(value))}" for key, value in check.given.items()),
            width,
        )


def names(check: Check, outcome: str) -> list[str]:
    """Rules by what they say of a run: the worst of their subjects.  With the run where they do not say it of all."""
    said: dict[str, list[str]] = {}
    for rule, run in dict.fromkeys((one.rule, one.run) for one in check.outcomes):
        if _worst(one.outcome for one in check.outcomes if (one.rule, one.run) == (rule, run)) == outcome:
            said.setdefault(rule, []).append(run)
    return [
        rule if len(runs) == len(check.runs) else f"{rule} ({', '.join(runs)})"
        for rule, runs in sorted(said.items())
    ]


_ORDER: Final = ("fired", "failed", "not_evaluated", "clear")


def _worst(outcomes: Iterable[str]) -> str:
    return min(outcomes, key=_ORDER.index)


def short_lines(check: Check, width: int) -> Iterator[str]:
    """Verdict and findings, a line each."""
    yield from wrap(clean(check.verdict), width)
    for number, finding in enumerate(check.fired(), start=1):
        yield from _numbered(
            number, f"{finding.severity} ({finding.confidence} confidence): {clean(finding.message)}", width
        )


def _numbered(number: int, text: str, width: int) -> Iterator[str]:
    first, *more = wrap(text, width - 4)
    yield f"  {number} {first}"
    yield from (f"    {line}" for line in more)
