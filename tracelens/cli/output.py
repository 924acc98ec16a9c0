"""What a command prints: rows on stdout, remarks on stderr.  The formats themselves are in `tracelens.text.rows`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

from tracelens.cli.voice import QUIET, asked_for
from tracelens.errors import UsageError, unwritable
from tracelens.text.rows import FORMATS, write_file, write_rows
from tracelens.text.terminal import clean_lines
from tracelens.units import size

if TYPE_CHECKING:
    from pathlib import Path

    from tracelens.store import Result

__all__ = [
    "DOCUMENTS",
    "FORMATS",
    "chosen",
    "document_kind",
    "note",
    "remark",
    "say",
    "write",
    "write_document",
]

DOCUMENTS: Final = (".html", ".md", ".json")
"""Endings of a document's file."""


def chosen(given: str | None, target: Path | None = None) -> str:
    """The format asked for; else the one that the file's name says; else table on a terminal and csv in a pipe."""
    if given is not None:
        return given
    if target is not None:
        suffix = target.suffix.removeprefix(".").lower()
        return suffix if suffix in (*FORMATS, "parquet") else "csv"
    return "table" if sys.stdout.isatty() else "csv"


def note(text: str) -> None:
    """One line on stderr that must be read: an error, or what the output leaves out."""
    print(clean_lines(text), file=sys.stderr)


def remark(text: str) -> None:
    """One line on stderr that may go unsaid with ``--quiet``."""
    if not asked_for(QUIET):
        note(text)


def say(text: str = "") -> None:
    """One line of a report on stdout; cells from logs are clean already."""
    print(text)


def write(result: Result, kind: str, target: Path | None = None) -> None:
    """Rows to stdout, or into a file; raises `UsageError` where the file cannot be written."""
    if target is None:
        write_rows(result, kind, sys.stdout)
    else:
        write_file(result, kind, target)


def document_kind(target: Path) -> str:
    """The ending of a document's file; raises `UsageError` for another one."""
    kind = target.suffix.lower()
    if kind not in DOCUMENTS:
        raise UsageError(
            f"{target}: a document ends in {', '.join(DOCUMENTS)}",
            hint="name it such as: -o post-mortem.html",
        )
    return kind


def write_document(text: str, target: Path) -> None:
    """A document into its file, and a remark on its size; raises `UsageError` where it cannot be written."""
    try:
        target.write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        raise unwritable(target, error) from error
    remark(f"{target}: {size(len(text.encode()))}")
