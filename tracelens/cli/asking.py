"""``tracelens sql`` and ``tracelens query``: any question to a case."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any, Final

import click

from tracelens.cli.options import file_format_option, limit_option, on_case, target_option, timeout_option
from tracelens.cli.output import chosen, note, say, write
from tracelens.cli.reading import reading
from tracelens.errors import UsageError
from tracelens.text.grid import Column, grid, terminal_width

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tracelens.store import Result

TABLE_ROWS: Final = 1000
"""Rows of a table on a terminal, unless --limit says otherwise."""
_HOW: Final = 'tracelens sql "SELECT ...", or -f FILE, or in a pipe'


@dataclass(frozen=True, slots=True)
class _Outlet:
    """Where the rows go, in which format, how many, and how long they may take to find."""

    format: str
    target: Path | None
    limit: int | None
    timeout_s: float | None

    def print(self, result: Result) -> None:
        write(result, self.format, self.target)
        if result.truncated:
            note(f"cut off after {len(result.rows):,} rows; there are more (--limit N, or another --format)")


def _outlet(
    format_name: str | None, target: Path | None, limit: int | None, timeout: float | None
) -> _Outlet:
    kind = chosen(format_name, target)
    if kind == "parquet" and target is None:
        raise UsageError("parquet is no text", hint="name a file with -o FILE")
    if limit is None and kind == "table" and target is None and sys.stdout.isatty():
        limit = TABLE_ROWS
    return _Outlet(kind, target, limit, timeout)


@click.command()
@click.argument("query", required=False)
@click.option(
    "-f", "--file", "script", type=click.File(encoding="utf-8"), help="Read the query from this file."
)
@limit_option
@timeout_option
@file_format_option
@target_option
@on_case
def sql(
    query: str | None,
    script: IO[str] | None,
    limit: int | None,
    timeout: float | None,
    format_name: str | None,
    target: Path | None,
    case_path: Path,
) -> None:
    """Ask a case anything in DuckDB's SQL; it is only read, and sees no files but the case.

    The query comes from the argument, from -f FILE, or from stdin.  `tracelens schema` names tables and columns.

    \b
    Examples:
      tracelens sql "SELECT stage, p99_s FROM stage_summary"
      tracelens sql -f question.sql --timeout 10
      tracelens sql "SELECT * FROM request" -o requests.parquet
      echo "SELECT count(*) FROM log_event" | tracelens sql
    """
    text = _text(query, script)
    outlet = _outlet(format_name, target, limit, timeout)
    with reading(case_path) as case:
        outlet.print(case.sql(text, limit=outlet.limit, timeout_s=outlet.timeout_s))


def _text(query: str | None, script: IO[str] | None) -> str:
    if query is not None and script is not None:
        raise UsageError("a query and -f FILE: which of the two?", hint="leave one of them out")
    if query is None and script is None and sys.stdin.isatty():
        raise UsageError("no query", hint=_HOW)
    text = query if query is not None else (script or sys.stdin).read()
    if not text.strip():
        raise UsageError("the query is empty", hint=_HOW)
    return text


@click.command()
@click.argument("name", required=False)
@click.argument("params", nargs=-1, metavar="[KEY=VALUE]...")
@click.option("--list", "list_them", is_flag=True, help="Show the queries there are, with their parameters.")
@click.option(
    "--where", default="", metavar="EXPR", help="Only rows that this SQL expression over its columns chooses."
)
@click.option("--order", default="", metavar="COLUMNS", help="Another order, as after ORDER BY.")
@limit_option
@timeout_option
@file_format_option
@target_option
@on_case
def query(
    name: str | None,
    params: tuple[str, ...],
    list_them: bool,
    where: str,
    order: str,
    limit: int | None,
    timeout: float | None,
    format_name: str | None,
    target: Path | None,
    case_path: Path,
) -> None:
    """Run a named query: the same that the screens show.

    \b
    Examples:
      tracelens query --list
      tracelens query slowest by=tpot top=20 run=before
      tracelens query request_list --where "ttft_s > 2" --order "queue_s DESC"
    """
    outlet = _outlet(format_name, target, limit, timeout)
    if list_them or name is None:
        _list(outlet)
        return
    given = _pairs(params)
    from tracelens.named import named_query
    from tracelens.store import Narrow

    bound = named_query(name).bind(given)
    narrow = Narrow(where, order)
    with reading(case_path) as case:
        outlet.print(case.query(name, limit=outlet.limit, timeout_s=outlet.timeout_s, narrow=narrow, **bound))


def _pairs(params: tuple[str, ...]) -> dict[str, str]:
    pairs = [text.partition("=") for text in params]
    wrong = next((key for key, equals, _ in pairs if not equals), None)
    if wrong is not None:
        raise UsageError(f"{wrong!r} is no KEY=VALUE", hint="such as: tracelens query slowest top=20 by=tpot")
    return {key: value for key, _, value in pairs}


def _list(outlet: _Outlet) -> None:
    from tracelens.named import named_queries
    from tracelens.store import Result

    found = named_queries().values()
    if outlet.format == "table" and outlet.target is None:
        rows = [[one.name, _signature(one.params), _first_sentence(one.help)] for one in found]
        for line in grid(
            [Column("query", fixed=True), Column("parameters", fixed=True), Column("answers")],
            rows,
            terminal_width(),
        ):
            say(line)
        return
    outlet.print(
        Result(
            ("query", "parameters", "help"),
            ("VARCHAR",) * 3,
            [(one.name, _signature(one.params), one.help) for one in found],
        )
    )


def _signature(params: Mapping[str, Any]) -> str:
    return " ".join(f"{key}={value}" for key, value in params.items())


def _first_sentence(text: str) -> str:
    head, dot, _ = text.partition(". ")
    return head + dot.strip()
