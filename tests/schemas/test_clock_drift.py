"""Two hosts whose clocks differ and drift, simulated: the true offset lies in the interval, at any time of the run."""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tracelens.given import fill
from tracelens.store import MemoryCase

START = datetime(2026, 11, 29, 10)
MICROSECOND_S = 2e-6
"""Stamps are whole microseconds; a length is the difference of two."""


@pytest.fixture(scope="module")
def memory() -> MemoryCase:
    return MemoryCase()


@dataclass(frozen=True, slots=True)
class Hosts:
    """A client and a server: clocks, network (mean way in and out, seconds), run and wrong pairs."""

    offset_s: float = 3.2
    drift: float = 50e-6
    span_s: float = 7200.0
    in_s: float = 0.010
    out_s: float = 0.040
    requests: int = 400
    wrong: int = 8
    clock_set_s: float = 0.0
    """How far somebody sets the server's clock in the middle of the run."""

    def server_clock(self, at_s: float) -> float:
        """What the server's clock shows at an instant of the client's."""
        middle_s = self.span_s / 2
        step_s = self.clock_set_s if at_s > middle_s else 0.0
        return at_s + self.offset_s + self.drift * (at_s - middle_s) + step_s


def stamp(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def rows(hosts: Hosts, seed: int) -> dict[str, list[dict[str, Any]]]:
    """What client and spans say of the run; of the wrong pairs each client row bears the id of another's span."""
    dice = random.Random(seed)
    clients, servers = [], []
    for number in range(hosts.requests):
        sent_s = hosts.span_s * number / (hosts.requests - 1)
        arrived_s = sent_s + 0.0005 + dice.expovariate(1 / hosts.in_s)
        first_s = arrived_s + 0.05 + dice.expovariate(1 / 0.5)
        seen_s = first_s + 0.0005 + dice.expovariate(1 / hosts.out_s)
        clients.append(
            {
                "source_id": 3,
                "request_id": f"r{number}",
                "client_sent_ts": stamp(sent_s),
                "client_first_chunk_ts": stamp(seen_s),
                "client_ttft_s": seen_s - sent_s,
                "streamed": True,
                "status": "ok",
            }
        )
        arrival, first = hosts.server_clock(arrived_s), hosts.server_clock(first_s)
        servers.append(
            {
                "source_id": 1,
                "request_id": f"r{number}",
                "arrival_ts": stamp(arrival),
                "ttft_s": first - arrival,
            }
        )
    wrong = dice.sample(range(hosts.requests), hosts.wrong)
    for number, other in zip(wrong, wrong[1:] + wrong[:1], strict=True):
        clients[number]["request_id"] = f"r{other}"
    return {"client_request": clients, "server_request": servers}


LINE = """
SELECT low_s, high_s, drift_low, drift_high, agreeing_count, is_known,
       list_transform($at_s, LAMBDA x: _lowest_offset(corners, x)) AS lowest,
       list_transform($at_s, LAMBDA x: _highest_offset(corners, x)) AS highest
FROM _clock_line
"""


def line(memory: MemoryCase, hosts: Hosts, seed: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Rows of _clock_line (with the offset at start, middle and end of the run) and clock_offset."""
    half_s = hosts.span_s / 2
    with memory.trial():
        fill(memory, rows(hosts, seed))
        (found,) = memory.run(LINE, {"at_s": [-half_s, 0.0, half_s]}).dicts()
        (said,) = memory.run("SELECT * FROM clock_offset").dicts()
    return found, said


simulated = settings(max_examples=4, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@simulated
@given(
    seed=st.integers(0, 10_000),
    drift=st.sampled_from([50e-6, -50e-6, 120e-6]),
    offset_s=st.sampled_from([3.2, -0.004, -7200.0]),
    skew=st.sampled_from([(0.010, 0.040), (0.080, 0.002), (0.001, 0.3)]),
)
def test_the_true_offset_and_drift_lie_in_their_intervals_all_along_the_run(
    memory: MemoryCase, seed: int, drift: float, offset_s: float, skew: tuple[float, float]
) -> None:
    hosts = Hosts(offset_s=offset_s, drift=drift, in_s=skew[0], out_s=skew[1])
    found, said = line(memory, hosts, seed)
    assert found["drift_low"] <= drift <= found["drift_high"]
    half_s = hosts.span_s / 2
    for at_s, low_s, high_s in zip((-half_s, 0.0, half_s), found["lowest"], found["highest"], strict=True):
        assert low_s - MICROSECOND_S <= offset_s + drift * at_s <= high_s + MICROSECOND_S
    assert said["low_s"] == found["lowest"][1]
    assert said["drift"] == pytest.approx(drift, abs=8e-6)
    assert said["high_s"] - said["low_s"] < 0.08
    assert "ppm" in said["basis"]


@simulated
@given(seed=st.integers(0, 10_000))
def test_clocks_that_run_alike_claim_no_drift(memory: MemoryCase, seed: int) -> None:
    found, said = line(memory, Hosts(drift=0.0), seed)
    assert said["drift"] is None
    assert "ppm" not in said["basis"]
    assert found["drift_low"] <= 0.0 <= found["drift_high"]
    assert said["low_s"] <= 3.2 <= said["high_s"]
    assert "contradict" in said["basis"]


@simulated
@given(seed=st.integers(0, 10_000))
def test_within_a_minute_no_drift_is_looked_for(memory: MemoryCase, seed: int) -> None:
    found, said = line(memory, Hosts(drift=0.0, span_s=50.0), seed)
    assert (said["drift"], said["drift_low"], said["drift_high"]) == (None, None, None)
    assert found["lowest"] == [said["low_s"]] * 3
    assert said["low_s"] <= 3.2 <= said["high_s"]


def test_a_short_run_of_loose_pairs_leaves_the_drift_open_and_the_ends_less_sure(memory: MemoryCase) -> None:
    found, said = line(memory, Hosts(span_s=300.0, in_s=0.5, out_s=0.5, requests=60, wrong=1), 1)
    assert said["drift"] is None
    assert found["drift_low"] <= 50e-6 <= found["drift_high"]
    for at_s, low_s, high_s in zip((-150.0, 0.0, 150.0), found["lowest"], found["highest"], strict=True):
        assert low_s <= 3.2 + 50e-6 * at_s <= high_s
    assert found["highest"][2] - found["lowest"][2] > said["high_s"] - said["low_s"]


def test_a_clock_without_a_zero_is_placed_though_it_drifts_and_pairs_are_wrong(memory: MemoryCase) -> None:
    hosts = Hosts(wrong=40)
    tables = rows(hosts, 5)
    for client in tables["client_request"]:
        client["client_sent_s"] = (client.pop("client_sent_ts") - START).total_seconds()
        client["client_id"] = client.pop("request_id")
        del client["client_first_chunk_ts"]
    tables["source"] = [
        {"source_id": 1, "side": "server"},
        {"source_id": 3, "side": "client", "clock": "relative"},
    ]
    with memory.trial():
        fill(memory, tables, join=True)
        ((zero_ts, basis),) = memory.run(
            "SELECT client_sent_ts, time_basis FROM client_request JOIN source USING (source_id) WHERE client_sent_s = 0"
        ).rows
        (said,) = memory.run("SELECT * FROM clock_offset").dicts()
    assert "placed by 400 shared requests" in basis
    # The zero is right in the middle of the run: there the server's clock is 3.2 s ahead of this client's seconds.
    error_s = (said["high_s"] - said["low_s"]) / 2
    assert (zero_ts - START).total_seconds() == pytest.approx(3.2, abs=error_s + MICROSECOND_S)
    assert said["drift_low"] <= 50e-6 <= said["drift_high"]


def test_a_clock_that_was_set_in_the_middle_has_no_offset(memory: MemoryCase) -> None:
    found, said = line(memory, Hosts(drift=0.0, clock_set_s=4.0), 1)
    assert not found["is_known"]
    assert said["chosen_s"] is None
    assert "a clock that was set" in said["basis"]
