"""``tracelens demo``: the whole way on the packaged incident."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tracelens.cli.checking import text_width
from tracelens.cli.ingesting import told
from tracelens.cli.options import on_anything
from tracelens.cli.output import say
from tracelens.cli.slowest import screen
from tracelens.errors import SourceError
from tracelens.text.findings import short_lines
from tracelens.text.grid import Column, grid, terminal_width
from tracelens.text.terminal import clean
from tracelens.units import STAGE_LETTERS, count, duration, percent

if TYPE_CHECKING:
    from tracelens.case import Case

_WORST = 5


@click.command()
@on_anything
def demo() -> None:
    """Read the incident that comes with tracelens, check it, and show where its time went.

    \b
    Examples:
      tracelens demo
    """
    import tracelens
    from tracelens import resources
    from tracelens.ingestion import ingest as read

    logs = resources.demo_incident()
    if not logs.is_dir():
        raise SourceError(f"{logs}: the sample incident is not there", hint="install tracelens again")
    path = Path(tempfile.mkdtemp(prefix="tracelens-demo-")) / "incident.duckdb"
    say(f"$ tracelens ingest {logs} -c {path}")
    for line in told(read([str(logs)], path)):
        say(line)
    with tracelens.open(path) as case:
        _show(case)
    say()
    say("The case is kept. Go on with:")
    for command in (
        "browse",
        "check",
        "slowest --by e2e",
        "show REQUEST_ID",
        "query --list",
        'sql "SELECT * FROM stage_summary"',
    ):
        say(f"  tracelens {command} -c {path}")


def _show(case: Case) -> None:
    say()
    for line in short_lines(case.check(), text_width()):
        say(line)
    say()
    say("Where the time to the first token went, over all requests:")
    for line in stage_lines(case):
        say(line)
    say()
    say(f"The {_WORST} worst:")
    screen(case, "ttft", _WORST)


def stage_lines(case: Case, run: str = "") -> list[str]:
    """The stages of each run as a table."""
    heads = [
        Column("run"),
        Column("stage", fixed=True),
        Column("p50", right=True),
        Column("p90", right=True),
        Column("p99", right=True),
        Column("max", right=True),
        Column("of TTFT", right=True),
        Column("known in", right=True),
    ]
    rows = [
        [
            clean(row["run_id"]),
            f"{STAGE_LETTERS[row['stage']]} {row['stage']}",
            *(duration(row[key]) for key in ("p50_s", "p90_s", "p99_s", "max_s")),
            percent(row["share_of_ttft_ratio"]),
            f"{count(row['observed_count'])} of {count(row['request_count'])}",
        ]
        for row in case.query("stages", run=run).dicts()
    ]
    return list(grid(heads, rows, terminal_width()))
