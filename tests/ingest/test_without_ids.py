"""Client files without ids that the server knows: matched where lengths and times leave one choice, else not at all."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tracelens.given import fill
from tracelens.ingestion import ingest
from tracelens.store import MemoryCase

Rows = Callable[[Path, str], list[dict[str, Any]]]
DATA = Path(__file__).parent / "data" / "without_ids"
START = datetime(2026, 11, 29, 10)
LINKS = "SELECT line_no, request_id, basis FROM client_link ORDER BY line_no"
MATCH = "SELECT * FROM client_match"
SOURCES = [{"source_id": 1, "side": "server"}, {"source_id": 3, "side": "client"}]


@pytest.fixture(scope="module")
def memory() -> MemoryCase:
    return MemoryCase()


def true_links() -> dict[int, str]:
    return dict(enumerate(json.loads((DATA / "links.json").read_text()), start=1))


def test_a_recording_without_ids_is_matched_as_it_was_and_no_link_is_wrong(case: Path, rows_of: Rows) -> None:
    ingest([str(DATA / "client.jsonl"), str(DATA / "otel_spans.jsonl")], case)
    links = rows_of(case, LINKS)
    truth = true_links()
    assert [link for link in links if truth[link["line_no"]] != link["request_id"]] == []
    assert len(links) >= 0.9 * len(truth)
    assert {link["basis"] for link in links} == {"lengths and times"}
    (match,) = rows_of(case, MATCH)
    assert match["linked_count"] == len(links)
    assert match["low_s"] <= 0.0 <= match["high_s"]
    (found,) = rows_of(
        case,
        "SELECT count(DISTINCT provenance) AS kinds, any_value(provenance) AS provenance FROM request_stage "
        "WHERE stage = 'queue' AND duration_s IS NOT NULL",
    )
    assert found == {"kinds": 1, "provenance": "derived"}


@pytest.mark.parametrize("zero_s", [1_795_900_000, 1_795_956_000])
def test_a_clock_without_a_zero_is_matched_and_placed(
    case: Path, tmp_path: Path, rows_of: Rows, zero_s: int
) -> None:
    lines = [json.loads(line) for line in (DATA / "client.jsonl").read_text().splitlines()]
    shifted = [
        {key: value - zero_s if key.endswith("_at") and value else value for key, value in line.items()}
        for line in lines
    ]
    (tmp_path / "client.jsonl").write_text("".join(json.dumps(line) + "\n" for line in shifted))
    ingest([str(tmp_path / "client.jsonl"), str(DATA / "otel_spans.jsonl")], case)
    assert {row["line_no"]: row["request_id"] for row in rows_of(case, LINKS)}.items() <= true_links().items()
    placed = rows_of(
        case,
        "SELECT line_no, epoch(client_sent_ts) AS sent_s, time_basis FROM client_request "
        "JOIN source USING (source_id) ORDER BY line_no",
    )
    assert [row["sent_s"] for row in placed] == pytest.approx([line["sent_at"] for line in lines], abs=0.01)
    assert "placed by" in placed[0]["time_basis"]


def test_requests_that_the_spans_lack_are_not_matched_to_others(
    case: Path, tmp_path: Path, rows_of: Rows
) -> None:
    spans = (DATA / "otel_spans.jsonl").read_text().splitlines()
    kept = [line for number, line in enumerate(spans) if number % 3]
    (tmp_path / "otel_spans.jsonl").write_text("\n".join(kept) + "\n")
    ingest([str(DATA / "client.jsonl"), str(tmp_path / "otel_spans.jsonl")], case)
    links = {row["line_no"]: row["request_id"] for row in rows_of(case, LINKS)}
    assert 0 < len(links) < len(true_links())
    assert links.items() <= true_links().items()


def test_ids_that_come_later_take_the_place_of_what_was_matched(
    case: Path, tmp_path: Path, rows_of: Rows
) -> None:
    ingest([str(DATA / "client.jsonl"), str(DATA / "otel_spans.jsonl")], case)
    lines = [json.loads(line) for line in (DATA / "client.jsonl").read_text().splitlines()]
    named = [{"response_id": true_links()[number], **line} for number, line in enumerate(lines, start=1)]
    (tmp_path / "named.jsonl").write_text("".join(json.dumps(line) + "\n" for line in named))
    ingest([str(tmp_path / "named.jsonl")], case)
    assert {row["basis"] for row in rows_of(case, LINKS)} == {"response id"}
    (left,) = rows_of(
        case, "SELECT count(*) AS n FROM client_request WHERE source_id = 1 AND request_id IS NOT NULL"
    )
    assert left["n"] == 0


def alike(memory: MemoryCase, gap_s: float, lengths: Callable[[int], int], count: int = 40) -> dict[str, Any]:
    """Links and verdict of requests sent `gap_s` apart, answered 1 s later, two clocks 3.2 s apart."""
    clients, servers = [], []
    for number in range(count):
        sent = START + timedelta(seconds=gap_s * number)
        tokens = {"input_tokens": lengths(number), "output_tokens": 128}
        clients.append(
            {
                "source_id": 3,
                "client_sent_ts": sent,
                "client_ttft_s": 0.5,
                "client_e2e_s": 1.0,
                "streamed": True,
                "status": "ok",
                **tokens,
            }
        )
        arrival = sent + timedelta(seconds=3.2 + 0.01)
        servers.append(
            {"request_id": f"r{number}", "arrival_ts": arrival, "ttft_s": 0.47, "e2e_s": 0.97, **tokens}
        )
    random.Random(1).shuffle(servers)
    with memory.trial():
        fill(memory, {"source": SOURCES, "client_request": clients, "server_request": servers}, join=True)
        links = memory.run(LINKS).dicts()
        (match,) = memory.run(MATCH).dicts()
    return {"links": {link["line_no"]: link["request_id"] for link in links}, **match}


def test_identical_lengths_closely_spaced_are_not_matched_and_it_says_why(memory: MemoryCase) -> None:
    found = alike(memory, 0.05, lambda _: 512)
    assert found["links"] == {}
    assert found["verdict"].startswith("not matched: no id that the server knows")
    assert "requests of too few lengths" in found["verdict"]


def test_lengths_that_come_again_in_the_same_order_leave_two_differences_and_no_link(
    memory: MemoryCase,
) -> None:
    found = alike(memory, 5.0, lambda number: 100 + number % 4, count=20)
    assert found["links"] == {}
    assert "a clock difference of" in found["verdict"]
    assert (found["agreeing_count"], found["rival_count"]) == (20, 16)


def test_different_lengths_are_matched_though_the_clocks_differ(memory: MemoryCase) -> None:
    found = alike(memory, 0.05, lambda number: 100 + number)
    assert found["links"] == {number + 1: f"r{number}" for number in range(40)}
    assert found["low_s"] <= 3.2 <= found["high_s"]


def test_of_requests_alike_only_those_apart_in_time_are_matched(memory: MemoryCase) -> None:
    found = alike(memory, 0.004, lambda number: 900 if number in (7, 9) else 100 + number)
    assert found["links"] == {number + 1: f"r{number}" for number in range(40) if number not in (7, 9)}
    apart = alike(memory, 2.0, lambda number: 900 if number in (7, 9) else 100 + number)
    assert len(apart["links"]) == 40
