"""How much memory DuckDB may take while a case is written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tracelens.store.schema import MOST_MEMORY_MIB, NO_EXTENSIONS

if TYPE_CHECKING:
    import duckdb

WRITER_MIB: Final = 286
"""What parsing has left of the budget."""
KEEPER_MIB: Final = 305
"""The same at the end, when nothing is parsed any more: a million requests are joined in 240 MB."""
_LINES: Final = 4_000_000
"""Lines of all sources for which these are enough: a gigabyte of server log."""
WRITER_SETTINGS: Final = {
    **NO_EXTENSIONS,
    "memory_limit": f"{WRITER_MIB}MiB",
    "enable_optimistic_write": "false",
    "default_block_size": "65536",
}
"""How DuckDB writes a case: each block once (tables that are written as they grow leave holes as large as they are), and in
blocks of a quarter of its usual size: a case has many small tables."""


def allow(connection: duckdb.DuckDBPyConnection, memory_mib: int) -> None:
    """Let DuckDB take this much, or more in proportion where there are more lines: joins of all ids do not spill to the disk."""
    (lines,) = connection.execute("SELECT coalesce(sum(line_count), 0) FROM source").fetchall()[0]
    allowed = min(memory_mib * max(float(lines) / _LINES, 1.0), MOST_MEMORY_MIB)
    connection.execute(f"SET memory_limit = '{allowed:.0f}MiB'")
