"""Rules: one SQL file each, with what people believe, what to measure, and what to do.

``rules/<topic>/<pattern>.sql`` is the rule ``<topic>.<pattern>``; the path is its only name.  The file begins with a block
comment: a TOML header, a line ``---``, then prose under fixed headings.  Behind it stands one SELECT.

The SELECT gives one row per run and subject with the columns of `REQUIRED_COLUMNS`; a column ``measured_x`` stands beside
``threshold_x`` where the rule compares it, and every column may be named in the message as ``{x}``.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tracelens import resources
from tracelens.errors import RuleError

HEADINGS: Final = (
    "What people assume", "What the data shows", "How it is detected", "What to do", "Known limits",
)  # fmt: skip
REQUIRED_COLUMNS: Final = (
    "run_id",
    "subject",
    "outcome",
    "confidence",
    "weight",
    "from_ts",
    "to_ts",
    "evidence",
)
SEVERITIES: Final = ("info", "warning", "critical")
KINDS: Final = ("config", "architecture", "hardware")
SLUG: Final = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
"""How a cause is written."""
_TYPES: Final[Mapping[str, type]] = {
    "title": str, "belief": str, "cause": str, "severity": str, "needs": list, "missing": list, "message": str,
    "verdict": str, "params": dict, "remedy": list,
}  # fmt: skip
_OPTIONAL: Final = ("verdict", "params", "remedy")
_REMEDY_KEYS: Final = frozenset({"kind", "text", "moves", "next_limit"})


@dataclass(frozen=True, slots=True)
class Remedy:
    """One thing to do: `moves` is the metric it should move, `next_limit` what binds after it."""

    kind: str
    text: str
    moves: str = ""
    next_limit: str = ""


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule as its file states it; `sql` is the SELECT, `docs` maps a heading to its prose."""

    name: str
    path: Path
    title: str
    belief: str
    cause: str
    severity: str
    needs: tuple[str, ...]
    missing: tuple[str, ...]
    message: str
    verdict: str
    params: Mapping[str, Any]
    remedies: tuple[Remedy, ...]
    docs: Mapping[str, str]
    sql: str


def read_rule(path: Path, name: str) -> Rule:
    """Read one rule; raises `RuleError` naming the file and what it lacks."""
    header, prose, sql = _parts(path)
    try:
        fields = tomllib.loads(header)
    except tomllib.TOMLDecodeError as error:
        raise RuleError(f"{path}: the header is no TOML ({error})") from error
    _check_header(path, fields)
    return Rule(
        name, path, fields["title"], fields["belief"], fields["cause"], fields["severity"], tuple(fields["needs"]),
        tuple(fields["missing"]), fields["message"], fields.get("verdict", fields["message"]), fields.get("params", {}),
        tuple(Remedy(**remedy) for remedy in fields.get("remedy", ())), dict(_sections(prose)), sql,
    )  # fmt: skip


def _parts(path: Path) -> tuple[str, str, str]:
    """Header, prose and SELECT of a rule's file."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise RuleError(f"{path}: cannot be read ({error})") from error
    comment, end, sql = text.partition("*/")
    if not text.startswith("/*") or not end:
        raise RuleError(f"{path}: no leading comment with the rule's header")
    header, _, prose = comment.removeprefix("/*").partition("\n---\n")
    return header, prose, sql.strip().rstrip(";")


def _check_header(path: Path, fields: Mapping[str, Any]) -> None:
    """Raise `RuleError` for the first thing that is not as it must be."""
    for said in _header_faults(fields):
        raise RuleError(f"{path}: {said}")


def _header_faults(fields: Mapping[str, Any]) -> Iterator[str]:
    lacking = [key for key in _TYPES if key not in fields and key not in _OPTIONAL]
    unknown = sorted(set(fields) - set(_TYPES))
    if lacking:
        yield f"the header lacks {', '.join(lacking)}"
    if unknown:
        yield f"the header has unknown keys {', '.join(unknown)}"
    yield from (
        f"{key} is no {_TYPES[key].__name__}" for key in fields if not isinstance(fields[key], _TYPES[key])
    )
    yield from (f"{key} is a list of texts" for key in ("needs", "missing") if not _are_texts(fields[key]))
    if fields["severity"] not in SEVERITIES:
        yield f"severity is one of {', '.join(SEVERITIES)}"
    yield from (f"parameter {key} is no number or text" for key, value in fields.get("params", {}).items()
                if not isinstance(value, int | float | str))  # fmt: skip
    for remedy in fields.get("remedy", ()):
        yield from _remedy_faults(remedy)


def _are_texts(values: Iterable[Any]) -> bool:
    return all(isinstance(value, str) for value in values)


def _remedy_faults(remedy: Mapping[str, Any]) -> Iterator[str]:
    if not isinstance(remedy, dict) or remedy.get("kind") not in KINDS or not remedy.get("text"):
        yield f"a remedy has a text and a kind out of {', '.join(KINDS)}"
    elif set(remedy) - _REMEDY_KEYS or not _are_texts(remedy.values()):
        yield f"a remedy has {', '.join(sorted(_REMEDY_KEYS))}, each a text"


def _sections(prose: str) -> Iterator[tuple[str, str]]:
    for part in re.split(r"^## ", prose, flags=re.MULTILINE)[1:]:
        heading, _, body = part.partition("\n")
        yield heading.strip(), body.strip()


def rule_files(folder: Path) -> Iterator[tuple[Path, str]]:
    """File and name of every rule below a folder, in order; ``<topic>/<pattern>.sql`` is ``<topic>.<pattern>``."""
    if not folder.is_dir():
        raise RuleError(f"{folder}: no such folder of rules")
    for path in sorted(folder.rglob("*.sql")):
        yield path, ".".join(path.relative_to(folder).with_suffix("").parts)


def read_rules(folder: Path) -> list[Rule]:
    """Every rule below a folder, in the order of their names; raises `RuleError` for the first that cannot be read."""
    return [read_rule(path, name) for path, name in rule_files(folder)]


def rulebook(*folders: Path) -> list[Rule]:
    """The rules that come with tracelens, then those of `folders`; a later rule of the same name takes the place."""
    found: dict[str, Rule] = {}
    for folder in (resources.rules(), *folders):
        found |= {rule.name: rule for rule in read_rules(folder)}
    return list(found.values())
