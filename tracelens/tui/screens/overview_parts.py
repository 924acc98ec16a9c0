"""The parts of the overview, each as lines for a width."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from rich.text import Text

from tracelens.collect import in_short, to_collect
from tracelens.text.bars import Piece
from tracelens.text.findings import measures, steps_of
from tracelens.text.terminal import clean, shorten, wrap
from tracelens.tui.cols import Col, Row
from tracelens.tui.draw import limit_labels, limit_lane, sentence, spark, stage_bar, stretched, time_axis
from tracelens.tui.ink import Ink
from tracelens.units import STAGE_LETTERS, count, duration, number, percent, plural

if TYPE_CHECKING:
    from tracelens.check import Check, Outcome

WANTS_TTFT: Final = (
    "Record it: a streaming client that stamps every chunk, or --otlp-traces-endpoint on the server."
)
_MEASURES: Final = {"ttft": "TTFT", "tpot": "TPOT", "e2e": "E2E"}
_QUANTILES: Final = ("p50", "p90", "p95", "p99", "max")
_CELL: Final = 8
_LABEL: Final = 9
_VALUE: Final = 11
_LONGER: Final = 0.01
_SHORTER: Final = -0.1
"""Part of what the slow ones take longer, from which on a stage is told."""
_TOLD: Final = 3
_INDENT: Final = 14
_SEVERITY_MARKS: Final = {"critical": "●", "warning": "▲", "info": "○"}


def verdict_lines(check: Check, run: str, width: int, ink: Ink) -> Iterator[Text]:
    """The verdict, and the first step of the plan."""
    yield from sentence(check.verdict_of(run), width, ink.strong)
    first = next((step for step in check.plan.steps if step.run == run), None)
    if first is not None:
        yield from sentence(f"First: {first.text}", width)


def percentile_lines(rows: Sequence[Mapping[str, Any]], run: str, width: int, ink: Ink) -> Iterator[Text]:
    """TTFT, TPOT and end-to-end at p50 to the maximum; the run that is looked at first, the others below it."""
    runs = list(dict.fromkeys([run, *(row["run_id"] for row in rows)]))
    heads = "".join(f"{name:>{_CELL}}" for name in _QUANTILES)
    yield Text(f"{'':<6}{heads}   known in", style=ink.head, no_wrap=True)
    for one in runs:
        if len(runs) > 1:
            yield Text(shorten(f"run {clean(one)}", width), style=ink.strong if one == run else ink.dim)
        for row in rows:
            if row["run_id"] == one and row["measure"] in _MEASURES:
                yield _percentiles(row, ink)


def _percentiles(row: Mapping[str, Any], ink: Ink) -> Text:
    values = "".join(f"{duration(row[f'{name}_s']):>{_CELL}}" for name in _QUANTILES)
    known = f"{count(row['known_count'])} of {count(row['request_count'])}"
    line = Text(f"{_MEASURES[row['measure']]:<6}{values}", no_wrap=True)
    return line.append(f"   {known}", style=ink.dim)


def map_lines(rows: Sequence[Mapping[str, Any]], width: int, ink: Ink) -> Iterator[Text]:
    """The stages of a middling and of a slow request on one axis, and what makes the slow ones slow."""
    slices = {name: [row for row in rows if row["slice"] == name] for name in ("median", "slowest")}
    slices = {name: found for name, found in slices.items() if found}
    longest = max(found[0]["slice_mean_s"] for found in slices.values())
    yield Text("where the time to the first token goes", style=ink.head)
    for name, found in slices.items():
        yield _slice(name, found, longest, width, ink)
    slow = slices.get("slowest", [])
    if slow:
        yield from sentence(_excess(slow, slices.get("median", slow)), width)
        yield Text("█ observed  ▒ derived  ┊ ┊ not known or inside another", style=ink.dim)


def _slice(name: str, rows: Sequence[Mapping[str, Any]], longest_s: float, width: int, ink: Ink) -> Text:
    pieces = [Piece(STAGE_LETTERS[row["stage"]], row["mean_s"], row["provenance"]) for row in rows]
    pieces = [piece for piece in pieces if piece.letter not in "Ks" or piece.seconds]
    total = rows[0]["slice_mean_s"]
    room = max(width - 8 - 9, 10)
    unknown = 4 * sum(piece.seconds is None for piece in pieces)
    cells = max(round((room - unknown) * total / longest_s), 8) if longest_s > 0 else 8
    line = Text(f"{name:<8}", no_wrap=True)
    line.append_text(stage_bar(pieces, cells + unknown, ink))
    line.pad_right(max(8 + room - line.cell_len, 0))
    return line.append(f"{duration(total):>9}", style=ink.strong)


def _excess(slow: Sequence[Mapping[str, Any]], usual: Sequence[Mapping[str, Any]]) -> str:
    """Which stages are longer in the slow ones, the greatest first, and which is much shorter."""
    before = {row["stage"]: row for row in usual}
    parts = sorted(
        (row for row in slow if row["excess_ratio"] is not None), key=lambda row: -row["excess_ratio"]
    )
    longer = [_change(row, before[row["stage"]]) for row in parts if row["excess_ratio"] >= _LONGER]
    shorter = [_change(row, before[row["stage"]]) for row in parts if row["excess_ratio"] <= _SHORTER]
    number_of = slow[0]["slice_count"]
    title = "the slowest request takes longer" if number_of == 1 else f"the slowest {number_of:,} take longer"
    if not longer:
        return f"{title}, but not in any one stage"
    said = f"{title} in: {', '.join(longer[:_TOLD])}"
    return f"{said}; shorter in: {shorter[-1]}" if shorter else said


def _change(row: Mapping[str, Any], before: Mapping[str, Any]) -> str:
    """A stage in a middling request and in a slow one: ``queue (Q) 267 ms → 750 ms``."""
    partly = before["known_count"] < before["slice_count"]
    known = f" (in {before['known_count']} of {before['slice_count']})" if partly else ""
    return f"{row['stage']} ({STAGE_LETTERS[row['stage']]}) {duration(before['mean_s'])}{known} → {duration(row['mean_s'])}"


def count_lines(row: Mapping[str, Any], width: int, ink: Ink) -> Iterator[Text]:
    """How many requests, how they ended, how fast they came."""
    words = [
        plural(row["request_count"], "request"),
        f"{count(row['failed_count'])} failed",
        f"{count(row['aborted_count'])} aborted",
    ]
    words += [f"{count(row['unknown_count'])} with no end seen"] if row["unknown_count"] else []
    words += [_not_streamed(row)] if row["not_streamed_count"] else []
    words += [f"{number(row['arrival_rps'])} req/s"] if row["arrival_rps"] is not None else []
    words += (
        [f"TTFT within 1 s: {percent(row['ttft_within_1s_ratio'])}"]
        if row["ttft_within_1s_ratio"] is not None
        else []
    )
    yield from sentence(" · ".join(words), width, ink.dim)


def _not_streamed(row: Mapping[str, Any]) -> str:
    by_server = row["not_streamed_count"] == row["request_count"] and row["ttft_within_1s_ratio"] is not None
    return (
        f"{count(row['not_streamed_count'])} not streamed{': TTFT as the server saw it' if by_server else ''}"
    )


def strip_lines(rows: Sequence[Mapping[str, Any]], width: int, ink: Ink) -> Iterator[Text]:
    """Lanes over time that share one axis: waiting, running, KV cache, tokens, GPU, and what bound the engine."""
    room = max(width - _LABEL - _VALUE - 2, 10)
    of = rows[0]

    def lane(label: str, key: str, shown: str, top: float | None = None, missing: str = "") -> Text:
        values = [row[key] for row in rows]
        if all(value is None for value in values):
            return Text(f"{label:<{_LABEL + _VALUE}} ┊ {missing}", style=ink.dim, no_wrap=True)
        line = Text(f"{label:<{_LABEL}}{shown:>{_VALUE}} ┤", no_wrap=True)
        return line.append(stretched(spark(values, top), len(values), room), style=ink.link)

    no_stats = "no stats line in this run"
    yield lane("waiting", "waiting_count", count(of["waiting_highest_count"]), missing=no_stats)
    seats = of["seat_highest_count"]
    running = count(of["running_highest_count"]) + (f" of {count(seats)}" if seats else "")
    yield lane("running", "running_count", running, seats, no_stats)
    kv = percent(of["kv_cache_usage_highest_ratio"])
    yield lane("KV cache", "kv_cache_usage_ratio", kv, 1.0, no_stats)
    yield lane("tokens/s", "generation_tps", number(of["generation_highest_tps"]), missing=no_stats)
    no_gpu = "no GPU log in this run: nvidia-smi dmon -s pucvmet -o DT"
    yield lane("GPU", "sm_ratio", percent(of["sm_highest_ratio"]), 1.0, no_gpu)
    limits = [row["bound_by"] for row in rows]
    label, below = limit_labels(limits, _LABEL + _VALUE)
    line = Text(f"{label:<{_LABEL + _VALUE}} │", no_wrap=True)
    yield line.append_text(limit_lane(limits, room, ink))
    axis = time_axis(rows[0]["from_ts"], rows[-1]["to_ts"], room)
    yield Text.assemble(f"{below:<{_LABEL + _VALUE}}  ", (axis, ink.dim), no_wrap=True)


def detail_lines(check: Check, finding: Outcome, width: int, ink: Ink) -> Iterator[Text]:
    """The finding under the cursor: belief, data, and what to do."""
    told = [("assumed", finding.belief), ("the data", finding.message)]
    told += [(f"do {step}", text) for step, text in steps_of(check.plan, finding)]
    for label, text in told:
        for place, line in enumerate(wrap(clean(text), max(width - _INDENT, 20))):
            yield Text.assemble(
                (f"  {'' if place else label:<{_INDENT - 2}}", ink.head), (line, ink.dim), no_wrap=True
            )


def rest_lines(check: Check, run: str, width: int, ink: Ink) -> Iterator[Text]:
    """How many rules were clear or could not decide, and what to record so that they can."""
    said = {
        name: len({one.rule for one in check.outcomes if one.run == run and one.outcome == name})
        for name in ("clear", "not_evaluated", "failed")
    }
    words = f"{said['clear']} clear · {said['not_evaluated']} could not be decided"
    words += f" · {said['failed']} failed" if said["failed"] else ""
    yield Text(words, style=ink.dim, no_wrap=True)
    gaps = in_short(to_collect([one for one in check.outcomes if one.run == run]))
    if gaps:
        yield Text("not known; to know it next time, record:", style=ink.head, no_wrap=True)
    for gap in gaps:
        yield Text(
            shorten(f"┊ {clean(gap.collect)}: {plural(len(gap.rules), 'rule')}", width),
            style=ink.dim,
            no_wrap=True,
        )


def _finding(row: Row) -> Outcome:
    found: Outcome = row["finding"]
    return found


def _severity(row: Row, ink: Ink) -> Text:
    one = _finding(row)
    return Text(
        f"{_SEVERITY_MARKS[one.severity]} {one.severity}{' ★' if row['mark'] else ''}",
        style=ink.severity(one.severity),
    )


def _title(row: Row, _: Ink) -> Text:
    one = _finding(row)
    return Text(clean(one.title))


def _measured(row: Row, ink: Ink) -> Text:
    """What was held against a threshold; without one, what the data shows."""
    one = _finding(row)
    held = [text for text in measures(one) if "(threshold " in text]
    return Text(clean("; ".join(held) or one.message), style=ink.dim)


FINDING_COLS: Final = (
    Col("severity", 12, _severity),
    Col("finding", 56, _title, widest=64),
    Col("measured", 40, _measured, widest=76),
)
"""Columns of the list of findings."""
