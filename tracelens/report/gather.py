"""What a report holds: rows of named queries and the outcomes of the rules, as one JSON-ready mapping."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import version
from typing import Any, Final

import tracelens
from tracelens.case import Case
from tracelens.check import Check
from tracelens.marks import read_marks
from tracelens.slo import Slo
from tracelens.text.checks import whole
from tracelens.text.goodput import goodput
from tracelens.text.rows import plain, steady

VERSION: Final = 1
"""Version of the document's form: ``schemas/report.schema.json``."""
WORST: Final = 10
"""Requests of each run that are shown with their stages."""
POINTS: Final = 1500
"""Requests of each run that the plot of prompt lengths shows: outliers first."""
PIECES: Final = 160
"""Pieces that the timeline is cut into."""
_PER_RUN: Final[Mapping[str, tuple[str, Mapping[str, Any]]]] = {
    "percentiles": ("latency_percentiles", {}),
    "latency_map": ("latency_map", {}),
    "stages": ("stages", {}),
    "tail_excess": ("tail_excess", {}),
    "tail_factors": ("tail_factors", {}),
    "timeline": ("lanes", {"pieces": PIECES}),
    "gpus": ("gpu_compare", {}),
    "curve": ("prompt_length_curve", {}),
    "length_points": ("curve_points", {"top": POINTS}),
    "slowest": ("slowest", {"top": WORST}),
    "worst_stages": ("slowest_stages", {"top": WORST}),
    "sources": ("sources", {}),
    "clocks": ("clock_offsets", {}),
    "coverage": ("coverage", {}),
    "settings": ("settings", {}),
}
"""Key of a run in the document: the named query behind it, and its parameters beside `run`."""


def gather(case: Case, check: Check, slo: Slo | None = None) -> dict[str, Any]:
    """The document of a checked case: everything in it can be asked again with ``tracelens query`` and ``check``."""
    document = {
        "document_version": VERSION,
        "tracelens": tracelens.__version__,
        "duckdb": version("duckdb"),
        "slo": str(slo) if slo else None,
        **whole(check),
        "runs": [_run(case, run, slo) for run in check.runs],
        "marks": [
            {"kind": one.kind, "run": one.run, "name": one.name, "note": one.note}
            for one in read_marks(case.path)
        ],
        "queries": {key: {"name": name, **params} for key, (name, params) in _PER_RUN.items()},
    }
    found: dict[str, Any] = steady(plain(document))
    return found


def _run(case: Case, run: str, slo: Slo | None) -> dict[str, Any]:
    spans = case.query("run_span", run=run).dicts()
    return {
        "run": run,
        "span": spans[0] if spans else {},
        **{
            key: case.query(name, **{"run": run, **params}).dicts()
            for key, (name, params) in _PER_RUN.items()
        },
        "goodput": goodput(case, slo, run) if slo else [],
    }
