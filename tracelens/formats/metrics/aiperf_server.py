"""AIPerf's ``server_metrics_export.json`` and ``.csv``: what the server's metrics did over one benchmark phase.

Aggregates only.  A gauge's mean, smallest and largest value and percentiles are kept under its name with the label ``stat``;
a counter's growth and a histogram's count, sum and buckets over the phase under the names that a scrape has, with the label
``over`` that names the phase: `metric_latency` takes them as one window.  AIPerf's own percentile estimates are kept with
``stat`` too, since they are points inside a bucket and nobody measured them.  Read in AIPerf 0.13, schemas 1.0 (CSV) and 1.1.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import orjson

from tracelens.formats.base import Chunk, Claim, Clock, Format, Head, Parsed, Side, issues_of, no_issues
from tracelens.formats.json_lines import number
from tracelens.formats.metrics.series import SAMPLES, Value, labels_json, rows_of
from tracelens.formats.stamps import instant_on

_CSV: Final = "# AIPerf Server Metrics Export"
_JSON: Final = re.compile(r'"endpoints_configured"\s*:')
_HEAD_CHARS: Final = 20_000
_ERROR_S: Final = 1.0
_COLUMNS: Final = frozenset(("Endpoint", "Type", "Metric", "Unit", "Description", "buckets"))
_TOTALS: Final = {"total": "_total", "sum": "_sum", "count": "_count"}
Series = Mapping[str, Any]
Found = tuple[str, str, float | None]


def sniff(head: Head) -> Claim | None:
    """Claim AIPerf's own heading (CSV), or a JSON object with its version and the endpoints."""
    if head.first.startswith(_CSV):
        return Claim("AIPerf, aggregates of the server's metrics (CSV)", Clock.NONE)
    begin = "\n".join(head.lines)[:_HEAD_CHARS]
    if head.first.startswith("{") and '"aiperf_version"' in begin and _JSON.search(begin):
        return Claim("AIPerf, aggregates of the server's metrics (JSON)", Clock.UTC)
    return None


def parse(chunk: Chunk) -> Parsed:
    """Read the aggregates into `metric_sample`, on the lines of the CSV, or numbered through for JSON."""
    texts = [text or "" for text in chunk.lines["text"].to_list()]
    numbers = chunk.lines["line_no"].to_list()
    issues = no_issues()
    found: list[Value] = []
    if any(text.startswith(_CSV) for text in texts):
        found = [(line_no, None, *one) for line_no, one in _csv(list(zip(numbers, texts, strict=True)))]
    else:
        try:
            document = orjson.loads("\n".join(texts))
        except ValueError:
            document = None
        if isinstance(document, dict):
            at = _end_of(document)
            found = [(index, at, *one) for index, one in enumerate(_json(document), 1)]
        else:
            issues = issues_of(chunk.lines, "not one JSON object")
    rows = rows_of(found, _ERROR_S).select(*SAMPLES)
    stamps = rows.select("line_no", stamp="sample_ts").drop_nulls("stamp").head(1)
    return Parsed({"metric_sample": rows}, issues, chunk.lines.height - issues.height, stamps)


def _phase(document: Series) -> str:
    phase = document.get("metrics_phase")
    return phase[:40] if isinstance(phase, str) else "profiling"


def _end_of(document: Series) -> int | None:
    """End of the phase, microseconds since 1970."""
    summary = document.get("summary")
    ranges = summary.get("phase_time_ranges") if isinstance(summary, dict) else None
    phase = ranges.get(_phase(document)) if isinstance(ranges, dict) else None
    return instant_on(Clock.UTC, phase.get("end_ns"), "ns") if isinstance(phase, dict) else None


def _json(document: Series) -> Iterator[Found]:
    metrics = document.get("metrics")
    for name, metric in metrics.items() if isinstance(metrics, dict) else ():
        many = metric.get("series") if isinstance(metric, dict) else None
        for one in many if isinstance(many, list) else ():
            if isinstance(one, dict):
                stated = one.get("labels")
                labels = {str(k): str(v) for k, v in stated.items()} if isinstance(stated, dict) else {}
                labels["instance"] = str(one.get("endpoint_url", ""))[:200]
                yield from _aggregates(name, labels, _phase(document), one)


def _aggregates(name: str, labels: Mapping[str, str], phase: str, one: Series) -> Iterator[Found]:
    """Names, labels and values of one series' aggregates."""
    stats = one.get("stats")
    buckets = one.get("buckets")
    over = {**labels, "over": phase}
    for edge, value in buckets.items() if isinstance(buckets, dict) else ():
        yield f"{name}_bucket", labels_json({**over, "le": str(edge)}), _float(value)
    for stat, value in stats.items() if isinstance(stats, dict) else ():
        if stat in _TOTALS:
            yield name + _TOTALS[stat], labels_json(over), _float(value)
        else:
            yield name, labels_json({**over, "stat": str(stat)}), _float(value)


def _csv(lines: list[tuple[int, str]]) -> Iterator[tuple[int, Found]]:
    """Rows of the three tables (gauges, counters, histograms), each with a heading of its own."""
    heading: list[str] = []
    for line_no, text in lines:
        if not text.strip() or text.startswith("#"):
            continue
        cells = _cells(text)
        if cells[:1] == ["Endpoint"]:
            heading = cells
        elif heading and len(cells) == len(heading):
            row = dict(zip(heading, cells, strict=True))
            for found in _csv_row(row):
                yield line_no, found


def _cells(text: str) -> list[str]:
    try:
        return next(csv.reader([text]), [])
    except csv.Error:  # a carriage return outside quotes
        return []


def _csv_row(row: Mapping[str, str]) -> Iterator[Found]:
    first = next(iter(row))
    stats = {key: row[key] for key in row if key not in _COLUMNS and number(row[key]) is not None}
    names = list(row)
    # Labels stand between the last aggregate and the description: they are no aggregates of AIPerf.
    known = [key for key in names if key not in _COLUMNS and not _STAT.fullmatch(key)]
    labels = {"instance": row[first], **{key: row[key] for key in known if row[key]}}
    kept = {key: value for key, value in stats.items() if key not in known}
    buckets = dict(pair.split("=", 1) for pair in row.get("buckets", "").split(";") if "=" in pair)
    yield from _aggregates(row.get("Metric", ""), labels, "profiling", {"stats": kept, "buckets": buckets})


_STAT: Final = re.compile(r"avg|min|max|std|p\d+(?:_estimate)?|total|sum|count|(?:count_|sum_)?rate(?:_\w+)?")
"""Names that AIPerf gives its aggregates."""


def _float(value: Any) -> float | None:
    amount = number(value)
    return None if amount is None else float(amount)


FORMAT: Final = Format(
    name="aiperf_server",
    title="AIPerf server_metrics_export.json and .csv",
    side=Side.CLIENT,
    fills=("metric_sample",),
    sniff=sniff,
    parse=parse,
    whole=True,
    versions="AIPerf 0.13",
    complete="Written by AIPerf itself against a mock server. Aggregates stay aggregates.",
    record="aiperf profile ... (server_metrics_export.json and .csv)",
    sample="server_metrics_export.json",
)
