"""The pages of docs/rules/: one per rule, made from its file, and an index."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from tracelens import resources
from tracelens.cases import Case, read_rule_cases
from tracelens.laws import cases_of
from tracelens.rulebook import Remedy, Rule, read_rules
from tracelens.units import spoken

FOLDER: Final = Path(__file__).parent / "rules"
NOTE: Final = "<!-- Made by `make docs` from tracelens/rules/; edit there. -->"

INTRO: Final = """\
# Rules

`tracelens check` runs these. Each tests something that people assume, says `fired`, `clear` or `not_evaluated` of every run, and
names what to record where it cannot decide. `tracelens rules show NAME` prints one with its SQL; `--set NAME.PARAM=VALUE` and
a table `[set]` in `tracelens.toml` change a threshold; `--rules DIR` adds rules of your own.
"""


def pages() -> Iterator[tuple[Path, str]]:
    """Path and text of every page."""
    rules = read_rules(resources.rules())
    yield FOLDER / "README.md", _page(_index(rules))
    for rule in rules:
        yield FOLDER / f"{rule.name}.md", _page(_rule(rule))


def left_over() -> list[Path]:
    """Pages of rules that are no more."""
    made = {path for path, _ in pages()}
    return [path for path in sorted(FOLDER.glob("*.md")) if path not in made]


def _page(lines: Iterator[str]) -> str:
    return f"{NOTE}\n\n" + "\n".join(lines).rstrip("\n") + "\n"


def _index(rules: Sequence[Rule]) -> Iterator[str]:
    yield INTRO
    yield "| rule | cause | severity | what it finds | what people assume |"
    yield "| --- | --- | --- | --- | --- |"
    for rule in rules:
        cells = (f"[{rule.name}]({rule.name}.md)", f"`{rule.cause}`", rule.severity, rule.title, rule.belief)
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _rule(rule: Rule) -> Iterator[str]:
    yield f"# {rule.title}"
    yield ""
    yield f"`{rule.name}`, cause `{rule.cause}`, {rule.severity} unless the data say otherwise."
    yield ""
    yield f"> {rule.belief}"
    for heading, prose in rule.docs.items():
        yield ""
        yield f"## {heading}"
        yield ""
        yield prose
        if heading == "What to do":
            yield from _remedies(rule.remedies)
    yield from _needs(rule)
    yield from _cases(rule)


def _remedies(remedies: Sequence[Remedy]) -> Iterator[str]:
    if remedies:
        yield ""
    for number, remedy in enumerate(remedies, start=1):
        moves = f" Moves: {remedy.moves}." if remedy.moves else ""
        limit = f" Then look at: {remedy.next_limit}." if remedy.next_limit else ""
        yield f"{number}. *{remedy.kind}*: {remedy.text}{moves}{limit}"


def _needs(rule: Rule) -> Iterator[str]:
    yield ""
    yield "## Needs and thresholds"
    yield ""
    needs = ", ".join(f"`{need}`" for need in rule.needs) or "nothing in particular"
    yield f"Not evaluated in a run without rows of: {needs}. To record it:"
    yield ""
    yield from (f"- {missing}" for missing in rule.missing)
    if rule.params:
        yield ""
        yield "| threshold | value | |"
        yield "| --- | --- | --- |"
        yield from (
            f"| `{rule.name}.{key}` | {value} | {_spoken(key, value)} |" for key, value in rule.params.items()
        )


def _spoken(key: str, value: object) -> str:
    said = spoken(key, value)
    return said if said != str(value) else ""


def _cases(rule: Rule) -> Iterator[str]:
    path = cases_of(rule.path)
    if path.is_file():
        yield ""
        yield "## Cases"
        yield ""
        yield from (_case(case) for case in read_rule_cases(path, rule))


def _case(case: Case) -> str:
    outcomes = ", ".join(sorted(f"`{outcome}`" for outcome in case.outcomes()))
    return f"- {case.name}: {outcomes or 'nothing'}"
