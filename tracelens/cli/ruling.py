"""``tracelens rules``: the rules there are, what one says, and whether they keep the laws."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from tracelens.cli.checking import rules_option, text_width
from tracelens.cli.configuration import rule_folders
from tracelens.cli.options import format_option, on_anything
from tracelens.cli.output import chosen, note, say, write
from tracelens.errors import UsageError, near
from tracelens.text.grid import Column, grid
from tracelens.text.terminal import clean, wrap
from tracelens.units import plural

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tracelens.laws import Verdict
    from tracelens.rulebook import Rule
    from tracelens.store import Result

_COLUMNS: Final = ("rule", "cause", "severity", "title", "belief", "needs", "params", "path")
_BROKEN: Final = 3


@click.group(invoke_without_command=True)
@on_anything
@click.pass_context
def rules(context: click.Context) -> None:
    """List the rules of `check`, show one, or test them.

    \b
    Examples:
      tracelens rules
      tracelens rules show queue.seats_exhausted
      tracelens rules test my_rules/
    """
    if context.invoked_subcommand is None:
        context.invoke(list_rules)


@rules.command("list")
@rules_option
@format_option
@on_anything
def list_rules(rules: tuple[Path, ...] = (), format_name: str | None = None) -> None:
    """List every rule: its name, the cause that it names, how severe it is.

    \b
    Examples:
      tracelens rules list
      tracelens rules list --rules my_rules/ --format csv
    """
    found, kind = _rulebook(rules), chosen(format_name)
    if kind != "table":
        write(_described(found), kind)
        return
    heads = [
        Column("rule", fixed=True),
        Column("cause", fixed=True),
        Column("severity", fixed=True),
        Column("title"),
    ]
    cells = [[clean(cell) for cell in (one.name, one.cause, one.severity, one.title)] for one in found]
    for line in grid(heads, cells, text_width()):
        say(line)


@rules.command("show")
@click.argument("name")
@rules_option
@format_option
@on_anything
def show_rule(name: str, rules: tuple[Path, ...], format_name: str | None) -> None:
    """Show one rule by its NAME: the belief it tests, its thresholds, what to do, and its SQL.

    On a terminal and in a pipe this is text; other formats give the row of `rules list`.

    \b
    Examples:
      tracelens rules show queue.seats_exhausted
      tracelens rules show queue.seats_exhausted --format json
    """
    known = {one.name: one for one in _rulebook(rules)}
    rule = known.get(name)
    if rule is None:
        raise UsageError(
            f"there is no rule {name!r}", hint=near(name, known, "tracelens rules list shows them")
        )
    if format_name not in (None, "table"):
        write(_described([rule]), format_name)
        return
    for line in _page(rule, text_width()):
        say(line)


@rules.command("test")
@click.argument("folder", required=False, type=click.Path(path_type=Path, file_okay=False, exists=True))
@on_anything
@click.pass_context
def test_rules(context: click.Context, folder: Path | None) -> None:
    """Test the rules in a folder DIR, else those of tracelens: the laws that every rule keeps, and the cases beside it.

    \b
    Examples:
      tracelens rules test
      tracelens rules test my_rules/

    Exit code: 0 all pass, 3 some do not.
    """
    from tracelens import resources
    from tracelens.laws import CASES, judge_folder

    where = folder or resources.rules()
    if folder is None and not any(where.rglob(f"*{CASES}")):
        raise UsageError(
            "the cases of these rules are in the source tree only", hint="tracelens rules test DIR"
        )
    verdicts = []
    for verdict in judge_folder(where):
        verdicts.append(verdict)
        for line in _verdict_lines(verdict):
            say(line)
    broken = sum(bool(verdict.faults) for verdict in verdicts)
    cases = sum(verdict.case_count for verdict in verdicts)
    say(
        f"{plural(len(verdicts), 'rule')}, {plural(cases, 'case')}: {f'{broken} not right' if broken else 'all right'}"
    )
    if not verdicts:
        note(f"no *.sql below {where}")
    context.exit(_BROKEN if broken else 0)


def _verdict_lines(verdict: Verdict) -> Iterator[str]:
    yield f"{'FAIL' if verdict.faults else 'ok  '}  {clean(verdict.name)}  ({plural(verdict.case_count, 'case')})"
    for fault in verdict.faults:
        yield from (f"        {clean(line)}" for line in fault.split("\n"))


def _rulebook(folders: Sequence[Path]) -> list[Rule]:
    from tracelens.rulebook import rulebook

    return sorted(rulebook(*rule_folders(folders)), key=lambda one: one.name)


def _described(found: Sequence[Rule]) -> Result:
    from tracelens.store import Result

    rows = [
        (
            one.name,
            one.cause,
            one.severity,
            one.title,
            one.belief,
            list(one.needs),
            dict(one.params),
            str(one.path),
        )
        for one in found
    ]
    kinds = ("VARCHAR",) * 5 + ("VARCHAR[]", "STRUCT", "VARCHAR")
    return Result(_COLUMNS, kinds, rows)


def _page(rule: Rule, width: int) -> Iterator[str]:
    """The rule as its file has it, to read."""
    yield from wrap(f"{rule.name}: {clean(rule.title)}", width)
    yield f"cause {rule.cause}, {rule.severity}, {clean(str(rule.path))}"
    yield ""
    yield from wrap(f"Belief: {clean(rule.belief)}", width)
    yield f"Needs: {', '.join(rule.needs) or 'nothing in particular'}"
    for key, value in rule.params.items():
        yield f"Threshold: --set {rule.name}.{key}={value}"
    for heading, prose in rule.docs.items():
        yield ""
        yield heading
        for paragraph in prose.split("\n\n"):
            yield from (f"  {line}" for line in wrap(clean(" ".join(paragraph.split())), width - 2))
    yield ""
    yield "Remedies"
    for number, remedy in enumerate(rule.remedies, start=1):
        yield from (f"  {line}" for line in wrap(f"{number}. {remedy.kind}: {clean(remedy.text)}", width - 2))
    yield ""
    yield from (clean(line) for line in rule.sql.split("\n"))
