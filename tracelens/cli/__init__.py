"""The command line.  Thin: every command asks the library or a named query, and prints.

Only click and the standard library load with it; a command imports what it needs when it runs.
"""

from __future__ import annotations

import contextlib
import io
import sys

import click

from tracelens import __version__
from tracelens.cli.asking import query, sql
from tracelens.cli.browse import browse
from tracelens.cli.catalog import formats, schema
from tracelens.cli.checking import check
from tracelens.cli.comparing import compare
from tracelens.cli.demo import demo
from tracelens.cli.edge import Edge
from tracelens.cli.exporting import export
from tracelens.cli.ingesting import ingest
from tracelens.cli.options import on_anything
from tracelens.cli.reingesting import reingest
from tracelens.cli.reporting import report
from tracelens.cli.ruling import rules
from tracelens.cli.show import show
from tracelens.cli.slowest import slowest
from tracelens.cli.sources import sources

__all__ = ["cli", "main"]


@click.group(
    cls=Edge,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=(
        "A case is one DuckDB file. Every command takes -c/--case FILE after its name; without it $TRACELENS_CASE, "
        "else incident.duckdb here."
    ),
)
@click.version_option(__version__, prog_name="tracelens")
@on_anything
def cli() -> None:
    """Where the time of an LLM request went, from the logs that are left after an incident.

    \b
    Examples:
      tracelens ingest logs/          read what there is
      tracelens check                 what went wrong, and what to do first
      tracelens browse                the terminal UI
      tracelens slowest               the worst requests, and their stages
      tracelens show REQUEST_ID       one request from every side
      tracelens compare A B           did the fix work
      tracelens demo                  all of that on a sample incident
    """


for _command in (
    ingest,
    check,
    browse,
    slowest,
    show,
    report,
    compare,
    export,
    sources,
    reingest,
    sql,
    query,
    rules,
    schema,
    formats,
    demo,
):
    cli.add_command(_command)


def main() -> None:
    """Entry point of the ``tracelens`` command."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(io.UnsupportedOperation, AttributeError):
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    cli.main(prog_name="tracelens")
