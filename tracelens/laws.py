"""What every rule keeps, whoever wrote it: ``tracelens rules test`` and the project's own tests ask the same.

A rule that breaks a law misleads: one that needs what it never reads is silent for ever, a parameter that is not used
cannot be set, a remedy that names cards first is the belief it should refute.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tracelens.cases import Case, check_case, read_rule_cases
from tracelens.errors import CaseError, QueryError, RuleError
from tracelens.outcomes import OUTCOMES
from tracelens.rulebook import HEADINGS, KINDS, REQUIRED_COLUMNS, SLUG, Rule, read_rule, rule_files
from tracelens.store import MemoryCase

CASES: Final = ".cases.toml"
_OPTIONAL_COLUMNS: Final = ("severity", "missing")
_FREE_COLUMNS: Final = ("measured_", "threshold_")
_NEEDED_CASES: Final = ("fired", "clear", "not_evaluated")

Law = Callable[[MemoryCase, Rule], Iterator[str]]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the laws and the cases say of one rule's file."""

    name: str
    path: Path
    case_count: int
    faults: tuple[str, ...]


def judge_folder(folder: Path) -> Iterator[Verdict]:
    """Judge every rule below a folder; raises `RuleError` where there is no such folder."""
    memory = MemoryCase()
    for path, name in rule_files(folder):
        yield judge(memory, path, name)


def judge(memory: MemoryCase, path: Path, name: str) -> Verdict:
    """Judge one rule: the laws, then its cases."""
    try:
        rule = read_rule(path, name)
    except RuleError as error:
        return Verdict(name, path, 0, (str(error),))
    broken = [said for law in LAWS for said in law(memory, rule)]
    try:
        cases = read_rule_cases(cases_of(path), rule)
    except CaseError as error:
        return Verdict(name, path, 0, (*broken, str(error)))
    differing = [said for said in (check_case(memory, case) for case in cases) if said]
    return Verdict(name, path, len(cases), (*broken, *case_faults(cases), *differing))


def cases_of(path: Path) -> Path:
    """File of the cases of a rule's file."""
    return path.with_name(path.stem + CASES)


def header(_: MemoryCase, rule: Rule) -> Iterator[str]:
    """The cause is a slug, the five headings stand in order, and none of the texts is empty."""
    if not SLUG.fullmatch(rule.cause):
        yield f"cause {rule.cause!r} is no slug (words-with-dashes)"
    if tuple(rule.docs) != HEADINGS:
        yield f"the headings are {', '.join(rule.docs) or 'missing'}; they must be {', '.join(HEADINGS)}"
    yield from (f"nothing stands under {heading!r}" for heading, prose in rule.docs.items() if not prose)
    for key in ("title", "belief", "message", "verdict"):
        if not getattr(rule, key).strip():
            yield f"{key} is empty"
    if not all(rule.missing):
        yield "missing names nothing to collect"


def remedies(_: MemoryCase, rule: Rule) -> Iterator[str]:
    """Configuration, then architecture, then hardware; texts as they are said, without placeholders."""
    kinds = [KINDS.index(remedy.kind) for remedy in rule.remedies]
    if kinds != sorted(kinds):
        yield f"remedies must be ordered {' → '.join(KINDS)}"
    for remedy in rule.remedies:
        if re.search(r"\{\w+\}", remedy.text):
            yield f"a remedy has a placeholder: {remedy.text}"


def statement(memory: MemoryCase, rule: Rule) -> Iterator[str]:
    """One SELECT that uses its parameters, all of them, and reads what it needs."""
    try:
        parsed = memory.statement(rule.sql)
    except QueryError as error:
        yield f"the SQL is not one SELECT: {error}"
        return
    yield from (
        f"parameter {name} is declared and not used" for name in sorted(set(rule.params) - parsed.params)
    )
    yield from (
        f"parameter {name} is used and not declared" for name in sorted(parsed.params - set(rule.params))
    )
    read = memory.below(parsed.relations)
    for need in rule.needs:
        if not memory.columns(need):
            yield f"needs {need}, which is no table or view"
        elif need not in read:
            yield f"needs {need} and never reads it"
        elif "run_id" not in memory.columns(need):
            yield f"needs {need}, which has no run_id"


def columns(memory: MemoryCase, rule: Rule) -> Iterator[str]:
    """On an empty case the SELECT runs, with the columns of an outcome, and with those that the texts name."""
    try:
        found = memory.run(rule.sql, rule.params).columns
    except QueryError as error:
        yield f"it fails on an empty case: {error}"
        return
    yield from (f"the SELECT has no column {name}" for name in REQUIRED_COLUMNS if name not in found)
    named = {key: set(re.findall(r"\{(\w+)\}", getattr(rule, key))) for key in ("message", "verdict")}
    known = {*REQUIRED_COLUMNS, *_OPTIONAL_COLUMNS, *named["message"], *named["verdict"]}
    for name in found:
        if name not in known and not name.startswith(_FREE_COLUMNS):
            yield f"column {name} is none that an outcome has, and no text names it"
    for key, names in named.items():
        for name in sorted(names - {*found, *rule.params}):
            yield f"{key} names {{{name}}}, which is no column and no parameter"


LAWS: Final[tuple[Law, ...]] = (header, remedies, statement, columns)


def case_faults(cases: tuple[Case, ...]) -> Iterator[str]:
    """At least one case of each outcome, and no two of one name."""
    expected = {outcome for case in cases for outcome in case.outcomes()}
    yield from (f"no case expects {outcome}" for outcome in _NEEDED_CASES if outcome not in expected)
    yield from (f"a case expects {outcome!r}" for outcome in sorted(expected - set(OUTCOMES)))
    names = [case.name for case in cases]
    yield from (
        f"two cases are called {name!r}" for name in sorted({name for name in names if names.count(name) > 1})
    )
