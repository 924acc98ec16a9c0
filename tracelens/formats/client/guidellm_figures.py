"""The totals of a GuideLLM result, in its JSON and in its table of three heading rows."""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING, Any, Final

from tracelens.formats.client.guidellm_rows import inner, label_of
from tracelens.formats.client.tool_summaries import Figure, figure, nested, statistic_of
from tracelens.formats.json_lines import decode, number, refusals

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import polars as pl

_UNITS: Final = dict.fromkeys(("request_latency", "request_dispatch_delay", "request_scheduled_latency", "turn_predecessor_delay", "turn_scheduling_delay", "root_dispatch_delay", "duration", "warmup_duration", "cooldown_duration"), "s")  # fmt: skip
_SKIPPED: Final = ("pdf", "mean_ci", "percentile_cis", "mode", "variance")
_GROUPS: Final = ("successful", "errored", "incomplete")
_TIMES: Final = ("duration", "warmup_duration", "cooldown_duration")
_QUANTILES: Final = ("p0.1", "p1", "p5", "p10", "p25", "p50", "p75", "p90", "p95", "p99", "p99.9")
"""What the list under Percentiles holds, by its order in the JSON of the same run."""
_HEADINGS: Final = 3
NOT_A_ROW: Final = "not a row of the table"


def figures_of(document: Mapping[str, Any]) -> Iterator[tuple[int, Figure]]:
    """Totals of each benchmark (numbered from 1), for the groups that have requests."""
    for place, benchmark in enumerate(document["benchmarks"], 1):
        if not isinstance(benchmark, dict):
            continue
        label = label_of(benchmark)
        for name in _TIMES:
            if number(benchmark.get(name)) is not None:
                yield place, figure(name, benchmark[name], None, "s", label)
        for name, groups in inner(benchmark, "metrics").items():
            if isinstance(groups, dict):
                yield from ((place, each) for each in _metric(name, groups, label))


def _metric(name: str, groups: Mapping[str, Any], label: str | None) -> Iterator[Figure]:
    for group in _GROUPS:
        stated = groups.get(group)
        subject = f"{label}, {group}" if label else group
        if isinstance(stated, dict) and stated.get("count"):
            kept = {key: value for key, value in stated.items() if key not in _SKIPPED}
            yield from nested(kept, _UNITS, subject, name)
        elif not isinstance(stated, dict) and number(stated) is not None:
            yield figure(name, stated, None, None, subject)


def heading_of(line: str) -> list[str] | None:
    """The groups in the first heading row; None when the line is none."""
    if "Run Info," not in line[:40] or "Benchmark," not in line:
        return None
    return _cells(line)


def _cells(line: str) -> list[str] | None:
    try:
        return next(csv.reader([line.lstrip("\ufeff")], strict=True), [])
    except csv.Error:
        return None


def csv_figures(lines: pl.DataFrame) -> tuple[list[tuple[int, Figure]], pl.DataFrame]:
    """Numbers of each row below the three heading rows, and an issue per line that is no row."""
    figures: list[tuple[int, Figure]] = []
    headings: list[list[str]] = []
    refused: dict[int, str] = {}
    for line_no, text in zip(lines["line_no"].to_list(), lines["text"].fill_null("").to_list(), strict=True):
        if not text.strip():
            continue
        cells = _cells(text)
        if cells is None or (headings and len(cells) != len(headings[0])):
            refused[line_no] = NOT_A_ROW
        elif len(headings) < _HEADINGS:
            headings.append(cells)
        else:
            figures += [(line_no, each) for each in _row(headings, cells)]
    return figures, refusals(lines, refused)


def _row(headings: list[list[str]], cells: list[str]) -> Iterator[Figure]:
    named = list(zip(*headings, cells, strict=True))
    subject = next((cell for _, name, _, cell in named if name == "Strategy"), None)
    for group, name, statistic, cell in named:
        unit = statistic if statistic == "Sec" else name.rpartition(" ")[2] if name else None
        unit = unit if unit in ("Sec", "ms") else None
        title = f"{group}: {name}"
        if statistic == "Percentiles":
            yield from _quantiles(title, cell, unit, subject)
        elif number(cell) is not None:
            yield figure(title, cell, statistic_of(statistic), unit, subject)


def _quantiles(title: str, cell: str, unit: str | None, subject: str | None) -> list[Figure]:
    try:
        values = decode(cell)
    except ValueError:
        return []
    if not isinstance(values, list) or len(values) != len(_QUANTILES):
        return []
    return [
        figure(title, value, quantile, unit, subject)
        for quantile, value in zip(_QUANTILES, values, strict=True)
        if number(value) is not None
    ]
