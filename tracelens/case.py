"""A case, opened for reading: what the commands do, a notebook can do."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Self

from tracelens.check import Check, run_rules
from tracelens.named import named_query
from tracelens.rulebook import rulebook
from tracelens.store import Narrow, Result, Stop, Store

_LOG: Final = logging.getLogger(__name__)
"""Hears of each question when it is answered, for ``--verbose``."""


class Case:
    """An open case.  Read only; closes with ``with``."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._store = Store(self.path)
        _LOG.info("%s: opened", self.path)

    def query(
        self,
        name: str,
        *,
        limit: int | None = None,
        timeout_s: float | None = None,
        narrow: Narrow | None = None,
        stop: Stop | None = None,
        **params: Any,
    ) -> Result:
        """Rows of a named query, such as ``case.query("slowest", by="ttft", top=20)``.

        `narrow` chooses and orders rows by the query's own columns.  Raises `UsageError` for a name or parameter that does
        not exist, `QueryError` where it fails, `QueryStopped` when `stop` was pulled.
        """
        query = named_query(name)
        sql = (narrow or Narrow()).at_most(limit).around(query.sql)
        found = self._store.run(sql, query.bind(params), limit=limit, timeout_s=timeout_s, stop=stop)
        _LOG.info("query %s: %s rows", name, f"{len(found.rows):,}")
        return found

    def sql(
        self, text: str, *, limit: int | None = None, timeout_s: float | None = None, stop: Stop | None = None
    ) -> Result:
        """Rows of any SQL that only reads.  It sees the case and nothing else: no files, no network."""
        found = self._store.run(text, limit=limit, timeout_s=timeout_s, stop=stop)
        _LOG.info("sql: %s rows", f"{len(found.rows):,}")
        return found

    def check(
        self,
        *,
        set: Mapping[str, Any] | None = None,  # noqa: A002 - the option's name
        rules: Sequence[str | Path] = (),
        run: str = "",
        stop: Stop | None = None,
    ) -> Check:
        """Run the rules: ``case.check(set={"RULE.PARAM": 0.9}).verdict``.

        `set` maps ``RULE.PARAM`` to a value, `rules` are folders with further rules, `run` is one run of the case.
        Raises `UsageError` for a parameter or a run that does not exist, `RuleError` for a rule that cannot be read;
        a rule that fails is an outcome.
        """
        return run_rules(self._store, rulebook(*(Path(folder) for folder in rules)), set, run=run, stop=stop)

    def close(self) -> None:
        """Close the case."""
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
