"""A query narrowed: only the rows that an expression chooses, in an order, a page of them."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Final

_ORDER: Final = re.compile(r"\nORDER BY [^\n]*\Z")
"""The order of a named query, where nothing follows it: another order would be made of rows in order, at their full width."""


@dataclass(frozen=True, slots=True)
class Narrow:
    """Which rows of a query: `where` is an SQL expression over its columns, `order` a list as after ORDER BY.

    Empty texts mean all rows in the query's own order.  `count_only` asks for one row with ``row_count``, `column` for that one only.
    """

    where: str = ""
    order: str = ""
    limit: int | None = None
    offset: int = 0
    count_only: bool = False
    column: str = "*"

    def around(self, sql: str) -> str:
        """The SQL that gives these rows of a query.  What is in it is a user's own SQL: only the store's guards hold it."""
        if self == Narrow():
            return sql
        what = "count(*) AS row_count" if self.count_only else self.column
        inner = sql.rstrip().rstrip(";")
        if self.order or self.count_only:
            inner = _ORDER.sub("", inner)
        parts = [f"SELECT {what} FROM (", inner, ")"]  # noqa: S608
        parts += [f"WHERE (\n{self.where}\n)"] if self.where else []
        parts += [f"ORDER BY {self.order}"] if self.order and not self.count_only else []
        parts += [f"LIMIT {self.limit:d} OFFSET {self.offset:d}"] if self.limit is not None else []
        return "\n".join(parts)

    def at_most(self, limit: int | None) -> Narrow:
        """The same, but where no page is asked for only so many rows, and one more that shows that there are others."""
        return self if limit is None or self.limit is not None else replace(self, limit=limit + 1)

    def whole(self) -> Narrow:
        """The same rows in the same order, not only a page of them."""
        return replace(self, limit=None, offset=0, count_only=False)
