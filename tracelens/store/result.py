"""Rows of a query, and how one is run so that Ctrl-C and a time limit reach it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from dataclasses import dataclass
from typing import Any, TypeVar

import duckdb  # noqa: TC002 - one import style in the store

from tracelens.errors import QueryTimeout
from tracelens.store.stopping import Stop

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Result:
    """Rows of a query.  `types` are DuckDB's names; `truncated` says that there were more than the limit asked for."""

    columns: tuple[str, ...]
    types: tuple[str, ...]
    rows: list[tuple[Any, ...]]
    truncated: bool = False

    def dicts(self) -> list[dict[str, Any]]:
        """The rows as dictionaries."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]

    def pl(self) -> Any:
        """The rows as a Polars frame, columns in the types that DuckDB gave them."""
        import polars as pl

        known: dict[str, Any] = {
            "VARCHAR": pl.String, "BOOLEAN": pl.Boolean, "INTEGER": pl.Int32, "BIGINT": pl.Int64, "HUGEINT": pl.Int128,
            "FLOAT": pl.Float32, "DOUBLE": pl.Float64, "TIMESTAMP": pl.Datetime("us"), "DATE": pl.Date,
        }  # fmt: skip
        schema = {name: known.get(kind) for name, kind in zip(self.columns, self.types, strict=True)}
        return pl.DataFrame(self.rows, schema=schema, orient="row", infer_schema_length=None)


def asked(
    cursor: duckdb.DuckDBPyConnection,
    sql: str,
    params: Mapping[str, Any] | None = None,
    limit: int | None = None,
    timeout_s: float | None = None,
    stop: Stop | None = None,
) -> Result:
    """Rows of one query; one row more than `limit` is fetched, to know whether there were more."""

    def work() -> tuple[list[Any], list[tuple[Any, ...]]]:
        cursor.execute(sql, dict(params) if params else None)
        described = cursor.description or []
        return described, cursor.fetchall() if limit is None else cursor.fetchmany(limit + 1)

    with (stop or Stop()).around(cursor.interrupt):
        described, rows = _interruptible(cursor, work, timeout_s)
    more = limit is not None and len(rows) > limit
    return Result(
        tuple(str(column[0]) for column in described),
        tuple(str(column[1]) for column in described),
        rows[:limit] if limit is not None else rows,
        more,
    )


def _interruptible(cursor: duckdb.DuckDBPyConnection, work: Callable[[], _T], timeout_s: float | None) -> _T:
    """Run `work` in a thread of its own, so that Ctrl-C and the time limit reach DuckDB while it computes."""
    outcome: Future[_T] = Future()

    def run() -> None:
        try:
            outcome.set_result(work())
        except BaseException as error:  # noqa: BLE001 - handed over to the caller, whatever it is
            outcome.set_exception(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        return outcome.result(timeout_s)
    except FutureTimeout as error:
        raise QueryTimeout(
            f"stopped after {timeout_s:g} s", hint="raise --timeout, or ask for less"
        ) from error
    finally:
        if thread.is_alive():
            cursor.interrupt()
            thread.join()
