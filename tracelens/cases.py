"""Cases beside a view or a rule: given rows, expected rows.  ``NAME.cases.toml`` stands beside ``NAME.sql``.

::

    [given]                                    # rows that every case of the file has
    source = [{ source_id = 1, side = "server" }]

    [[case]]
    name = "the queue of a span is observed"
    given.server_request = [{ request_id = "r1", queue_s = 0.5, ttft_s = 1.5 }]
    expect = [{ request_id = "r1", stage = "queue", duration_s = 0.5, provenance = "observed" }]

A case may also have ``query`` (default: the columns that ``expect`` names, from the view of the file), ``join = true``
(run ``loading/join.sql`` over the given rows first), ``ordered = true`` (the order of rows matters) and ``complete =
false`` (further rows may be there).  Rows given to a view take its place, so that a view above it is tested alone.

What a given row leaves out is filled in by `given.fill`.

A case of a rule expects rows of the rule's SELECT: ``{ outcome = "fired", measured_ratio = 0.97 }``.  A run of which the
SELECT says nothing is a row with ``not_evaluated``, as `check` has it.  ``set = { min_ratio = 0.9 }`` gives parameters.

In ``expect`` a column that a row leaves out, while another row or the query has it, is NULL.  Numbers are equal within
1e-9, relative above 1; the type of a number does not matter.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

from tracelens.errors import CaseError, QueryError
from tracelens.given import Row, Tables, fill, utc
from tracelens.rulebook import Rule
from tracelens.store import MemoryCase

_KEYS: Final = frozenset({"name", "given", "query", "expect", "join", "ordered", "complete"})
_RULE_KEYS: Final = frozenset({"name", "given", "set", "expect", "join", "complete"})

_TOLERANCE: Final = 1e-9


@dataclass(frozen=True, slots=True)
class Case:
    """One case: `given` rows by table or view, `expect` the rows that `query` must then give."""

    name: str
    given: Tables
    query: str
    expect: Sequence[Row]
    join: bool = False
    ordered: bool = False
    complete: bool = True
    params: Mapping[str, Any] = field(default_factory=dict)

    def outcomes(self) -> set[str]:
        """Outcomes that the case of a rule expects."""
        return {str(row["outcome"]) for row in self.expect if "outcome" in row}


def read_cases(path: Path) -> tuple[Case, ...]:
    """Cases of a view's file; raises `CaseError` where one cannot be understood."""
    view = path.name.removesuffix(".cases.toml").partition("_")[2]

    def case(written: Mapping[str, Any], given: Tables) -> Case:
        expect = written["expect"]
        query = written.get("query") or _default_query(expect, view)
        return Case(written["name"], given, query, expect, **_flags(written))

    return _read(path, _KEYS, case)


def read_rule_cases(path: Path, rule: Rule) -> tuple[Case, ...]:
    """Cases of a rule's file; raises `CaseError` where one cannot be understood."""

    def case(written: Mapping[str, Any], given: Tables) -> Case:
        expect, params = written["expect"], {**rule.params, **written.get("set", {})}
        if params.keys() != rule.params.keys():
            raise ValueError(
                f"case {written['name']!r}: the rule has no parameter {(params.keys() - rule.params.keys()).pop()}"
            )
        query = _default_query(expect, _SAID.format(sql=rule.sql))
        return Case(
            written["name"], given or {"source": [{}]}, query, expect, params=params, **_flags(written)
        )

    return _read(path, _RULE_KEYS, case)


_SAID: Final = """(
    WITH said AS (
{sql}
    )
    SELECT * FROM said
    UNION ALL BY NAME
    SELECT DISTINCT run_id, '' AS subject, 'not_evaluated' AS outcome
    FROM source
    WHERE run_id NOT IN (SELECT run_id FROM said)
)"""
"""A rule's SELECT, and the runs of which it says nothing."""


def _read(
    path: Path, keys: frozenset[str], case: Callable[[Mapping[str, Any], Tables], Case]
) -> tuple[Case, ...]:
    if not path.is_file():
        raise CaseError(f"{path}: no cases")
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise CaseError(f"{path.name}: {error}") from error
    shared = document.get("given", {})
    try:
        return tuple(case(written, _given(written, shared, keys)) for written in document["case"])
    except (KeyError, ValueError) as error:
        raise CaseError(f"{path.name}: {error}") from error


def _given(written: Mapping[str, Any], shared: Tables, keys: frozenset[str]) -> Tables:
    unknown = sorted(set(written) - keys)
    if unknown or "name" not in written or "expect" not in written:
        raise ValueError(
            f"case {written.get('name')!r}: {f'no such key: {unknown[0]}' if unknown else 'needs name and expect'}"
        )
    own = written.get("given", {})
    return {table: [*shared.get(table, ()), *own.get(table, ())] for table in {**shared, **own}}


def _flags(written: Mapping[str, Any]) -> dict[str, Any]:
    return {key: written[key] for key in ("join", "ordered", "complete") if key in written}


def _default_query(expect: Sequence[Row], view: str) -> str:
    named = list(dict.fromkeys(column for row in expect for column in row))
    return f"SELECT {', '.join(named) or '*'} FROM {view}"  # noqa: S608 - names of a test's own columns


def check_case(memory: MemoryCase, case: Case) -> str:
    """Run one case; the difference between expected and got as text, empty where there is none."""
    try:
        with memory.trial():
            fill(memory, case.given, join=case.join)
            result = memory.run(case.query, case.params)
    except (CaseError, QueryError) as error:
        return f"{case.name}: {error}"
    unknown = {column for row in case.expect for column in row} - set(result.columns)
    if unknown:
        return f"{case.name}: the query has no column {sorted(unknown)[0]}"
    wanted = [{column: row.get(column) for column in result.columns} for row in case.expect]
    return _difference(case, wanted, result.dicts())


def _difference(case: Case, wanted: list[dict[str, Any]], got: list[dict[str, Any]]) -> str:
    missing, left = _unmatched(wanted, got)
    extra = left if case.complete else []
    shuffled = case.ordered and not missing and not extra and not _all_equal(wanted, got)
    lines = [
        *(f"  expected, not there: {_written(row)}" for row in missing),
        *(f"  there, not expected: {_written(row)}" for row in extra),
        *([f"  in another order: {[_written(row) for row in got]}"] if shuffled else []),
    ]
    return "\n".join([f"{case.name}:", *lines]) if lines else ""


def _unmatched(
    wanted: list[dict[str, Any]], got: list[dict[str, Any]]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    left, missing = list(got), []
    for row in wanted:
        twin = next((at for at, other in enumerate(left) if _equal_rows(row, other)), None)
        if twin is None:
            missing.append(row)
        else:
            del left[twin]
    return missing, left


def _all_equal(wanted: list[dict[str, Any]], got: list[dict[str, Any]]) -> bool:
    return all(_equal_rows(row, other) for row, other in zip(wanted, got, strict=False))


def _equal_rows(wanted: Row, got: Row) -> bool:
    return all(_equal(value, got[column]) for column, value in wanted.items())


def _equal(wanted: Any, got: Any) -> bool:
    if isinstance(wanted, bool) or isinstance(got, bool) or wanted is None or got is None:
        return wanted is got
    if isinstance(wanted, int | float) and isinstance(got, int | float | Decimal):
        return math.isclose(wanted, float(got), rel_tol=_TOLERANCE, abs_tol=_TOLERANCE)
    return bool(utc(wanted) == got)


def _written(row: Row) -> str:
    return (
        "{" + ", ".join(f"{name}: {'NULL' if value is None else value}" for name, value in row.items()) + "}"
    )
