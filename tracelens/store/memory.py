"""An empty case in memory, on which views, queries and rules are tried with given rows."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self

import duckdb

from tracelens.errors import QueryError
from tracelens.store.reader import quoted
from tracelens.store.result import Result
from tracelens.store.schema import memory_case, run_script


@dataclass(frozen=True, slots=True)
class Statement:
    """What a SELECT refers to: relations (its own CTEs left out) and named parameters."""

    relations: frozenset[str]
    params: frozenset[str]


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table or view: DuckDB's name of its type, and whether each row must have it."""

    type: str
    required: bool


class MemoryCase:
    """A case in memory that is filled by hand.  What is done inside `trial` is undone at its end."""

    def __init__(self) -> None:
        self._connection = memory_case()
        self._columns: dict[str, dict[str, Column]] = {}
        self._reads: dict[str, frozenset[str]] = {}
        described = self.run(
            "SELECT table_name, column_name, data_type, NOT is_nullable FROM duckdb_columns() "
            "WHERE NOT internal ORDER BY table_name, column_index"
        )
        for name, column, kind, required in described.rows:
            self._columns.setdefault(name, {})[column] = Column(kind, required)

    @contextlib.contextmanager
    def trial(self) -> Iterator[Self]:
        """A transaction that is rolled back, so that one case in memory serves many checks."""
        self._connection.begin()
        try:
            yield self
        finally:
            self._connection.rollback()

    def columns(self, name: str) -> Mapping[str, Column]:
        """Columns of a table or view, in order; empty where there is none of that name."""
        return self._columns.get(name, {})

    def freeze(self, view: str) -> None:
        """Put an empty table of the same columns in the place of a view; a table stays as it is."""
        if self.run(
            "SELECT 1 FROM duckdb_views() WHERE NOT internal AND view_name = $name", {"name": view}
        ).rows:
            self._execute(f'CREATE TABLE "_frozen" AS SELECT * FROM "{view}" LIMIT 0')  # noqa: S608
            self._execute(f'DROP VIEW "{view}"; ALTER TABLE "_frozen" RENAME TO "{view}"')

    def insert(self, table: str, *rows: Mapping[str, Any]) -> None:
        """Insert rows; columns that one leaves out are NULL."""
        names = list(dict.fromkeys(name for row in rows for name in row))
        if names:
            columns = ", ".join(map(quoted, names))
            places = ", ".join(f"({', '.join('?' for _ in names)})" for _ in rows)
            values = [row.get(name) for row in rows for name in names]
            self._execute(f"INSERT INTO {quoted(table)} ({columns}) VALUES {places}", values)  # noqa: S608

    def statement(self, sql: str) -> Statement:
        """What a SELECT refers to; raises `QueryError` where the text is anything but one SELECT."""
        return _statement(self.run, sql)

    def below(self, relations: Iterable[str]) -> frozenset[str]:
        """Relations, and all that the views among them are made of."""
        found: set[str] = set()
        left = list(relations)
        while left:
            name = left.pop()
            if name not in found:
                found.add(name)
                left += self._views_reads().get(name, ())
        return frozenset(found)

    def _views_reads(self) -> Mapping[str, frozenset[str]]:
        if not self._reads:
            views = self.run("SELECT view_name, sql FROM duckdb_views() WHERE NOT internal").rows
            self._reads = {name: self.statement(sql.partition(" AS ")[2]).relations for name, sql in views}
        return self._reads

    def run_script(self, name: str, params: Mapping[str, Any]) -> None:
        """Run one of the SQL files of ``loading/``, as `CaseWriter.run_script` does."""
        try:
            run_script(self._connection, name, params)
        except duckdb.Error as error:
            raise QueryError(f"loading/{name}.sql: {error}") from error

    def run(self, sql: str, params: Mapping[str, Any] | None = None) -> Result:
        """Rows of one query; raises `QueryError` with DuckDB's message."""
        cursor = self._execute(sql, dict(params) if params else None)
        described = cursor.description or []
        names, types = (tuple(str(column[at]) for column in described) for at in (0, 1))
        return Result(names, types, cursor.fetchall())

    def _execute(self, sql: str, params: Any = None) -> duckdb.DuckDBPyConnection:
        try:
            return self._connection.execute(sql, params)
        except duckdb.Error as error:
            raise QueryError(str(error)) from error


def _statement(run: Callable[[str, Mapping[str, Any]], Result], sql: str) -> Statement:
    parsed = json.loads(run("SELECT json_serialize_sql($sql)", {"sql": sql}).rows[0][0])
    if parsed["error"]:
        raise QueryError(parsed["error_message"])
    if len(parsed["statements"]) != 1:
        raise QueryError(f"{len(parsed['statements'])} statements instead of one SELECT")
    nodes = list(_nodes(parsed))
    named = {entry["key"] for node in nodes for entry in node.get("cte_map", {}).get("map", ())}
    tables = {node["table_name"] for node in nodes if node.get("type") == "BASE_TABLE"}
    params = {str(node["identifier"]) for node in nodes if node.get("type") == "VALUE_PARAMETER"}
    return Statement(frozenset(tables - named), frozenset(params))


def _nodes(tree: Any) -> Iterator[dict[str, Any]]:
    """Every object of a parsed statement."""
    if isinstance(tree, dict):
        yield tree
    for part in tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ():
        yield from _nodes(part)
