"""What the screens ask for beyond a plain query: to be stopped, to be narrowed, to be paged."""

from __future__ import annotations

import csv
import io
import threading
import time
from typing import TYPE_CHECKING

import pytest

import tracelens
from tracelens.errors import QueryError, QueryStopped
from tracelens.store import Narrow, Stop

if TYPE_CHECKING:
    from pathlib import Path

ENDLESS = "SELECT count(*) FROM range(1000000) AS a(x), range(1000000) AS b(y) WHERE hash(x, y) = 3"


def test_a_query_is_stopped_from_another_thread(case: Path) -> None:
    stop = Stop()
    with tracelens.open(case) as one:
        begun = time.monotonic()
        threading.Timer(0.2, stop.pull).start()
        with pytest.raises(QueryStopped):
            one.sql(ENDLESS, stop=stop)
        assert time.monotonic() - begun < 5
        assert one.sql("SELECT 1").rows == [(1,)]


def test_what_was_stopped_before_does_not_begin(case: Path) -> None:
    stop = Stop()
    stop.pull()
    with tracelens.open(case) as one, pytest.raises(QueryStopped):
        one.check(stop=stop)


def test_a_query_is_narrowed_by_its_own_columns(case: Path) -> None:
    with tracelens.open(case) as one:
        known = [row for row in one.query("requests").dicts() if row["queue_s"] is not None]
        wanted = sorted((row["queue_s"] for row in known), reverse=True)[1:3]
        narrow = Narrow("queue_s IS NOT NULL -- a comment", "queue_s DESC", limit=2, offset=1)
        assert [row["queue_s"] for row in one.query("requests", narrow=narrow).dicts()] == wanted
        assert one.query("requests", narrow=Narrow(count_only=True)).rows == [(10,)]


def test_where_and_order_of_the_command(run) -> None:
    text = run("query", "request_list", "--where", "queue_s > 0", "--order", "queue_s ASC").stdout
    queues = [float(row["queue_s"]) for row in csv.DictReader(io.StringIO(text))]
    assert queues
    assert queues == sorted(queues)
    assert run("query", "request_list", "--where", "nothing > 0").exit_code == 3


def test_a_listing_gives_pages_in_order_and_finds_places(case: Path) -> None:
    with tracelens.open(case) as one:
        listing = one.listing()
        listing.fill("SELECT x, x % 7 AS rest FROM range(1000) AS t(x)")
        assert listing.arrange("x < 700", "rest DESC, x") == 700
        assert listing.page(98, 4).rows == [(692, 6), (699, 6), (5, 5), (12, 5)]
        assert listing.place_of("rest = 5") == 100
        assert listing.place_of("rest = 9") is None
        with pytest.raises(QueryError):
            listing.arrange("no_such_column = 1")
        assert listing.page(0, 1).rows == [(6, 6)]
        listing.close()
