"""``tracelens check``: what went wrong, what people assume, what to do first, and what cannot be decided."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from tracelens.cli.configuration import place_of, rule_folders, settings, slo_of
from tracelens.cli.options import on_case, run_option, slo_option
from tracelens.cli.output import FORMATS, remark, say, write
from tracelens.cli.reading import check_run, reading
from tracelens.errors import UsageError
from tracelens.text.goodput import goodput, goodput_lines
from tracelens.text.grid import Column, grid, terminal_width
from tracelens.text.terminal import clean
from tracelens.units import UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tracelens.case import Case
    from tracelens.check import Check
    from tracelens.slo import Slo

SEVERITIES: Final = ("info", "warning", "critical")
TEXT_WIDTH: Final = 110
"""Columns of the text where no terminal says how many it has."""
_FAILED: Final = 3
_ANSWERS: Final = {"yes": "[x]", "no": "[ ]", "cannot tell": "[?]"}


@dataclass(frozen=True, slots=True)
class _Wanted:
    """The rules and thresholds that a check is to use."""

    given: tuple[str, ...]
    rules: tuple[Path, ...]
    run: str

    def check(self, case: Case) -> Check:
        values, origins = settings(self.given)
        files = sorted(set(origins.values()) - {"--set"})
        try:
            check = case.check(set=values, rules=rule_folders(self.rules), run=self.run)
        except UsageError as error:
            read = f"; [set] was read from {', '.join(files)}" if files else ""
            raise UsageError(
                f"{place_of(str(error), origins)}{error}", hint=f"{error.hint}{read}".removeprefix("; ")
            ) from error
        if files:
            remark(f"thresholds from {', '.join(files)}")
        return check


rules_option = click.option(
    "--rules",
    "rules",
    multiple=True,
    metavar="DIR",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    help="A folder of further rules; also read: $XDG_CONFIG_HOME/tracelens/rules.",
)


@click.command()
@click.option(
    "--fail-on", type=click.Choice(SEVERITIES), help="Exit with 1 where a finding is at least this severe."
)
@click.option(
    "--set",
    "given",
    multiple=True,
    metavar="RULE.PARAM=VALUE",
    help="Another threshold (tracelens rules show RULE lists a rule's). May be given again.",
)
@rules_option
@slo_option
@click.option(
    "--checklist", is_flag=True, help="Answer the checklist before going live instead of running the rules."
)
@run_option
@click.option(
    "--format",
    "format_name",
    type=click.Choice(FORMATS),
    default="table",
    show_default=True,
    help="How to print; table is text, on a terminal and in a pipe.",
)
@on_case
@click.pass_context
def check(
    context: click.Context,
    case_path: Path,
    fail_on: str | None,
    given: tuple[str, ...],
    rules: tuple[Path, ...],
    slo_text: str | None,
    checklist: bool,
    run: str,
    format_name: str,
) -> None:
    """Run the rules: what went wrong, how sure that is, what to do first, and what these files cannot decide.

    --format json is the whole check, md a page for a ticket, csv and jsonl a row per outcome. Thresholds can stand under [set] in $XDG_CONFIG_HOME/tracelens/config.toml or ./tracelens.toml.

    \b
    Examples:
      tracelens check
      tracelens check --fail-on warning                 in a script: exit code 1 where something is wrong
      tracelens check --set queue.seats_exhausted.min_ratio=0.8
      tracelens check --slo ttft=1s,tpot=50ms
      tracelens check --run after --format md > ticket.md
      tracelens check --checklist

    Exit code: 0 fine, 1 a finding at or above --fail-on, 3 a rule failed.
    """
    with reading(case_path) as case:
        if checklist:
            _checklist(case, run, format_name)
            return
        slo = slo_of(slo_text)
        found = _Wanted(given, rules, run).check(case)
        kept = goodput(case, slo, run) if slo else []
    _print(found, format_name, slo, kept)
    context.exit(exit_code(found, fail_on))


def exit_code(found: Check, fail_on: str | None) -> int:
    """3 where a rule failed, 1 where a finding is severe enough."""
    if found.failed():
        return _FAILED
    return int(fail_on is not None and found.reaches(fail_on))


def text_width() -> int:
    """Columns for text: the terminal's, at most `TEXT_WIDTH` and a half."""
    return min(terminal_width() or TEXT_WIDTH, TEXT_WIDTH + 50)


def _print(found: Check, kind: str, slo: Slo, kept: Sequence[Mapping[str, Any]]) -> None:
    from tracelens.text.checks import as_json, as_markdown, as_rows, prose
    from tracelens.text.findings import check_lines

    if kind in ("csv", "jsonl"):
        write(as_rows(found), kind)
        return
    if kind == "json":
        lines = as_json(found, {"slo": {"limits": asdict(slo), "goodput": list(kept)}} if kept else {})
    elif kind == "md":
        lines = chain(
            as_markdown(found), ("",) * bool(kept), (prose(line) for line in goodput_lines(slo, kept))
        )
    else:
        lines = chain(check_lines(found, text_width()), ("",) * bool(kept), goodput_lines(slo, kept))
    for line in lines:
        say(line)


def _checklist(case: Case, run: str, format_name: str) -> None:
    """The checklist as text, or as rows."""
    check_run(case, run)
    found = case.query("checklist", run=run)
    if format_name != "table":
        write(found, format_name)
        return
    heads = [
        *([Column("run")] if len({row["run_id"] for row in found.dicts()}) > 1 else []),
        Column("", fixed=True),
        Column("", fixed=True),
        Column("before going live", wraps=True),
    ]
    rows = [
        [clean(row["run_id"]), _ANSWERS[row["answer"]], row["answer"], _point(row)][-len(heads) :]
        for row in found.dicts()
    ]
    for line in grid(heads, rows, text_width()):
        say(line)


def _point(row: dict[str, Any]) -> str:
    switch = f" Switch on: {row['switch_on']}." if row["switch_on"] else ""
    why = clean(row["why"] or UNKNOWN)
    return f"{row['question']} {why[:1].upper()}{why[1:]}.{switch}"
