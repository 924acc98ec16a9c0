"""``tracelens ingest``: files into a case, and what became of each of them."""

from __future__ import annotations

import contextlib
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from tracelens.cli.options import DEFAULT_CASE, on_case
from tracelens.cli.output import say
from tracelens.cli.voice import QUIET, VERBOSE, asked_for
from tracelens.text.terminal import clean, columns, pad, shorten
from tracelens.units import count, percent, plural, size

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from tracelens.ingestion import FileReport, IngestReport, OnProgress, Progress

_WIDEST_PATH: Final = 48
_EXACT: Final = ("stamps are UTC instants",)
"""Time bases in which nothing was assumed."""


@click.command()
@click.argument("sources", nargs=-1, required=True, metavar="SOURCE...")
@click.option(
    "--run", default="default", show_default=True, metavar="LABEL", help="The run that the files belong to."
)
@click.option(
    "--format", "format_name", metavar="NAME", help="Read every file as this format (see: tracelens formats)."
)
@click.option(
    "--tz", metavar="ZONE", help="Zone of server logs: an IANA name or ±HH:MM. UTC where not given."
)
@click.option("--gpu-tz", metavar="ZONE", help="Zone of GPU logs, where it differs from --tz.")
@click.option("--client-tz", metavar="ZONE", help="Zone of client files that state none.")
@click.option(
    "--date", type=click.DateTime(["%Y-%m-%d"]), help="Day on which logs without a date, or year, begin."
)
@click.option(
    "--keep-text",
    is_flag=True,
    help="Keep prompt and output text; else only lengths and fingerprints are kept.",
)
@on_case
@click.pass_context
def ingest(
    context: click.Context,
    sources: tuple[str, ...],
    case_path: Path,
    run: str,
    format_name: str | None,
    tz: str | None,
    gpu_tz: str | None,
    client_tz: str | None,
    date: datetime | None,
    keep_text: bool,
) -> None:
    """Read logs into a case.

    SOURCE is a file, a folder, a glob or - for stdin; .gz .zst .xz .bz2 and tar or zip bundles are read as they are.
    Each file's format is found by its content.  The same files again change nothing.

    \b
    Examples:
      tracelens ingest logs/                          everything in a folder
      tracelens ingest before/ --run before           two runs in one case, to compare
      tracelens ingest bundle.tar.gz --tz Europe/Berlin
      kubectl logs POD | tracelens ingest -

    Exit code: 0 all files read, 1 some not recognised (the others are in), 3 nothing could be ingested.
    """
    from tracelens.ingestion import IngestOptions, TimeOptions
    from tracelens.ingestion import ingest as read

    times = TimeOptions(tz, gpu_tz, client_tz, date.date() if date else None)
    with progress() as on_progress:
        report = read(sources, case_path, IngestOptions(run, format_name, times, keep_text), on_progress)
    for line in told(report):
        say(line)
    context.exit(exit_code(report))


def exit_code(report: IngestReport) -> int:
    """0 all read; 1 some not; 2 nothing but unreadable input; 3 nothing recognised."""
    from tracelens.ingestion import State

    if not report.nothing:
        return 0 if report.recognised else 1
    return 2 if all(one.state in (State.UNREADABLE, State.EMPTY) for one in report.files) else 3


def told(report: IngestReport) -> Iterator[str]:
    """What is printed of an ingest: with ``--quiet`` only the files that were not read."""
    return _unread_lines(report) if asked_for(QUIET) else _report_lines(report)


def _unread_lines(report: IngestReport) -> Iterator[str]:
    from tracelens.ingestion import State

    for one in report.files:
        if one.state in (State.UNKNOWN, State.UNREADABLE):
            yield f"{clean(one.path)}  {clean(_fate(one))}"


def _report_lines(report: IngestReport) -> Iterator[str]:
    """One line per file, what needs saying about it indented below, and a closing line."""
    size_of_path = min(max((columns(clean(one.path)) for one in report.files), default=0), _WIDEST_PATH)
    for one in report.files:
        path = pad(shorten(clean(one.path), size_of_path, middle=True), size_of_path)
        yield f"{path}  {clean(_fate(one))}"
        for remark in _remarks(one):
            yield f"    {clean(remark)}"
    yield from _closing(report)


def _fate(one: FileReport) -> str:
    from tracelens.ingestion import State

    if one.state is State.UNCHANGED:
        return f"in the case already ({one.note})" if one.note else "in the case already"
    if one.state is State.EMPTY:
        return "empty file"
    if one.state is State.UNKNOWN:
        return f"not recognised: {one.note}"
    if one.state is State.UNREADABLE:
        return f"not read: {one.note}"
    variant = f" ({one.variant})" if one.variant else ""
    rows = ", ".join(f"{table} {count(number)}" for table, number in one.rows.items() if number) or "no rows"
    return f"{one.format}{variant}, {plural(one.lines, 'line')}: {rows}"


def _remarks(one: FileReport) -> Iterator[str]:
    from tracelens.ingestion import State

    if one.state not in (State.READ, State.REPLACED):
        return
    if one.skipped:
        first = f"{Path(one.path).name}:{one.first_issue_line}"
        often = (
            "" if one.commonest_issue_count == one.skipped else f", {count(one.commonest_issue_count)} times"
        )
        kind = f"{'mostly ' if often else ''}{one.commonest_issue}{often}"
        share = percent(one.skipped / one.lines)
        yield f"{plural(one.skipped, 'line')} ({share}) not understood, {kind} (first: {first})"
    if one.time_basis not in _EXACT:
        yield f"time: {one.time_basis}"
    if one.note:
        yield one.note


def _closing(report: IngestReport) -> Iterator[str]:
    from tracelens.ingestion import State

    if report.nothing:
        yield "nothing could be ingested; no case was written"
        return
    read = [one for one in report.files if one.state in (State.READ, State.REPLACED)]
    rows = sum(sum(one.rows.values()) for one in read)
    case = "" if str(report.case) == DEFAULT_CASE else f" -c {report.case}"
    yield (
        f"{clean(str(report.case))}: {len(read)} of {plural(len(report.files), 'file')} read into run {clean(report.run)}, "
        f"{plural(rows, 'row')}, {report.elapsed_s:.1f} s.  Next: tracelens check{clean(case)}"
    )


@contextlib.contextmanager
def progress() -> Iterator[OnProgress | None]:
    """A progress bar on stderr, where that is a terminal: bytes, rate, time left, and the file at hand."""
    if not sys.stderr.isatty() or asked_for(QUIET) or asked_for(VERBOSE):
        yield None
        return
    started = time.monotonic()
    current = [""]
    shown: Any = click.progressbar(
        length=1, label="reading", file=sys.stderr, show_eta=True, item_show_func=lambda _: current[0]
    )
    with shown as bar:

        def advance(progress: Progress) -> None:
            rate = progress.done_bytes / max(time.monotonic() - started, 1e-3)
            current[0] = f"{size(rate)}/s  {shorten(clean(progress.path), _WIDEST_PATH, middle=True)}"
            bar.length = max(progress.total_bytes, progress.done_bytes, 1)
            bar.update(progress.done_bytes - bar.pos, current[0])

        yield advance
