"""From the engine's own lines of a vLLM log (stats, iterations, companions of stats) to columns of the fact tables.

Every function takes ``line_no, stamp, error_s, process, level, message`` and gives frames in the shape of ``schemas/``.  A
number that a cut line may have shortened is not taken: each pattern ends behind the unit that follows the number.
"""

from __future__ import annotations

from typing import Final

import polars as pl

_STEP: Final = (
    r"^(?:Engine (?P<engine_index>\d+): )?Iteration\((?P<step_index>\d+)\): (?P<context_requests>\d+) context requests, "
    r"(?P<context_tokens>\d+) context tokens, (?P<generation_requests>\d+) generation requests, "
    r"(?P<generation_tokens>\d+) generation tokens, iteration elapsed time: (?P<elapsed_ms>[\d.]+) ms"
    r"(?P<dummy> \(dummy\))?(?:, \w+ KV cache usage: (?P<kv>[\d.]+)%)?"
)
_RATE: Final = r"[\d.]+ [TG][FB]/s/\w+"
_NUMBER: Final = r"-?\d[\d.]*(?:[eE][+-]?\d+)?"
_NAME: Final = r"[A-Za-z][A-Za-z0-9 /()_-]*?"
_PART: Final = rf"{_NAME}[:=] ?{_NUMBER}\b"
_UNIT_TO_COME: Final = r"(?:Corrupted|KV fetch): \d+$"
"""Parts that a unit ends: without it the line was cut, perhaps inside the number."""

_TOKENS: Final = r"tok(?:en)?s/s"
_STATS_BEGIN: Final = rf"^(?:Engine \d+: |\d+ Engines Aggregated: )?(?:Avg prompt (?:throughput|tput)|Throughput): [\d.]+ {_TOKENS}, "
_STATS_PART: Final = (
    rf"(?:{_NAME}[:=] ?{_NUMBER}(?:%| {_TOKENS}| [a-z]+(?: [a-z]+)*)?|\d+ in progress|\d+ completed waiting)"
)
STATS_WHOLE: Final = (
    rf"{_STATS_BEGIN}(?:{_STATS_PART}, )*[\w+ ]+ KV cache (?:usage|used): [\d.]+%(?:, {_STATS_PART})*[.,]? *$"
)
"""A whole stats line and nothing else: what a line without a header, or one inside another text, must be."""

_KV_FETCH: Final = r"KV fetch: (\d+) waiting to start, (\d+) in progress, (\d+) completed waiting"
_KV_FETCH_NAMED: Final = (
    "KV fetch waiting to start: ${1}, KV fetch in progress: ${2}, KV fetch completed waiting: ${3}"
)


def _number(pattern: str) -> pl.Expr:
    return pl.col("message").str.extract(pattern).cast(pl.Float64, strict=False)


def _ratio(pattern: str) -> pl.Expr:
    return exact(_number(pattern) / 100)


def exact(quotient: pl.Expr) -> pl.Expr:
    """The double nearest to the decimal number: Polars multiplies with 1/100 where a column is longer than one row."""
    return quotient.round(9)


def _count(pattern: str) -> pl.Expr:
    return pl.col("message").str.extract(pattern).cast(pl.Int64, strict=False)


_SAMPLE_PARTS: Final[dict[str, pl.Expr]] = {
    "prompt_tps": _number(r"Avg prompt (?:throughput|tput): ([\d.]+) tok(?:en)?s/s"),
    "generation_tps": _number(r"(?:Avg generation (?:throughput|tput)|^Throughput): ([\d.]+) tok(?:en)?s/s"),
    "running_count": _count(r"Running: (\d+)(?: reqs|,)"),
    "waiting_count": _count(r"(?:Waiting|Pending): (\d+)(?: reqs|,)"),
    "deferred_count": _count(r"Deferred: (\d+) reqs"),
    "swapped_count": _count(r"Swapped: (\d+) reqs"),
    "preemption_count": _count(r"Preemptions: (\d+)(?: reqs)?,"),
    "kv_cache_usage_ratio": _ratio(r"[\w+ ]+ KV cache (?:usage|used): ([\d.]+)%"),
    "cpu_kv_cache_usage_ratio": _ratio(r"KV cache usage: [\d.]+%, CPU KV cache usage: ([\d.]+)%"),
    "prefix_cache_hit_ratio": _ratio(r"\bPrefix cache hit rate: ([\d.]+)%"),
    "external_prefix_cache_hit_ratio": _ratio(r"External prefix cache hit rate: ([\d.]+)%"),
    "mm_cache_hit_ratio": _ratio(r"MM cache hit rate: ([\d.]+)%"),
}

