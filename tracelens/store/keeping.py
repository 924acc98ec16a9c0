"""Views that a finished case has as rows: what many questions begin with is computed once, when an ingest ends.

A question then reads a table where it would go down to the facts; that saves its planning as well, most of a check on a small
case.  A case has these reading views from its first day, and what they read is made anew by each ingest: from below, so that each
is planned over the rows of those before it.  A view whose rows do not fit into memory computes.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Collection, Iterator
from functools import cache, partial
from typing import Final

import duckdb

from tracelens.store.allowance import with_room
from tracelens.store.events import close_events, open_events
from tracelens.store.schema import (
    apply_schema,
    columns_of,
    ddl,
    has_rows,
    run_script,
    schema_version,
)

KEPT: Final = frozenset((
    "engine_state", "_clock_line", "gpu_alignment", "_request_timing", "_run_measure", "_latency_slice", "time_window",
    "prompt_length_curve", "_curve_spread", "queue_wait_estimate", "run_setting", "binding_limit", "gpu_load", "_tail_candidate",
    "_tail_request", "metric_latency", "tail_excess", "tail_factors", "_client_pause", "_stream_shape",
    "_engine_failure", "_logged_request_count", "_engine_spell",
))  # fmt: skip
_TIMING: Final = "_request_timing"
"""The join of all sources per request, with its pieces; the view `request` is its first columns."""
_MORE: Final = {_TIMING: {"ttft_percentile_ratio": "DOUBLE"}}
"""Columns that rows have and their view has not."""
_CLOCKS: Final = "_clock_line"
"""The one of them that loading asks, while it computes."""
_ROWS_OF: Final = {
    "engine_state": "engine_sample", "queue_wait_estimate": "engine_sample", "binding_limit": "engine_state",
    "run_setting": "server_setting", "metric_latency": "metric_sample", "gpu_alignment": "source WHERE side = 'gpu'", "gpu_load": "gpu_sample",
    _CLOCKS: "client_request", "_client_pause": "client_request", "_stream_shape": "client_stream", "_engine_failure": "log_event",
    "_engine_spell": "engine_sample",
    "_run_measure": _TIMING, "_latency_slice": _TIMING, "prompt_length_curve": "request",
    "_curve_spread": "prompt_length_curve", "_tail_candidate": "request", "_tail_request": "_tail_candidate",
    "tail_excess": "_tail_candidate", "tail_factors": "_tail_request",
}  # fmt: skip
"""Views that have no row without rows of a relation, and are not asked then: in a small case planning takes most of the time."""
_LENGTHS: Final = 500_000
"""How many lengths of requests are held in memory at once, or one measure of them all, while quantiles are found."""
_MADE: Final = re.compile(r"(?:--[^\n]*\n|\s)*CREATE (?:VIEW|MACRO) (\w+)")


def make_case(connection: duckdb.DuckDBPyConnection) -> None:
    """Create every table and view of an empty case, as a finished one has them."""
    apply_schema(connection, "tables")
    connection.execute("INSERT INTO case_property VALUES ('schema_version', $v)", {"v": schema_version()})
    _make_views(connection, KEPT)


def open_tables(connection: duckdb.DuckDBPyConnection) -> None:
    """Make a case ready for writing: events as a table of their own, no rows of views; before anything is written to it."""
    open_events(connection)
    found = dict(
        connection.execute(
            "SELECT table_name, estimated_size > 0 FROM duckdb_tables() "
            "WHERE starts_with(table_name, '_') AND ends_with(table_name, '_row')"
        ).fetchall()
    )
    known = [view for view in KEPT if _rows_of(view) in found]
    connection.begin()
    for view in known:
        if found.pop(_rows_of(view)):
            _fill(connection, view, f"FROM {_rows_of(view)} LIMIT 0")
    for name in found:
        connection.execute(f"DROP TABLE {name}")
    connection.commit()
    if found or len(known) < len(KEPT):
        _make_views(connection, KEPT)


@contextlib.contextmanager
def clocks_computed(connection: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """While loading lays the clocks of clients beside those of servers, their view computes."""
    if not has_rows(connection, _ROWS_OF[_CLOCKS]):
        yield
        return
    connection.execute(f"CREATE TEMP VIEW {_CLOCKS} AS {_selects()[_CLOCKS]}")
    yield
    connection.execute(f"DROP VIEW temp.{_CLOCKS}")


def keep_views(connection: duckdb.DuckDBPyConnection) -> None:
    """Compute what the kept views read, each over those before it; then store the events of requests in little room."""
    # Each table is made in one go: its rows are compressed and written as they come, and not held until its commit.
    connection.execute("SET enable_optimistic_write = true")
    kept = set(KEPT)
    filled = cache(partial(has_rows, connection))
    for view in filter(kept.__contains__, _selects()):
        try:
            if view not in _ROWS_OF or filled(_ROWS_OF[view]):
                _keep(connection, view)
        except duckdb.Error:
            connection.execute(f"DROP TABLE IF EXISTS {_rows_of(view)}")
            kept.remove(view)
            _make_views(connection, kept)
    # What the rows before have freed is there for the events.
    connection.execute("CHECKPOINT")
    close_events(connection)


def _keep(connection: duckdb.DuckDBPyConnection, view: str) -> None:
    """Compute the rows of a view, all or none; with more memory where less does not do."""
    with_room(connection, lambda: _at_once(connection, view))


def _at_once(connection: duckdb.DuckDBPyConnection, view: str) -> None:
    connection.begin()
    try:
        _compute(connection, view)
    except duckdb.Error:
        connection.rollback()
        raise
    connection.commit()


def _compute(connection: duckdb.DuckDBPyConnection, view: str) -> None:
    if view == _TIMING:
        _compute_requests(connection)
    elif view == "_run_measure":
        _compute_measures(connection)
    else:
        _fill(connection, view, _selects()[view])


def _fill(connection: duckdb.DuckDBPyConnection, view: str, select: str) -> None:
    """Make the table of a view's rows anew."""
    connection.execute(f"CREATE OR REPLACE TABLE {_rows_of(view)} AS {select}")
    _comment(connection, view)


