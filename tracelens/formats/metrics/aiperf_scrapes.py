"""AIPerf's ``server_metrics_export.jsonl``: one scrape of the server a line, as the load generator took it.

Counters lose their ``_total`` (``vllm:prompt_tokens``); a histogram stands as its buckets, sum and count, and gets back the
names that a scrape has.  `timestamp_ns` is the instant at which the answer had come.  Read in AIPerf 0.13.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import polars as pl

from tracelens.formats.base import Chunk, Claim, Clock, Format, Head, Parsed, Side
from tracelens.formats.json_lines import number, objects_in, read_objects, refusals
from tracelens.formats.metrics.series import SAMPLES, Value, labels_json, rows_of
from tracelens.formats.stamps import instant_on

NO_SCRAPE: Final = "no scrape in it"
_ERROR_S: Final = 1e-6
Series = Mapping[str, Any]


def is_scrape(values: Series) -> bool:
    """Whether an object is a scrape: an address, a time in nanoseconds and metrics."""
    return isinstance(values.get("metrics"), dict) and "timestamp_ns" in values and "endpoint_url" in values


def sniff(head: Head) -> Claim | None:
    """Claim lines of JSON objects most of which are scrapes."""
    found = objects_in(head.lines)
    if found is None or sum(map(is_scrape, found)) * 2 <= len(found):
        return None
    return Claim("AIPerf, scrapes of the server", Clock.UTC)


def parse(chunk: Chunk) -> Parsed:
    """Read every series of every scrape into `metric_sample`."""
    objects = read_objects(chunk.lines)
    found: list[Value] = []
    empty: dict[int, str] = {}
    for line_no, values in objects:
        if not is_scrape(values):
            empty[line_no] = NO_SCRAPE
            continue
        at = instant_on(Clock.UTC, values["timestamp_ns"], "ns")
        found += [(line_no, at, *one) for one in _series(values)]
    issues = pl.concat([objects.issues, refusals(chunk.lines, empty)]).sort("line_no")
    rows = rows_of(found, _ERROR_S).select(*SAMPLES)
    stamps = rows.select("line_no", stamp="sample_ts").unique(maintain_order=True).drop_nulls("stamp")
    return Parsed({"metric_sample": rows}, issues, chunk.lines.height - issues.height, stamps)


def _series(scrape: Series) -> Iterator[tuple[str, str, float | None]]:
    place = {"instance": str(scrape["endpoint_url"])[:200]}
    for name, many in scrape["metrics"].items():
        for one in many if isinstance(many, list) else []:
            if isinstance(one, dict):
                yield from values_of(name, one, place)


def values_of(name: str, one: Series, place: Mapping[str, str]) -> Iterator[tuple[str, str, float | None]]:
    """Names, labels and values that a scrape would have: of a gauge or counter one, of a histogram several."""
    stated = one.get("labels")
    labels = {str(k): str(v) for k, v in stated.items()} if isinstance(stated, dict) else {}
    labels = {**place, **labels}
    if "value" in one:
        yield name, labels_json(labels), _float(one["value"])
    buckets = one.get("buckets")
    for edge, value in buckets.items() if isinstance(buckets, dict) else ():
        yield f"{name}_bucket", labels_json({**labels, "le": str(edge)}), _float(value)
    for part in ("sum", "count"):
        if part in one:
            yield f"{name}_{part}", labels_json(labels), _float(one[part])


def _float(value: Any) -> float | None:
    amount = number(value)
    return None if amount is None else float(amount)


FORMAT: Final = Format(
    name="aiperf_scrapes",
    title="AIPerf server_metrics_export.jsonl",
    side=Side.CLIENT,
    fills=("metric_sample",),
    sniff=sniff,
    parse=parse,
    versions="AIPerf 0.13",
    complete="Written by AIPerf itself against a mock server.",
    record="aiperf profile ... with jsonl among the formats of its server metrics (server_metrics_export.jsonl)",
    sample="server_metrics_export.jsonl",
)
