"""``tracelens sources``: the files of a case, how their clocks lie to each other, and which questions they answer."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from tracelens.cli import coverage
from tracelens.cli.options import format_option, on_case, run_option
from tracelens.cli.output import chosen, say, write
from tracelens.cli.reading import check_run, reading
from tracelens.cli.verifying import verified
from tracelens.text.grid import Column, grid, terminal_width
from tracelens.text.paths import common_folder
from tracelens.text.rows import instant
from tracelens.text.terminal import clean
from tracelens.units import UNKNOWN, count, duration

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tracelens.case import Case
    from tracelens.store import Result

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
_TRAP_HEADS: Final = (
    Column("run"),
    Column("file", middle=True),
    Column("trap", fixed=True),
    Column("what it means", wraps=True),
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
@click.option(
    "--next-time",
    is_flag=True,
    help="Print a shell script that would record what is missing.",
)
@click.option(
    "--verify",
    "check_files",
    is_flag=True,
    help="Read every file again: same, grown, changed or gone, and whether each line is accounted for.",
)
@format_option
@on_case
@click.pass_context
def sources(
    context: click.Context,
    case_path: Path,
    run: str,
    next_time: bool,
    check_files: bool,
    format_name: str | None,
) -> None:
    """Show the files in a case, how their clocks lie to each other, and which questions they answer.

    The list ends with every stage of a request, and with client, server, engine and GPU: observed, derived, or closed, and then
    what to switch on.  --next-time prints that as a commented script.

    \b
    Examples:
      tracelens sources                      what is in the case
      tracelens sources --verify             whether the files are still the same; exit code 1 if not
      tracelens sources --next-time > f.sh   what to record the next time
    """
    if check_files:
        context.exit(verified(case_path, run, format_name))
    with reading(case_path) as case:
        check_run(case, run)
        if next_time:
            click.echo(coverage.next_time(case, run), nl=False)
            return
        kind = chosen(format_name)
        found = case.query("sources", run=run)
        if kind == "table":
            _source_screen(case, found, run)
        else:
            write(found, kind)


def _source_screen(case: Case, found: Result, run: str) -> None:
    rows, clocks = found.dicts(), case.query("clock_offsets", run=run).dicts()
    traps = case.query("source_traps", run=run).dicts()
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
    if traps:
        say()
        say("Before numbers of these files are compared:")
        _print(_TRAP_HEADS, [_trap(row, inside) for row in traps])
    for line in coverage.screen(case, run, inside, terminal_width()):
        say(line)


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


def _trap(row: Mapping[str, Any], inside: Callable[[str], str]) -> list[str]:
    return [
        clean(row["run_id"]),
        clean(inside(row["path"])),
        row["trap"],
        clean(f"{row['words']}. {row['meaning'][:1].upper()}{row['meaning'][1:]}."),
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
