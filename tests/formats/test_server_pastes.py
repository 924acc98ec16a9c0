"""How people paste what a server wrote: frames of terminal programs, backticks, other headers, the lines of a crash."""

from __future__ import annotations

import sys
from datetime import datetime
from pathlib import Path

import polars as pl
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from dialects import claim_of, parsed

from tracelens import formats
from tracelens.formats.base import Chunk, Claim, Clock, Head, Parsed
from tracelens.formats.server import sglang_log, vllm_log
from tracelens.ingestion.chunks import lines_frame

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


BATCH = "Decode batch. #running-req: 36, #token: 958017, token usage: 0.96, gen throughput (token/s): 38.12, #queue-req: 11"
RETRACT = "KV cache pool is full. Retract requests. #retracted_reqs: 1, #new_token_ratio: 0.54 -> 0.87"


def sglang(lines: list[str]) -> tuple[Clock | None, Parsed]:
    claim = sglang_log.FORMAT.sniff(Head(tuple(lines), complete=True))
    frame = lines_frame("".join(f"{line}\n" for line in lines).encode(), 1)
    return claim and claim.clock, sglang_log.FORMAT.parse(Chunk(frame, claim or Claim("", Clock.NONE)))


@pytest.mark.parametrize(("before", "behind"), [("", ""), ("`", "`"), ("```", ""), ("[TP0] ", "")])
def test_a_batch_line_of_sglang_without_its_stamp_is_a_sample_without_a_time(
    before: str, behind: str
) -> None:
    clock, found = sglang([f"{before}{BATCH}{behind}", "why only 38?"])
    (row,) = found.tables["engine_sample"].to_dicts()
    assert clock is Clock.NONE
    assert (row["running_count"], row["waiting_count"], row["kv_cache_usage_ratio"]) == (36, 11, 0.96)
    assert (row["sample_ts"], row["error_s"]) == (None, None)
    assert row["process"] == ("TP0" if "TP0" in before else None)
    assert found.issues["line_no"].to_list() == [2]


@pytest.mark.parametrize("stamp", ["[2025-02-27 04:46:39 TP0] ", "[04:46:39] ", ""])
def test_a_retraction_alone_is_a_preemption(stamp: str) -> None:
    _, found = sglang([stamp + RETRACT])
    assert found.tables["log_event"].select("kind", "message").rows() == [("preemption", RETRACT)]


def test_lines_without_a_stamp_among_others_take_no_stamp_of_theirs() -> None:
    stamped = '[2025-02-27 04:46:39] INFO:     127.0.0.1:40262 - "POST /generate HTTP/1.1" 200 OK'
    clock, found = sglang([stamped, BATCH, RETRACT])
    assert clock is Clock.LOCAL
    assert found.tables["engine_sample"]["sample_ts"].to_list() == [None]
    # An event without a stamp is placed behind the line before it, with no word on how exactly.
    (event,) = found.tables["log_event"].to_dicts()
    assert (event["event_ts"], event["error_s"]) == (datetime(2025, 2, 27, 4, 46, 39), None)


V1_STATS = STATS.replace("Swapped: 0 reqs, Pending", "Waiting")


@pytest.mark.parametrize(
    "before",
    ["", "INFO: ", "INFO 11-27 12:00:00 ", "[loggers.py:118] ", "metrics.py:345] ", "2025-11-27 12:00:00,123 | vllm | "],
)  # fmt: skip
@pytest.mark.parametrize("engine", ["", "Engine 001: "])
def test_a_stats_line_with_the_rest_of_a_header_is_one(before: str, engine: str) -> None:
    rows = parsed([before + engine + V1_STATS]).tables["engine_sample"]
    assert rows.select("running_count", "waiting_count", "engine_index").rows() == [(4, 1, int(bool(engine)))]


def test_a_preemption_line_alone_is_one_with_and_without_its_header() -> None:
    line = "Sequence group 221 is preempted by PreemptionMode.RECOMPUTE mode because there is not enough KV cache space."
    for before in ("", "WARNING 05-09 00:49:33 scheduler.py:1057] "):
        found = parsed([before + line]).tables
        assert found["request_event"].select("request_id", "event").rows() == [("221", "preempted")]
        assert found["log_event"]["kind"].to_list() == ["preemption"]


def trace(path: str) -> list[str]:
    return [
        "Traceback (most recent call last):",
        f'  File "{path}", line 2000, in profile_run',
        "    logits = self.model.compute_logits(hidden_states, None)",
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 4.64 GiB. GPU 0 has a total capacity of 79.15 GiB.",
    ]


