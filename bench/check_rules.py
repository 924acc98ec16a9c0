"""Measures ``tracelens check`` on a case of a million requests, rule by rule: ``python bench/check_rules.py``.

The case is the packaged incident, its requests over and over: each copy has ids, lines and stamps of its own, a minute later.
Chunk times are kept for every tenth request, as in a client log that samples them.  A rule's time is that of its SELECT.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import duckdb

import tracelens
from tracelens import resources
from tracelens.rulebook import rulebook
from tracelens.store import Store
from tracelens.store.keeping import keep_views, open_tables

OUT: Final = Path(__file__).parent / "out"
COPIED: Final = (
    "server_request", "client_request", "client_link", "client_stream", "request_event", "engine_sample",
    "access_line", "gpu_sample",
)  # fmt: skip
IDS: Final = ("request_id", "client_id", "response_id", "trace_id", "engine_id")
LINES: Final = ("line_no", "last_line_no")
STREAMS: Final = 10
"""One request in so many has its chunk times."""


def big_case(path: Path, requests: int) -> int:
    """Make the case; returns its number of requests."""
    path.unlink(missing_ok=True)
    tracelens.ingest([str(resources.demo_incident())], case=path)
    connection = duckdb.connect(str(path))
    have = connection.execute("SELECT count(*) FROM request").fetchall()[0][0]
    open_tables(connection)
    for table in COPIED:
        copies = -(-requests // have) // (STREAMS if table == "client_stream" else 1)
        changed = ", ".join(_changed(connection, table))
        connection.execute(
            f"INSERT INTO {table} SELECT * EXCLUDE (copy) REPLACE ({changed}) FROM {table}, range(1, $n) AS r (copy)",  # noqa: S608 - names of the schema
            {"n": copies},
        )
    begin = time.process_time()
    keep_views(connection)
    print(f"{time.process_time() - begin:8.3f} s  CPU to keep views as rows, at the end of an ingest")
    connection.execute("CHECKPOINT")
    found = connection.execute("SELECT count(*) FROM request").fetchall()[0][0]
    connection.close()
    return int(found)


def _changed(connection: duckdb.DuckDBPyConnection, table: str) -> Iterator[str]:
    columns = connection.execute(
        "SELECT DISTINCT column_name, data_type FROM duckdb_columns() WHERE table_name = $table ORDER BY ALL",
        {"table": table},
    ).fetchall()
    for name, kind in columns:
        if name == "logged_id":
            yield f"replace({name}, request_id, request_id || '-' || copy) AS {name}"
        elif name in IDS:
            yield f"{name} || '-' || copy AS {name}"
        elif name in LINES:
            yield f"{name} + copy * 10000 AS {name}"
        elif kind == "TIMESTAMP":
            yield f"{name} + to_seconds(60 * copy) AS {name}"


def times(path: Path, clock: Callable[[], float]) -> dict[str, float]:
    """Seconds of each rule's SELECT, by a clock."""
    found: dict[str, float] = {}
    with Store(path) as store, store.sitting() as sitting:
        for rule in rulebook():
            begin = clock()
            sitting.run(rule.sql, dict(rule.params) or None)
            found[rule.name] = clock() - begin
    return found


def whole(path: Path) -> float:
    """Seconds of a whole check, with its plan and its texts."""
    with tracelens.open(path) as case:
        begin = time.perf_counter()
        case.check()
        return time.perf_counter() - begin


def main() -> None:
    """Make the case where it is not there, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--requests", type=int, default=1_000_000)
    parser.add_argument("--case", type=Path, default=OUT / "check.duckdb")
    parser.add_argument("--cpu", action="store_true", help="CPU seconds of all threads instead of wall time")
    parser.add_argument("--again", action="store_true", help="make the case anew")
    asked: Any = parser.parse_args()
    asked.case.parent.mkdir(exist_ok=True)
    if asked.again or not asked.case.exists():
        print(f"{big_case(asked.case, asked.requests):,} requests, {asked.case.stat().st_size / 1e6:,.0f} MB")
    found = times(asked.case, time.process_time if asked.cpu else time.perf_counter)
    for name, seconds in sorted(found.items(), key=lambda one: -one[1]):
        print(f"{seconds:8.3f} s  {name}")
    print(f"{sum(found.values()):8.3f} s  rules")
    print(f"{whole(asked.case):8.3f} s  a whole check")


if __name__ == "__main__":
    main()
