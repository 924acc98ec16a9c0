"""How much memory DuckDB may take while a case is written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tracelens.store.schema import NO_EXTENSIONS

if TYPE_CHECKING:
    import duckdb

WRITER_MIB: Final = 286
"""What parsing has left of the budget: what does not fit waits on the disk, or is done with more (`schema.with_room`)."""
KEEPER_MIB: Final = 305
"""The same at the end, when nothing is parsed any more."""
WRITER_SETTINGS: Final = {
    **NO_EXTENSIONS,
    "memory_limit": f"{WRITER_MIB}MiB",
    "enable_optimistic_write": "false",
    "default_block_size": "65536",
}
"""How DuckDB writes a case: each block once (tables that are written as they grow leave holes as large as they are), and in
blocks of a quarter of its usual size: a case has many small tables."""


def allow(connection: duckdb.DuckDBPyConnection, memory_mib: int) -> None:
    """Let DuckDB take this much, however long the logs are: what does not fit waits on the disk (`schema.in_room`)."""
    connection.execute(f"SET memory_limit = '{memory_mib}MiB'")
