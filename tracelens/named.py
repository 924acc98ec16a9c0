"""Named queries: one SELECT per file in ``queries/``, the same for the command line, a notebook and the screens.

A file begins with a block comment: what it answers, in the first line; then, after a line ``[params]``, its
parameters with their defaults as TOML.  In the SELECT a parameter is ``$name``; an empty text means "not given".
"""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from tracelens import resources, units
from tracelens.errors import QueryError, UsageError, near

_LINE_END: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")
"""What would end a comment, or act on a terminal."""


@dataclass(frozen=True, slots=True)
class NamedQuery:
    """A query of the package: `params` maps each parameter to its default."""

    name: str
    help: str
    params: Mapping[str, Any]
    sql: str

    def bind(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Defaults with what was given in their place, as the defaults' types; raises `UsageError`."""
        unknown = sorted(set(given) - set(self.params))
        if unknown:
            known = ", ".join(self.params) or "none"
            raise UsageError(
                f"query {self.name} has no parameter {unknown[0]!r}",
                hint=near(unknown[0], self.params, f"it has: {known}"),
            )
        return {key: _as(type(default), given.get(key, default), key) for key, default in self.params.items()}


def _as(kind: type, value: Any, key: str) -> Any:
    if kind is bool and isinstance(value, str):
        return value.lower() in ("1", "true", "yes", "on")
    try:
        return kind(value)
    except (TypeError, ValueError) as error:
        raise UsageError(
            f"{key}={value!r} is no {units.kind_of_number(kind)}",
            hint="tracelens query --list shows what each parameter is without being given",
        ) from error


def _read(name: str, text: str) -> NamedQuery:
    comment, end, _ = text.removeprefix("/*").partition("*/")
    if not text.startswith("/*") or not end:
        raise QueryError(f"queries/{name}.sql has no leading comment")
    prose, _, params = comment.partition("[params]")
    return NamedQuery(name, " ".join(prose.split()), tomllib.loads(params), text)


@cache
def named_queries() -> Mapping[str, NamedQuery]:
    """All named queries, by name."""
    paths = sorted(resources.queries().glob("*.sql"))
    return {path.stem: _read(path.stem, path.read_text(encoding="utf-8")) for path in paths}


def named_query(name: str) -> NamedQuery:
    """One named query; raises `UsageError` with the names there are."""
    found = named_queries().get(name)
    if found is None:
        raise UsageError(
            f"there is no query {name!r}",
            hint=near(name, named_queries(), "tracelens query --list shows them"),
        )
    return found


def spelled(name: str, given: Mapping[str, Any]) -> str:
    """A named query as SQL that stands for itself: every parameter written out; above it, how to print it.

    It is for people to read, change and run; the programs bind parameters instead.
    """
    query = named_query(name)
    bound = query.bind(given)
    head, end, body = query.sql.partition("*/")
    body = re.sub(
        r"\$(\w+)", lambda match: _literal(bound[match[1]]) if match[1] in bound else match[0], body
    )
    prose = head.partition("[params]")[0].rstrip() + "\n"
    pairs = "".join(
        f" {key}={shlex.quote(str(value))}" for key, value in given.items() if value != query.params[key]
    )
    command = _LINE_END.sub(" ", f"-- tracelens query {name}{pairs}")
    return f"{command}\n{prose}{end}{body}"


def written_out(sql: str, bound: Mapping[str, Any]) -> str:
    """SQL with its parameters written as literals, for people to read and change."""
    return re.sub(r"\$(\w+)", lambda match: _literal(bound[match[1]]) if match[1] in bound else match[0], sql)


def _literal(value: Any) -> str:
    if isinstance(value, bool | int | float):
        return str(value)
    return "'" + str(value).replace("'", "''") + "'"
