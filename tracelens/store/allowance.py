"""What DuckDB may reach, and how much memory it may take, while a case is read and while one is written."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeVar

import duckdb

_MEMORY_BYTES: Final = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
MOST_MEMORY_MIB: Final = min(_MEMORY_BYTES * 6 // 10, 16 << 30) >> 20
"""What DuckDB may take at most, whatever it is asked: three fifths of the machine's memory, or 16 GiB."""
_WRITER_MIB: Final = 170
"""What parsing has left of the budget: what does not fit waits on the disk, or is done with more (`with_room`)."""
SILENT: Final = "SET enable_progress_bar = false"
"""Where no script is run (a notebook, ``python -c``) DuckDB draws a bar on stdout while a query takes its time."""
_NO_EXTENSIONS: Final = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
}
"""DuckDB fetches extensions from the network by itself, where it is let."""
READ_ONLY_SETTINGS: Final = {
    **_NO_EXTENSIONS,
    "temp_directory": "",
    # The first rows of an order are chosen by the columns that it names; the others are read of those rows only.
    "late_materialization_max_rows": "10000",
    "memory_limit": f"{MOST_MEMORY_MIB}MiB",
}
"""Settings of a connection that may not reach out, nor write beside the case, nor take the machine's memory."""
WRITER_SETTINGS: Final = {
    **_NO_EXTENSIONS,
    "memory_limit": f"{_WRITER_MIB}MiB",
    "enable_optimistic_write": "false",
    "default_block_size": "65536",
}
"""How DuckDB writes a case: each block once (tables that are written as they grow leave holes as large as they are), and in
blocks of a quarter of its usual size: a case has many small tables."""
_MIB: Final = {"bytes": 2**-20, "KiB": 2**-10, "MiB": 1, "GiB": 2**10, "TiB": 2**20}
"""Units in which DuckDB shows its memory."""
_Made = TypeVar("_Made")


def allow(connection: duckdb.DuckDBPyConnection, memory_mib: int) -> None:
    """Let DuckDB take this much, however long the logs are: what does not fit waits on the disk."""
    connection.execute(f"SET memory_limit = '{memory_mib}MiB'")


def in_room(
    connection: duckdb.DuckDBPyConnection, statement: duckdb.Statement | str, params: Mapping[str, Any] | None
) -> duckdb.DuckDBPyConnection:
    """Execute a statement that gives no rows (but how many it made); where the memory that is allowed does not do, again with more."""
    return with_room(connection, lambda: connection.execute(statement, params))


def with_room(connection: duckdb.DuckDBPyConnection, work: Callable[[], _Made]) -> _Made:
    """Do some work; where the memory that is allowed does not do, do it again with more, and then allow as little as before."""
    try:
        return work()
    except duckdb.OutOfMemoryException as error:
        short = error
    # Where its transaction is lost with it nothing more can be done here: whoever began that begins anew.
    with contextlib.suppress(duckdb.TransactionException), _as_before(connection):
        for cores, memory_mib in _more(*_allowed(connection)):
            _let(connection, cores, memory_mib)
            try:
                return work()
            except duckdb.OutOfMemoryException as error:
                short = error
    raise short


@contextlib.contextmanager
def on_one_core(connection: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """Rows that one core writes lie in the order in which they come, and wholly in blocks that are written once."""
    with _as_before(connection):
        _let(connection, 1, _allowed(connection)[1])
        yield


def _more(cores: int, memory_mib: int) -> Iterator[tuple[int, int]]:
    """What is tried, in this order: one core, which needs half; then twice the memory, and again, up to what the machine can give."""
    if cores > 1:
        yield 1, memory_mib
    while memory_mib < MOST_MEMORY_MIB:
        memory_mib = min(2 * memory_mib, MOST_MEMORY_MIB)
        yield cores, memory_mib


@contextlib.contextmanager
def _as_before(connection: duckdb.DuckDBPyConnection) -> Iterator[None]:
    before = _allowed(connection)
    try:
        yield
    finally:
        with contextlib.suppress(duckdb.Error):
            _let(connection, *before)


def _allowed(connection: duckdb.DuckDBPyConnection) -> tuple[int, int]:
    """Cores, and memory in MiB; DuckDB shows it as ``286.0 MiB``."""
    asked = "SELECT current_setting('threads'), current_setting('memory_limit')"
    cores, memory = connection.execute(asked).fetchall()[0]
    number, unit = memory.split()
    return int(cores), int(float(number) * _MIB[unit])


def _let(connection: duckdb.DuckDBPyConnection, cores: int, memory_mib: int) -> None:
    connection.execute(f"SET threads = {cores}")
    allow(connection, memory_mib)
