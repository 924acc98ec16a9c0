"""What sets the slowest requests apart, against rank statistics in plain Python."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from datetime import datetime, timedelta
from statistics import median
from typing import Any

import pytest

from tracelens.given import fill
from tracelens.named import named_query
from tracelens.store import MemoryCase

ZERO = datetime(2026, 1, 5, 12, 0, 0)
Row = dict[str, Any]


@pytest.fixture(scope="module")
def memory() -> MemoryCase:
    return MemoryCase()


def made(count: int, ttft_of: Any, seed: int = 7) -> list[Row]:
    """Requests of one run, 10 a second; `ttft_of` gives a TTFT from the request's traits and a random source."""
    chance = random.Random(seed)
    rows = []
    for place in range(count):
        row: Row = {
            "run_id": "default",
            "request_id": f"r{place}",
            "arrival_ts": ZERO + timedelta(seconds=place * 0.1),
            "end_status": "ok",
            "input_tokens": chance.choice([100, 200, 300, 400, 4000]),
            "output_tokens": chance.randint(10, 200),
            "label": chance.choice(["chat", "batch", "agent"]),
        }
        row["ttft_s"] = ttft_of(row, chance)
        rows.append(row)
    return rows


def factors(memory: MemoryCase, rows: Sequence[Row], **given: list[Row]) -> list[Row]:
    with memory.trial():
        fill(memory, {"request": list(rows), **given})
        query = named_query("tail_factors")
        return memory.run(query.sql, query.bind({})).dicts()


def claimed(found: Sequence[Row]) -> list[tuple[str, str | None]]:
    return [(row["factor"], row["level"]) for row in found if row["is_claimed"]]


# The statistics once more, by definition -------------------------------------------------------------------------------


def delta(slow: Sequence[float], others: Sequence[float]) -> float:
    wins = sum((a > b) - (a < b) for a in slow for b in others)
    return wins / (len(slow) * len(others))


def p_value(slow: Sequence[float], others: Sequence[float]) -> float:
    """Mann and Whitney's test: normal approximation, ties and continuity corrected."""
    both = [*slow, *others]
    n, m, total = len(slow), len(others), len(both)
    u = sum((a > b) + (a == b) / 2 for a in slow for b in others)
    ties = sum(both.count(value) ** 3 - both.count(value) for value in set(both))
    error = math.sqrt(n * m / 12 * (total + 1 - ties / (total * (total - 1))))
    z = max(abs(u - n * m / 2) - 0.5, 0) / error
    return math.erfc(z / math.sqrt(2))


def holm(values: Sequence[float]) -> list[float]:
    order = sorted(range(len(values)), key=lambda place: values[place])
    corrected, least = [0.0] * len(values), 0.0
    for rank, place in enumerate(order):
        least = max(least, min(1.0, values[place] * (len(values) - rank)))
        corrected[place] = least
    return corrected


def slow_and_others(rows: Sequence[Row], threshold: float, key: Any) -> tuple[list[float], list[float]]:
    return (
        [float(key(row)) for row in rows if row["ttft_s"] >= threshold],
        [float(key(row)) for row in rows if row["ttft_s"] < threshold],
    )


def test_effect_and_corrected_p_are_those_of_the_textbook(memory: MemoryCase) -> None:
    rows = made(200, lambda row, chance: 0.1 + row["input_tokens"] / 4000 * chance.random() + chance.random())
    found = factors(memory, rows)
    threshold = found[0]["threshold_s"]
    keys = {
        ("input_tokens", None): lambda row: row["input_tokens"],
        ("output_tokens", None): lambda row: row["output_tokens"],
        ("client", "agent"): lambda row: row["label"] == "agent",
        ("client", "chat"): lambda row: row["label"] == "chat",
        ("client", "batch"): lambda row: row["label"] == "batch",
        ("since_start_s", None): lambda row: (row["arrival_ts"] - ZERO).total_seconds(),
    }
    by_factor = {(row["factor"], row["level"]): row for row in found}
    for name, key in keys.items():
        slow, others = slow_and_others(rows, threshold, key)
        got = by_factor[name]
        assert (got["slow_count"], got["other_count"]) == (len(slow), len(others)) == (20, 180)
        assert got["effect"] == pytest.approx(delta(slow, others)), name
        assert got["p"] == pytest.approx(p_value(slow, others), rel=1e-5), name
    compared = [row for row in found if row["p"] is not None]
    assert all(row["compared_count"] == len(compared) for row in found)
    assert [row["p_corrected"] for row in compared] == pytest.approx(holm([row["p"] for row in compared]))


