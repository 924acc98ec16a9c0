"""The requests of a run, chosen and ordered: how many there are, and any page of them.

A page is a question of its own, so that no row is held that is not in view.  The first and the last pages are found without
putting all requests in order; one in the middle costs an order of all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tracelens.store import Narrow, Stop

if TYPE_CHECKING:
    from tracelens.case import Case

QUERY = "request_list"
"""The named query that is listed."""


@dataclass(frozen=True, slots=True)
class Page:
    """Rows from a place on, and how many rows there are to choose from."""

    offset: int
    rows: list[dict[str, Any]]
    count: int


@dataclass(frozen=True, slots=True)
class Requests:
    """Requests of one run that an expression is true of, by a column and its way (``ttft_s DESC``), equal ones by their ids."""

    case: Case
    run: str
    where: str
    order: str

    @property
    def narrow(self) -> Narrow:
        """All of them, in order."""
        return Narrow(self.where, f"{self.order} NULLS LAST, request_id ASC")

    def first(self, limit: int, stop: Stop) -> Page:
        """The first of them, and how many there are; raises `QueryError` for an expression that cannot be read."""
        return self.page(0, limit, self._count(self.where, stop), stop)

    def page(self, offset: int, limit: int, count: int, stop: Stop) -> Page:
        """`limit` of `count` rows; from the end backwards where that is nearer."""
        limit = max(min(limit, count - offset), 0)
        after = count - offset - limit
        if after >= offset:
            return Page(offset, self._rows(self.narrow.order, offset, limit, stop), count)
        name, way = self.order.split()
        backwards = f"{name} {'ASC' if way == 'DESC' else 'DESC'} NULLS FIRST, request_id DESC"
        return Page(offset, self._rows(backwards, after, limit, stop)[::-1], count)

    def place_at(self, ratio: float, stop: Stop) -> int | None:
        """The place, the slowest first, of the first request that is among the faster ones up to a percentile; None where none is."""
        chosen = f"({self.where})\nAND " if self.where else ""
        if not self._count(f"{chosen}ttft_percentile_ratio <= {ratio!r}", stop):
            return None
        return self._count(f"{chosen}ttft_percentile_ratio > {ratio!r}", stop)

    def _count(self, where: str, stop: Stop) -> int:
        narrow = Narrow(where, count_only=True)
        return int(self.case.query(QUERY, narrow=narrow, stop=stop, run=self.run).rows[0][0])

    def _rows(self, order: str, offset: int, limit: int, stop: Stop) -> list[dict[str, Any]]:
        narrow = Narrow(self.where, order, limit, offset)
        return self.case.query(QUERY, narrow=narrow, stop=stop, run=self.run).dicts()