VLLM_PATH = "/opt/venv/lib/python3.12/site-packages/vllm/v1/worker/gpu_model_runner.py"
SGLANG_PATH = "/sgl-workspace/sglang/python/sglang/srt/managers/scheduler.py"


@pytest.mark.parametrize(
    ("path", "name"), [(VLLM_PATH, "vllm_log"), (SGLANG_PATH, "sglang_log"), ("/home/me/train.py", None)]
)
def test_a_traceback_alone_is_the_servers_whose_code_it_goes_through(path: str, name: str | None) -> None:
    claimed = formats.claims(Head(tuple(trace(path)), complete=True))
    assert [(known.name, claim.clock) for known, claim in claimed] == ([(name, Clock.NONE)] if name else [])
    for known, claim in claimed:
        found = known.parse(Chunk(lines_frame("\n".join(trace(path)).encode(), 1), claim))
        assert found.issues.height == 0
        assert found.tables["log_event"]["kind"].to_list() == ["traceback"] * 3 + ["oom"]


def test_a_traceback_of_sglang_through_code_of_vllm_is_sglangs() -> None:
    lines = (*trace(SGLANG_PATH), *trace(VLLM_PATH))
    assert [known.name for known, _ in formats.claims(Head(lines, complete=True))] == ["sglang_log"]


@pytest.mark.parametrize(
    "line",
    [
        "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine.",
        "vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue.",
    ],
)
def test_the_last_line_of_a_traceback_is_enough_where_it_is_vllms(line: str) -> None:
    assert vllm_log.FORMAT.sniff(Head((line,), complete=True)) is not None


WATCHDOG = (
    "[rank2]:[E1001 16:06:04.537131842 ProcessGroupNCCL.cpp:607] [Rank 2] Watchdog caught collective operation timeout: "
    "WorkNCCL(SeqNum=1, OpType=ALLREDUCE, NumelIn=128, NumelOut=128, Timeout(ms)=600000) ran for 600009 milliseconds before timing out."
)
FRAMES = (
    "CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be incorrect.",
    "",
    "Exception raised from c10_cuda_check_implementation at ../c10/cuda/CUDAException.cpp:43 (most recent call first):",
    "frame #0: c10::Error::Error(c10::SourceLocation, std::string) + 0x96 (0x7fd4b596c446 in /usr/lib/libc10.so)",
)


@pytest.mark.parametrize(
    "lines",
    [
        (WATCHDOG,),
        (f"(RayWorkerVllm pid=1394) {WATCHDOG.removeprefix('[rank2]:')}",),
        ("gpu3:29496:29496 [0] NCCL INFO comm 0x55 rank 0 nranks 4 - Init COMPLETE", WATCHDOG, *FRAMES),
    ],
)
def test_what_pytorch_says_of_a_collective_is_enough(lines: tuple[str, ...]) -> None:
    [(known, claim)] = formats.claims(Head(lines, complete=True))
    assert (known.name, claim.clock) == ("vllm_log", Clock.NONE)
    found = known.parse(Chunk(lines_frame("\n".join(lines).encode(), 1), claim))
    assert found.issues.height == 0
    assert found.tables["log_event"]["kind"].to_list()[0] == "stall"


def test_the_same_in_a_log_of_sglang_is_sglangs() -> None:
    batch = "[2025-06-05 15:08:56 TP0] Decode batch. #running-req: 7, #token: 90, token usage: 0.06, gen throughput (token/s): 8.1, #queue-req: 0"
    lines = (batch, WATCHDOG, *FRAMES)
    assert [known.name for known, _ in formats.claims(Head(lines, complete=True))] == ["sglang_log"]


@pytest.mark.parametrize(
    "text",
    [
        "We keep the Decode batch. #running-req high.\nDecode batch size matters.\nPrefill batch. Then decode.",
        "A sequence group may be preempted by PreemptionMode.SWAP when memory is low.",
        'See File "/opt/vllm/v1/engine/core.py", line 12, for how it ends.\nIt reads well.\nSo it goes.',
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 4.64 GiB.",
        "Raise `gpu_memory_utilization` if you can.",
        "Then ProcessGroupNCCL.cpp:607] [Rank 2] Watchdog caught it.\nWe looked.\nAnd waited.",
    ],
)
def test_prose_about_a_server_is_nobodys(text: str) -> None:
    assert formats.claims(Head(tuple(text.split("\n")), complete=True)) == []
