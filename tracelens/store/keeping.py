"""Views that a finished case has as rows: what many questions begin with is computed once, when an ingest ends.

A question then reads a table where it would go down to the facts; that saves its planning as well, most of a check on a small
case.  So views are made last, from below: each is planned over the rows of those before it.  While facts change (an ingest)
there are only the views that loading asks.  A view whose rows do not fit into memory computes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import duckdb

from tracelens.store.events import close_events, open_events
from tracelens.store.schema import apply_schema, ddl, run_script

TABLES: Final = ("tables/", "views/00_time", "views/15_clock_line")
"""The files of the schema that a case is written with: tables, and what loading asks."""
KEPT: Final = frozenset((
    "engine_state", "_clock_line", "gpu_alignment", "_request_timing", "_request_place", "_run_measure", "_latency_slice", "time_window",
    "prompt_length_curve", "_curve_spread", "queue_wait_estimate", "run_setting", "binding_limit", "gpu_load", "_tail_candidate",
    "_tail_request", "metric_latency", "tail_excess", "tail_factors", "_client_pause", "_stream_shape",
))  # fmt: skip
_MADE: Final = re.compile(r"(?:--[^\n]*\n|\s)*CREATE (VIEW|MACRO) (\w+)")
_LENGTHS: Final = 500_000
"""How many lengths of requests are held in memory at once, or one measure of them all, while quantiles are found."""


def open_tables(connection: duckdb.DuckDBPyConnection) -> None:
    """Make a case ready for writing: tables, the events of requests as one of them, and what loading asks."""
    open_events(connection)
    _drop_views(connection)
    apply_schema(connection, TABLES[1:])


def keep_views(connection: duckdb.DuckDBPyConnection) -> None:
    """Make every view, and the rows of those that are kept; then the events of requests in little room."""
    _drop_views(connection)
    ready: set[str] = set()
    said: list[duckdb.Statement] = []
    connection.begin()
    for _, text in _views():
        for statement in connection.extract_statements(text):
            made = _MADE.match(statement.query)
            if made is None:
                said.append(statement)
            elif made[2] in KEPT:
                ready |= _keep(connection, made[2], statement)
            elif made[2] not in ready:
                connection.execute(statement)
    connection.commit()
    close_events(connection)
    connection.begin()
    for comment in said:
        connection.execute(comment)
    connection.commit()


def _keep(connection: duckdb.DuckDBPyConnection, view: str, statement: duckdb.Statement) -> set[str]:
    """Make a view, compute its rows and let it read them; returns the views that do."""
    connection.commit()
    connection.begin()
    try:
        connection.execute(statement)
        _compute(connection, view)
        reading = _reading(connection, view)
        for name, columns in reading.items():
            connection.execute(f"CREATE OR REPLACE VIEW {name} AS SELECT {columns} FROM {_rows_of(view)}")  # noqa: S608
        connection.commit()
    except duckdb.Error:
        connection.rollback()
        connection.begin()
        connection.execute(statement)
        return set()
    connection.begin()
    return set(reading)


def _compute(connection: duckdb.DuckDBPyConnection, view: str) -> None:
    rows = _rows_of(view)
    if view == "_request_timing":
        run_script(connection, "keep_request_timing", {})
    elif view == "_run_measure":
        _keep_measures(connection)
    else:
        connection.execute(f"CREATE TABLE {rows} AS FROM {view}")
    connection.execute(f"COMMENT ON TABLE {rows} IS 'Rows of {view}, computed when the last ingest ended.'")


def _keep_measures(connection: duckdb.DuckDBPyConnection) -> None:
    """Some measures after the others: the lengths of all requests under each are held in memory."""
    asked = "SELECT _run_measures(), (SELECT count(*) FROM _request_timing)"
    measures, requests = connection.execute(asked).fetchall()[0]
    at_once = max(_LENGTHS // max(requests, 1), 1)
    connection.execute("CREATE TABLE _run_measure_row AS FROM _run_measure LIMIT 0")
    for first in range(0, len(measures), at_once):
        connection.execute(
            "INSERT INTO _run_measure_row FROM _run_measure_of($wanted)",
            {"wanted": measures[first : first + at_once]},
        )


def _reading(connection: duckdb.DuckDBPyConnection, view: str) -> dict[str, str]:
    """The views that read the rows of one, and which columns: `request` is the first of the join of all sources."""
    if view != "_request_timing":
        return {view: "*"}
    described = connection.execute("SELECT column_name FROM (DESCRIBE request)").fetchall()
    return {view: "*", "_request_percentile": "*", "request": ", ".join(row[0] for row in described)}


def _drop_views(connection: duckdb.DuckDBPyConnection) -> None:
    """Drop the views and macros of the schema, and the rows of those that were kept."""
    connection.begin()
    for _, text in _views():
        for kind, name in re.findall(r"^CREATE (VIEW|MACRO) (\w+)", text, re.MULTILINE):
            connection.execute(f"DROP {kind} IF EXISTS {name}")
    for view in KEPT:
        connection.execute(f"DROP TABLE IF EXISTS {_rows_of(view)}")
    connection.commit()


def _views() -> Iterator[tuple[str, str]]:
    return ((name, text) for name, text in ddl() if name.startswith("views/"))


def _rows_of(view: str) -> str:
    return f"_{view.removeprefix('_')}_row"
