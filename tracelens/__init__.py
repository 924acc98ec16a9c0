"""tracelens: where the time of an LLM request went, from the logs that are left after an incident.

    import tracelens
    tracelens.ingest(["logs/"], case="incident.duckdb", run="before")
    with tracelens.open("incident.duckdb") as case:
        case.check().verdict
        case.query("slowest", by="ttft", top=20)
        case.sql("SELECT ...").pl()

Importing this loads nothing heavy; the first call does.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date as _date
from pathlib import Path
from typing import TYPE_CHECKING

from tracelens.errors import (
    CaseError,
    QueryError,
    QueryTimeout,
    RuleError,
    SourceError,
    TracelensError,
    UnknownFormat,
    UsageError,
)

if TYPE_CHECKING:
    from tracelens.case import Case
    from tracelens.ingestion import IngestReport, OnProgress

__version__ = "0.1.0"

__all__ = [
    "CaseError",
    "QueryError",
    "QueryTimeout",
    "RuleError",
    "SourceError",
    "TracelensError",
    "UnknownFormat",
    "UsageError",
    "__version__",
    "ingest",
    "open",
]


def ingest(  # noqa: PLR0913 - the options of the command, by name
    sources: Sequence[str | Path],
    case: str | Path = "incident.duckdb",
    *,
    run: str = "default",
    format: str | None = None,  # noqa: A002 - the option's name
    tz: str | None = None,
    gpu_tz: str | None = None,
    client_tz: str | None = None,
    date: _date | None = None,
    keep_text: bool = False,
    on_progress: OnProgress | None = None,
) -> IngestReport:
    """Read files, folders, globs and bundles into a case; returns what became of each file.

    `format` forces a format; `tz`, `gpu_tz`, `client_tz` (IANA names or ±HH:MM) and `date` settle what logs leave
    out.  Raises `CaseError` where the case cannot be written, `UsageError` for a zone or format nobody knows.
    """
    from tracelens.ingestion import IngestOptions, TimeOptions
    from tracelens.ingestion import ingest as run_ingest

    options = IngestOptions(run, format, TimeOptions(tz, gpu_tz, client_tz, date), keep_text)
    return run_ingest([str(source) for source in sources], Path(case), options, on_progress)


def open(case: str | Path) -> Case:  # noqa: A001 - `tracelens.open`, as `gzip.open`
    """Open a case for reading."""
    from tracelens.case import Case

    return Case(case)
