"""The parts of the findings, each as lines for a width."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from rich.text import Text

from tracelens.collect import to_collect
from tracelens.text.findings import measures, step_text, steps_of, unlike, where
from tracelens.text.terminal import clean, wrap
from tracelens.tui.cols import ANY, Col, Row
from tracelens.tui.ink import Ink
from tracelens.units import percent, plural

if TYPE_CHECKING:
    from tracelens.check import Check, Evidence, Outcome
    from tracelens.marks import Mark

OUTCOMES: Final = {"fired": "found", "not_evaluated": "not decided", "clear": "clear", "failed": "failed"}
"""What a rule can say, in the word that screens have for it."""
_MARKS: Final = {"critical": "●", "warning": "▲", "info": "○"}
_OTHERS: Final = {"clear": "✓ clear", "not_evaluated": "◌ not decided", "failed": "! failed"}
_LABEL: Final = 16


def outcome_lines(check: Check, one: Outcome, mark: Mark | None, width: int, ink: Ink) -> Iterator[Text]:
    """One rule in full: belief, data, measured against threshold, where, remedies; or what it lacks."""
    yield from (Text(line, style=ink.strong, no_wrap=True) for line in wrap(clean(one.title), width))
    yield Text.assemble(
        _said(one, ink), (f"   {clean(one.rule)}" + (" ★" if mark is not None else ""), ink.dim), no_wrap=True
    )
    if mark is not None and mark.note:
        yield from _part("note", mark.note, width, ink, ink.warn)
    yield from _part("people assume", one.belief, width, ink)
    yield from _part(
        "the data says" if one.outcome == "fired" else "said",
        one.message,
        width,
        ink,
        ink.strong if one.outcome == "fired" else "",
    )
    for place, text in enumerate(measures(one)):
        yield from _part("" if place else "measured", text, width, ink)
    yield from _part("known by", where(one, several=len(check.runs) > 1), width, ink, ink.dim)
    if one.weight and one.outcome == "fired":
        yield from _part("explains", f"{percent(one.weight)} of the lost time", width, ink)
    for step, text in steps_of(check.plan, one):
        yield from _part(f"do, step {step}", text, width, ink)
    for place, text in enumerate(one.missing):
        yield from _part("" if place else "record", text, width, ink)
    if one.evidence:
        yield Text("lines behind it", style=ink.head, no_wrap=True)


def _said(one: Outcome, ink: Ink) -> tuple[str, str]:
    if one.outcome == "fired":
        return f"{_MARKS[one.severity]} {one.severity} · {one.confidence} confidence", ink.severity(
            one.severity
        )
    style = {"clear": ink.good, "failed": ink.bad}.get(one.outcome, ink.dim)
    return _OTHERS[one.outcome], style


def _part(label: str, text: str, width: int, ink: Ink, style: str = "") -> Iterator[Text]:
    if not text:
        return
    narrow = width < 3 * _LABEL
    if narrow:
        yield Text(label, style=ink.head, no_wrap=True)
    for place, line in enumerate(wrap(clean(text), width if narrow else width - _LABEL)):
        head = "" if narrow else f"{'' if place else label:<{_LABEL}}"
        yield Text.assemble((head, ink.head), (line, style), no_wrap=True)


def plan_lines(check: Check, run: str, width: int, ink: Ink) -> Iterator[Text]:
    """The one plan over all findings, and what is not advised."""
    steps = [step for step in check.plan.steps if step.run == run]
    yield Text(
        "What to do, in this order" if steps else "Nothing to do: no finding asks for a change",
        style=ink.head,
    )
    for step in steps:
        yield from _part(f"{step.step} {step.kind}", step_text(step), width, ink)
    held = [one for one in unlike(check.plan.withheld) if one.run == run]
    if held:
        yield Text("Not advised", style=ink.head, no_wrap=True)
    for one in held:
        yield from _part(f"✗ {one.kind}", f"{one.text.rstrip('.')}: {one.reason}", width, ink, ink.dim)


def gap_lines(check: Check, run: str, width: int, ink: Ink) -> Iterator[Text]:
    """What to record so that the rules that could not decide can."""
    mine = [one for one in check.outcomes if one.run == run]
    gaps = to_collect(mine)
    clear = len({one.rule for one in mine if one.outcome == "clear"})
    yield Text(
        f"{plural(clear, 'rule')} clear"
        + ("; not decided, for want of" if gaps else "; every rule could decide"),
        style=ink.head,
    )
    for gap in gaps:
        yield from _part(
            f"┊ {plural(len(gap.rules), 'rule')}",
            f"{gap.collect}: {', '.join(gap.rules)}",
            width,
            ink,
            ink.dim,
        )


def evidence_text(line: Evidence) -> str:
    """A line as ``path:number  what it says``."""
    return clean(f"{line.source}:{line.line}  {line.text}").rstrip()


def _outcome(row: Row) -> Outcome:
    one: Outcome = row["outcome"]
    return one


def _kind(row: Row, ink: Ink) -> Text:
    one = _outcome(row)
    said = f"{_MARKS[one.severity]} {one.severity}" if one.outcome == "fired" else _OTHERS[one.outcome]
    return Text(said + (" ★" if row["mark"] else ""), style=_said(one, ink)[1])


def _title(row: Row, ink: Ink) -> Text:
    one = _outcome(row)
    subject = f" · {one.subject}" if one.subject else ""
    return Text(clean(one.title + subject), style=ink.plain if one.outcome == "fired" else ink.dim)


def _place(row: Row, ink: Ink) -> Text:
    line: Evidence = row["evidence"]
    name = line.source.rpartition("/")[2]
    return Text(clean(f"{name}:{line.line}"), style=ink.link)


def _says(row: Row, _: Ink) -> Text:
    line: Evidence = row["evidence"]
    return Text(clean(line.text))


RULE_COLS: Final = (Col("says", 15, _kind), Col("rule", 24, _title, widest=ANY))
"""Columns of the list of rules."""
EVIDENCE_COLS: Final = (Col("line", 18, _place, widest=26, middle=True), Col("says", 20, _says, widest=ANY))
"""Columns of the lines behind a finding."""
