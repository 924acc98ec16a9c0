"""Views that a finished case has as rows: what many questions begin with is computed once, when an ingest ends.

A question then reads a table where it would go down to the facts; that saves its planning as well, most of a check on a small
case.  While the facts below change (an ingest), and where the rows do not fit into memory, the views compute.
"""

from __future__ import annotations

import re
from typing import Final

import duckdb

from tracelens import resources
from tracelens.store.events import close_events, open_events
from tracelens.store.schema import ddl, run_script

_TIMING: Final = "_request_timing"
"""The join of all sources per request, with its pieces; the view `request` is its first columns."""
KEPT: Final = (
    _TIMING, "_clock_line", "gpu_alignment", "engine_state", "run_setting", "time_window", "binding_limit", "gpu_load",
    "metric_latency", "prompt_length_curve", "queue_wait_estimate", "_run_measure", "_latency_slice", "_tail_candidate",
    "_tail_request", "tail_excess", "tail_factors", "_client_pause", "_stream_shape",
)  # fmt: skip
"""The views, those before that others are made of."""
_READING: Final = frozenset((*KEPT, "request", "_request_percentile"))


def keep_views(connection: duckdb.DuckDBPyConnection) -> None:
    """Compute each view and let it read what was computed; then the events of requests in little room."""
    for view in KEPT:
        connection.begin()
        try:
            _keep(connection, view)
            connection.commit()
        except duckdb.Error:
            connection.rollback()
    close_events(connection)
    connection.begin()
    _comment(connection)
    connection.commit()


def _keep(connection: duckdb.DuckDBPyConnection, view: str) -> None:
    rows = _rows_of(view)
    special = resources.loading() / f"keep_{view.removeprefix('_')}.sql"
    if special.exists():
        run_script(connection, special.stem, {})
    else:
        connection.execute(f"CREATE TABLE {rows} AS SELECT * FROM {view}")  # noqa: S608
    connection.execute(f"COMMENT ON TABLE {rows} IS 'Rows of {view}, computed when the last ingest ended.'")
    for name, columns in _reading(connection, view).items():
        connection.execute(f"CREATE OR REPLACE VIEW {name} AS SELECT {columns} FROM {rows}")  # noqa: S608


def _reading(connection: duckdb.DuckDBPyConnection, view: str) -> dict[str, str]:
    """The views that read the rows of one, and which columns."""
    if view != _TIMING:
        return {view: "*"}
    described = connection.execute("SELECT column_name FROM (DESCRIBE request)").fetchall()
    return {view: "*", "_request_percentile": "*", "request": ", ".join(row[0] for row in described)}


def compute_views(connection: duckdb.DuckDBPyConnection) -> None:
    """Let the views of `keep_views` compute, while the facts below them change: before anything is written to a case."""
    open_events(connection)
    found = connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()
    rows = {_rows_of(view) for view in KEPT} & {row[0] for row in found}
    if not rows:
        return
    connection.begin()
    for table in sorted(rows):
        connection.execute(f"DROP TABLE {table}")
    creates = re.compile(rf"(?:--[^\n]*\n|\s)*CREATE VIEW ({'|'.join(_READING)}) AS\b")
    for _, text in ddl():
        for statement in connection.extract_statements(text) if creates.search(text) else ():
            if creates.match(statement.query):
                connection.execute(statement.query.replace("CREATE VIEW", "CREATE OR REPLACE VIEW", 1))
    _comment(connection)
    connection.commit()


def _rows_of(view: str) -> str:
    return f"_{view.removeprefix('_')}_row"


def _comment(connection: duckdb.DuckDBPyConnection) -> None:
    """Say again of views that were made anew, and of their columns, what the DDL says of them."""
    for _, text in ddl():
        for said in re.finditer(r"^COMMENT ON (?:VIEW|COLUMN) (\w+).*;$", text, re.MULTILINE):
            if said[1] in _READING:
                connection.execute(said[0])
