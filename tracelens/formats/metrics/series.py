"""Names, labels and values of the Prometheus exposition format as columns.

Read in the text format 0.0.4, OpenMetrics 1.0 (prometheus_client 0.7 to 0.26) and the dump of ``promtool tsdb dump``.
Labels repeat from scrape to scrape, so each spelling of them is read once.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import orjson
import polars as pl

if TYPE_CHECKING:
    from collections.abc import Mapping

NAME_LABEL: Final = "__name__"
"""The label under which Prometheus itself keeps a metric's name."""

SAMPLE: Final = (
    r"^(?P<name>[A-Za-z_:][A-Za-z0-9_:.]*)?(?:\{(?P<labels>.*)\})?[ \t]+"
    r"(?P<value>[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|[Nn]a[Nn]|[Ii]nf))"
    r"(?:[ \t]+(?P<time>-?\d+(?:\.\d+)?))?[ \t]*$"
)
"""A value of a series: its name, labels, value and, where it has one, the time of its own."""

_EXEMPLAR: Final = r"[ \t]+#[ \t]+\{[^{}]*\}[ \t]+\S+(?:[ \t]+\S+)?[ \t]*$"
"""What OpenMetrics hangs on a bucket: one example of what is counted in it."""

_PAIR: Final = re.compile(r'\s*(?:([A-Za-z_][A-Za-z0-9_.]*)\s*=\s*)?"((?:[^"\\]|\\.)*)"\s*(?:,|$)')
_ESCAPE: Final = re.compile(r"\\(.)")
_ESCAPED: Final = {"n": "\n"}

_SENTINELS: Final = ((140_737_488_355_328.0, 140_737_488_355_332.0), (9.2233720368547e18, 9.2233720368548e18))
"""Numbers by which DCGM says that there is no value: next to 2**47 (doubles) and next to 2**63 (integers)."""

_MILLIS_FROM: Final = 1e11
"""A time of a sample from this on counts milliseconds (text format), below it seconds (OpenMetrics)."""

SAMPLES: Final[Mapping[str, Any]] = {
    "line_no": pl.Int64,
    "sample_ts": pl.Datetime("us"),
    "error_s": pl.Float64,
    "name": pl.String,
    "labels": pl.String,
    "measured": pl.Float64,
    "timing": pl.String,
}
"""Columns of `metric_sample` that a reader writes; ``timing`` tells the load what makes one scrape of several rows."""


def labels_of(text: str) -> dict[str, str] | None:
    """Read what stands between the braces; None where it is no list of labels.  A bare string is the metric's name."""
    found: dict[str, str] = {}
    at = 0
    while at < len(text):
        pair = _PAIR.match(text, at)
        if pair is None or pair.end() == at:
            return None if text[at:].strip(" \t,") else found
        value = _ESCAPE.sub(lambda each: _ESCAPED.get(each[1], each[1]), pair[2])
        found[pair[1] or NAME_LABEL] = value
        at = pair.end()
    return found


def labels_json(labels: Mapping[str, str]) -> str:
    """Write labels as a JSON object in the order of their names, the metric's own name left out."""
    kept = {key: value for key, value in labels.items() if key != NAME_LABEL}
    return orjson.dumps(kept, option=orjson.OPT_SORT_KEYS).decode()


def values(lines: pl.DataFrame) -> pl.DataFrame:
    """Read lines (``line_no, text``): ``name, labels, measured, time`` with ``is_sample`` False where a line is none."""
    bare = pl.col("text").str.strip_chars_end("\r")
    plain = (
        pl.when(bare.str.contains(" # {", literal=True)).then(bare.str.replace(_EXEMPLAR, "")).otherwise(bare)
    )
    parts = lines.with_columns(part=plain.str.extract_groups(SAMPLE)).unnest("part")
    named = _with_labels(parts)
    measured = pl.col("value").cast(pl.Float64, strict=False)
    name = pl.coalesce("name", "inner_name")
    return named.with_columns(
        name=name,
        is_sample=pl.col("value").is_not_null() & pl.col("labels").is_not_null() & name.is_not_null(),
        measured=known_value(name, measured),
        time=own_time(pl.col("time")),
    ).drop("value", "inner_name")


def _with_labels(parts: pl.DataFrame) -> pl.DataFrame:
    texts = parts["labels"].fill_null("").unique().to_list()
    read = [labels_of(text) for text in texts]
    table = pl.DataFrame(
        {
            "labels": texts,
            "json": [None if each is None else labels_json(each) for each in read],
            "inner_name": [None if each is None else each.get(NAME_LABEL) for each in read],
        },
        schema={"labels": pl.String, "json": pl.String, "inner_name": pl.String},
    )
    joined = parts.with_columns(pl.col("labels").fill_null("")).join(
        table, on="labels", how="left", maintain_order="left"
    )
    return joined.drop("labels").rename({"json": "labels"})


def known_value(name: pl.Expr, measured: pl.Expr) -> pl.Expr:
    """Leave out NaN, infinities, and the numbers by which DCGM says that it has no value."""
    absent = pl.any_horizontal([measured.abs().is_between(low, high) for low, high in _SENTINELS])
    return pl.when(measured.is_finite() & ~(absent & name.str.starts_with("DCGM_"))).then(measured)


def own_time(text: pl.Expr) -> pl.Expr:
    """Read the time behind a value: milliseconds since 1970 in the text format, seconds in OpenMetrics."""
    number = text.cast(pl.Float64, strict=False)
    micros = pl.when(number.abs() >= _MILLIS_FROM).then(number * 1e3).otherwise(number * 1e6)
    sane = micros.is_between(0, 7e15)
    return pl.when(sane).then(micros.round()).cast(pl.Int64, strict=False).cast(pl.Datetime("us"))


Value = tuple[int, int | None, str, str, float | None]
"""Line number, microseconds since 1970, name, labels as JSON, value."""


def rows_of(found: list[Value], error_s: float, timing: str = "own") -> pl.DataFrame:
    """Rows of `metric_sample` of values that JSON holds."""
    columns = list(zip(*found, strict=True)) or [()] * 5
    named = dict(zip(("line_no", "sample_ts", "name", "labels", "measured"), columns, strict=True))
    frame = pl.DataFrame(
        {key: list(column) for key, column in named.items()},
        schema={**{key: SAMPLES[key] for key in named}, "sample_ts": pl.Int64},
    )
    return frame.select(
        "line_no",
        pl.col("sample_ts").cast(pl.Datetime("us")),
        pl.lit(error_s, pl.Float64).alias("error_s"),
        "name",
        "labels",
        known_value(pl.col("name"), pl.col("measured")).alias("measured"),
        pl.lit(timing).alias("timing"),
    )
