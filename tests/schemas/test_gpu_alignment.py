"""GPU logs of an unknown zone beside running requests, simulated: aligned where activity settles it, else not at all."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest

from tracelens.given import fill
from tracelens.store import MemoryCase

START = datetime(2026, 11, 29, 10)
ASSUMED = "dates as written; zone not in the log, UTC assumed (--gpu-tz to change)"
Load = Callable[[float], float]


@pytest.fixture(scope="module")
def memory() -> MemoryCase:
    return MemoryCase()


def bursts(seed: int, span_s: float) -> Load:
    """Requests running at an instant: bursts of random beginning, length and size."""
    dice = random.Random(seed)
    found = [
        (dice.uniform(0, span_s), dice.uniform(20, 180), dice.randint(4, 40)) for _ in range(int(span_s / 60))
    ]
    return lambda at_s: sum(size for begin, length, size in found if begin <= at_s < begin + length)


def aligned(
    memory: MemoryCase,
    load: Load,
    shift_s: float,
    span_s: float,
    time_basis: str = ASSUMED,
    other: Load | None = None,
    **flat: float,
) -> dict[str, Any]:
    """Row of gpu_alignment: stats lines every 10 s, a GPU row every 2 s whose stamps are `shift_s` behind the server."""
    dice = random.Random(7)
    engine = [
        {"source_id": 2, "sample_ts": START + timedelta(seconds=at_s), "running_count": round(load(at_s))}
        for at_s in range(0, int(span_s), 10)
    ]
    gpu = []
    for at_s in range(0, int(span_s), 2):
        busy = min(1.0, max(0.0, 1 - math.exp(-(other or load)(at_s) / 20) + dice.gauss(0, 0.1)))
        stamp = START + timedelta(seconds=at_s - shift_s)
        gpu.append({"source_id": 6, "gpu_index": 0, "sample_ts": stamp, **({"sm_ratio": busy} | flat)})
    source = {"source_id": 6, "side": "gpu", "clock": "local", "time_basis": time_basis}
    with memory.trial():
        fill(memory, {"source": [source], "engine_sample": engine, "gpu_sample": gpu})
        (row,) = memory.run("SELECT * FROM gpu_alignment").dicts()
        (said,) = memory.run("SELECT low_s, high_s, basis, to_source_id FROM clock_offset").dicts()
    assert (said["low_s"], said["high_s"]) == (row["low_s"], row["high_s"])
    return row | {"basis": said["basis"]}


@pytest.mark.parametrize("shift_s", [0.0, 3600.0, -7213.0, 19800.0 + 40.0])
def test_the_shift_of_a_log_of_half_an_hour_lies_in_the_interval(memory: MemoryCase, shift_s: float) -> None:
    row = aligned(memory, bursts(3, 1800), shift_s, 1800)
    assert row["low_s"] <= shift_s <= row["high_s"]
    assert row["high_s"] - row["low_s"] <= 60
    assert row["correlation"] >= 0.2
    assert row["lead"] >= 0.05
    assert row["basis"] == row["verdict"]
    assert row["verdict"].startswith("aligned by activity")


def test_a_gpu_that_is_always_busy_cannot_be_aligned(memory: MemoryCase) -> None:
    row = aligned(memory, bursts(3, 1800), 3600.0, 1800, sm_ratio=1.0)
    assert (row["low_s"], row["high_s"]) == (None, None)
    assert row["verdict"].startswith("cannot align: the GPUs' activity")
    assert "--gpu-tz" in row["verdict"]


def test_ten_minutes_are_too_short(memory: MemoryCase) -> None:
    row = aligned(memory, bursts(3, 600), 3600.0, 600)
    assert row["low_s"] is None
    assert row["verdict"].startswith("cannot align: fewer than 20 minutes")


def test_a_load_that_repeats_every_quarter_of_an_hour_fits_several_zones(memory: MemoryCase) -> None:
    once = bursts(3, 900)
    row = aligned(memory, lambda at_s: once(at_s % 900), 3600.0, 7200)
    assert row["low_s"] is None
    assert "fit alike" in row["verdict"]


def test_power_is_taken_where_the_gpu_always_says_it_is_busy(memory: MemoryCase) -> None:
    load = bursts(3, 1800)
    dice = random.Random(5)
    engine = [
        {"source_id": 2, "sample_ts": START + timedelta(seconds=at_s), "running_count": round(load(at_s))}
        for at_s in range(0, 1800, 10)
    ]
    gpu = [
        {
            "source_id": 6,
            "gpu_index": 0,
            "sample_ts": START + timedelta(seconds=at_s - 3600),
            "sm_ratio": 1.0,
            "power_w": 100 + 5 * load(at_s) + dice.gauss(0, 10),
        }
        for at_s in range(0, 1800, 2)
    ]
    source = {"source_id": 6, "side": "gpu", "clock": "local", "time_basis": ASSUMED}
    with memory.trial():
        fill(memory, {"source": [source], "engine_sample": engine, "gpu_sample": gpu})
        (row,) = memory.run("SELECT * FROM gpu_alignment").dicts()
    assert row["low_s"] <= 3600 <= row["high_s"]


def test_loads_that_have_nothing_in_common_are_not_aligned(memory: MemoryCase) -> None:
    for seed in range(4):
        row = aligned(memory, bursts(seed, 3600), 3600.0, 3600, other=bursts(seed + 1000, 3600))
        assert row["low_s"] is None, row["verdict"]


def test_a_log_whose_zone_was_given_keeps_its_stamps(memory: MemoryCase) -> None:
    row = aligned(memory, bursts(3, 1800), 60.0, 1800, "dates as written; zone Europe/Berlin as given")
    assert (row["is_needed"], row["low_s"]) == (False, None)
    assert "taken as they are" in row["basis"]


def test_a_log_beside_the_server_s_is_questioned_though_its_zone_was_given(memory: MemoryCase) -> None:
    row = aligned(memory, bursts(3, 1800), 7200.0, 1800, "dates as written; zone Europe/Berlin as given")
    assert row["is_needed"]
    assert row["low_s"] <= 7200.0 <= row["high_s"]
