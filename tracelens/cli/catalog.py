"""``tracelens schema`` and ``formats``: what a case is made of, and what can be read."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from tracelens.cli.options import format_option, on_anything
from tracelens.cli.output import chosen, say, write
from tracelens.cli.reading import reading
from tracelens.errors import UsageError, near
from tracelens.text.grid import Column, grid, terminal_width
from tracelens.text.terminal import clean, hanging, shorten
from tracelens.units import UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tracelens.formats.base import Format
    from tracelens.store import Result

_FORMAT_COLUMNS: Final = ("name", "title", "side", "versions", "fills", "complete", "record", "sample")
TEXT_COLUMNS: Final = 120
"""Width of a paragraph where nobody looks at the width."""
_LISTED: Final = 6
"""Columns of the list on a terminal."""
_SAMPLE_LINES: Final = 12


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
@on_anything
def schema(table: str | None, format_name: str | None, case_path: Path | None) -> None:
    """Show the tables and views of a case, or the columns of one TABLE with types and meaning.

    \b
    Examples:
      tracelens schema
      tracelens schema request_stage
      tracelens schema request --format md
    """
    if table is None:
        _show(_ask("schema_tables", {}, case_path), format_name, ("name", "kind"))
        return
    found = _ask("schema_columns", {"table": table}, case_path)
    if not found.rows:
        known = [str(row["name"]) for row in _ask("schema_tables", {}, case_path).dicts()]
        raise UsageError(
            f"there is no table {table!r}", hint=near(table, known, "tracelens schema lists them")
        )
    _show(_without(found, "table_name"), format_name, ("column_name", "type"))


def _ask(name: str, params: dict[str, Any], case_path: Path | None) -> Result:
    """A named query on the schema, of a case or of an empty one."""
    if case_path is not None:
        with reading(case_path) as case:
            return case.query(name, **params)
    from tracelens.named import named_query
    from tracelens.store import blank_case

    asked = named_query(name)
    with blank_case() as case:
        return case.run(asked.sql, asked.bind(params))


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
@on_anything
@click.pass_context
def formats(context: click.Context) -> None:
    """List the formats that can be read, or show one.

    \b
    Examples:
      tracelens formats
      tracelens formats show vllm_log
    """
    if context.invoked_subcommand is None:
        context.invoke(list_formats)


@formats.command("list")
@format_option
@on_anything
def list_formats(format_name: str | None = None) -> None:
    """List every format: what writes it, from which versions it is known, what it fills, and how complete that is.

    \b
    Examples:
      tracelens formats list
      tracelens formats list --format csv > formats.csv
    """
    from tracelens.formats import FORMATS

    found = _described(sorted(FORMATS, key=lambda one: one.name))
    if chosen(format_name) != "table":
        write(found, chosen(format_name))
        return
    heads = [Column(name, fixed=name == "name", wraps=name == "complete") for name in found.columns[:_LISTED]]
    _print(heads, [[clean(cell) for cell in row[:_LISTED]] for row in found.rows])


@formats.command("show")
@click.argument("name")
@format_option
@on_anything
def show_format(name: str, format_name: str | None) -> None:
    """Show one format by its NAME: what it is, which tables it fills, how to record it, and a sample.

    \b
    Examples:
      tracelens formats show vllm_log
      tracelens formats show nvidia_dmon --format json
    """
    from tracelens.formats import named

    one = named(name)
    described = _described([one])
    if chosen(format_name) != "table":
        write(described, chosen(format_name))
        return
    width = terminal_width()
    for key, words in described.dicts()[0].items():
        for line in hanging(key, words or UNKNOWN, width or TEXT_COLUMNS):
            say(line)
    say()
    for line in _sample_of(one):
        say(clean(line if width is None else shorten(line, width)))


def _sample_of(one: Format) -> Iterator[str]:
    """The first lines of a format's sample, as far as they are text."""
    from tracelens import resources

    path = resources.sample_logs() / one.name / one.sample
    if not path.is_file():
        return
    with path.open(encoding="utf-8", errors="replace") as lines:
        yield from (line.rstrip("\r\n") for line in islice(lines, _SAMPLE_LINES))


def _described(found: Sequence[Format]) -> Result:
    from tracelens.store import Result

    rows: list[tuple[Any, ...]] = [
        (
            one.name,
            one.title,
            one.side.value,
            one.versions,
            ", ".join(one.fills),
            one.complete,
            one.record,
            one.sample,
        )
        for one in found
    ]
    return Result(_FORMAT_COLUMNS, ("VARCHAR",) * len(_FORMAT_COLUMNS), rows)
