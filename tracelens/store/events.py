"""Events of requests in little room: a finished case stores each id once, in the rows of its requests.

While a case is written, ``request_event`` is a temporary table that shadows the one of the schema: it is grouped, joined and
updated, and its ids are long.  At the end it becomes a view that puts the ids back.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import duckdb

from tracelens.store.allowance import on_one_core
from tracelens.store.schema import columns_of, ddl

_EVENT: Final = "request_event"
_ROWS: Final = "_request_timing_row"
_STORED: Final = """
CREATE TABLE _request_event AS
SELECT named.request_no, {stored}
FROM temp.request_event AS event
INNER JOIN _request_timing_row AS named ON event.request_id = named.request_id AND event.run_id = named.run_id
ORDER BY event.source_id, event.line_no
"""
_VIEW: Final = """
CREATE VIEW request_event AS
SELECT {shown}
FROM _request_event AS event
INNER JOIN _request_timing_row AS named ON event.request_no = named.request_no
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


def open_events(connection: duckdb.DuckDBPyConnection) -> None:
    """Make ready for writing: events as a table of their own, that nothing stored depends on."""
    connection.execute(f"CREATE TEMP TABLE {_EVENT} AS SELECT * FROM {_EVENT}")  # noqa: S608
    main = _main(connection)
    if _has(connection, "_request_event"):
        connection.execute(f"DROP VIEW {main}.{_EVENT}; DROP TABLE _request_event")
        for text in _statements(connection, "CREATE TABLE"):
            connection.execute(text.replace(f"TABLE {_EVENT}", f"TABLE {main}.{_EVENT}", 1))
        _comment(connection, "TABLE")
    else:
        connection.execute(f"DELETE FROM {main}.{_EVENT}")  # noqa: S608


def close_events(connection: duckdb.DuckDBPyConnection) -> None:
    """Store the events with the number of their request for its id; as they are where requests are not kept as rows."""
    connection.begin()
    try:
        _store(connection)
        connection.commit()
    except duckdb.Error:
        connection.rollback()
        connection.execute(f"INSERT INTO {_main(connection)}.{_EVENT} SELECT * FROM temp.{_EVENT}")  # noqa: S608
    connection.execute(f"DROP TABLE temp.{_EVENT}")


def _store(connection: duckdb.DuckDBPyConnection) -> None:
    """The events without the columns that none of them has a value in, and the view that shows them all."""
    columns = columns_of(connection, _EVENT)
    counted = ", ".join(f"count({name})" for name in columns)
    total, *counts = connection.execute(f"SELECT count(*), {counted} FROM temp.{_EVENT}").fetchall()[0]  # noqa: S608
    if not total:
        return
    empty = {name for name, count in zip(columns, counts, strict=True) if not count}
    stored = [f"event.{name}" for name in columns if name not in empty and name not in _IDS]
    with on_one_core(connection):
        made = connection.execute(_STORED.format(stored=", ".join([*stored, *_LOGGED_IDS]))).fetchall()
    if made != [(total,)]:
        raise duckdb.ConstraintException("an event without its request")
    shown = [
        _IDS.get(name) or (f"NULL::{kind} AS {name}" if name in empty else f"event.{name}")
        for name, kind in columns.items()
    ]
    main = _main(connection)
    connection.execute(f"DROP TABLE {main}.{_EVENT}")
    connection.execute(_VIEW.format(shown=", ".join(shown)).replace(_EVENT, f"{main}.{_EVENT}", 1))
    connection.execute(
        f"COMMENT ON TABLE _request_event IS 'One row per event: what request_event reads; ids are in {_ROWS}.'"
    )
    _comment(connection, "VIEW")


def _comment(connection: duckdb.DuckDBPyConnection, kind: str) -> None:
    """Say of the case's own events what the DDL says of them."""
    event = f"{_main(connection)}.{_EVENT}"
    for text in _statements(connection, "COMMENT ON"):
        said = text.replace(f"ON TABLE {_EVENT}", f"ON {kind} {event}", 1)
        connection.execute(said.replace(f"ON COLUMN {_EVENT}.", f"ON COLUMN {event}.", 1))


def _has(connection: duckdb.DuckDBPyConnection, table: str) -> bool:
    return bool(
        connection.execute(
            "SELECT 1 FROM duckdb_tables() WHERE table_name = $name", {"name": table}
        ).fetchall()
    )


def _main(connection: duckdb.DuckDBPyConnection) -> str:
    """The case's own schema, past temporary tables that shadow it."""
    return f'"{connection.execute("SELECT current_database()").fetchall()[0][0]}".main'


def _statements(connection: duckdb.DuckDBPyConnection, verb: str) -> Iterator[str]:
    """The statements of the DDL that create, or comment on, the table of events."""
    wanted = rf"{verb} (?:TABLE |COLUMN )?{_EVENT}\b(?!_)"
    begins = re.compile(rf"(?:--[^\n]*\n|\s)*{wanted}")
    for _, text in ddl():
        if re.search(wanted, text):
            for statement in connection.extract_statements(text):
                if begins.match(statement.query):
                    yield statement.query
