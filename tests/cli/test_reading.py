"""What the screens ask for beyond a plain query: to be stopped, to be narrowed, to be paged."""

from __future__ import annotations

import csv
import io
import threading
import time
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

import tracelens
from tracelens.errors import QueryError, QueryStopped
from tracelens.store import Narrow, Stop
from tracelens.tui.listed import Requests

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


def test_pages_of_requests_follow_one_another_from_either_end(case: Path) -> None:
    with tracelens.open(case) as one:
        listed = Requests(one, "", "output_tokens > 0", "output_tokens DESC")
        wanted = sorted(
            (row for row in one.query("request_list").dicts() if (row["output_tokens"] or 0) > 0),
            key=lambda row: (-row["output_tokens"], row["id_hash"]),
        )
        first = listed.first(3, Stop())
        assert first.count == len(wanted) > 6
        assert first.rows == wanted[:3]
        for offset in range(len(wanted)):
            assert listed.page(offset, 3, first.count, Stop()).rows == wanted[offset : offset + 3]
        with pytest.raises(QueryError):
            replace(listed, where="no_such_column = 1").first(3, Stop())
        ratios = [row["ttft_percentile_ratio"] for row in one.query("request_list").dicts()]
        place = replace(listed, where="", order="ttft_s DESC").place_at(0.5, Stop())
        assert place == next(at for at, ratio in enumerate(ratios) if ratio is not None and ratio <= 0.5)


@pytest.mark.parametrize(
    "order", ["ttft_s DESC", "tpot_s ASC", "status DESC", "arrival_ts ASC", "label DESC"]
)
def test_a_page_from_the_middle_is_that_of_the_whole_list(case: Path, monkeypatch, order: str) -> None:
    """With ties, with rows that have no value, and with a comment in the filter."""
    monkeypatch.setattr("tracelens.tui.listed._DEEP", 0)
    with tracelens.open(case) as one:
        for where in ("", "input_tokens > 0 -- all"):
            listed = Requests(one, "", where, order)
            whole = one.query("request_list", narrow=listed.narrow).dicts()
            for offset in range(len(whole) + 1):
                assert listed.page(offset, 3, len(whole), Stop()).rows == whole[offset : offset + 3]


def test_every_measure_of_a_run_is_kept(case: Path) -> None:
    with tracelens.open(case) as one:
        kept = one.sql("SELECT measure FROM _run_measure_row ORDER BY ALL").rows
        assert kept == one.sql("SELECT unnest(_run_measures()) AS measure ORDER BY ALL").rows


def test_one_request_is_laid_beside_the_others_as_a_plain_reading_of_all_of_them_says(case: Path) -> None:
    with tracelens.open(case) as one:
        rows = [row for row in one.query("requests").dicts() if row["arrival_basis"] == "span"]
        me = max(rows, key=lambda row: row["e2e_s"])
        begin, end = me["arrival_ts"], me["arrival_ts"] + timedelta(seconds=me["e2e_s"])
        beside = [
            row["request_id"]
            for row in rows
            if row is not me
            and row["arrival_ts"] < end
            and row["arrival_ts"] + timedelta(seconds=row["e2e_s"]) > begin
        ]
        assert beside
        (company,) = one.query("request_company", request=me["request_id"]).dicts()
        assert company["overlapping_count"] == len(beside)
        found = one.query("request_neighbours", request=me["request_id"], top=1000).dicts()
        assert sorted(row["request_id"] for row in found) == sorted(beside)


def test_a_request_stands_in_its_run_where_the_list_says(case: Path) -> None:
    with tracelens.open(case) as one:
        for row in one.query("request_list").dicts():
            (facts,) = one.query("request_facts", request=row["request_id"]).dicts()
            assert facts["ttft_percentile_ratio"] == row["ttft_percentile_ratio"]


def test_the_first_rows_of_a_query_are_those_that_it_begins_with(case: Path) -> None:
    with tracelens.open(case) as one:
        for name in ("requests", "request_list", "slowest"):
            rows = one.query(name).rows
            found = one.query(name, limit=3)
            assert (found.rows, found.truncated) == (rows[:3], True)
            assert not one.query(name, limit=len(rows)).truncated
