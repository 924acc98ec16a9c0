"""A case, opened for reading: what the commands do, a notebook can do."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Self

from tracelens.named import named_query
from tracelens.store import Result, Store


class Case:
    """An open case.  Read only; closes with ``with``."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._store = Store(self.path)

    def query(self, name: str, *, limit: int | None = None, timeout_s: float | None = None, **params: Any) -> Result:
        """Rows of a named query, such as ``case.query("slowest", by="ttft", top=20)``.

        Raises `UsageError` for a name or parameter that does not exist, `QueryError` where it fails.
        """
        query = named_query(name)
        return self._store.run(query.sql, query.bind(params), limit=limit, timeout_s=timeout_s)

    def sql(self, text: str, *, limit: int | None = None, timeout_s: float | None = None) -> Result:
        """Rows of any SQL that only reads.  It sees the case and nothing else: no files, no network."""
        return self._store.run(text, limit=limit, timeout_s=timeout_s)

    def close(self) -> None:
        """Close the case."""
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
