"""``tracelens export``: a case for other tools."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from tracelens.cli.options import on_case, run_option
from tracelens.cli.output import remark
from tracelens.cli.reading import check_run, reading
from tracelens.errors import UsageError, unwritable
from tracelens.units import plural, size

if TYPE_CHECKING:
    from collections.abc import Iterable


@click.command()
@click.option(
    "--format",
    "format_name",
    type=click.Choice(["perfetto", "otlp", "parquet"]),
    required=True,
    help="perfetto: a trace for ui.perfetto.dev. otlp: spans as JSON lines for Jaeger or Tempo. parquet: a folder, a file per table and view.",
)
@click.option(
    "-o",
    "--output",
    "target",
    type=click.Path(path_type=Path),
    required=True,
    help="File, or folder for parquet.",
)
@run_option
@on_case
def export(case_path: Path, format_name: str, target: Path, run: str) -> None:
    """Write a case for other tools: requests with their stages, engine steps, counters of engine and GPU.

    \b
    Examples:
      tracelens export --format perfetto -o trace.json     open it in ui.perfetto.dev
      tracelens export --format otlp -o spans.jsonl
      tracelens export --format parquet -o tables/
    """
    if format_name == "parquet":
        _parquet(case_path, target, run)
        return
    from tracelens.exporting import WRITERS

    with reading(case_path) as case:
        check_run(case, run)
        written = _write(target, WRITERS[format_name](case, run))
    remark(f"{target}: {size(written)}")


def _parquet(case_path: Path, target: Path, run: str) -> None:
    from tracelens.store import write_parquet

    if run:
        raise UsageError("parquet is the whole case: --run does not go with it")
    rows = write_parquet(case_path, target)
    remark(f"{target}: {plural(len(rows), 'file')}, {plural(sum(rows.values()), 'row')}")


def _write(target: Path, parts: Iterable[bytes]) -> int:
    try:
        with target.open("wb") as stream:
            return sum(stream.write(part) for part in parts)
    except OSError as error:
        raise unwritable(target, error) from error