def test_long_prompts_are_found_first_where_they_are_the_slow_ones(memory: MemoryCase) -> None:
    rows = made(
        120, lambda row, chance: row["input_tokens"] / 1000 + chance.random() / 10 + (place_of(row) % 3) / 50
    )
    found = factors(memory, rows)
    assert claimed(found)[0] == ("input_tokens", None)
    assert (
        found[0]["words"] == "prompt length: median 4,000 tokens of the slow ones, 300 tokens of the others"
    )


def place_of(row: Row) -> int:
    return int(row["request_id"][1:])


def test_one_engine_is_found_where_the_slow_ones_are_its(memory: MemoryCase) -> None:
    def ttft(row: Row, chance: random.Random) -> float:
        return (5.0 if place_of(row) % 10 == 0 else 0.2) + chance.random() / 10

    rows = made(200, ttft)
    for row in rows:
        row |= {"server_source_id": 1, "server_line_no": place_of(row) + 1}
    engines = [
        {
            "request_id": row["request_id"],
            "line_no": row["server_line_no"],
            "service": "engine-b" if place_of(row) % 10 == 0 else f"engine-{'ac'[place_of(row) % 2]}",
        }
        for row in rows
    ]
    found = factors(memory, rows, server_request=engines)
    assert claimed(found)[0] == ("engine", "engine-b")
    assert found[0]["words"] == "engine engine-b: 100 % of the slow ones, 0 % of the others"
    assert not {"input_tokens", "output_tokens", "client"} & {factor for factor, _ in claimed(found)}


@pytest.mark.parametrize("seed", range(5))
def test_nothing_is_claimed_where_chance_alone_makes_requests_slow(memory: MemoryCase, seed: int) -> None:
    found = factors(memory, made(300, lambda _row, chance: chance.expovariate(1.0), seed))
    # What is in line when a request comes depends on how long others stay, and nothing here on the line.
    assert claimed(found) == []
    assert all(row["p_corrected"] is None or row["p_corrected"] > 0.01 for row in found)


def test_fewer_than_thirty_requests_claim_nothing(memory: MemoryCase) -> None:
    found = factors(memory, made(29, lambda row, _chance: row["input_tokens"] / 1000 + place_of(row) / 1e4))
    assert claimed(found) == []
    assert all(row["p"] is None for row in found)


def test_batch_mates_are_counted_over_the_same_time_for_all(memory: MemoryCase) -> None:
    """Every eighth request meets a prefill of 6000 tokens that began just before it; it waits for that and no other does."""
    rows: list[Row] = []
    for place in range(100):
        arrival = ZERO + timedelta(seconds=place * 10)
        meets = place % 8 == 0
        ttft = 5.0 + place / 1000 if meets else 0.1
        rows.append(
            {
                "run_id": "default", "request_id": f"r{place}", "arrival_ts": arrival, "ttft_s": ttft,
                "prefill_s": 0.1, "input_tokens": 100,
            }
        )  # fmt: skip
    rows += [
        {
            "run_id": "default", "request_id": f"long{place}", "arrival_ts": ZERO + timedelta(seconds=place * 10 - 0.5),
            "ttft_s": 0.8, "prefill_s": 0.8, "input_tokens": 6000,
        }
        for place in range(0, 100, 8)
    ]  # fmt: skip
    found = {(row["factor"], row["level"]): row for row in factors(memory, rows)}
    mates = found["mates_prefill_tokens", None]
    assert mates["is_claimed"]
    assert mates["slow_middle"] == 6000
    # Its own prompt is not counted, and the others meet nobody.
    assert mates["other_middle"] == 0


def test_a_request_is_told_what_sets_it_apart(memory: MemoryCase) -> None:
    rows = made(120, lambda row, _chance: row["input_tokens"] / 1000 + place_of(row) / 1e4)
    slowest = max(rows, key=lambda row: row["ttft_s"])
    fastest = min(rows, key=lambda row: row["ttft_s"])
    query = named_query("request_apart")
    with memory.trial():
        fill(memory, {"request": rows})
        slow = memory.run(query.sql, query.bind({"request": slowest["request_id"]})).dicts()
        fast = memory.run(query.sql, query.bind({"request": fastest["request_id"]})).dicts()
    assert slow[0]["is_slow"] is True
    assert slow[0]["factor"] == "input_tokens"
    middle = median(row["input_tokens"] for row in rows if row["ttft_s"] < slow[0]["threshold_s"])
    assert slow[0]["sentence"].endswith(
        f"; what sets it apart: prompt length 4,000 tokens (median of the others {middle:.0f} tokens)"
    )
    assert fast[0]["is_slow"] is False
    assert "is not among the slowest tenth" in fast[0]["sentence"]
