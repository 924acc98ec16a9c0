"""``tracelens slowest``: the worst requests, and where their time went."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from tracelens.cli.options import format_option, on_case, run_option
from tracelens.cli.output import chosen, note, say, write
from tracelens.cli.reading import check_run, reading
from tracelens.text.bars import BAR_STAGES, letters, pieces_of
from tracelens.text.grid import Column, grid, natural_width, terminal_width
from tracelens.text.rows import instant
from tracelens.text.terminal import clean
from tracelens.units import STAGE_LETTERS, count, duration, percent, plural

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from tracelens.case import Case

MEASURES: Final = {"ttft": "TTFT", "e2e": "E2E", "tpot": "TPOT", "queue": "queue", "prefill": "prefill"}
_BAR: Final = 24
_TENTH: Final = 0.1
_WITH_DECODE: Final = ("e2e", "tpot")


@click.command()
@click.option(
    "--by", type=click.Choice(list(MEASURES)), default="ttft", show_default=True, help="The measure."
)
@click.option(
    "--top", type=click.IntRange(min=1), default=10, show_default=True, metavar="N", help="How many."
)
@run_option
@format_option
@on_case
def slowest(case_path: Path, by: str, top: int, run: str, format_name: str | None) -> None:
    """Show the worst requests with their stages.

    TTFT and E2E are the client's where a client file has the request, else the server's.

    \b
    Examples:
      tracelens slowest
      tracelens slowest --by queue --top 20
      tracelens slowest --by e2e --run after --format csv > worst.csv
    """
    kind = chosen(format_name)
    with reading(case_path) as case:
        check_run(case, run)
        if kind == "table":
            screen(case, by, top, run)
        else:
            write(case.query("slowest", by=by, top=top, run=run), kind)
        _say_left_out(case, by, run)


def screen(case: Case, by: str, top: int, run: str = "") -> None:
    """The worst requests as a table, and the largest stage of the slow tail."""
    rows = case.query("slowest", by=by, top=top, run=run).dicts()
    if rows:
        for line in _lines(rows, by):
            say(line)
        for sentence in tail_sentences(case, by, run):
            say(sentence)
    else:
        note(f"no request with a known {MEASURES[by]} in this case (tracelens sources shows what was read)")


def _lines(rows: Sequence[dict[str, Any]], by: str) -> list[str]:
    """Times of the stages and a bar where both fit, else the bar."""
    limit = terminal_width()
    heads, cells = _columns(rows, by, with_stages=True)
    least = [
        ["" if head.title == "request" else text for head, text in zip(heads, row, strict=True)]
        for row in cells
    ]
    if limit is not None and natural_width(heads, least) + _BAR // 2 > limit:
        heads, cells = _columns(rows, by, with_stages=False)
    return [*grid(heads, cells, limit), _legend(rows)]


def _columns(
    rows: Sequence[dict[str, Any]], by: str, *, with_stages: bool
) -> tuple[list[Column], list[list[str]]]:
    stages = BAR_STAGES if with_stages else ()
    several = len({row["run_id"] for row in rows}) > 1
    heads = [
        *([Column("run")] if several else []),
        Column("request", middle=True),
        Column("status", fixed=True),
        Column("arrived", fixed=True),
        Column(MEASURES[by], right=True),
        *(Column(STAGE_LETTERS[stage], right=True) for stage in stages),
        Column("where it went", fixed=True),
        Column("largest", fixed=True),
        Column("tokens in", right=True),
        Column("out", right=True),
    ]
    longest = max(_drawn_s(row, by) for row in rows)
    return heads, [
        [
            *([clean(row["run_id"])] if several else []),
            clean(row["request_id"]),
            row["status"],
            instant(row["arrival_ts"])[11:23],
            duration(row["measure_s"]),
            *(duration(row[f"{stage}_s"]) for stage in stages),
            _bar(row, by, longest),
            _largest(row),
            count(row["input_tokens"]),
            count(row["output_tokens"]),
        ]
        for row in rows
    ]


def _drawn(by: str) -> Sequence[str]:
    return BAR_STAGES if by in _WITH_DECODE else BAR_STAGES[:-1]


def _drawn_s(row: dict[str, Any], by: str) -> float:
    return sum(max(row[f"{stage}_s"] or 0.0, 0.0) for stage in _drawn(by))


def _bar(row: dict[str, Any], by: str, longest_s: float) -> str:
    """All bars of one table share one axis: the longest request takes the whole width."""
    width = round(_BAR * _drawn_s(row, by) / longest_s) if longest_s > 0 else 0
    return letters(pieces_of(row, _drawn(by)), max(width, 1))


def _largest(row: dict[str, Any]) -> str:
    stage = row["largest_stage"]
    return f"{STAGE_LETTERS[stage]} {percent(row['largest_stage_ratio'])}" if stage else "–"


def _legend(rows: Sequence[dict[str, Any]]) -> str:
    seen = [stage for stage in BAR_STAGES if any(row[f"{stage}_s"] is not None for row in rows)]
    unknown = [stage for stage in BAR_STAGES if stage not in seen]
    text = "  ".join(f"{STAGE_LETTERS[stage]} {stage}" for stage in seen)
    return text + (f"   not known in any: {', '.join(unknown)}" if unknown else "")


def tail_sentences(case: Case, by: str, run: str) -> list[str]:
    """For each run the largest stage of its slowest hundredth, in a sentence."""
    if by not in ("ttft", "e2e"):
        return []
    rows = case.query("tail", by=by, run=run).dicts()
    largest = {row["run_id"]: row for row in reversed(rows) if row["tail_mean_s"] is not None}
    said = [_tail_sentence(row, MEASURES[by], several=len(largest) > 1) for row in reversed(largest.values())]
    return [*said, *_apart_sentences(case, by, run, several=len(largest) > 1)]


def _apart_sentences(case: Case, by: str, run: str, *, several: bool) -> Iterator[str]:
    """For each run what sets its slowest requests apart most, where that is more than chance."""
    for row in case.query("tail_factors", by=by, run=run).dicts():
        if row["is_claimed"] and row["effect_rank"] == 1:
            where = f"run {clean(row['run_id'])}: " if several else ""
            share = "tenth" if row["tail_ratio"] == _TENTH else "hundredth"
            yield f"{where}What sets the slowest {share} apart first: {clean(row['words'])}."


def _tail_sentence(row: dict[str, Any], measure: str, *, several: bool) -> str:
    where = f"run {clean(row['run_id'])}: " if several else ""
    return (
        f"{where}p99 {measure} is {duration(row['threshold_s'])}; in the {_slowest(row['tail_count'])} the largest stage is "
        f"{row['stage']} ({STAGE_LETTERS[row['stage']]}): {duration(row['tail_mean_s'])}, {percent(row['share_ratio'])} of {measure}; "
        f"run median {duration(row['median_s'])}."
    )


def _slowest(number: int) -> str:
    return "slowest request" if number == 1 else f"{number:,} requests from there on"


def _say_left_out(case: Case, by: str, run: str) -> None:
    """Requests without the measure are not fast, they are unknown: say how many."""
    for row in case.query("latency_percentiles", run=run).dicts():
        missing = row["request_count"] - row["known_count"]
        if row["measure"] == by and missing:
            note(
                f"run {row['run_id']}: {MEASURES[by]} is not known for {missing:,} of {plural(row['request_count'], 'request')}; "
                "they are not in the list"
            )
