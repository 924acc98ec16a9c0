"""``tracelens reingest``: a case made anew from the files it was made from."""

from __future__ import annotations

from pathlib import Path

import click

from tracelens.cli.ingesting import exit_code, progress, told
from tracelens.cli.options import on_case
from tracelens.cli.output import say


@click.command()
@click.option(
    "-o",
    "--into",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the new case to this file; else the old one is replaced.",
)
@click.option(
    "--without-gone", is_flag=True, help="Go on without the sources that are no more where they were."
)
@on_case
@click.pass_context
def reingest(context: click.Context, case_path: Path, into: Path | None, without_gone: bool) -> None:
    """Read a case's sources again, with the run labels and options of the first time.

    That is the way from a case of an older or newer tracelens to one of this version.  The old case is replaced in one step,
    when everything has been read; if a source is gone, nothing changes.

    \b
    Examples:
      tracelens reingest                       the case here, in place
      tracelens reingest -c old.duckdb -o new.duckdb
      tracelens reingest --without-gone        what is left of the files

    Exit code: as of ingest; 2 where a source is gone.
    """
    from tracelens.ingestion.again import reingest as read_again

    with progress() as on_progress:
        reports = read_again(case_path, into, without_gone=without_gone, on_progress=on_progress)
    for report in reports:
        for line in told(report):
            say(line)
    context.exit(max(map(exit_code, reports), default=0))
