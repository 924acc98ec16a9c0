"""The tables of one request, each as lines for a width."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from rich.text import Text

from tracelens import units
from tracelens.text.bars import FILL
from tracelens.text.terminal import clean, shorten
from tracelens.tui.cols import ANY, Col, Row
from tracelens.tui.draw import sentence
from tracelens.tui.ink import Ink
from tracelens.tui.words import clock
from tracelens.units import STAGE_LETTERS, UNKNOWN, count, duration, percent, plural

_MUCH_LONGER: Final = 1.5
_WORTH_A_MARK_S: Final = 0.001
_FRAME: Final = "┊┊"
_LEAST_BASIS: Final = 16
_MANY: Final = 99.5
_STALLS: Final = 5
"""Stalls that are told one by one."""


def stage_lines(
    stages: Sequence[Mapping[str, Any]],
    peers: Sequence[Mapping[str, Any]],
    facts: Mapping[str, Any],
    width: int,
    ink: Ink,
) -> Iterator[Text]:
    """The table of stages against the median of similar requests, with TTFT and end-to-end as lines of it."""
    against = {row["stage"]: row for row in peers}
    yield Text(
        f"  {'stage':<12}{'time':>9} {'± error':>9} {'of TTFT':>8} {'median':>9} {'':<7} how known",
        style=ink.head,
        no_wrap=True,
    )
    for row in stages:
        if row["stage"] == "decode":
            yield _total("TTFT", facts.get("whole_ttft_s"), against.get("ttft", {}), ink)
        if row["stage"] == "client_wait" and row["duration_s"] is None:
            continue
        yield _stage(row, against.get(row["stage"], {}), width, ink)
    yield _total("E2E", facts.get("whole_e2e_s"), against.get("e2e", {}), ink)
    if peers:
        yield Text(
            shorten(f"median: {peers[0]['basis']}, {count(peers[0]['peer_count'])} others", width),
            style=ink.dim,
        )


def _stage(row: Mapping[str, Any], peer: Mapping[str, Any], width: int, ink: Ink) -> Text:
    letter = STAGE_LETTERS[row["stage"]]
    known = row["duration_s"] is not None
    line = Text(f"{letter} ", style=ink.stage(letter), no_wrap=True)
    line.append(f"{row['stage']:<12}", style=ink.plain if known else ink.dim)
    line.append(
        f"{duration(row['duration_s']) if known else _FRAME:>9}", style=ink.strong if known else ink.dim
    )
    line.append(f" {units.error(row['error_s']):>9}", style=ink.dim)
    share = percent(row["share_of_ttft_ratio"]) if known and row["share_of_ttft_ratio"] is not None else ""
    line.append(f" {share:>8} {duration(peer.get('median_s')):>9}")
    line.append(f" {_times(peer):<7}", style=ink.warn)
    fill = FILL[row["provenance"]]
    line.append(f" {fill:<2} {row['provenance']:<8} ", style=ink.plain if known else ink.dim)
    room = width - line.cell_len
    return line.append(shorten(clean(row["basis"]), room), style=ink.dim) if room >= _LEAST_BASIS else line


def _times(peer: Mapping[str, Any]) -> str:
    """How many times the median, where that is worth a mark."""
    times, own = peer.get("times_median"), peer.get("own_s")
    if times is None or own is None or own < _WORTH_A_MARK_S or times < _MUCH_LONGER:
        return ""
    return f"▲ ×{times:.1f}" if times < _MANY else "▲ ×99+"


def _total(title: str, seconds: float | None, peer: Mapping[str, Any], ink: Ink) -> Text:
    line = Text(f"─ {title:<12}", style=ink.strong, no_wrap=True)
    line.append(f"{duration(seconds):>9}", style=ink.strong)
    line.append(f"{'':>19} {duration(peer.get('median_s')):>9}")
    return line.append(f" {_times(peer):<7}", style=ink.warn)


def gap_lines(chunks: Sequence[Mapping[str, Any]], width: int, ink: Ink) -> Iterator[Text]:
    """The stream in a sentence, and its stalls."""
    first = chunks[0]
    if first["longest_gap_s"] is None:
        yield from sentence(
            f"stream: 1 chunk, {duration(first['offset_s'])} after it was sent", width, ink.dim
        )
        return
    longest = next(row for row in chunks if row["gap_s"] == first["longest_gap_s"])
    said = (
        f"stream: {plural(first['chunk_count'], 'chunk')}, median gap {duration(first['median_gap_s'])}; longest {duration(longest['gap_s'])} "
        f"before chunk {longest['chunk_number']}, {duration(longest['offset_s'])} after it was sent"
    )
    yield from sentence(said, width)
    stalls = [row for row in chunks if row["is_stall"]]
    for row in stalls[:_STALLS]:
        text = f"  ! stall of {duration(row['gap_s'])} before chunk {row['chunk_number']}, until {duration(row['offset_s'])} after it was sent"
        yield Text(shorten(text, width), style=ink.bad, no_wrap=True)
    if first["stall_count"] > _STALLS:
        more = plural(first["stall_count"] - _STALLS, "more stall")
        yield Text(f"  ! {more}: s shows all", style=ink.bad, no_wrap=True)


def gpu_lines(rows: Sequence[Mapping[str, Any]], width: int, ink: Ink) -> Iterator[Text]:
    """Each GPU while the request was there."""
    for row in rows:
        name = f"{clean(row['host'])}/{row['gpu_index']}" if row["host"] else units.number(row["gpu_index"])
        limit = "" if row["power_limit_w"] is None else f" of {_watts(row['power_limit_w'])}"
        power = _watts(row["power_mean_w"]) + limit
        said = (
            f"GPU {name}: sm {percent(row['sm_mean_ratio'])} (to {percent(row['sm_max_ratio'])}), "
            f"DRAM {percent(row['dram_active_mean_ratio'])}, power {power}, memory {units.size(row['memory_used_max_bytes'])}, "
            f"{plural(row['sample_count'], 'sample')}  {clean(row['gpu_name'] or '')}"
        )
        yield Text(shorten(said.rstrip(), width), style=ink.dim, no_wrap=True)


def _watts(watts: float | None) -> str:
    return UNKNOWN if watts is None else f"{watts:.0f} W"


def _line_place(row: Row, ink: Ink) -> Text:
    return Text(f"{clean(Path(row['path']).name)}:{row['line_no']}", style=ink.link)


def _line_time(row: Row, ink: Ink) -> Text:
    error = f" +{duration(row['error_s'])}" if row["error_s"] else ""
    return Text(f"{clock(row['line_ts'], finely=not row['error_s'])}{error}", style=ink.dim)


def _line_says(row: Row, _: Ink) -> Text:
    return Text(clean(row["says"] or ""))


LINE_COLS: Final = (
    Col("line", 20, _line_place, widest=28, middle=True),
    Col("UTC", 16, _line_time),
    Col("what", 11, lambda row, _: Text(clean(row["what"]))),
    Col("says", 20, _line_says, widest=ANY),
)
"""Columns of the log lines behind a request."""


def _mate_name(row: Row, _: Ink) -> Text:
    return Text(clean(row["request_id"]))


def _ratio(key: str) -> Any:
    return lambda row, _: Text(percent(row[key]))


def _seconds(key: str) -> Any:
    return lambda row, _: Text(duration(row[key]))


def _tokens(key: str) -> Any:
    return lambda row, _: Text(count(row[key]))


MATE_COLS: Final = (
    Col("batch-mate", 28, _mate_name, widest=60, middle=True),
    Col("of excess", 9, _ratio("excess_ratio"), right=True),
    Col("prefilling", 10, _ratio("prefill_ratio"), right=True),
    Col("shared", 8, _seconds("shared_s"), right=True),
    Col("came", 9, _seconds("from_s"), right=True),
    Col("scheduled", 9, _seconds("scheduled_s"), right=True),
    Col("tokens in", 9, _tokens("input_tokens"), right=True),
    Col("cached", 7, _tokens("cached_input_tokens"), right=True),
    Col("out", 6, _tokens("output_tokens"), right=True),
    Col("preempted", 9, _tokens("preemption_count"), right=True),
    Col("status", 8, lambda row, _: Text(row["status"])),
)
"""Columns of the batch-mates; times are seconds since this request's own beginning."""
