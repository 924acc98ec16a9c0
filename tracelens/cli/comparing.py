"""``tracelens compare``: did the fix work, and can these two runs be compared at all."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from tracelens.cli.configuration import slo_of
from tracelens.cli.options import on_case, redact_option, slo_option
from tracelens.cli.output import document_kind, remark, say, write_document
from tracelens.cli.reading import check_run, reading
from tracelens.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tracelens.case import Case
    from tracelens.compare import Comparison, Side

NOT_COMPARABLE: Final = 4
_MARK: Final = "::"


@click.command()
@click.argument("run_a")
@click.argument("run_b")
@slo_option
@click.option(
    "--fail-on-regression",
    "fail_on",
    type=click.FloatRange(min=0),
    metavar="PCT",
    help="Exit with 1 where a TTFT, TPOT or end-to-end quantile surely grew by more than this many per cent.",
)
@click.option(
    "--format",
    "format_name",
    type=click.Choice(["table", "json", "md"]),
    default="table",
    show_default=True,
    help="How to print; table is text.",
)
@click.option(
    "-o",
    "--output",
    "target",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write a document instead; its ending says what: .html (one file, no network), .md or .json.",
)
@redact_option
@on_case
@click.pass_context
def compare(
    context: click.Context,
    case_path: Path,
    run_a: str,
    run_b: str,
    slo_text: str | None,
    fail_on: float | None,
    format_name: str,
    target: Path | None,
    redact: bool,
) -> None:
    """Say what changed from RUN_A to RUN_B, stage by stage, with 95 % intervals.

    A run is a label of the case, or FILE::LABEL of another one (FILE:: where it has a single run).

    \b
    Examples:
      tracelens compare before after
      tracelens compare before after --slo ttft=1s --fail-on-regression 10
      tracelens compare before after -o fix.html --redact
      tracelens compare monday.duckdb::default tuesday.duckdb::default

    Exit code: 0 fine, 1 a regression beyond --fail-on-regression, 4 the runs cannot be compared.
    """
    from tracelens.compare import compare as compared

    kind = document_kind(target) if target else ""
    with contextlib.ExitStack() as stack:
        before, after = (_side(stack, case_path, name) for name in (run_a, run_b))
        found = compared(before, after, slo_of(slo_text))
    if redact:
        from tracelens.report import redacted

        found = redacted(replace(found, before=_bare(found.before), after=_bare(found.after)))
    if target:
        write_document(_document(found, kind), target)
        remark(found.verdict)
    else:
        for line in _lines(found, format_name):
            say(line)
    context.exit(exit_code(found, fail_on))


def exit_code(found: Comparison, fail_on: float | None) -> int:
    """4 where the runs cannot be compared, 1 where a regression is sure and large enough."""
    if not found.comparable:
        return NOT_COMPARABLE
    return int(fail_on is not None and bool(found.regressions(fail_on)))


def _side(stack: contextlib.ExitStack, case_path: Path, name: str) -> Side:
    from tracelens.compare import Side

    file, mark, run = name.rpartition(_MARK)
    case = stack.enter_context(reading(Path(file) if mark else case_path))
    if mark and not run:
        run = _only_run(case)
    check_run(case, run)
    return Side(case, run, name)


def _bare(label: str) -> str:
    """A side's name without the folder of its file."""
    file, mark, run = label.rpartition(_MARK)
    return f"{Path(file).name}{mark}{run}" if mark else run


def _only_run(case: Case) -> str:
    runs = list(dict.fromkeys(str(row["run_id"]) for row in case.query("sources").dicts()))
    if len(runs) != 1:
        raise UsageError(
            f"{case.path} has {len(runs)} runs", hint=f"name one: {case.path}::{' or '.join(runs)}"
        )
    return runs[0]


def _lines(found: Comparison, format_name: str) -> Iterator[str]:
    from tracelens.cli import comparison
    from tracelens.cli.checking import text_width

    if format_name == "json":
        return comparison.as_json(found)
    if format_name == "md":
        return comparison.as_markdown(found)
    return comparison.as_text(found, text_width())


def _document(found: Comparison, kind: str) -> str:
    if kind == ".html":
        from tracelens.report import comparison_page

        return comparison_page(found)
    return "".join(f"{line}\n" for line in _lines(found, kind.removeprefix(".")))
