# ruff: noqa: S608 - every text here is our own, save an expression that a user may as well write in the SQL screen
"""Rows of a query kept in memory, in an order, so that any page of a million rows comes at once.

An order, or a choice, costs one pass over the rows.  A page costs a look-up by its place.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any, Final

import duckdb

from tracelens.errors import QueryError
from tracelens.store.result import Result, asked
from tracelens.store.stopping import Stop

_BASE: Final = "_listed"
_PLACED: Final = "_placed"


class Listing:
    """The rows of one query.  All calls take turns, so threads may share a listing."""

    def __init__(self, cursor: duckdb.DuckDBPyConnection) -> None:
        self._cursor = cursor
        self._turn = threading.Lock()

    def fill(self, sql: str, params: Mapping[str, Any] | None = None, stop: Stop | None = None) -> None:
        """Keep the rows of a query, in the place of those of the one before; raises `QueryError`."""
        self._run(f"CREATE OR REPLACE TEMP TABLE {_BASE} AS {sql}", params, stop)

    def arrange(self, where: str = "", order: str = "", stop: Stop | None = None) -> int:
        """Choose rows by an SQL expression over their columns, and order them; gives how many there are.

        Raises `QueryError` for an expression that cannot be read.
        """
        chosen = f"WHERE (\n{where}\n)" if where else ""
        ordered = f"ORDER BY {order}, rowid" if order else "ORDER BY rowid"
        self._run(
            f"CREATE OR REPLACE TEMP TABLE {_PLACED} AS SELECT row_number() OVER ({ordered}) - 1 AS place, rowid AS at_row "
            f"FROM {_BASE} {chosen} ORDER BY place",
            None,
            stop,
        )
        return int(self._run(f"SELECT count(*) FROM {_PLACED}", None, stop).rows[0][0])

    def page(self, offset: int, limit: int, stop: Stop | None = None) -> Result:
        """Rows from a place on."""
        text = (
            f"SELECT base.* FROM {_PLACED} AS placed INNER JOIN {_BASE} AS base ON placed.at_row = base.rowid "
            "WHERE placed.place >= $low AND placed.place < $high ORDER BY placed.place"
        )
        return self._run(text, {"low": offset, "high": offset + limit}, stop)

    def place_of(self, where: str, stop: Stop | None = None) -> int | None:
        """The first place of a row that an expression is true of; None where there is none."""
        text = (
            f"SELECT min(placed.place) FROM {_PLACED} AS placed INNER JOIN {_BASE} AS base ON placed.at_row = base.rowid "
            f"WHERE (\n{where}\n)"
        )
        found = self._run(text, None, stop).rows[0][0]
        return None if found is None else int(found)

    def close(self) -> None:
        """Let go of the rows."""
        with self._turn:
            self._cursor.close()

    def _run(self, sql: str, params: Mapping[str, Any] | None, stop: Stop | None) -> Result:
        with self._turn:
            try:
                return asked(self._cursor, sql, params, stop=stop)
            except duckdb.Error as error:
                raise QueryError(str(error)) from error
