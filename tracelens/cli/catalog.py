"""``tracelens sources``, ``schema`` and ``formats``: what is in a case, what a case is made of, what can be read."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from tracelens.cli.options import debug_option, format_option, on_case, run_option
from tracelens.cli.output import chosen, say, write
from tracelens.cli.reading import check_run, reading
from tracelens.errors import UsageError
from tracelens.text.grid import Column, grid, terminal_width
from tracelens.text.paths import common_folder
from tracelens.text.rows import instant
from tracelens.text.terminal import clean
from tracelens.units import UNKNOWN, count, duration

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tracelens.case import Case
    from tracelens.formats.base import Format
    from tracelens.store import Result

_FORMAT_COLUMNS: Final = ("name", "title", "side", "versions", "fills")
_SOURCE_HEADS: Final = (
    Column("run"),
    Column("file", middle=True),
    Column("format", fixed=True),
    Column("variant"),
    Column("lines", right=True),
    Column("understood", right=True),
    Column("not", right=True),
    Column("first UTC", fixed=True),
    Column("last UTC", fixed=True),
    Column("time basis", wraps=True),
)
_CLOCK_HEADS: Final = (
    Column("run"),
    Column("clock", middle=True),
    Column("server clock", middle=True),
    Column("at least", right=True),
    Column("at most", right=True),
    Column("taken", right=True),
    Column("± error", right=True),
    Column("pairs", right=True),
    Column("basis", wraps=True),
)


@click.command()
@run_option
@format_option
@on_case
def sources(case_path: Path, run: str, format_name: str | None) -> None:
    """Show the files in a case: formats, lines, what was not understood, and how the clocks lie to each other."""
    kind = chosen(format_name)
    with reading(case_path) as case:
        check_run(case, run)
        found = case.query("sources", run=run)
        if kind == "table":
            _source_screen(case, found, run)
        else:
            write(found, kind)


def _source_screen(case: Case, found: Result, run: str) -> None:
    rows, clocks = found.dicts(), case.query("clock_offsets", run=run).dicts()
    if not rows:
        return
    folder, inside = common_folder([row["path"] for row in rows])
    if folder:
        say(f"in {clean(folder)}")
    _print(_SOURCE_HEADS, [_source(row, inside) for row in rows])
    if clocks:
        say()
        say("How far the second clock is ahead of the first:")
        _print(_CLOCK_HEADS, [_clock(row, inside) for row in clocks])


def _source(row: Mapping[str, Any], inside: Callable[[str], str]) -> list[str]:
    return [
        clean(row["run_id"]),
        clean(inside(row["path"])),
        clean(row["format"]),
        clean(row["variant"] or ""),
        count(row["line_count"]),
        count(row["understood_count"]),
        count(row["skipped_count"]),
        _second(row["first_ts"]),
        _second(row["last_ts"]),
        clean(row["time_basis"]),
    ]


def _clock(row: Mapping[str, Any], inside: Callable[[str], str]) -> list[str]:
    return [
        clean(row["run_id"]),
        clean(inside(row["from_path"])),
        clean(inside(row["to_path"])) if row["to_path"] else UNKNOWN,
        duration(row["low_s"]),
        duration(row["high_s"]),
        duration(row["chosen_s"]),
        duration(row["error_s"]),
        count(row["pair_count"]),
        clean(row["basis"]),
    ]


def _second(stamp: Any) -> str:
    return instant(stamp)[:19]


def _print(heads: Sequence[Column], rows: Sequence[Sequence[str]]) -> None:
    for line in grid(heads, rows, terminal_width()):
        say(line)


@click.command()
@click.argument("table", required=False)
@format_option
@click.option(
    "-c",
    "--case",
    "case_path",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Ask this case; without it the tables of a new one are shown.",
)
@debug_option
def schema(table: str | None, format_name: str | None, case_path: Path | None) -> None:
    """Show the tables and views of a case, or the columns of one TABLE with types and meaning."""
    if table is None:
        _show(_ask("schema_tables", {}, case_path), format_name, ("name", "kind"))
        return
    found = _ask("schema_columns", {"table": table}, case_path)
    if not found.rows:
        raise UsageError(f"there is no table {table!r}", hint="tracelens schema lists them")
    _show(_without(found, "table_name"), format_name, ("column_name", "type"))


def _ask(name: str, params: dict[str, Any], case_path: Path | None) -> Result:
    """A named query on the schema, of a case or of an empty one in memory."""
    if case_path is not None:
        with reading(case_path) as case:
            return case.query(name, **params)
    from tracelens.named import named_query
    from tracelens.store import Result, memory_case

    asked = named_query(name)
    with closing(memory_case()) as connection:
        cursor = connection.execute(asked.sql, asked.bind(params) or None)
        described = cursor.description or []
        return Result(
            tuple(str(c[0]) for c in described), tuple(str(c[1]) for c in described), cursor.fetchall()
        )


def _without(result: Result, column: str) -> Result:
    from tracelens.store import Result

    place = result.columns.index(column)
    rows = [(*row[:place], *row[place + 1 :]) for row in result.rows]
    return Result(
        (*result.columns[:place], *result.columns[place + 1 :]),
        (*result.types[:place], *result.types[place + 1 :]),
        rows,
    )


def _show(result: Result, format_name: str | None, fixed: Sequence[str] = ()) -> None:
    """Rows of text; in a table the columns named stay whole."""
    kind = chosen(format_name)
    if kind != "table":
        write(result, kind)
        return
    heads = [Column(name, fixed=name in fixed) for name in result.columns]
    _print(
        heads, [[clean(str(value if value is not None else UNKNOWN)) for value in row] for row in result.rows]
    )


@click.group(invoke_without_command=True)
@debug_option
@click.pass_context
def formats(context: click.Context) -> None:
    """List the formats that can be read, or show one."""
    if context.invoked_subcommand is None:
        context.invoke(list_formats)


@formats.command("list")
@format_option
@debug_option
def list_formats(format_name: str | None = None) -> None:
    """List every format: what writes it, and from which versions it is known."""
    from tracelens.formats import FORMATS

    _show(_described(sorted(FORMATS, key=lambda one: one.name)), format_name, ("name", "side"))


@formats.command("show")
@click.argument("name")
@format_option
@debug_option
def show_format(name: str, format_name: str | None) -> None:
    """Show one format by its NAME: what it is, and which tables it fills."""
    from tracelens.formats import named

    described = _described([named(name)])
    if chosen(format_name) != "table":
        write(described, chosen(format_name))
        return
    for key, value in described.dicts()[0].items():
        say(f"{key:<9} {value or UNKNOWN}")


def _described(found: Sequence[Format]) -> Result:
    from tracelens.store import Result

    rows: list[tuple[Any, ...]] = [
        (one.name, one.title, one.side.value, one.versions, ", ".join(one.fills)) for one in found
    ]
    return Result(_FORMAT_COLUMNS, ("VARCHAR",) * len(_FORMAT_COLUMNS), rows)