def _comment(connection: duckdb.DuckDBPyConnection, view: str) -> None:
    said = f"Rows of {view}, computed when the last ingest ended."
    connection.execute(f"COMMENT ON TABLE {_rows_of(view)} IS '{said}'")


def _compute_requests(connection: duckdb.DuckDBPyConnection) -> None:
    """The rows of requests, and how each stands among those of its run."""
    selects = _selects()
    connection.execute(f"CREATE TEMP VIEW request AS {selects['request']}")
    numbered = "* REPLACE (row_number() OVER () AS request_no), NULL::DOUBLE AS ttft_percentile_ratio"
    _fill(connection, _TIMING, f"SELECT {numbered} FROM ({selects[_TIMING]})")  # noqa: S608
    connection.execute("DROP VIEW temp.request")
    run_script(connection, "keep_request_timing", {})


def _compute_measures(connection: duckdb.DuckDBPyConnection) -> None:
    """Some measures after the others: the lengths of all requests under each are held in memory."""
    asked = f"SELECT _run_measures(), (SELECT count(*) FROM {_TIMING})"  # noqa: S608
    measures, requests = connection.execute(asked).fetchall()[0]
    at_once = max(_LENGTHS // max(requests, 1), 1)
    rows = _rows_of("_run_measure")
    _fill(connection, "_run_measure", f"FROM {rows} LIMIT 0")
    for first in range(0, len(measures), at_once):
        wanted = measures[first : first + at_once]
        connection.execute(
            f"INSERT INTO {rows} FROM _run_measure_of($wanted) ORDER BY ALL", {"wanted": wanted}
        )


def _make_views(connection: duckdb.DuckDBPyConnection, kept: Collection[str]) -> None:
    """Make all views anew: the kept ones read rows (those that there are, or none yet), the others compute."""
    _drop_views(connection)
    connection.begin()
    reading: set[str] = set()
    comments: list[duckdb.Statement] = []
    for _, text in ddl("views"):
        for statement in connection.extract_statements(text):
            made = _MADE.match(statement.query)
            if made is None:
                comments.append(statement)
            elif made[1] not in reading:
                connection.execute(statement)
                reading |= _let_read(connection, made[1]) if made[1] in kept else set()
    for comment in comments:
        connection.execute(comment)
    connection.commit()


def _let_read(connection: duckdb.DuckDBPyConnection, view: str) -> set[str]:
    """Let a view that computes read rows; returns it, and the views beside it that read the same rows."""
    rows = _rows_of(view)
    kinds = columns_of(connection, view) | _MORE.get(view, {})
    shape = ", ".join(f"{name} {kind}" for name, kind in kinds.items())
    connection.execute(f"CREATE TABLE IF NOT EXISTS {rows} ({shape})")
    _comment(connection, view)
    columns = {view: "*"}
    if view == _TIMING:
        columns |= {"_request_percentile": "*", "request": ", ".join(columns_of(connection, "request"))}
    for name, wanted in columns.items():
        connection.execute(f"CREATE OR REPLACE VIEW {name} AS SELECT {wanted} FROM {rows}")  # noqa: S608
    return set(columns)


def _drop_views(connection: duckdb.DuckDBPyConnection) -> None:
    connection.begin()
    for _, text in ddl("views"):
        for kind, name in re.findall(r"^CREATE (VIEW|MACRO) (\w+)", text, re.MULTILINE):
            connection.execute(f"DROP {kind} IF EXISTS {name}")
    connection.commit()


@cache
def _selects() -> dict[str, str]:
    """The SELECT of each view, those before that others are made of."""
    text = "\n".join(text for _, text in ddl("views"))
    return dict(re.findall(r"^CREATE VIEW (\w+) AS\n(.*?);$", text, re.MULTILINE | re.DOTALL))


def _rows_of(view: str) -> str:
    return f"_{view.removeprefix('_')}_row"
