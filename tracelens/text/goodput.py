"""How many requests kept an SLO, and which stage took the time of those that did not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tracelens.text.terminal import clean
from tracelens.units import count, percent

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tracelens.case import Case
    from tracelens.slo import Slo

    Row = Mapping[str, Any]


def goodput(case: Case, slo: Slo, run: str) -> list[dict[str, Any]]:
    """A row of the query `goodput` per run, with its rows of `slo_violations` under ``violations``."""
    params: dict[str, Any] = {"run": run, **slo.params()}
    broken = case.query("slo_violations", **params).dicts()
    return [
        {**row, "violations": [one for one in broken if one["run_id"] == row["run_id"]]}
        for row in case.query("goodput", **params).dicts()
    ]


def goodput_lines(slo: Slo, rows: Sequence[Row]) -> Iterator[str]:
    """A line per run, and one per limit that was broken."""
    for row in rows:
        name = f" in run {clean(row['run_id'])}" if len(rows) > 1 else ""
        open_count = row["request_count"] - row["judged_count"]
        judged = f"{count(row['good_count'])} of {count(row['judged_count'])} requests"
        beside = [f"{count(row['failed_count'])} failed or were aborted"] if row["failed_count"] else []
        beside += [f"{count(open_count)} cannot be judged"] if open_count else []
        yield f"SLO {slo}{name}: goodput {percent(row['goodput_ratio'])} ({'; '.join([judged, *beside])})"
        for measure in dict.fromkeys(one["measure"] for one in row["violations"]):
            broken = [one for one in row["violations"] if one["measure"] == measure]
            stages = ", ".join(f"{one['stage']} {percent(one['share_ratio'])}" for one in broken)
            total = sum(one["violation_count"] for one in broken)
            yield f"  {measure.upper()} broken by {count(total)}; where most of their time went: {stages}"
