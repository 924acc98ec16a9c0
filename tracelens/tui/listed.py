"""The requests of a run, chosen and ordered: how many there are, and any page of them.

A page is a question of its own, so that no row is held that is not in view.  The first and the last pages are found without
putting all requests in order.  For one in the middle only the column is put in order: what is before the value that stands
there is counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from tracelens.store import Narrow, Stop

if TYPE_CHECKING:
    from tracelens.case import Case

QUERY = "request_list"
"""The named query that is listed."""
_DEEP: Final = 50_000
"""Rows before and behind a page, from which on it is one in the middle."""


@dataclass(frozen=True, slots=True)
class Page:
    """Rows from a place on, and how many rows there are to choose from."""

    offset: int
    rows: list[dict[str, Any]]
    count: int


@dataclass(frozen=True, slots=True)
class Requests:
    """Requests of one run that an expression is true of, by a column and its way (``ttft_s DESC``), equal ones by the hashes of their ids."""

    case: Case
    run: str
    where: str
    order: str

    @property
    def narrow(self) -> Narrow:
        """All of them, in order."""
        return Narrow(self.where, f"{self.order} NULLS LAST, id_hash ASC")

    def first(self, limit: int, stop: Stop) -> Page:
        """The first of them, and how many there are; raises `QueryError` for an expression that cannot be read."""
        return self.page(0, limit, self._count(self.where, stop), stop)

    def page(self, offset: int, limit: int, count: int, stop: Stop) -> Page:
        """`limit` of `count` rows; from the end backwards where that is nearer."""
        limit = max(min(limit, count - offset), 0)
        after = count - offset - limit
        name, way = self.order.split()
        if limit and min(offset, after) >= _DEEP:
            return Page(offset, self._deep_rows(name, way, offset, limit, stop), count)
        if after >= offset:
            return Page(offset, self._rows(self.narrow.order, offset, limit, stop), count)
        backwards = f"{name} {'ASC' if way == 'DESC' else 'DESC'} NULLS FIRST, id_hash DESC"
        return Page(offset, self._rows(backwards, after, limit, stop)[::-1], count)

    def _deep_rows(self, name: str, way: str, offset: int, limit: int, stop: Stop) -> list[dict[str, Any]]:
        there = Narrow(self.where, f"{name} {way} NULLS LAST", limit, offset, column=name)
        values = [value for (value,) in self.case.query(QUERY, narrow=there, stop=stop, run=self.run).rows]
        ahead, back = (">", ">=") if way == "DESC" else ("<", "<=")
        before, until = f"{name} IS NOT NULL", "TRUE"
        if values[0] is not None:
            before = f"coalesce({name} {ahead} {_quoted(values[0])}, FALSE)"
        if values[-1] is not None:
            until = f"{name} {back} {_quoted(values[-1])}"
        offset -= self._count(self._and(before), stop)
        return self._rows(self.narrow.order, offset, limit, stop, self._and(f"NOT {before} AND {until}"))

    def place_at(self, ratio: float, stop: Stop) -> int | None:
        """The place, the slowest first, of the first request that is among the faster ones up to a percentile; None where none is."""
        if not self._count(self._and(f"ttft_percentile_ratio <= {ratio!r}"), stop):
            return None
        return self._count(self._and(f"ttft_percentile_ratio > {ratio!r}"), stop)

    def _and(self, condition: str) -> str:
        return f"(\n{self.where}\n) AND ({condition})" if self.where else condition

    def _count(self, where: str, stop: Stop) -> int:
        narrow = Narrow(where, count_only=True)
        return int(self.case.query(QUERY, narrow=narrow, stop=stop, run=self.run).rows[0][0])

    def _rows(
        self, order: str, offset: int, limit: int, stop: Stop, where: str | None = None
    ) -> list[dict[str, Any]]:
        narrow = Narrow(self.where if where is None else where, order, limit, offset)
        return self.case.query(QUERY, narrow=narrow, stop=stop, run=self.run).dicts()


def _quoted(value: object) -> str:
    """A value of a column as SQL text, which is read as what the column is."""
    return "'" + str(value).replace("'", "''") + "'"
