"""The time line of a run: stats lines every ten seconds, and scrapes that saw what happened between them."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from tracelens.given import fill
from tracelens.named import named_query
from tracelens.store import MemoryCase

START = datetime(2026, 11, 29, 10)
DRAINING = (8, 6, 4, 2, 0)
"""Requests that wait at each scrape: two seconds apart, from the start on."""


def sample(source: int, at_s: float, waiting: int, **more: Any) -> dict[str, Any]:
    return {
        "source_id": source, "line_no": int(at_s) + 1, "sample_ts": START + timedelta(seconds=at_s), "running_count": 2,
        "waiting_count": waiting, "generation_tps": 50.0, **more,
    }  # fmt: skip


def lanes(samples: list[dict[str, Any]], scraped: list[int]) -> list[dict[str, Any]]:
    asked = named_query("lanes")
    memory = MemoryCase()
    with memory.trial():
        fill(memory, {
            "engine_sample": samples,
            "metric_sample": [{"source_id": source, "scrape_index": 1} for source in scraped],
            "server_setting": [{"source_id": 1, "key": "max_num_seqs", "value": "2", "basis": "stated"}],
            "request_event": [
                {"source_id": 1, "request_id": "r", "event": "received", "event_ts": START},
                {"source_id": 1, "request_id": "r", "event": "finished", "event_ts": START + timedelta(seconds=10)},
            ],
        })  # fmt: skip
        return memory.run(asked.sql, asked.bind({"pieces": "60"})).dicts()


STATS = [sample(1, 0, 8), sample(1, 10, 0)]
SCRAPES = [sample(2, 2 * place, waiting) for place, waiting in enumerate(DRAINING)]


def test_between_stats_lines_a_scrape_says_what_waited() -> None:
    found = lanes(STATS + SCRAPES, scraped=[2])
    assert [row["waiting_count"] for row in found[:9]] == [8, 8, 6, 6, 4, 4, 2, 2, 0]
    assert [row["bound_by"] for row in found[:9]] == ["seats"] * 8 + ["none"]


def test_without_scrapes_a_stats_line_speaks_for_the_time_before_it() -> None:
    found = lanes(STATS, scraped=[])
    assert [row["waiting_count"] for row in found[:3]] == [8, 0, 0]


def test_scrapes_without_a_gauge_of_the_cache_leave_it_to_the_lines() -> None:
    stats = [row | {"kv_cache_usage_ratio": 0.984} for row in STATS]
    found = lanes(stats + SCRAPES, scraped=[2])
    assert [row["waiting_count"] for row in found[:9]] == [8, 8, 6, 6, 4, 4, 2, 2, 0]
    assert {row["kv_cache_usage_ratio"] for row in found[1:9]} == {0.984}
