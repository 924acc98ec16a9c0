"""Bookmarks and notes on requests and findings: a small JSON file beside the case, never in it.

The case is made of what the sources say; a mark is what a person thinks.  So a new ingest leaves the marks alone, and they
travel by copying one file.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from tracelens.errors import SourceError

KINDS: Final = ("request", "finding")
_VERSION: Final = 1


@dataclass(frozen=True, slots=True)
class Mark:
    """A bookmark: what it is on (a request's id, or a finding's rule), in which run, and what was noted."""

    kind: str
    run: str
    name: str
    note: str = ""


def marks_path(case: Path) -> Path:
    """Where the marks of a case lie: ``incident.duckdb.marks.json``."""
    return case.with_name(case.name + ".marks.json")


def read_marks(case: Path) -> tuple[Mark, ...]:
    """The marks of a case in the order in which they were made; raises `SourceError` for a file that is none of ours."""
    path = marks_path(case)
    try:
        whole = json.loads(path.read_text(encoding="utf-8"))
        return tuple(_mark(one) for one in whole["marks"])
    except FileNotFoundError:
        return ()
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise SourceError(f"{path}: no file of marks ({error})", hint="move it away to start anew") from error


def _mark(one: Any) -> Mark:
    mark = Mark(str(one["kind"]), str(one["run"]), str(one["name"]), str(one.get("note", "")))
    if mark.kind not in KINDS:
        raise ValueError(f"kind {mark.kind!r} is none of {', '.join(KINDS)}")
    return mark


def write_marks(case: Path, marks: Iterable[Mark]) -> Path:
    """Write the marks of a case in one step; raises `SourceError` where that cannot be done."""
    path = marks_path(case)
    text = json.dumps({"version": _VERSION, "marks": [asdict(mark) for mark in marks]}, indent=1)
    try:
        handle, beside = tempfile.mkstemp(dir=path.parent, prefix=path.name)
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            stream.write(text + "\n")
        Path(beside).replace(path)
    except OSError as error:
        raise SourceError(f"{path}: cannot be written ({error.strerror or error})") from error
    return path


def with_mark(marks: Iterable[Mark], mark: Mark) -> tuple[Mark, ...]:
    """The marks with this one added, or in the place of the one on the same thing."""
    kept = {(one.kind, one.run, one.name): one for one in marks}
    kept[mark.kind, mark.run, mark.name] = mark
    return tuple(kept.values())


def without_mark(marks: Iterable[Mark], mark: Mark) -> tuple[Mark, ...]:
    """The marks without the one on the same thing."""
    return tuple(one for one in marks if (one.kind, one.run, one.name) != (mark.kind, mark.run, mark.name))
