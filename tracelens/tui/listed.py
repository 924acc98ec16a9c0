"""The requests of the run that is looked at, kept so that pages of them come at once."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tracelens.named import named_query
from tracelens.store import Listing, Result, Stop

if TYPE_CHECKING:
    from tracelens.case import Case

QUERY = "request_list"
"""The named query that is listed."""


@dataclass(frozen=True, slots=True)
class Page:
    """A page of rows, and how many rows are chosen; `count` is None where that did not change."""

    offset: int
    rows: Result
    count: int | None = None


class Requests:
    """One listing for all screens of requests; it is filled anew for another run."""

    def __init__(self, case: Case) -> None:
        self._case = case
        self._listing: Listing | None = None
        self._run: str | None = None
        self._arranged: tuple[str, str] | None = None
        self._lock = threading.RLock()

    def arranged(self, run: str, where: str, order: str, limit: int, stop: Stop) -> Page:
        """Choose and order the requests of a run, and give the first of them.  Runs in a thread."""
        with self._lock:
            listing = self._filled(run, stop)
            self._arranged = None
            count = listing.arrange(where, order, stop)
            self._arranged = (where, order)
            return Page(0, listing.page(0, limit, stop), count)

    def page(self, run: str, where: str, order: str, span: tuple[int, int], stop: Stop) -> Page:
        """A page: offset and number of rows.  Arranges them anew where another screen did otherwise meanwhile."""
        with self._lock:
            listing = self._filled(run, stop)
            if self._arranged != (where, order):
                listing.arrange(where, order, stop)
                self._arranged = (where, order)
            return Page(span[0], listing.page(*span, stop))

    def place_of(self, expression: str, stop: Stop) -> int | None:
        """The first place, as they are arranged, of a request that an expression is true of."""
        with self._lock:
            return None if self._listing is None else self._listing.place_of(expression, stop)

    def _filled(self, run: str, stop: Stop) -> Listing:
        if self._listing is None:
            self._listing = self._case.listing()
        if self._run != run:
            self._run = None
            query = named_query(QUERY)
            self._listing.fill(query.sql, query.bind({"run": run}), stop)
            self._run = run
        return self._listing
