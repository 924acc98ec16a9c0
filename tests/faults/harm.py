"""What the tests of this folder share: a small incident, what is in a case, and a process's environment."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import tracelens
from tracelens.store import Store

LOGS = Path(__file__).parents[1] / "cli" / "data" / "incident"
ROOT = Path(tracelens.__file__).parent.parent


def contents(case: Path) -> dict[str, Any]:
    """Number of rows of every table, and the sources; nothing where there is no case."""
    if not case.exists():
        return {}
    with Store(case) as store:
        names = store.run("SELECT table_name FROM duckdb_tables() WHERE NOT temporary ORDER BY ALL").rows
        counts = " UNION ALL ".join(f"SELECT '{name}', count(*) FROM {name}" for (name,) in names)
        found: dict[str, Any] = dict(store.run(counts).rows)
        found["files"] = store.run("SELECT path, sha256, line_count FROM source ORDER BY ALL").rows
    return found


def environment(**more: str) -> dict[str, str]:
    """The environment of a command in a process of its own."""
    return {**os.environ, "PYTHONPATH": str(ROOT), "POLARS_MAX_THREADS": "2", **more}
