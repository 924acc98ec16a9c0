"""Options that many commands share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from tracelens.cli.output import FORMATS
from tracelens.cli.voice import remember

Command = TypeVar("Command", bound=Callable[..., Any])
DEFAULT_CASE: Final = "incident.duckdb"


def _voice_option(*names: str, says: str) -> Callable[[Command], Command]:
    return click.option(*names, is_flag=True, expose_value=False, callback=remember, help=says)


_VOICE: Final = (
    _voice_option("-q", "--quiet", says="Only errors, and what was left out; no progress, no remarks."),
    _voice_option(
        "-v", "--verbose", says="Tell each step on stderr: what was read, how long it took, peak memory."
    ),
    _voice_option("--debug", says="Show tracebacks of errors."),
)


def on_anything(command: Command) -> Command:
    """What every command understands, before and after its name: ``--quiet``, ``--verbose`` and ``--debug``."""
    for option in reversed(_VOICE):
        command = option(command)
    return command


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


redact_option = click.option(
    "--redact", is_flag=True, help="Replace ids, hosts, addresses and folders by words such as request-1."
)
slo_option = click.option(
    "--slo",
    "slo_text",
    metavar="LIMITS",
    help="When a request is good: ttft=1s,tpot=50ms,e2e=30s (also [slo] in tracelens.toml).",
)


def on_case(command: Command) -> Command:
    """A command that works on a case: ``-c/--case``, and what every command understands."""
    return _case(on_anything(command))
