"""source_traps: what a file's numbers do not mean is said where the file shows it, and only there."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from tracelens.given import fill
from tracelens.named import named_query
from tracelens.store import MemoryCase

START = datetime(2026, 11, 29, 10)


@pytest.fixture(scope="module")
def memory() -> MemoryCase:
    return MemoryCase()


def traps(memory: MemoryCase, tables: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Rows of the query by trap."""
    asked = named_query("source_traps")
    with memory.trial():
        fill(memory, tables)
        return {row["trap"]: row for row in memory.run(asked.sql, asked.bind({})).dicts()}


def client(count: int, **values: Any) -> list[dict[str, Any]]:
    """Rows of a client that streams, one a second."""
    return [
        {
            "source_id": 3,
            "client_sent_ts": START + timedelta(seconds=number),
            "client_ttft_s": 0.5,
            "client_e2e_s": 1.0,
            "client_wait_s": 0.0,
            "client_ttft_kind": "content",
            "streamed": True,
            "output_tokens_basis": "usage",
        }
        | values
        for number in range(count)
    ]


def test_a_client_that_writes_down_everything_has_no_trap(memory: MemoryCase) -> None:
    assert traps(memory, {"client_request": client(20)}) == {}


def test_a_watch_stopped_at_the_role_chunk_is_said_with_how_early_that_is(memory: MemoryCase) -> None:
    rows = client(4) + client(6, client_ttft_kind="role", client_reported_ttft_s=0.1)
    found = traps(memory, {"client_request": rows})["TTFT stops at the role chunk"]
    assert found["words"] == "6 of 10 requests, 400 ms before the first content by median"
    assert "too small" in found["meaning"]
    rows = client(6, client_ttft_kind="role", client_reported_ttft_s=0.4999)
    found = traps(memory, {"client_request": rows})["TTFT stops at the role chunk"]
    assert found["meaning"].startswith("harmless in this file")


@pytest.mark.parametrize(
    ("values", "trap"),
    [
        ({"client_ttft_kind": "headers"}, "TTFT stops at the first byte"),
        ({"client_ttft_kind": "first_byte"}, "TTFT stops at the first byte"),
        (
            {"client_ttft_kind": "whole_response", "client_ttft_s": None, "streamed": False},
            "TTFT is the whole answer",
        ),
        ({"client_wait_s": None}, "planned times not recorded"),
        ({"client_wait_s": 0.11}, "coordinated omission"),
        ({"output_tokens_basis": "requested"}, "output tokens not counted"),
    ],
)
def test_each_trap_of_a_client_is_seen_alone(memory: MemoryCase, values: dict[str, Any], trap: str) -> None:
    rows = [{key: value for key, value in row.items() if value is not None} for row in client(12, **values)]
    assert set(traps(memory, {"client_request": rows})) == {trap}


def test_a_clock_without_an_epoch_is_said(memory: MemoryCase) -> None:
    source = {
        "source_id": 3,
        "side": "client",
        "clock": "relative",
        "time_basis": "seconds from an unknown zero",
    }
    found = traps(memory, {"source": [source], "client_request": client(3)})
    assert found["no epoch"]["words"] == "seconds from an unknown zero"
    assert "perf_counter" in found["no epoch"]["meaning"]


@pytest.mark.parametrize(
    ("version", "says"),
    [("0.16.0", "has tokenized the prompt"), ("0.32.0", "before tokenization"), (None, "not known")],
)
def test_two_ttfts_begin_where_the_version_says(memory: MemoryCase, version: str | None, says: str) -> None:
    settings = {"vllm_version": version, "engine_version": "V1"} if version else {}
    tables = {
        "client_request": client(3),
        "server_request": [{"source_id": 1, "request_id": "r1", "ttft_s": 0.4}],
        "server_setting": [{"source_id": 2, "key": key, "value": value} for key, value in settings.items()],
    }
    assert says in traps(memory, tables)["two TTFTs with two beginnings"]["words"]
    assert "two TTFTs with two beginnings" not in traps(memory, tables | {"client_request": []})


def test_the_ttft_of_an_answers_metrics_starts_at_scheduling(memory: MemoryCase) -> None:
    tables = {"server_request": [{"source_id": 3, "measured_by": "response", "prefill_s": 0.2}]}
    assert set(traps(memory, tables)) == {"TTFT starts at scheduling"}


def test_means_over_a_window_and_edges_of_buckets_are_said(memory: MemoryCase) -> None:
    tables = {
        "engine_sample": [
            {"source_id": 2, "sample_ts": START, "generation_tps": 90.0, "prefix_cache_hit_ratio": 0.5}
        ],
        "metric_sample": [
            {"source_id": 4, "name": "vllm:time_to_first_token_seconds_bucket", "measured": 1.0}
        ],
        "gpu_sample": [{"source_id": 6, "gpu_index": 0, "sample_ts": START, "sm_ratio": 1.0}],
    }
    found = traps(memory, tables)
    assert "prefix hits those of the last 1,000 requests" in found["means over a window"]["words"]
    assert found["quantiles of a histogram"]["words"] == "1 histograms"
    assert "GPM, DCGM" in found["utilisation is time, not work"]["words"]


def test_an_assumed_zone_is_a_trap_until_shared_requests_settle_it(memory: MemoryCase) -> None:
    tables: dict[str, Any] = {
        "source": [
            {
                "source_id": 2,
                "side": "server",
                "clock": "yearless",
                "time_basis": "zone not in the log, UTC assumed",
            }
        ],
        "request_event": [
            {"source_id": 2, "request_id": "r1", "event": "received", "event_ts": START, "error_s": 1.0}
        ],
    }
    assert "zone not known" in traps(memory, tables)
    shared = client(1, request_id="r1", client_first_chunk_ts=START + timedelta(seconds=1), status="ok")
    assert "zone not known" not in traps(memory, tables | {"client_request": shared})
