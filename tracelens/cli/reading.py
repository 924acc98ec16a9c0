"""A case, opened for a command that only reads it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from tracelens.errors import UsageError

if TYPE_CHECKING:
    from tracelens.case import Case


@contextlib.contextmanager
def reading(path: Path) -> Iterator[Case]:
    """Open a case, and close it again."""
    import tracelens

    with tracelens.open(path) as case:
        yield case


def check_run(case: Case, run: str) -> None:
    """Raise `UsageError` for a run that the case does not have."""
    known = dict.fromkeys(str(row["run_id"]) for row in case.query("sources").dicts())
    if run and run not in known:
        raise UsageError(
            f"there is no run {run!r} in this case", hint=f"it has: {', '.join(known) or 'none'}"
        )
