"""What a finished case keeps as rows, and how: requests joined once and for all, and their events in little room.

While a case is written, ``request_event`` is a temporary table that shadows the one of the schema: it is grouped, joined and
updated, and its ids are long.  At the end each id is stored once, in ``_request_row``; ``request_event`` becomes a view that
puts the ids back.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

import duckdb

from tracelens.store.schema import columns_of, ddl

KEPT: Final = ("request", "_request_timing")
"""Views that a finished case has as rows: the join of all sources per request, and its pieces.  The second holds the first."""

_EVENT: Final = "request_event"
_EVENTS: Final = """
CREATE TABLE _request_event AS
SELECT named.request_no, {stored}
FROM temp.request_event AS event
INNER JOIN _request_row AS named ON event.request_id = named.request_id AND event.run_id = named.run_id
"""
_VIEW: Final = """
CREATE VIEW request_event AS
SELECT {shown}
FROM _request_event AS event
INNER JOIN _request_row AS named ON event.request_no = named.request_no
"""
_LOGGED_IDS: Final = (
    # The logged id is the request's with an end of its own or none, or it is another one.
    "CASE WHEN starts_with(event.logged_id, event.request_id) THEN substr(event.logged_id, length(event.request_id) + 1) END AS logged_tail",
    "CASE WHEN NOT starts_with(event.logged_id, event.request_id) THEN event.logged_id END AS other_id",
)
_IDS: Final = {
    "request_id": "named.request_id",
    "logged_id": "coalesce(event.other_id, named.request_id || event.logged_tail) AS logged_id",
}


def open_requests(connection: duckdb.DuckDBPyConnection) -> None:
    """Make ready for writing: events as a table, and views that compute while the facts below them change."""
    connection.execute(f"CREATE TEMP TABLE {_EVENT} AS SELECT * FROM {_EVENT}")  # noqa: S608
    found = connection.execute(
        "SELECT table_name FROM duckdb_tables() WHERE starts_with(table_name, '_request_')"
    )
    stored = {row[0] for row in found.fetchall()}
    main = _main(connection)
    if "_request_event" in stored:
        connection.execute(f"DROP VIEW {main}.{_EVENT}; DROP TABLE _request_event")
        for text in _statements_on(connection, "CREATE TABLE", (_EVENT,)):
            connection.execute(text.replace(f"TABLE {_EVENT}", f"TABLE {main}.{_EVENT}", 1))
    else:
        connection.execute(f"DELETE FROM {main}.{_EVENT}")  # noqa: S608
    if "_request_row" not in stored:
        return
    connection.execute("DROP TABLE _request_row")
    for text in _statements_on(connection, "CREATE VIEW", KEPT):
        connection.execute(text.replace("CREATE VIEW", "CREATE OR REPLACE VIEW", 1))
    for text in _statements_on(connection, "COMMENT ON", KEPT):
        connection.execute(text)


def keep_requests(connection: duckdb.DuckDBPyConnection) -> None:
    """Compute what every question about requests begins with, and let the views read that.

    Where that does not fit into memory the views go on computing it themselves, from events as they are.
    """
    connection.begin()
    try:
        _keep(connection)
        connection.commit()
    except duckdb.Error:
        connection.rollback()
        connection.execute(f"INSERT INTO {_main(connection)}.{_EVENT} SELECT * FROM temp.{_EVENT}")  # noqa: S608
        connection.execute(f"DROP TABLE temp.{_EVENT}")


def _keep(connection: duckdb.DuckDBPyConnection) -> None:
    shown = {view: ", ".join(columns_of(connection, view)) for view in KEPT}
    connection.execute(
        "CREATE TABLE _request_row AS SELECT row_number() OVER () AS request_no, * FROM _request_timing"
    )
    for view, columns in shown.items():
        connection.execute(f"CREATE OR REPLACE VIEW {view} AS SELECT {columns} FROM _request_row")  # noqa: S608
    connection.execute(
        "COMMENT ON TABLE _request_row IS 'One row per request: what request and _request_timing read.'"
    )
    total = connection.execute(f"SELECT count(*) FROM temp.{_EVENT}").fetchall()[0][0]  # noqa: S608
    if total:
        _keep_events(connection, total)
    connection.execute(f"DROP TABLE IF EXISTS temp.{_EVENT}")
    for text in _statements_on(connection, "COMMENT ON", (*KEPT, _EVENT) if total else KEPT):
        connection.execute(text.replace(f"ON TABLE {_EVENT}", f"ON VIEW {_EVENT}", 1))


def _keep_events(connection: duckdb.DuckDBPyConnection, total: int) -> None:
    """Store the events with the row of their request for its id, without the columns that none of them has a value in."""
    columns = columns_of(connection, _EVENT)
    counted = ", ".join(f"count({name})" for name in columns)
    counts = connection.execute(f"SELECT {counted} FROM temp.{_EVENT}").fetchall()[0]  # noqa: S608
    empty = {name for name, count in zip(columns, counts, strict=True) if not count}
    stored = [f"event.{name}" for name in columns if name not in empty and name not in _IDS]
    made = connection.execute(_EVENTS.format(stored=", ".join([*stored, *_LOGGED_IDS]))).fetchall()
    if made != [(total,)]:
        raise duckdb.ConstraintException("an event without its request")
    connection.execute(f"DROP TABLE temp.{_EVENT}; DROP TABLE {_EVENT}")
    shown = [
        _IDS.get(name) or (f"NULL::{kind} AS {name}" if name in empty else f"event.{name}")
        for name, kind in columns.items()
    ]
    connection.execute(_VIEW.format(shown=", ".join(shown)))
    connection.execute(
        "COMMENT ON TABLE _request_event IS 'One row per event: what request_event reads; ids are in _request_row.'"
    )


def _main(connection: duckdb.DuckDBPyConnection) -> str:
    """The case's own schema, past temporary tables that shadow it."""
    return f'"{connection.execute("SELECT current_database()").fetchall()[0][0]}".main'


def _statements_on(connection: duckdb.DuckDBPyConnection, verb: str, names: Sequence[str]) -> Iterator[str]:
    """The statements of the DDL that create, or comment on, some tables or views."""
    wanted = rf"{verb} (?:VIEW |TABLE |COLUMN )?(?:{'|'.join(names)})\b(?!_)"
    begins = re.compile(rf"(?:--[^\n]*\n|\s)*{wanted}")
    for _, text in ddl():
        if re.search(wanted, text):
            for statement in connection.extract_statements(text):
                if begins.match(statement.query):
                    yield statement.query
