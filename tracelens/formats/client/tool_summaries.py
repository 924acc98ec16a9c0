"""Numbers that load generators state of many requests together, as rows of `client_summary`.

Statistics get one vocabulary (``mean``, ``std``, ``min``, ``max``, ``count``, ``sum``, ``p50``...); names stay the tool's own,
because two tools mean different things by one name.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from tracelens.formats.json_lines import number

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

_SCHEMA: Final[Mapping[str, Any]] = {
    "line_no": pl.Int64,
    **dict.fromkeys(("tool", "subject", "name", "statistic"), pl.String),
    "measured": pl.Float64,
    "unit": pl.String,
    "measured_s": pl.Float64,
    "stated": pl.String,
}
_SECONDS: Final[Mapping[str, float]] = {
    "s": 1.0, "sec": 1.0, "secs": 1.0, "second": 1.0, "seconds": 1.0, "ms": 1e-3, "milliseconds": 1e-3,
    "us": 1e-6, "ns": 1e-9, "s/token": 1.0, "ms/token": 1e-3,
}  # fmt: skip
_STATISTICS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("mean", "avg", "average"), "mean"),
    **dict.fromkeys(("std", "stddev", "std_dev", "std dev"), "std"),
    **{word: word for word in ("min", "max", "count", "sum", "mode", "variance")},
    "total_sum": "sum",
    "median": "p50",
}
_QUANTILE: Final = re.compile(r"[pP]?(\d{1,2}|\d\d\.\d{1,3}|0\.\d{1,3}|100)(?:th)?%?")
_PADDED: Final = re.compile(r"p(0\d\d|9\d\d)")
_DOTTED: Final = re.compile(r"p(\d{1,2})p(\d{1,3})")
_LED: Final = re.compile(r"(mean|median|std|min|max|p\d{1,2}(?:\.\d+)?)[_ ](.+(?:_ms|\(ms\)))", re.IGNORECASE)
"""A latency with its statistic in front; ``max_concurrency`` is none."""
_UNIT: Final = re.compile(r"\(([^()]{1,20})\)$|(?<!_per)_(ms|s|us|ns|seconds)$")
_WORDED: Final = ("request_rate", "max_concurrency")
_STATED_CHARS: Final = 200


@dataclass(frozen=True, slots=True)
class Figure:
    """One number: what it is about, its name, which statistic, and the unit; `stated` where it is a word."""

    name: str
    measured: float | None
    statistic: str | None = None
    unit: str | None = None
    subject: str | None = None
    stated: str | None = None

    @property
    def measured_s(self) -> float | None:
        """The number in seconds, where it is a time; a variance is none."""
        per_unit = _SECONDS.get((self.unit or "").lower())
        if self.measured is None or per_unit is None or self.statistic in ("count", "variance"):
            return None
        return self.measured if per_unit == 1.0 else self.measured * per_unit


def statistic_of(word: str) -> str | None:
    """The statistic that a word means; None when it means none.

    ``p001`` and ``p999`` are GuideLLM's p0.1 and p99.9, ``p99p9`` is that of the llm-d report.
    """
    known = _STATISTICS.get(word.lower())
    if known is not None:
        return known
    padded = _PADDED.fullmatch(word)
    if padded:
        return f"p{int(padded[1]) / 10:g}"
    dotted = _DOTTED.fullmatch(word)
    if dotted:
        return f"p{float(f'{dotted[1]}.{dotted[2]}'):g}"
    quantile = _QUANTILE.fullmatch(word)
    return f"p{float(quantile[1]):g}" if quantile else None


def figure(name: str, value: Any, statistic: str | None, unit: str | None, subject: str | None) -> Figure:
    """A value as a number, else as the word that it is."""
    amount = number(value)
    if amount is None:
        return Figure(name, None, statistic, unit, subject, str(value)[:_STATED_CHARS])
    return Figure(name, float(amount), statistic, unit, subject)


def nested(
    values: Mapping[str, Any], units: Mapping[str, str], subject: str | None = None, path: str = ""
) -> Iterator[Figure]:
    """Numbers of nested objects: the keys down to a statistic are the name; texts and lists are left out.

    `units` gives the unit of a name by its last word; an object may also state its own under ``unit`` or ``units``.
    """
    stated = values.get("unit", values.get("units"))
    for key, value in values.items():
        name = f"{path}.{key}" if path else key
        if isinstance(value, dict):
            yield from nested(value, units, subject, path if key == "percentiles" else name)
            continue
        amount = None if isinstance(value, bool) else number(value)
        if amount is None or isinstance(value, str):
            continue
        statistic = statistic_of(key) if path else None
        told = path if statistic else name
        last = told.rpartition(".")[2]
        unit = stated if isinstance(stated, str) else units.get(last, unit_of(last))
        yield Figure(told, float(amount), statistic, unit, subject)


def led_by_statistic(name: str) -> tuple[str, str | None]:
    """``mean_ttft_ms`` or ``Mean TTFT (ms)`` as name and statistic."""
    found = _LED.fullmatch(name)
    return (found[2], statistic_of(found[1])) if found else (name, None)


def totals(values: Mapping[str, Any], units: Mapping[str, str], subject: str | None) -> Iterator[Figure]:
    """Numbers at the top of a result object, and a rate or limit that is a word (``inf``)."""
    for key, value in values.items():
        name, statistic = led_by_statistic(key)
        is_number = not isinstance(value, bool | str) and number(value) is not None
        if is_number or (isinstance(value, str) and key in _WORDED):
            yield figure(name, value, statistic, units.get(name, unit_of(name)), subject)


def unit_of(name: str) -> str | None:
    """The unit that a name ends in: ``mean_ttft_ms``, ``duration_s``, ``Latency (s)``."""
    found = _UNIT.search(name.strip())
    return (found[1] or found[2]) if found else None


def summary_frame(tool: str, figures: Iterable[tuple[int, Figure]]) -> pl.DataFrame:
    """Rows of `client_summary`: figures with the line (or place) where they stand."""
    rows = [(line_no, each) for line_no, each in figures if each.measured is not None or each.stated]
    columns: dict[str, list[Any]] = {
        "line_no": [line_no for line_no, _ in rows],
        "tool": [tool] * len(rows),
        **{
            name: [getattr(each, name) for _, each in rows]
            for name in ("subject", "name", "statistic", "measured", "unit", "measured_s", "stated")
        },
    }
    return pl.DataFrame(columns, schema=_SCHEMA)
