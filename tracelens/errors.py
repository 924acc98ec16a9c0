"""What can go wrong, as a person should read it: what, where, and what to do next.

Raised where the fact is known; caught at the command's edge and nowhere else.  In a batch, trouble is not an
exception: a bad line is a row of `ingest_issue`, an unreadable file is a line of the ingest report.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar


class TracelensError(Exception):
    """Base of all errors that tracelens raises on purpose.  `hint` says what to do next."""

    exit_code: ClassVar[int] = 3

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class UsageError(TracelensError):
    """An option or argument makes no sense, alone or with another."""

    exit_code = 2


def unwritable(target: object, error: OSError) -> UsageError:
    """A file that was named to be written, and cannot be."""
    return UsageError(
        f"{target}: cannot be written ({error.strerror or error})",
        hint="name a file in a folder that exists and that you may write to",
    )


def near(name: str, known: Iterable[str], listed: str) -> str:
    """A hint for a name that does not exist: the nearest one that does, and how to list all."""
    import difflib

    found = difflib.get_close_matches(name, list(known), 1)
    return f"did you mean {found[0]}? {listed}" if found else listed


class UnknownFormat(TracelensError):
    """No format claims the file, or there is no format of that name."""

    exit_code = 2


class SourceError(TracelensError):
    """A source cannot be opened or read."""

    exit_code = 2


class CaseError(TracelensError):
    """The file is not a case, is of another schema version, or is held by another process."""

    exit_code = 2


class QueryError(TracelensError):
    """A query failed; the message is DuckDB's own."""


class QueryTimeout(QueryError):
    """A query ran past its time limit and was stopped."""


class QueryStopped(TracelensError):
    """A query was stopped by who asked it."""

    exit_code = 130


class RuleError(TracelensError):
    """A rule's file is not as a rule must be; the message names the file and what it lacks."""
