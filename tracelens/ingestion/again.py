"""Making a case anew from the files it was made from: after an update of tracelens, or when its sources have grown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Any

from tracelens.errors import CaseError
from tracelens.ingestion import IngestReport, OnProgress, ingest_found
from tracelens.ingestion.options import IngestOptions, remembered
from tracelens.ingestion.verifying import where
from tracelens.opening import Input, Unreadable
from tracelens.store import CaseLock, CaseWriter, sources_of


@dataclass(frozen=True, slots=True)
class _Batch:
    """Sources of one run that were read with the same options."""

    options: IngestOptions
    found: list[Input | Unreadable]


def reingest(
    case: Path, into: Path | None = None, *, without_gone: bool = False, on_progress: OnProgress | None = None
) -> Sequence[IngestReport]:
    """Read a case's sources again, of whatever version it is, into itself or into another file; a report per run.

    Run labels and options are those of the first time.  The case is replaced in one step at the end.  Raises `CaseError`
    where a source is gone, unless `without_gone`, or where not one of them could be read.
    """
    target = into or case
    rows, key = sources_of(case)
    batches = list(_batches(rows, case, key))
    gone = [one.label for batch in batches for one in batch.found if isinstance(one, Unreadable)]
    if gone and not without_gone:
        raise CaseError(
            f"{case}: {len(gone)} of {len(rows)} sources cannot be read again (first: {gone[0]}); nothing was changed",
            hint="bring them back to where they were, or leave them out with --without-gone",
        )
    with CaseLock(target) as lock:
        fresh = lock.folder / "again.duckdb"
        if not rows:
            with CaseWriter(fresh):
                pass
        reports = [ingest_found(batch.found, fresh, batch.options, on_progress) for batch in batches]
        if not fresh.exists():
            raise CaseError(f"{case}: not one of its sources could be read again; nothing was changed")
        fresh.replace(lock.target)
    return [replace(report, case=target) for report in reports]


def _batches(rows: list[Mapping[str, Any]], case: Path, prompt_key: int) -> Iterator[_Batch]:
    """Sources in the order in which they came, cut where the options change."""

    def told(row: Mapping[str, Any]) -> IngestOptions:
        return remembered(row["run_id"], row.get("options") or "{}")[0]

    for options, batch in groupby(rows, told):
        # What several programs wrote into one file is one file.
        found = {one.label: one for one in (where(row, case) for row in batch)}
        yield _Batch(replace(options, prompt_key=prompt_key), list(found.values()))