_KNOWN_PARTS: Final = (
    r"(?:^Engine \d+: |^\d+ Engines Aggregated: |Avg (?:prompt|generation) (?:throughput|tput): [\d.]+ tok(?:en)?s/s|"
    r"^Throughput: [\d.]+ tokens/s|(?:Reqs )?Running: \d+(?: reqs)?|(?:Waiting|Pending|Deferred|Swapped|Preemptions): \d+(?: reqs)?|"
    r"[\w+]+ KV cache (?:usage|used): [\d.]+%|(?:External prefix|Prefix|MM) cache hit rate: [\d.]+%)(?:, |\.?$)?"
)


def stats(frame: pl.DataFrame) -> pl.DataFrame:
    """The engine's stats line; parts that no column holds are kept as JSON in ``other``."""
    index = pl.col("message").str.extract(r"^Engine (\d+): ").cast(pl.Int32, strict=False)
    engines = pl.col("message").str.extract(r"^(\d+) Engines Aggregated: ").cast(pl.Int32, strict=False)
    return frame.select(
        "line_no",
        "process",
        "level",
        sample_ts=pl.col("stamp"),
        error_s=pl.col("error_s"),
        engine_index=pl.when(engines.is_null()).then(index.fill_null(0)),
        engine_count=engines.fill_null(1),
        other=_as_json(
            pl.col("message").str.replace(_KV_FETCH, _KV_FETCH_NAMED).str.replace_all(_KNOWN_PARTS, "")
        ),
        **_SAMPLE_PARTS,
    )


def _as_json(rest: pl.Expr) -> pl.Expr:
    """``Corrupted: 3 reqs, New thing: 1.5`` as ``{"Corrupted":3,"New thing":1.5}``; NULL where nothing is left."""
    number = r"(-?)0*(\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)"
    quoted = pl.element().str.replace(rf"^({_NAME})[:=] ?{number}$", '"${1}":${2}${3}')
    parts = rest.str.replace(_UNIT_TO_COME, "").str.extract_all(_PART)
    pairs = parts.list.eval(quoted.filter(quoted.str.starts_with('"')))
    return pl.when(pairs.list.len() > 0).then(pl.concat_str([pl.lit("{"), pairs.list.join(","), pl.lit("}")]))


def steps(frame: pl.DataFrame) -> pl.DataFrame:
    """One engine iteration (--enable-logging-iteration-details)."""
    split = frame.with_columns(pl.col("message").str.extract_groups(_STEP).struct.unnest())
    counts = ("step_index", "context_requests", "context_tokens", "generation_requests", "generation_tokens")
    return split.select(
        "line_no",
        *[pl.col(name).cast(pl.Int64, strict=False) for name in counts],
        step_ts=pl.col("stamp"),
        error_s=pl.col("error_s"),
        engine_index=pl.col("engine_index").cast(pl.Int32, strict=False).fill_null(0),
        elapsed_s=exact(pl.col("elapsed_ms").cast(pl.Float64, strict=False) / 1000),
        kv_cache_usage_ratio=exact(pl.col("kv").cast(pl.Float64, strict=False) / 100),
        dummy=pl.col("dummy").is_not_null(),
    )


def companions(frame: pl.DataFrame) -> pl.DataFrame:
    """Lines beside the stats line (speculative decoding, KV transfer): each number a row of `metric_sample`.

    Numbers of a list (``Per-position acceptance rate: 0.8, 0.5``) have their position, from 0, as label.
    """
    title = pl.col("message").str.extract(r"^(?:Engine \d+: )?([A-Za-z ]+?): ")
    parts = pl.col("message").str.replace(r"^(?:Engine \d+: )?(?:[A-Za-z ]+ metrics|MFU): ", "")
    found = pl.concat_list(
        parts.str.extract_all(rf"{_PART}(?:, {_NUMBER}\b)*"), pl.col("message").str.extract_all(_RATE)
    )
    one = frame.select("line_no", "stamp", title=title, part=found).explode("part", empty_as_null=False)
    part = pl.col("part")
    listed = pl.coalesce(
        part.str.extract(rf"[:=] ?((?:(?:, )?{_NUMBER})+)$"), part.str.extract(r"^([\d.]+) ")
    ).str.split(", ")
    one = one.with_columns(measured=listed, position=pl.int_ranges(0, listed.list.len()))
    one = one.with_columns(many=pl.col("measured").list.len() > 1).explode(
        "measured", "position", empty_as_null=False
    )
    return one.select(
        "line_no",
        sample_ts=pl.col("stamp"),
        name=pl.col("title")
        + ": "
        + pl.coalesce(part.str.extract(r"^(.*?)[:=]"), part.str.extract(r"^[\d.]+ (\S+)$")),
        labels=pl.when("many").then(
            pl.lit('{"position":"') + pl.col("position").cast(pl.String) + pl.lit('"}')
        ),
        measured=pl.col("measured").cast(pl.Float64, strict=False),
    ).drop_nulls("measured")
