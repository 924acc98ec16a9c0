"""Answers of Prometheus' HTTP API: range queries (``matrix``) and instant queries (``vector``).

One document a file, or one a line.  Each series has its labels and its values as ``[seconds since 1970, "text"]``; NaN is
no value.  A function or an aggregation takes the name away: the name is then empty.  The lines of a document say nothing,
so the values are numbered in the order of time, from 1 per file, and `metric_sample.line_no` is that number.  Written
from Prometheus 2 and 3, Thanos and VictoriaMetrics, which answer in the same form.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import orjson
import polars as pl

from tracelens.formats.base import Chunk, Claim, Clock, Format, Head, Parsed, Side, no_issues
from tracelens.formats.json_lines import number, read_objects, refusals
from tracelens.formats.metrics.series import NAME_LABEL, SAMPLES, labels_json, rows_of

_RESULT: Final = re.compile(r'"resultType"\s*:\s*"(matrix|vector)"')
_HEAD_CHARS: Final = 20_000
_LARGEST_S: Final = 7e9
NO_RESULT: Final = "no answer of a query in it"
_ERROR_S: Final = 0.001

Series = Mapping[str, Any]


def sniff(head: Head) -> Claim | None:
    """Claim a JSON object that names the type of its result, matrix or vector."""
    if not head.first.lstrip("\ufeff \t").startswith("{"):
        return None
    found = _RESULT.search("\n".join(head.lines)[:_HEAD_CHARS])
    kind = {"matrix": "range query", "vector": "instant query"}
    return Claim(f"Prometheus HTTP API, {kind[found[1]]}", Clock.UTC) if found else None


def parse(chunk: Chunk) -> Parsed:
    """Read every series of every document into `metric_sample`."""
    documents, issues = _documents(chunk.lines)
    found = [(at, name, labels, value) for each in documents for at, name, labels, value in _values(each)]
    found.sort(key=lambda row: (row[0], row[1], row[2]))
    rows = rows_of([(index, *row) for index, row in enumerate(found, 1)], _ERROR_S)
    stamps = rows.select("line_no", stamp="sample_ts").drop_nulls("stamp")
    return Parsed(
        {"metric_sample": rows.select(*SAMPLES)}, issues, chunk.lines.height - issues.height, stamps
    )


def _documents(lines: pl.DataFrame) -> tuple[list[Series], pl.DataFrame]:
    """Every answer in the file: the whole of it is one, or each line is."""
    text = "\n".join(lines["text"].fill_null("").to_list()).lstrip("\ufeff")
    try:
        whole = orjson.loads(text)
    except ValueError:
        whole = None
    if isinstance(whole, dict) and _result(whole) is not None:
        return [whole], no_issues()
    objects = read_objects(lines)
    empty = {line_no: NO_RESULT for line_no, each in objects if _result(each) is None}
    issues = pl.concat([objects.issues, refusals(lines, empty)]).sort("line_no")
    return [each for line_no, each in objects if line_no not in empty], issues


def _result(document: Series) -> list[Any] | None:
    """Series of an answer; None where it is none."""
    inner = document.get("data", document)
    result = inner.get("result") if isinstance(inner, dict) else None
    return result if isinstance(result, list) else None


def _values(document: Series) -> Iterator[tuple[int, str, str, float | None]]:
    for series in _result(document) or []:
        labels = series.get("metric") if isinstance(series, dict) else None
        if not isinstance(labels, dict):
            continue
        texts = {str(key): str(value) for key, value in labels.items()}
        name, written = texts.get(NAME_LABEL, ""), labels_json(texts)
        for at, value in _points(series):
            yield at, name, written, value


def _points(series: Series) -> Iterator[tuple[int, float | None]]:
    """Points of one series in microseconds; one whose time cannot be read is left out."""
    points = series.get("values")
    for point in points if isinstance(points, list) else [series.get("value")]:
        if not isinstance(point, list) or len(point) != 2:  # noqa: PLR2004 - a time and a value
            continue
        at, value = number(point[0]), number(point[1])
        if at is not None and 0 <= at < _LARGEST_S:
            yield round(at * 1_000_000), None if value is None else float(value)


FORMAT: Final = Format(
    name="prometheus_api",
    title="answer of Prometheus' HTTP API (range or instant query)",
    side=Side.SERVER,
    fills=("metric_sample",),
    sniff=sniff,
    parse=parse,
    whole=True,
    versions="Prometheus 2 and 3",
    complete="Range and instant queries; native histograms are left out. Values of the samples are invented.",
    record="curl -s 'http://PROMETHEUS:9090/api/v1/query_range?query={__name__=~\"vllm.*\"}&start=...&end=...&step=15' > range.json",
    sample="vllm_range.json",
)
