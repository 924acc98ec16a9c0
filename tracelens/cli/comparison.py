"""A comparison as text, as one JSON object, or as Markdown."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from tracelens.compare import Change, Comparison, Difference, signed
from tracelens.text.checks import prose
from tracelens.text.grid import Column, grid
from tracelens.text.rows import marked, plain, steady
from tracelens.text.terminal import clean, wrap
from tracelens.units import count, duration, percent

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tracelens.outcomes import Outcome

_CHANGE_HEADS: Final = (
    Column("", fixed=True),
    Column("", fixed=True),
    Column("before", right=True),
    Column("after", right=True),
    Column("change", right=True),
    Column("95 % interval", right=True),
    Column("requests", right=True),
    Column("", fixed=True),
)
_DIFFERENCE_HEADS: Final = (
    Column("", fixed=True),
    Column("differs", middle=True),
    Column("before", middle=True),
    Column("after", middle=True),
    Column("so", wraps=True),
)
_GOODPUT: Final = (
    ("requests", "request_count", count),
    ("good", "good_count", count),
    ("goodput", "goodput_ratio", percent),
    ("failed or aborted", "failed_count", count),
)


def as_text(found: Comparison, width: int) -> Iterator[str]:
    """Verdict, what differs, what changed, goodput, findings."""
    yield from wrap(clean(found.verdict), width)
    yield ""
    yield f"before: {clean(found.before)}   after: {clean(found.after)}"
    if found.differences:
        yield ""
        yield from grid(_DIFFERENCE_HEADS, [_difference(one) for one in found.differences], width)
    if found.changes:
        yield ""
        yield from grid(_CHANGE_HEADS, [_change(one) for one in found.listed], width)
    if found.goodput:
        yield ""
        yield f"SLO {found.slo}"
        heads = [Column("", fixed=True), Column("before", right=True), Column("after", right=True)]
        yield from grid(heads, _goodput(found.goodput), width)
    for word, outcomes in (("gone", found.gone), ("new", found.new), ("kept", found.kept)):
        yield from _outcomes(word, outcomes, width)


def _difference(one: Difference) -> list[str]:
    return ["✗" if one.blocks else "", clean(one.fact), clean(one.before), clean(one.after), clean(one.why)]


def _change(one: Change) -> list[str]:
    interval = "" if one.low_ratio is None else f"{signed(one.low_ratio)} to {signed(one.high_ratio)}"
    return [
        one.measure,
        one.statistic,
        duration(one.before_s),
        duration(one.after_s),
        signed(one.ratio),
        interval,
        f"{count(one.before_count)} / {count(one.after_count)}",
        one.told,
    ]


def _goodput(both: tuple[Mapping[str, Any], Mapping[str, Any]]) -> list[list[str]]:
    return [[name, *(shown(side.get(key)) for side in both)] for name, key, shown in _GOODPUT]


def _outcomes(word: str, outcomes: Sequence[Outcome], width: int) -> Iterator[str]:
    if outcomes:
        yield ""
        yield f"findings {word}:"
        heads = [Column("  rule", fixed=True), Column("", fixed=True), Column("", wraps=True)]
        rows = [[f"  {one.rule}", one.severity, clean(one.message)] for one in outcomes]
        yield from grid(heads, rows, width)


def as_json(found: Comparison) -> Iterator[str]:
    """The whole comparison as one object."""
    import orjson

    whole: dict[str, Any] = {
        "before": found.before,
        "after": found.after,
        "comparable": found.comparable,
        "verdict": found.verdict,
        "differences": [asdict(one) for one in found.differences],
        "changes": [{**asdict(one), "sure": one.is_sure} for one in found.changes],
        "slo": asdict(found.slo) if found.slo else None,
        "goodput": [dict(side) for side in found.goodput] if found.goodput else None,
    }
    for word in ("gone", "new", "kept"):
        whole[word] = [
            {"rule": one.rule, "cause": one.cause, "severity": one.severity, "message": one.message}
            for one in getattr(found, word)
        ]
    yield orjson.dumps(steady(plain(whole)), option=orjson.OPT_INDENT_2).decode()


def as_markdown(found: Comparison) -> Iterator[str]:
    """A page for a ticket; nothing that a log says acts as markup."""
    yield f"**{prose(found.verdict)}**"
    yield ""
    yield f"Before: {marked(found.before)}, after: {marked(found.after)}."
    if found.differences:
        yield ""
        yield from _table(
            ("differs", "before", "after", "so"),
            [
                [marked(one.fact), marked(one.before), marked(one.after), prose(one.why)]
                for one in found.differences
            ],
        )
    if found.changes:
        yield ""
        yield from _table(
            ("measure", "", "before", "after", "change", "95 % interval", "requests", ""),
            [_change(one) for one in found.listed],
        )
    if found.goodput:
        yield ""
        yield from _table((f"SLO {found.slo}", "before", "after"), _goodput(found.goodput))
    for word in ("gone", "new", "kept"):
        if outcomes := getattr(found, word):
            yield ""
            yield f"Findings {word}:"
            yield ""
            for one in outcomes:
                yield f"- {marked(one.rule)} ({one.severity}): {prose(one.message)}"


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(heads)} |"
    yield f"| {' | '.join('---' for _ in heads)} |"
    for row in rows:
        yield f"| {' | '.join(row)} |"
