"""How people paste what a server wrote: frames of terminal programs, backticks, other headers, the lines of a crash."""

from __future__ import annotations

import sys
from datetime import datetime
from pathlib import Path

import polars as pl
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from dialects import claim_of, parsed

from tracelens.formats.base import Chunk, Clock, Head
from tracelens.formats.server import sglang_log

STATS = (
    "Avg prompt throughput: 812.2 tokens/s, Avg generation throughput: 101.2 tokens/s, Running: 4 reqs, Swapped: 0 reqs, "
    "Pending: 1 reqs, GPU KV cache usage: 3.1%, CPU KV cache usage: 0.0%"
)
HEADED = f"INFO 09-27 06:46:31 metrics.py:351] {STATS}."


@pytest.mark.parametrize("side", ["│", "┃", "║"])
def test_lines_in_the_frame_of_a_window_are_read(side: str) -> None:
    lines = [
        f"{side} {HEADED}      {side}",
        f'{side} INFO:     10.4.12.1:51876 - "POST /v1/completions HTTP/1.1" 200 OK    {side}',
        f"{side} ERROR 09-27 06:46:46 engine.py:157] RuntimeError: CUDA error: an illegal memory access      {side}",
    ]
    found = parsed(lines)
    assert found.issues.height == 0
    assert found.tables["engine_sample"]["running_count"].to_list() == [4]
    assert found.tables["access_line"]["status"].to_list() == [200]
    assert found.tables["log_event"]["message"].to_list() == [
        "RuntimeError: CUDA error: an illegal memory access"
    ]


def test_a_bare_stats_line_in_backticks_is_one() -> None:
    found = parsed([f"`{STATS}`", HEADED])
    assert found.tables["engine_sample"]["waiting_count"].to_list() == [1, 1]


def test_a_header_with_a_process_id_before_the_place_in_the_code_is_one() -> None:
    lines = [
        f"2024-12-19 21:40:30 INFO 56542 [metrics.py:396] {STATS}",
        "2024-12-19 21:40:35 ERROR 56542 [async_llm_engine.py:64] RuntimeError: CUDA error",
    ]
    claim = claim_of(lines)
    assert claim is not None
    found = parsed(lines)
    assert found.tables["engine_sample"]["sample_ts"].to_list() == [datetime(2024, 12, 19, 21, 40, 30)]
    (event,) = found.tables["log_event"].to_dicts()
    assert (event["kind"], event["level"], event["message"]) == ("error", "ERROR", "RuntimeError: CUDA error")


CRASHES = {
    "!!!!!!! Segfault encountered !!!!!!!": "dead",
    "Fatal Python error: Segmentation fault": "dead",
    "terminate called after throwing an instance of 'c10::Error'": "dead",
    "Segmentation fault (core dumped)": "dead",
    "start.sh: line 3:  4711 Killed": "dead",
    "Killed": "dead",
    "  what():  CUDA error: unspecified launch failure": "traceback",
    "frame #0: c10::Error::Error(c10::SourceLocation) + 0x98 (0x7f0b in /lib/libc10.so)": "traceback",
    "Thread 0x00007f1c5affd640 (most recent call first):": "traceback",
    "CUDA kernel errors might be asynchronously reported at some other API call": "traceback",
    "(EngineCore_DP0 pid=80) Process EngineCore_DP0:": "traceback",
    "NVRM: Xid (PCI:0000:06:00): 79, GPU has fallen off the bus.": "gpu",
}


@pytest.mark.parametrize("line", CRASHES)
def test_what_a_process_leaves_that_ends_by_itself_is_an_event(line: str) -> None:
    found = parsed([HEADED, line])
    assert found.issues.height == 0
    assert found.tables["log_event"]["kind"].to_list() == [CRASHES[line]]


def test_prose_that_says_killed_is_no_death() -> None:
    found = parsed([HEADED, "Killed it and tried again"])
    assert "log_event" not in found.tables
    assert found.issues["line_no"].to_list() == [2]


@pytest.mark.parametrize(
    ("written", "month", "day"), [("E511", 5, 11), ("E1012", 10, 12), ("W101", 1, 1), ("E0511", 5, 11)]
)
def test_torch_writes_a_month_in_as_many_digits_as_it_has(written: str, month: int, day: int) -> None:
    line = f"[rank1]:[{written} 08:28:02.148205551 ProcessGroupNCCL.cpp:632] [Rank 1] Watchdog caught collective operation timeout: x"
    (event,) = parsed([HEADED, line]).tables["log_event"].to_dicts()
    assert event["kind"] == "stall"
    assert (event["event_ts"].month, event["event_ts"].day) == (month, day)


def test_an_sglang_log_pasted_without_its_days_has_times_of_day() -> None:
    lines = [
        "[03:51:54] Decode batch, #running-req: 6, #full token: 2435072, full token usage: 0.92, gen throughput (token/s): 24.33",
        "[03:52:05 TP0] Decode batch, #running-req: 5, #token: 9, token usage: 0.50, gen throughput (token/s): 21.95, #queue-req: 2",
    ]
    claim = sglang_log.FORMAT.sniff(Head(tuple(lines), complete=True))
    assert claim is not None
    assert claim.clock is Clock.DAYLESS
    frame = pl.DataFrame({"line_no": [1, 2], "text": lines}, schema={"line_no": pl.Int64, "text": pl.String})
    found = sglang_log.FORMAT.parse(Chunk(frame, claim))
    rows = found.tables["engine_sample"]
    assert found.issues.height == 0
    assert rows["sample_ts"].to_list() == [datetime(2000, 1, 1, 3, 51, 54), datetime(2000, 1, 1, 3, 52, 5)]
    assert rows["running_count"].to_list() == [6, 5]
    assert rows["waiting_count"].to_list() == [None, 2]
    assert rows["kv_cache_usage_ratio"].to_list() == [0.92, 0.5]
