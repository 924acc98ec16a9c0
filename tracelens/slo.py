"""Service level objectives: how long a request may take to count as good.

Written as ``ttft=1s,tpot=50ms,e2e=30s``; what is not named has no limit.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any, Final

from tracelens import units
from tracelens.errors import UsageError, near

_UNITS: Final = {"us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "": 1.0, "m": 60.0, "min": 60.0}
_AMOUNT: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*(us|µs|ms|s|min|m|)")


@dataclass(frozen=True, slots=True)
class Slo:
    """The limits of a good request, seconds; None is no limit."""

    ttft_s: float | None = None
    tpot_s: float | None = None
    e2e_s: float | None = None

    def __bool__(self) -> bool:
        return any(limit is not None for _, limit in self.limits())

    def limits(self) -> Iterator[tuple[str, float | None]]:
        """Measure (``ttft``, ``tpot``, ``e2e``) and limit."""
        for one in fields(self):
            yield one.name.removesuffix("_s"), getattr(self, one.name)

    def params(self) -> dict[str, float]:
        """As the parameters of the query ``goodput``, where 0 is no limit."""
        return {f"{measure}_s": limit or 0.0 for measure, limit in self.limits()}

    def __str__(self) -> str:
        known = [(measure, limit) for measure, limit in self.limits() if limit is not None]
        return ", ".join(f"{measure.upper()} ≤ {units.duration(limit)}" for measure, limit in known)


def parse(text: str) -> Slo:
    """Read ``ttft=1s,tpot=50ms,e2e=30s``; raises `UsageError`."""
    pairs = [part.partition("=") for part in text.split(",") if part.strip()]
    return from_table({key.strip(): value for key, _, value in pairs})


def from_table(table: Mapping[str, Any]) -> Slo:
    """Limits by measure, as texts or as numbers of seconds; raises `UsageError`."""
    known = [measure for measure, _ in Slo().limits()]
    unknown = next((key for key in table if key not in known), None)
    if unknown is not None:
        raise UsageError(
            f"an SLO has no {unknown!r}", hint=near(unknown, known, "such as: ttft=1s,tpot=50ms,e2e=30s")
        )
    return Slo(**{f"{key}_s": _seconds(key, value) for key, value in table.items()})


def _seconds(measure: str, value: Any) -> float:
    found = _AMOUNT.fullmatch(str(value).strip())
    seconds = float(found[1]) * _UNITS[found[2]] if found else 0.0
    if seconds <= 0:
        raise UsageError(f"{measure}={value} is no length of time", hint="such as: ttft=1s,tpot=50ms,e2e=30s")
    return seconds
