"""Totals of AIPerf (``profile_export_aiperf.json`` and ``.csv``) and of GenAI-Perf (``profile_export_genai_perf.json``).

Read in AIPerf 0.13.  ``effective_latency`` counts from when the load pattern released a request, ``request_latency`` from when it was
sent: the difference is what a slow server hides from a closed loop (coordinated omission).
"""

from __future__ import annotations

import csv
import re
from typing import TYPE_CHECKING, Any, Final

from tracelens.formats.base import Chunk, Claim, Clock, Format, Head, Parsed, Side, no_stamps
from tracelens.formats.client.bench_documents import documents_in
from tracelens.formats.client.tool_summaries import (
    Figure,
    figure,
    nested,
    statistic_of,
    summary_frame,
    unit_of,
)
from tracelens.formats.json_lines import number, refusals, text_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import polars as pl

TOOL: Final = "aiperf"
_HEAD_CHARS: Final = 60_000
_TABLE: Final = "Metric,avg,min,max"
_METRIC: Final = re.compile(r'"request_latency"\s*:\s*\{\s*"unit"')
"""A total says its unit first; a single record says its value first."""
_COMMAND: Final = re.compile(r'"cli_command"\s*:\s*"aiperf')
_STATED: Final = ("start_time", "end_time")
NOT_A_ROW: Final = "not a row of the table"


def sniff(head: Head) -> Claim | None:
    """Claim the table, or an object of metrics each with its unit."""
    if head.first.lstrip("\ufeff").startswith(_TABLE):
        return Claim("totals, table", Clock.NONE)
    begin = "\n".join(head.lines)[:_HEAD_CHARS].lstrip("\ufeff \t\n")
    if not begin.startswith("{") or not _METRIC.search(begin):
        return None
    if '"aiperf_version"' in begin or _COMMAND.search(begin):
        return Claim("totals", Clock.NONE)
    return Claim("totals, GenAI-Perf", Clock.NONE) if '"input_config"' in begin else None


def parse(chunk: Chunk) -> Parsed:
    """Read every number with its name, statistic and unit."""
    first = next((text for text in chunk.lines["text"].to_list() if text and text.strip()), "")
    if first.lstrip("\ufeff \t").startswith("{"):
        documents, issues = documents_in(chunk.lines, lambda document: "request_latency" in document)
        figures = [
            (place, each) for place, document in enumerate(documents, 1) for each in _figures(document)
        ]
    else:
        figures, issues = _table(chunk.lines)
    tables = {"client_summary": summary_frame(_tool(chunk.claim), figures)}
    return Parsed(tables, issues, chunk.lines.height - issues.height, no_stamps())


def _tool(claim: Claim) -> str:
    return "genai-perf" if "GenAI-Perf" in claim.variant else TOOL


def _figures(document: Mapping[str, Any]) -> Iterator[Figure]:
    """Metrics, the stamps of the run, and how often each error came."""
    for key, value in document.items():
        if isinstance(value, dict) and "unit" in value:
            yield from nested(value, {}, None, key)
        elif key in _STATED and isinstance(value, str):
            yield figure(key, value, None, None, None)
    errors = document.get("error_summary")
    for entry in errors if isinstance(errors, list) else ():
        details = entry.get("error_details") if isinstance(entry, dict) else None
        if isinstance(details, dict):
            yield figure("error_summary", entry.get("count"), "count", None, text_of(details.get("type")))


def _table(lines: pl.DataFrame) -> tuple[list[tuple[int, Figure]], pl.DataFrame]:
    """Rows under their heading; the file holds several tables, each with a heading of its own."""
    figures: list[tuple[int, Figure]] = []
    refused: dict[int, str] = {}
    heading: list[str] = []
    for line_no, text in zip(lines["line_no"].to_list(), lines["text"].fill_null("").to_list(), strict=True):
        if not text.strip():
            continue
        cells = _cells(text)
        if cells and "Metric" in cells:
            heading = cells
        elif not cells or len(cells) != len(heading):
            refused[line_no] = NOT_A_ROW
        else:
            figures += [(line_no, each) for each in _row(heading, cells)]
    return figures, refusals(lines, refused)


def _cells(text: str) -> list[str]:
    try:
        return next(csv.reader([text.lstrip("\ufeff")], strict=True), [])
    except csv.Error:
        return []


def _row(heading: list[str], cells: list[str]) -> Iterator[Figure]:
    row = dict(zip(heading, cells, strict=True))
    subject = f"GPU {row['GPU_Index']}" if row.get("GPU_Index") else None
    name = row["Metric"]
    for column, cell in row.items():
        statistic = statistic_of(column)
        if (statistic or column == "Value") and number(cell) is not None:
            yield figure(name, cell, statistic, unit_of(name), subject)


FORMAT: Final = Format(
    name="aiperf_summary",
    title="totals of AIPerf or GenAI-Perf",
    side=Side.CLIENT,
    fills=("client_summary",),
    sniff=sniff,
    parse=parse,
    whole=True,
    versions="AIPerf 0.13",
    complete="Totals as the tool has them, never spread over requests.",
    record="aiperf profile ... (profile_export_aiperf.json and .csv)",
    sample="v0.13.0_chat.csv",
)
