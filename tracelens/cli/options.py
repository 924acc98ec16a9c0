"""Options that many commands share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from tracelens.cli.output import FORMATS

Command = TypeVar("Command", bound=Callable[..., Any])
DEBUG: Final = "tracelens.debug"
DEFAULT_CASE: Final = "incident.duckdb"


def _set_debug(context: click.Context, _: click.Parameter, given: bool) -> None:
    if given:
        context.find_root().meta[DEBUG] = True


debug_option = click.option(
    "--debug", is_flag=True, expose_value=False, callback=_set_debug, help="Show tracebacks of errors."
)
_case = click.option(
    "-c",
    "--case",
    "case_path",
    type=click.Path(path_type=Path, dir_okay=False),
    envvar="TRACELENS_CASE",
    default=DEFAULT_CASE,
    show_default=True,
    show_envvar=True,
    help="The case: one DuckDB file.",
)
run_option = click.option("--run", default="", metavar="LABEL", help="Only this run of the case.")
format_option = click.option(
    "--format",
    "format_name",
    type=click.Choice(FORMATS),
    default=None,
    help="How to print; table on a terminal, csv in a pipe.",
)
file_format_option = click.option(
    "--format",
    "format_name",
    type=click.Choice([*FORMATS, "parquet"]),
    default=None,
    help="How to print; table on a terminal, csv in a pipe, what the file's name says with -o. parquet needs -o.",
)
target_option = click.option(
    "-o",
    "--output",
    "target",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the rows to this file.",
)
limit_option = click.option(
    "--limit",
    type=click.IntRange(min=0),
    default=None,
    help="Print at most this many rows (1000 for a table on a terminal, else all).",
)
timeout_option = click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    default=None,
    metavar="SECONDS",
    help="Stop the query after this.",
)


slo_option = click.option(
    "--slo",
    "slo_text",
    metavar="LIMITS",
    help="When a request is good: ttft=1s,tpot=50ms,e2e=30s (also [slo] in tracelens.toml).",
)


def on_case(command: Command) -> Command:
    """A command that works on a case: ``-c/--case`` and ``--debug``."""
    return _case(debug_option(command))
