"""``tracelens sources --verify``: the files of a case beside what the case says of them."""

from __future__ import annotations

from dataclasses import astuple, fields
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tracelens.cli.output import chosen, note, say, write
from tracelens.cli.reading import check_run, reading
from tracelens.text.grid import Column, grid, terminal_width
from tracelens.text.terminal import clean
from tracelens.units import UNKNOWN, count, plural

if TYPE_CHECKING:
    from tracelens.ingestion.verifying import Verified

_HEADS: Final = (
    Column("run"),
    Column("file", middle=True),
    Column("is", fixed=True),
    Column("bytes", right=True),
    Column("now", right=True),
    Column("lines", right=True),
    Column("now", right=True),
    Column("understood", right=True),
    Column("kept", right=True),
    Column("note", wraps=True),
)


def verified(case_path: Path, run: str, format_name: str | None) -> int:
    """Print what became of every file; returns the exit code: 1 where one is not the same."""
    from tracelens.ingestion.verifying import Fate, verify

    with reading(case_path) as case:
        check_run(case, run)
    found = list(verify(case_path, run))
    _print(found, chosen(format_name))
    differing = sum(one.fate is not Fate.SAME for one in found)
    if differing:
        note(f"{differing} of {plural(len(found), 'source')} not as when read")
    return 1 if differing else 0


def _print(found: list[Verified], kind: str) -> None:
    if kind == "table":
        for line in grid(_HEADS, [_cells(one) for one in found], terminal_width()):
            say(line)
        return
    from tracelens.ingestion.verifying import Verified
    from tracelens.store import Result

    numbers = (
        "size_bytes",
        "size_now_bytes",
        "line_count",
        "line_now_count",
        "understood_count",
        "kept_count",
    )
    columns = tuple({"run": "run_id"}.get(one.name, one.name) for one in fields(Verified))
    types = tuple("BIGINT" if name in numbers else "VARCHAR" for name in columns)
    write(Result(columns, types, [tuple(astuple(one)) for one in found]), kind)


def _cells(one: Verified) -> list[str]:
    return [
        clean(one.run),
        clean(one.path),
        one.fate.value,
        count(one.size_bytes),
        UNKNOWN if one.size_now_bytes is None else count(one.size_now_bytes),
        count(one.line_count),
        UNKNOWN if one.line_now_count is None else count(one.line_now_count),
        count(one.understood_count),
        count(one.kept_count),
        clean(one.note),
    ]
