"""Engine and GPU samples beside one request: on the server's clock, or it is said that they are not."""

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


def after(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def around(memory: MemoryCase, query: str, tables: dict[str, Any], **params: Any) -> list[dict[str, Any]]:
    asked = named_query(query)
    with memory.trial():
        fill(memory, tables)
        bound = asked.bind({key: str(value) for key, value in params.items()})
        return memory.run(asked.sql, bound).dicts()


def shared_request() -> dict[str, Any]:
    """r1 is in span and client file, r2 at the client alone; the server's clock is about 100 s ahead."""
    return {
        "server_request": [
            {"source_id": 1, "request_id": "r1", "arrival_ts": after(100.02), "ttft_s": 0.9, "e2e_s": 2.0}
        ],
        "client_request": [
            {
                "source_id": 3,
                "request_id": "r1",
                "client_sent_ts": START,
                "client_first_chunk_ts": after(1.0),
                "client_ttft_s": 1.0,
                "client_e2e_s": 2.1,
                "streamed": True,
                "status": "ok",
            },
            {
                "source_id": 3,
                "client_id": "r2",
                "client_sent_ts": after(50),
                "client_e2e_s": 2.0,
                "status": "error",
            },
        ],
        "engine_sample": [
            {"source_id": 2, "sample_ts": after(at_s), "running_count": at_s} for at_s in (50, 100, 150)
        ],
    }


def test_a_request_that_only_the_client_saw_stands_beside_the_samples_of_the_servers_time(
    memory: MemoryCase,
) -> None:
    # Offset of r1: arrived 100.020 after the send, first token 100.92 - 1.0 = 99.92 before the content: 99.97, 50 ms either way.
    (row,) = around(memory, "engine_around", shared_request(), request="r2", before=5.0, after=5.0)
    assert (row["sample_ts"], row["phase"]) == (after(150), "during")
    assert row["clock_error_s"] == pytest.approx(0.05)
    assert row["clock_basis"] == "client's stamps, moved by 99.970 s to the server's clock"
    (spread,) = around(memory, "engine_range", shared_request(), request="r2", before=5.0, after=5.0)
    assert (spread["running_low_count"], spread["running_high_count"]) == (150, 150)


def test_without_a_shared_request_it_says_that_the_offset_is_not_known(memory: MemoryCase) -> None:
    tables = shared_request() | {"server_request": []}
    (row,) = around(memory, "engine_around", tables, request="r2", before=5.0, after=5.0)
    assert row["sample_ts"] == after(50)
    assert row["clock_error_s"] is None
    assert row["clock_basis"].endswith("is not known")


def test_gpu_rows_are_laid_on_the_servers_clock_or_it_says_why_not(memory: MemoryCase) -> None:
    tables = shared_request()
    tables["source"] = [
        {"source_id": 6, "side": "gpu", "clock": "local", "time_basis": "zone not in the log, UTC assumed"}
    ]
    tables["gpu_sample"] = [
        {"source_id": 6, "gpu_index": 0, "sample_ts": after(at_s), "sm_ratio": at_s / 1000}
        for at_s in (99, 101, 120)
    ]
    (row,) = around(memory, "gpu_around", tables, request="r1")
    assert (row["sample_count"], row["sm_max_ratio"]) == (1, pytest.approx(0.101))
    assert "cannot align" in row["clock_basis"]
    tables["gpu_alignment"] = [
        {
            "run_id": "default",
            "source_id": 6,
            "is_needed": True,
            "low_s": -25.0,
            "high_s": -15.0,
            "verdict": "aligned by activity",
        }
    ]
    (row,) = around(memory, "gpu_around", tables, request="r1")
    assert (row["sample_count"], row["sm_max_ratio"]) == (1, pytest.approx(0.120))
    assert row["clock_error_s"] == pytest.approx(5.0)
    assert row["clock_basis"] == "server's stamps; aligned by activity"
    with memory.trial():
        fill(memory, tables)
        found = memory.run("SELECT window_ts FROM time_window WHERE sm_ratio = 0.12").rows
    assert found == [(after(100),)]
