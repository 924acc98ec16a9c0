"""The queries that only the screens have, against plain arithmetic over the facts."""

from __future__ import annotations

import json
import statistics
from collections import Counter
from collections.abc import Iterator

import pytest

import tracelens
from tracelens import resources
from tracelens.case import Case

WORST = "chatcmpl-b_queue_dominated-1bea85931a95"


@pytest.fixture(scope="module")
def case(demo_path) -> Iterator[Case]:
    with tracelens.open(demo_path) as one:
        yield one


@pytest.fixture(scope="module")
def sent() -> list[dict]:
    """The client's own file."""
    text = (resources.demo_incident() / "client.jsonl").read_text()
    return [json.loads(line) for line in text.splitlines()]


def ttft(row: dict) -> float:
    return row["first_content_at"] - row["sent_at"]


@pytest.mark.parametrize("by", ["ttft", "e2e"])
def test_the_map_is_made_of_the_stages_of_single_requests(case, by) -> None:
    measure = {"ttft": "client_ttft_s", "e2e": "client_e2e_s"}[by]
    whole = dict(case.sql(f"SELECT request_id, {measure} FROM request").rows)
    slow = {name for name, length in whole.items() if length >= max(whole.values())}
    stages = [row for row in case.sql("SELECT * FROM request_stage").dicts() if row["request_id"] in slow]
    found = {
        row["stage"]: row for row in case.query("latency_map", by=by).dicts() if row["slice"] == "slowest"
    }
    assert sum(row["mean_s"] or 0 for row in found.values()) == pytest.approx(
        next(iter(found.values()))["slice_mean_s"], abs=1e-6
    )
    for stage, row in found.items():
        lengths = [one["duration_s"] for one in stages if one["stage"] == stage]
        known = [length for length in lengths if length is not None]
        assert row["known_count"] == len(known)
        assert row["mean_s"] == (pytest.approx(sum(known) / len(slow)) if known else None)
        assert (
            row["provenance"]
            == Counter(one["provenance"] for one in stages if one["stage"] == stage).most_common(1)[0][0]
        )


def test_the_rank_is_that_of_the_clients_own_stamps(case, sent) -> None:
    wanted = [row["response_id"] for row in sorted(sent, key=ttft, reverse=True)]
    first = case.query("request_rank").dicts()[0]
    assert (first["request_id"], first["place"], first["known_count"]) == (WORST, 1, 96)
    assert first["worse_id"] is None
    assert first["better_id"] == wanted[1]
    third = case.query("request_rank", request=wanted[2]).dicts()[0]
    assert (third["place"], third["worse_id"], third["better_id"]) == (3, wanted[1], wanted[3])


def test_peers_have_prompts_of_a_similar_length(case, sent) -> None:
    mine = next(row for row in sent if row["response_id"] == WORST)
    low, high = 0.8 * mine["prompt_tokens"], 1.25 * mine["prompt_tokens"]
    alike = [row for row in sent if low <= row["prompt_tokens"] <= high and row is not mine]
    peers = {row["stage"]: row for row in case.query("request_peers", request=WORST).dicts()}
    assert peers["ttft"]["peer_count"] == len(alike) == 38
    assert peers["ttft"]["median_s"] == pytest.approx(statistics.median(map(ttft, alike)), abs=1e-6)
    assert peers["ttft"]["own_s"] == pytest.approx(ttft(mine), abs=1e-6)
    assert peers["ttft"]["excess_s"] == pytest.approx(peers["ttft"]["own_s"] - peers["ttft"]["median_s"])


def test_batch_mates_are_those_whose_time_on_the_server_touches_its_own(case) -> None:
    spans = {
        row["request_id"]: (row["arrival_ts"].timestamp(), row["arrival_ts"].timestamp() + row["e2e_s"])
        for row in case.sql("SELECT request_id, arrival_ts, e2e_s FROM request").dicts()
    }
    start, end = spans[WORST]
    wanted = {name for name, (begin, stop) in spans.items() if begin < end and stop > start and name != WORST}
    mates = case.query("request_batch", request=WORST, top=1000).dicts()
    assert {row["request_id"] for row in mates} == wanted
    assert {row["excess_stage"] for row in mates} == {"wait"}
    # Two seats: at any moment of its wait two others are served.
    assert sum(row["excess_ratio"] for row in mates) == pytest.approx(2, abs=0.2)


def test_a_clients_clock_does_not_tell_who_was_in_prefill(two_path) -> None:
    with tracelens.open(two_path) as client_only:
        mates = client_only.query("request_batch", request=WORST, run="before", top=1000).dicts()
    assert mates
    assert {(row["scheduled_s"], row["prefill_ratio"]) for row in mates} == {(None, None)}


def test_the_list_says_how_much_of_the_run_is_not_slower(case, sent) -> None:
    rows = {row["request_id"]: row for row in case.query("request_list").dicts()}
    lengths = [ttft(row) for row in sent]
    for row in sent[:20]:
        share = sum(length <= ttft(row) for length in lengths) / len(lengths)
        assert rows[row["response_id"]]["ttft_percentile_ratio"] == pytest.approx(share)


def test_stalls_are_long_for_their_stream_and_for_people(case, sent) -> None:
    chunks = case.query("request_chunks", request=WORST).dicts()
    assert not any(row["is_stall"] for row in chunks)
    gaps = [row["gap_s"] for row in chunks if row["gap_s"] is not None]
    assert chunks[0]["longest_gap_s"] == max(gaps)
    assert chunks[0]["median_gap_s"] == pytest.approx(statistics.median(gaps))


def test_the_span_counts_requests_as_the_client_does(case, sent) -> None:
    row = case.query("run_span").dicts()[0]
    assert row["request_count"] == row["ok_count"] == len(sent)
    assert row["ttft_within_1s_ratio"] == pytest.approx(sum(ttft(one) <= 1 for one in sent) / len(sent))
