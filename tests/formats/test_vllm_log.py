"""vLLM server log: samples of every version with hand counts, each line form by hand, and what a cut line may not do."""

from __future__ import annotations

import json
import re
from datetime import datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tracelens.formats.base import Chunk, Claim, Clock, Head, Parsed
from tracelens.formats.server import vllm_log

SAMPLES = Path(__file__).parents[2] / "sample_logs" / "vllm_log"
ESCAPE = "\x1b"


def lines_of(name: str) -> list[str]:
    text = (SAMPLES / name).read_bytes().decode("utf-8", "replace")
    return [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")]


def parsed(lines: list[str], *, keep_text: bool = False) -> Parsed:
    frame = pl.DataFrame(
        {"line_no": range(1, len(lines) + 1), "text": lines}, schema={"line_no": pl.Int64, "text": pl.String}
    )
    claim = vllm_log.sniff(Head(tuple(lines), complete=True)) or Claim("", Clock.YEARLESS)
    result = vllm_log.parse(Chunk(frame, claim, keep_text=keep_text))
    assert result.understood + result.issues.height == len(lines)
    return result


def rows(result: Parsed, table: str) -> list[dict[str, Any]]:
    return result.tables[table].to_dicts() if table in result.tables else []


def info(message: str, second: int = 0) -> str:
    return f"(APIServer pid=7) INFO 11-29 12:00:{second:02d} [x.py:1] {message}"


def one(line: str, table: str) -> dict[str, Any]:
    (row,) = rows(parsed([line]), table)
    return row


def stats(tail: str, head: str = "Engine 000: ") -> dict[str, Any]:
    begin = "Avg prompt throughput: 1204.4 tokens/s, Avg generation throughput: 640.0 tokens/s, Running: 18 reqs, "
    return one(info(head + begin + tail), "engine_sample")


# Counted with grep over the samples (colours taken off): lines; lines that are nobody's; request events by kind; rows.
COUNTS = {
    "faults_mixed.log": (22, 0, {"failed": 1}, 0, 0, 1),
    "v0.4-0.5_v0_engine.log": (17, 0, {"received": 1, "finished": 1, "aborted": 1, "preempted": 1}, 1, 0, 1),
    "v0.6-0.7_v0_mq_engine.log": (16, 0, {"received": 1, "added": 1, "aborted": 1, "preempted": 1}, 1, 0, 1),
    "v0.8-0.10.0_v1.log": (19, 0, {"received": 2, "added": 2, "aborted": 2}, 1, 0, 1),
    "v0.10.1-0.11_v1_ansi_prefix.log": (
        25, 0, {"received": 1, "added": 1, "first_token": 1, "finished": 1, "aborted": 2}, 2, 0, 1,
    ),
    "v0.11.1-0.16_v1.log": (16, 0, {"received": 2, "added": 3, "aborted": 2}, 2, 2, 1),
    "v0.12plus_colour_tty.log": (3, 0, {}, 1, 0, 1),
    "v0.17-0.30_v1.log": (19, 0, {"received": 1, "added": 1, "finished": 1, "failed": 1}, 1, 2, 1),
    "v0.31-0.33_v1_text.log": (15, 0, {"received": 1, "added": 1, "finished": 1}, 1, 0, 1),
    "v0.32.0_v1_aborts_errors.log": (77, 0, {"received": 11, "added": 10, "finished": 6, "aborted": 8}, 2, 0, 30),
    "v0.32.0_v1_deltas.log": (84, 0, {"received": 3, "added": 3, "first_token": 57, "finished": 2}, 1, 0, 12),
    "v0.32.0_v1_iteration_details.log": (174, 0, {"received": 12, "added": 12}, 1, 122, 21),
    "v0.32.0_v1_queue.log": (137, 0, {"received": 21, "added": 12, "finished": 11}, 2, 0, 28),
    "v0.32.0_v1_tracebacks.log": (214, 0, {"received": 1, "added": 1, "finished": 2}, 1, 0, 20),
    "v0.9.1_v0_preemption.log": (114, 0, {"received": 13, "added": 6, "preempted": 1}, 3, 0, 34),
    "v0.9.1_v1.log": (97, 0, {"received": 5, "added": 4}, 2, 0, 17),
}  # fmt: skip


def test_every_sample_is_counted() -> None:
    assert sorted(COUNTS) == sorted(path.name for path in SAMPLES.glob("*.log"))


@pytest.mark.parametrize("name", COUNTS)
def test_hand_counts_of_the_samples(name: str) -> None:
    lines, issues, events, samples, steps, accesses = COUNTS[name]
    result = parsed(lines_of(name))
    assert result.understood + result.issues.height == lines
    assert result.issues.height == issues
    found = [row["event"] for row in rows(result, "request_event")]
    assert {kind: found.count(kind) for kind in set(found)} == events
    assert len(rows(result, "engine_sample")) == samples
    assert len(rows(result, "engine_step")) == steps
    assert len(rows(result, "access_line")) == accesses


@pytest.mark.parametrize("name", COUNTS)
def test_numbers_of_stats_and_step_lines_are_those_of_the_text(name: str) -> None:
    """Once more with plain Python: cut into parts at the commas, numbers by key."""
    result = parsed(lines_of(name))
    text = {number: re.sub(r"\x1b\[[0-9;]*m", "", line) for number, line in enumerate(lines_of(name), 1)}
    for row in rows(result, "engine_sample"):
        parts = dict(
            part.rsplit(": ", 1)
            for part in text[row["line_no"]].split("] ", 1)[1].rstrip(".").split(", ")
            if ": " in part
        )
        prefix = next((key for key in parts if key.endswith("Avg prompt throughput")), "")
        assert row["prompt_tps"] == float(parts[prefix].split()[0])
        assert row["generation_tps"] == float(parts["Avg generation throughput"].split()[0])
        assert row["running_count"] == int(parts["Running"].split()[0])
        assert row["waiting_count"] == int((parts.get("Waiting") or parts["Pending"]).split()[0])
        usage = next(value for key, value in parts.items() if key.endswith("KV cache usage"))
        assert row["kv_cache_usage_ratio"] == round(float(usage.rstrip("%")) / 100, 6)
        hit = parts.get("Prefix cache hit rate")
        assert row["prefix_cache_hit_ratio"] == (
            None if hit is None else round(float(hit.rstrip("%")) / 100, 6)
        )
    for row in rows(result, "engine_step"):
        numbers = re.findall(
            r"(\d+(?:\.\d+)?) (context requests|context tokens|generation requests|generation tokens|ms)",
            text[row["line_no"]],
        )
        assert [float(number) for number, _ in numbers] == [
            row["context_requests"], row["context_tokens"], row["generation_requests"], row["generation_tokens"],
            round(row["elapsed_s"] * 1000, 6),
        ]  # fmt: skip


def test_a_stats_line_with_everything() -> None:
    row = stats(
        "Waiting: 4 reqs, Deferred: 3 reqs, KV fetch: 1 waiting to start, 2 in progress, 0 completed waiting, Preemptions: 6, "
        "GPU KV cache usage: 44.0%, Prefix cache hit rate: 18.2%, Corrupted: 3 reqs, External prefix cache hit rate: 7.5%, "
        "MM cache hit rate: 0.5%, Some new thing: 7"
    )
    assert json.loads(row.pop("other")) == {
        "KV fetch waiting to start": 1, "KV fetch in progress": 2, "KV fetch completed waiting": 0, "Corrupted": 3,
        "Some new thing": 7,
    }  # fmt: skip
    assert row == {
        "line_no": 1, "process": "APIServer", "level": "INFO", "sample_ts": datetime(2000, 11, 29, 12), "error_s": 1.0,
        "engine_index": 0, "engine_count": 1, "prompt_tps": 1204.4, "generation_tps": 640.0, "running_count": 18,
        "waiting_count": 4, "deferred_count": 3, "swapped_count": None, "preemption_count": 6,
        "kv_cache_usage_ratio": 0.44, "cpu_kv_cache_usage_ratio": None, "prefix_cache_hit_ratio": 0.182,
        "external_prefix_cache_hit_ratio": 0.075, "mm_cache_hit_ratio": 0.005,
    }  # fmt: skip


def test_an_external_hit_rate_is_not_the_prefix_hit_rate() -> None:
    row = stats("Waiting: 0 reqs, GPU KV cache usage: 1.0%, External prefix cache hit rate: 7.5%")
    assert (row["prefix_cache_hit_ratio"], row["external_prefix_cache_hit_ratio"], row["other"]) == (
        None,
        0.075,
        None,
    )


@pytest.mark.parametrize("device", ["GPU", "CPU", "TPU", "XPU"])
def test_the_devices_cache_is_the_kv_cache_whatever_the_device(device: str) -> None:
    row = stats(f"Waiting: 1 reqs, {device} KV cache usage: 12.5%, Prefix cache hit rate: 100.0%")
    assert (row["kv_cache_usage_ratio"], row["cpu_kv_cache_usage_ratio"], row["prefix_cache_hit_ratio"]) == (
        0.125,
        None,
        1.0,
    )
    assert row["other"] is None


def test_the_v0_line_has_two_caches_and_pending_counts_as_waiting() -> None:
    row = stats(
        "Swapped: 2 reqs, Pending: 12 reqs, GPU KV cache usage: 96.8%, CPU KV cache usage: 1.5%.", head=""
    )
    assert (row["waiting_count"], row["swapped_count"], row["engine_index"], row["other"]) == (12, 2, 0, None)
    assert (row["kv_cache_usage_ratio"], row["cpu_kv_cache_usage_ratio"]) == (0.968, 0.015)


def test_engines_have_their_index_and_an_aggregate_has_none() -> None:
    tail = "Waiting: 0 reqs, GPU KV cache usage: 1.0%"
    assert [
        stats(tail, head=head)["engine_index"]
        for head in ("Engine 000: ", "Engine 001: ", "Engine 117: ", "")
    ] == [0, 1, 117, 0]
    both = stats(tail, head="2 Engines Aggregated: ")
    assert (both["engine_index"], both["engine_count"]) == (None, 2)


def test_the_rust_front_ends_stats_line() -> None:
    row = one(
        info("Avg prompt tput: 1204.4 toks/s, Avg generation tput: 640.0 toks/s, Reqs Running: 18, Waiting: 4, Deferred: 3 reqs, "
             "Preemptions: 1, GPU KV cache used: 44.0%, Prefix cache hit rate: 18.2%, External prefix cache hit rate: 3.1%"),
        "engine_sample",
    )  # fmt: skip
    numbers = ("prompt_tps", "generation_tps", "running_count", "waiting_count", "deferred_count", "preemption_count",
               "kv_cache_usage_ratio", "prefix_cache_hit_ratio", "external_prefix_cache_hit_ratio", "other")  # fmt: skip
    assert [row[name] for name in numbers] == [1204.4, 640.0, 18, 4, 3, 1, 0.44, 0.182, 0.031, None]


def test_unknown_parts_are_json_whatever_their_number() -> None:
    row = stats(
        "Waiting: 4 reqs, P90 of it (ms): -0.50, Odd=007, Version: 1.2.3, Tiny: 1e-05, Share: 9.2%, A-b/c: 1"
    )
    assert json.loads(row["other"]) == {
        "P90 of it (ms)": -0.5,
        "Odd": 7,
        "Tiny": 1e-05,
        "Share": 9.2,
        "A-b/c": 1,
    }


FULL_STATS = [
    "Engine 011: Avg prompt throughput: 1204.45 tokens/s, Avg generation throughput: 640.25 tokens/s, Running: 118 reqs, Waiting: "
    "234 reqs, Deferred: 113 reqs, KV fetch: 12 waiting to start, 23 in progress, 34 completed waiting, Preemptions: 156, GPU KV "
    "cache usage: 44.25%, Prefix cache hit rate: 18.25%, Corrupted: 123 reqs, External prefix cache hit rate: 17.25%, MM cache "
    "hit rate: 10.25%",
    "Avg prompt throughput: 3120.75 tokens/s, Avg generation throughput: 410.25 tokens/s, Running: 144 reqs, Swapped: 110 reqs, "
    "Pending: 112 reqs, GPU KV cache usage: 96.75%, CPU KV cache usage: 10.25%.",
    "Avg prompt tput: 1204.45 toks/s, Avg generation tput: 640.25 toks/s, Reqs Running: 118, Waiting: 134, Deferred: 113 reqs, "
    "Preemptions: 111, GPU KV cache used: 44.25%, Prefix cache hit rate: 18.25%, External prefix cache hit rate: 13.25%",
    "12 Engines Aggregated: Avg prompt throughput: 16010.5 tokens/s, Avg generation throughput: 4010.75 tokens/s, Running: 233 reqs,"
    " Waiting: 131 reqs, GPU KV cache usage: 81.25%, Prefix cache hit rate: 20.75%",
]  # fmt: skip


@pytest.mark.parametrize("message", FULL_STATS, ids=["V1", "V0", "Rust", "aggregated"])
def test_a_stats_line_cut_anywhere_gives_no_wrong_number(message: str) -> None:
    line = info(message)
    whole = one(line, "engine_sample")
    lines = [line[:end] for end in range(len(line) + 1)]
    result = parsed(lines)
    found = rows(result, "engine_sample")
    assert len(found) > 50
    for row in found:
        other = json.loads(row.pop("other") or "{}")
        assert all(
            whole[name] == value for name, value in row.items() if value is not None and name != "line_no"
        ), row
        known = json.loads(whole["other"] or "{}")
        assert all(known.get(name, value) == value for name, value in other.items()), other
    in_a_number = [number for number, text in enumerate(lines, 1) if re.search(r"Running: \d$", text)]
    assert set(in_a_number) <= set(result.issues["line_no"])


STEP = (
    "Engine 011: Iteration(90112): 113 context requests, 12288 context tokens, 190 generation requests, 191 generation tokens, "
    "iteration elapsed time: 187.32 ms (dummy), GPU KV cache usage: 71.45%, encoder inputs: 12, encoder output embeddings: 13"
)


def test_step_lines() -> None:
    row = one(info(STEP), "engine_step")
    assert row == {
        "line_no": 1, "step_ts": datetime(2000, 11, 29, 12), "error_s": 1.0, "engine_index": 11, "step_index": 90112,
        "context_requests": 113, "context_tokens": 12288, "generation_requests": 190, "generation_tokens": 191,
        "elapsed_s": 0.18732, "kv_cache_usage_ratio": 0.7145, "dummy": True,
    }  # fmt: skip
    old = one(info(STEP.removeprefix("Engine 011: ").partition(" (dummy)")[0]), "engine_step")
    assert (old["engine_index"], old["elapsed_s"], old["kv_cache_usage_ratio"], old["dummy"]) == (
        0,
        0.18732,
        None,
        False,
    )


def test_a_step_line_cut_anywhere_gives_no_wrong_number() -> None:
    line = info(STEP)
    whole = one(line, "engine_step")
    result = parsed([line[:end] for end in range(len(line) + 1)])
    found = rows(result, "engine_step")
    assert found
    for row in found:
        assert all(
            whole[name] == value
            for name, value in row.items()
            if value is not None and name not in ("line_no", "dummy")
        )
    first = min(row["line_no"] for row in found)
    begun = line.index("Iteration(90112): ") + 19
    assert set(range(begun, first)) <= set(result.issues["line_no"]), (
        "cut before its duration, it is an issue"
    )


def test_a_request_line_cut_anywhere_gives_no_wrong_number() -> None:
    line = info(
        "Received request chatcmpl-1: prompt: 'hi', params: SamplingParams(n=12, temperature=0.7, max_tokens=345, logprobs=None), "
        "prompt_token_ids: [11, 22, 33, 44], lora_request: None."
    )
    result = parsed([line[:end] for end in range(len(line) + 1)])
    whole = {
        "sequence_count": 12,
        "max_tokens": 345,
        "input_tokens": 4,
        "input_char_count": 2,
        "logged_id": "chatcmpl-1",
    }
    for row in rows(result, "request_event"):
        assert all(row[name] in (None, value) for name, value in whole.items()), row


@pytest.mark.parametrize(
    ("message", "events"),
    [
        ("Added request chatcmpl-a-1c9be07a.", [("added", "chatcmpl-a-1c9be07a")]),
        ("Added request v0.9.1-x.y.", [("added", "v0.9.1-x.y")]),
        ("Finished request cmpl-a-0.", [("finished", "cmpl-a-0")]),
        ("Aborted request cmpl-a-0.", [("aborted", "cmpl-a-0")]),
        ("Aborted request(s) a,b-1c9be07a,c.", [("aborted", "a"), ("aborted", "b-1c9be07a"), ("aborted", "c")]),
        ("Request chatcmpl-a aborted.", [("aborted", "chatcmpl-a")]),
        ("Request chatcmpl-a failed.", [("failed", "chatcmpl-a")]),
        ("Request chatcmpl-a failed (engine dead).", [("failed", "chatcmpl-a")]),
        ("Generated response a (streaming delta): output: 'Hi', output_token_ids: [1], finish_reason: None", [("first_token", "a")]),
        ("Generated response a (streaming complete): output: 'Hi', finish_reason: streaming_complete", [("finished", "a")]),
        ("Received request a: params: SamplingParams(n=1), lora_request: None.", [("received", "a")]),
        ("Received request a: params: PoolingParams(dimensions=None), lora_request: None.", [("received", "a")]),
        ("Request 1 JSON body: {\"request_id\": \"Added request x.\"}", []),
        ("Request a details: prompt: 'Request b aborted.', prompt_token_ids: None, prompt_embeds shape: None.", []),
        ("Request queue full - rejecting request a (current=1, n=1, max=1)", []),
    ],
)  # fmt: skip
def test_request_lines(message: str, events: list[tuple[str, str]]) -> None:
    result = parsed([info(message)])
    found = [(row["event"], row["logged_id"]) for row in rows(result, "request_event")]
    assert found == events
    assert result.issues.height == 0
    for row in rows(result, "request_event"):
        assert (row["request_id"], row["event_ts"], row["error_s"]) == (
            row["logged_id"],
            datetime(2000, 11, 29, 12),
            1.0,
        )
        assert row["process"] == "APIServer"


@pytest.mark.parametrize(
    ("message", "detail"),
    [
        ("Request a failed.", None),
        ("Request a failed (bad request): too long.", "bad request: too long"),
        ("Request a failed due to ValueError: bad grammar.", "ValueError: bad grammar"),
        ("Request a failed validation: no such thing", "no such thing"),
        ("Request a failed (input error): length 5: max 4.", "input error: length 5: max 4"),
    ],
)
def test_failures_keep_their_reason(message: str, detail: str | None) -> None:
    row = one(info(message), "request_event")
    assert (row["event"], row["logged_id"], row["detail"]) == ("failed", "a", detail)


@pytest.mark.parametrize(
    "message",
    [
        "Added request chatcmpl-1",
        "Finished request chatcmpl-1",
        "Aborted request(s) chatcmpl-1,chatc",
        "Generated response chatcmpl-1",
        "Generated response chatcmpl-1 (streaming del",
        "Received request chatcmpl-1",
        "Request chatcmpl-1 failed (bad requ",
        "Engine 000: Avg prompt throughput: 10.0 tokens/s, Avg gener",
        "Engine 000: Iteration(7): 2 context requests, 40",
    ],
)
def test_a_line_cut_before_its_fact_is_an_issue(message: str) -> None:
    result = parsed([info(message)])
    assert rows(result, "request_event") + rows(result, "engine_sample") + rows(result, "engine_step") == []
    assert result.issues.height == 1
    assert result.issues["reason"][0].endswith(" line cut or changed")


@pytest.mark.parametrize(
    ("logged", "reason"),
    [("stop", "stop"), ("length", "length"), ("None", None), ("streaming_complete", None), ("tool_calls", "tool_calls"),
     ("sto", None), ("len", None), ("streaming_com", None), ("a", None)],
)  # fmt: skip
def test_a_finish_reason_is_never_half_a_word(logged: str, reason: str | None) -> None:
    row = one(
        info(f"Generated response a: output: 'x', output_token_ids: [10, 2], finish_reason: {logged}"),
        "request_event",
    )
    assert (row["event"], row["finish_reason"], row["output_tokens"]) == ("finished", reason, 2)


def test_the_rust_front_ends_only_request_line() -> None:
    row = one(
        info('chat_completions{request_id=chatcmpl-1 engine_request_id=chatcmpl-1-0badcafe}: chat completion finished '
             'stream=true model=acme/x prompt_tokens=211 output_tokens=96 finish_reason="stop"'),
        "request_event",
    )  # fmt: skip
    assert [row[name] for name in ("event", "logged_id", "input_tokens", "output_tokens", "finish_reason")] == [
        "finished", "chatcmpl-1", 211, 96, "stop",
    ]  # fmt: skip


PARAMS = "SamplingParams(n=2, presence_penalty=0.0, max_tokens=64, min_tokens=0, logprobs=None)"


@pytest.mark.parametrize(
    "prompt",
    [
        "abc",
        "",
        "x, params: SamplingParams(n=99, max_tokens=99), prompt_token_ids: [1, 2, 3], lora_request: None.",
        r"line one\nline two\n\nINFO 01-01 00:00:00 [a.py:1] Added request z.",
        "Received request other: params: SamplingParams(n=7, max_tokens=7)",
        "Generated response r: output: ",
        "3 Engines Aggregated: Avg prompt throughput: 1.0 tokens/s, Running: 5 reqs",
        "Engine 000: Avg prompt throughput: 1.0 tokens/s, Avg generation throughput: 1.0 tokens/s, Running: 5 reqs, Waiting: 1 reqs",
        'INFO:     1.2.3.4:5 - "GET / HTTP/1.1" 200 OK',
        "is preempted by PreemptionMode.RECOMPUTE",
        "Ünïcödé 漢字 🚀",
    ],
)
@pytest.mark.parametrize(
    "form",
    [
        "prompt: '{prompt}', sampling params: {params}, prompt token ids: [5, 6, 7].",
        "prompt: '{prompt}', prefix_pos: None,sampling_params: {params}, prompt_token_ids: [5, 6, 7], lora_request: None.",
        "prompt: '{prompt}', params: {params}, prompt_token_ids: [5, 6, 7], lora_request: None, prompt_adapter_request: None.",
        "prompt: '{prompt}', params: {params}, prompt_token_ids: [5, 6, 7], prompt_embeds shape: None, lora_request: None.",
    ],
    ids=["0.2", "0.3", "0.8", "0.10"],
)
def test_a_prompt_may_hold_anything(form: str, prompt: str) -> None:
    result = parsed([info("Received request r-1: " + form.format(prompt=prompt, params=PARAMS))])
    (row,) = rows(result, "request_event")
    assert (row["event"], row["logged_id"], row["max_tokens"], row["sequence_count"]) == (
        "received",
        "r-1",
        64,
        2,
    )
    assert (row["input_tokens"], row["input_char_count"]) == (3, len(prompt))
    assert sorted(result.tables) == ["request_event"]


def test_a_prompt_of_200_kb_is_counted_and_kept_only_on_request() -> None:
    prompt = "word " * 40_000
    line = info(
        f"Received request big: prompt: '{prompt}', params: {PARAMS}, prompt_token_ids: None, lora_request: None."
    )
    result = parsed([line])
    (row,) = rows(result, "request_event")
    assert (row["input_char_count"], row["input_tokens"]) == (200_000, None)
    assert "word word" not in json.dumps([frame.to_dicts() for frame in result.tables.values()], default=str)
    (text,) = rows(parsed([line], keep_text=True), "request_text")
    assert text["kind"] == "prompt"
    assert text["request_id"] == "big"
    assert prompt in text["content"]


@pytest.mark.parametrize(
    "begin", ["Received request  prompt: ", "Generated response a output: ", "(partial) 1 JSON body: "]
)
def test_a_line_that_was_not_understood_does_not_show_its_prompt(begin: str) -> None:
    line = (info(begin) if begin[0] != "(" else begin) + "'my password is swordfish"
    for keep_text in (False, True):
        (excerpt,) = parsed([line], keep_text=keep_text).issues["excerpt"]
        assert ("swordfish" in excerpt) is keep_text
        assert excerpt.startswith(line[:20])


def test_output_text_is_kept_only_on_request() -> None:
    line = info(
        "Generated response a: output: 'sword, finish_reason: stop', output_token_ids: [1, 2], finish_reason: length"
    )
    assert "request_text" not in parsed([line]).tables
    (text,) = rows(parsed([line], keep_text=True), "request_text")
    assert (text["kind"], text["request_id"], text["content"]) == (
        "output",
        "a",
        "'sword, finish_reason: stop'",
    )


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('INFO:     10.0.0.7:47428 - "POST /v1/chat/completions HTTP/1.1" 200 OK', ("10.0.0.7:47428", "POST", "/v1/chat/completions", 200, None)),
        ('(APIServer pid=7) INFO:     10.0.0.7:1 - "GET /health HTTP/1.0" 503 Service Unavailable', ("10.0.0.7:1", "GET", "/health", 503, "APIServer")),
        ('(ApiServer_1 pid=8) INFO:     ::1:55010 - "GET /metrics HTTP/1.1" 200', ("::1:55010", "GET", "/metrics", 200, "ApiServer_1")),
        ('INFO:     [2001:db8::7]:443 - "DELETE /v1/x?api_key=secret&a=b HTTP/2" 418 I\'m a Teapot', ("[2001:db8::7]:443", "DELETE", "/v1/x", 418, None)),
        ('INFO:      - "GET /ping HTTP/1.1" 200 OK', (None, "GET", "/ping", 200, None)),
        (f'{ESCAPE}[32mINFO{ESCAPE}[0m:     10.0.0.5:4 - "{ESCAPE}[1mPOST /v1/completions HTTP/1.1{ESCAPE}[0m" {ESCAPE}[32m200 OK{ESCAPE}[0m', ("10.0.0.5:4", "POST", "/v1/completions", 200, None)),
    ],
)  # fmt: skip
def test_access_lines(line: str, expected: tuple[Any, ...]) -> None:
    before = info("Added request a.", second=7)
    (row,) = rows(parsed([before, line]), "access_line")
    assert tuple(row[name] for name in ("client_addr", "method", "path", "status", "process")) == expected
    assert row["logged_after_ts"] == datetime(2000, 11, 29, 12, 0, 7)


def test_colours_and_carriage_returns_change_nothing() -> None:
    plain = [info("Added request a."), info("WARNING sign")]
    coloured = [
        f"{ESCAPE}[1;36m(APIServer pid=7){ESCAPE}[0;0m INFO 11-29 12:00:00 [x.py:1] Added request a.",
        f"{ESCAPE}[0;36m(APIServer pid=7){ESCAPE}[0;0m {ESCAPE}[32mINFO{ESCAPE}[0m {ESCAPE}[90m11-29 12:00:00{ESCAPE}[0m "
        f"{ESCAPE}[90m[x.py:1]{ESCAPE}[0m WARNING sign\r",
    ]
    assert {name: frame.rows() for name, frame in parsed(plain).tables.items()} == {
        name: frame.rows() for name, frame in parsed(coloured).tables.items()
    }


@pytest.mark.parametrize(
    "bar",
    [
        "\rLoading safetensors checkpoint shards:   0% Completed | 0/4 [00:00<?, ?it/s]\rLoading: 25%|##   | 1/4 [00:01<00:03, 1.01s/it]\r",
        "Capturing CUDA graph shapes:  97%|#########7| 34/35 [00:18<00:00,  1.90it/s]",
        "\rCapturing CUDA graph shapes:  97%|█████████▋| 34/35 [00:18<00:00,  1.90it/s]",
        "Capturing:  97%|#| 34/35 [00:18<00:00,  1.90it/s]\r(Worker_TP0 pid=1) ",
    ],
)
def test_a_progress_bar_before_a_record_does_not_hide_it(bar: str) -> None:
    row = one(bar + info("Added request a."), "request_event")
    assert (row["event"], row["logged_id"], row["process"]) == ("added", "a", "APIServer")


def test_of_nested_process_prefixes_the_last_one_wrote_the_line() -> None:
    line = "(EngineCore_DP0 pid=1) (RayWorkerWrapper pid=2, ip=10.0.0.9) WARNING 11-29 12:00:00 [x.py:1] hot"
    row = one(line, "log_event")
    assert (row["process"], row["level"], row["kind"], row["message"], row["origin"]) == (
        "RayWorkerWrapper", "WARNING", "warning", "hot", "x.py:1",
    )  # fmt: skip
    spaced = one("(VllmWorker rank=2 pid=7741) WARNING 11-29 12:00:00 [x.py:1] hot", "log_event")
    assert spaced["process"] == "VllmWorker rank=2"


def test_companion_lines_give_each_of_their_numbers() -> None:
    def numbers(name: str) -> dict[str, list[float]]:
        found: dict[str, list[float]] = {}
        for row in rows(parsed(lines_of(name)), "metric_sample"):
            found.setdefault(row["name"], []).append(row["measured"])
        return found

    assert numbers("v0.6-0.7_v0_mq_engine.log") == {
        "Prefix cache hit rate: GPU": [41.27], "Prefix cache hit rate: CPU": [0.0],
        "Speculative metrics: Draft acceptance rate": [0.613], "Speculative metrics: System efficiency": [0.541],
        "Speculative metrics: Number of speculative tokens": [4], "Speculative metrics: Number of accepted tokens": [4410],
        "Speculative metrics: Number of draft tokens": [7192], "Speculative metrics: Number of emitted tokens": [4865],
    }  # fmt: skip
    assert numbers("v0.10.1-0.11_v1_ansi_prefix.log") == {
        "SpecDecoding metrics: Mean acceptance length": [2.41], "SpecDecoding metrics: Accepted throughput": [702.31],
        "SpecDecoding metrics: Drafted throughput": [1502.08], "SpecDecoding metrics: Accepted": [7024],
        "SpecDecoding metrics: Drafted": [15022], "SpecDecoding metrics: Per-position acceptance rate": [0.771, 0.412, 0.225],
        "SpecDecoding metrics: Avg Draft acceptance rate": [46.8],
        "KV Transfer metrics: Num successful transfers": [18], "KV Transfer metrics: Avg xfer time (ms)": [21.404],
        "KV Transfer metrics: P90 xfer time (ms)": [33.118], "KV Transfer metrics: Avg post time (ms)": [1.204],
        "KV Transfer metrics: P90 post time (ms)": [1.93], "KV Transfer metrics: Avg MB per transfer": [96.0],
        "KV Transfer metrics: Throughput (MB/s)": [4485.143], "KV Transfer metrics: Avg number of descriptors": [512.0],
    }  # fmt: skip
    assert numbers("v0.11.1-0.16_v1.log") == {"MFU: TF/s/GPU": [312.4], "MFU: GB/s/GPU": [1904.7]}
    labels = [row["labels"] for row in rows(parsed(lines_of("v0.8-0.10.0_v1.log")), "metric_sample")]
    assert labels == [None] * 4 + ['{"position":"0"}', '{"position":"1"}', '{"position":"2"}']


def test_warnings_and_errors_are_events_whatever_they_say() -> None:
    lines = [
        "(EngineCore pid=8) WARNING 11-29 12:00:00 [nixl.py:1] Request chatcmpl-a timed out after 480 seconds.",
        "(EngineCore pid=8) ERROR 11-29 12:00:01 [x.py:1] Request for a new block failed: no blocks",
        "WARNING 11-29 12:00:02 [scheduler.py:1] Sequence group c-0 is preempted by PreemptionMode.SWAP mode because there is not enough KV cache space. total_num_cumulative_preemption=51",
    ]
    result = parsed(lines)
    assert [(row["line_no"], row["level"], row["kind"]) for row in rows(result, "log_event")] == [
        (1, "WARNING", "warning"), (2, "ERROR", "error"), (3, "WARNING", "preemption"),
    ]  # fmt: skip
    (event,) = rows(result, "request_event")
    assert (event["event"], event["logged_id"], event["detail"]) == (
        "preempted",
        "c-0",
        "total_num_cumulative_preemption=51",
    )


def test_events_of_the_mixed_faults() -> None:
    kinds = [(row["line_no"], row["kind"]) for row in rows(parsed(lines_of("faults_mixed.log")), "log_event")]
    assert kinds == [
        (1, "stall"), (2, "stall"), (3, "stall"), (4, "stall"), (5, "dead"), (6, "dead"), (7, "error"), (8, "error"),
        (9, "error"), (10, "dead"), (11, "error"), (12, "oom"), (13, "dead"), (14, "dead"), (17, "stop"), (18, "warning"),
        (19, "dead"), (20, "dead"), (21, "notice"),
    ]  # fmt: skip


def test_a_collective_that_timed_out_is_told_by_pytorch_with_and_without_a_time_of_day() -> None:
    """As in reports of vLLM 0.2.7 to 0.6.2 (vllm-project/vllm 2476, 2734, 9321)."""
    lines = [
        "INFO 10-12 22:31:20 engine.py:270] Added request cmpl-1.",
        "[rank3]:[E1012 22:31:22.267261276 ProcessGroupNCCL.cpp:607] [Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7) ran for 600020 milliseconds before timing out.",
        "(RayWorkerVllm pid=5085) [E ProcessGroupNCCL.cpp:475] [Rank 4] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7) ran for 1800270 milliseconds before timing out.",
        "[E ProcessGroupNCCL.cpp:495] To avoid data inconsistency, we are taking the entire process down.",
        "[E ProcessGroupNCCL.cpp:916] [Rank 0] NCCL watchdog thread terminated with exception: CUDA error: unknown error",
        "[W CUDAGraph.cpp:145] Warning: Waiting for pending NCCL work to finish before starting graph capture. (function operator())",
        "[2024-01-18 07:29:07,017 E 800806 808293] logging.cc:97: Unhandled exception: St13runtime_error. what(): CUDA error",
    ]
    result = parsed(lines)
    assert result.issues.height == 0
    assert [(row["line_no"], row["level"], row["kind"]) for row in rows(result, "log_event")] == [
        (2, "ERROR", "stall"), (3, "ERROR", "stall"), (4, "ERROR", "dead"), (5, "ERROR", "dead"), (6, "WARNING", "warning"),
        (7, "ERROR", "error"),
    ]  # fmt: skip
    assert [row["origin"] for row in rows(result, "log_event")][1] == "ProcessGroupNCCL.cpp:475"


def test_a_log_whose_newest_line_comes_first_is_refused_since_order_decides() -> None:
    """Log explorers export that way; read as it stands, a queue that grows would be a server that falls silent."""
    lines = [
        f"INFO 10-12 22:31:{second:02} [loggers.py:127] Engine 000: Avg prompt throughput: 1.0 tokens/s, Avg generation throughput: 1.0 tokens/s, Running: 1 reqs, Waiting: {second} reqs, GPU KV cache usage: 1.0%, Prefix cache hit rate: 0.0%"
        for second in range(0, 50, 10)
    ]
    assert vllm_log.sniff(Head(tuple(lines), complete=True)).refusal == ""
    assert "tac FILE" in vllm_log.sniff(Head(tuple(reversed(lines)), complete=True)).refusal


def test_what_torch_prints_about_its_operators_is_no_traceback() -> None:
    events = rows(parsed(lines_of("v0.9.1_v0_preemption.log")), "log_event")
    assert [row for row in events if row["kind"] == "traceback"] == []


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Dear all, the vLLM server was slow.",
        "2025-01-01 INFO something else entirely",
        '{"timestamp": "2025-01-01T00:00:00Z", "level": "INFO", "fields": {"message": "x"}}',
        "#Time gpu sm mem\n 12:00:00 0 1 2",
    ],
)
def test_foreign_text_is_not_claimed(text: str) -> None:
    assert vllm_log.sniff(Head(tuple(text.split("\n")), complete=True)) is None


def test_a_report_that_quotes_a_line_is_not_a_log() -> None:
    lines = [f"And then, dear reader, came sentence {n}." for n in range(60)]
    assert vllm_log.sniff(Head((*lines, info("Added request a.")), complete=True)) is None
    assert vllm_log.sniff(Head((*lines[:10], info("Added request a.")), complete=True)) is not None


def test_a_stamp_that_no_calendar_has_is_no_time() -> None:
    days = {"a": "02-29", "b": "02-30", "c": "13-01", "d": "03-01", "e": "03-01"}
    lines = [f"INFO {day} 00:00:00 [x.py:1] Added request {name}." for name, day in days.items()]
    result = parsed(lines)
    assert [(row["logged_id"], row["event_ts"], row["error_s"]) for row in rows(result, "request_event")] == [
        ("a", datetime(2000, 2, 29), 1.0), ("b", None, None), ("c", None, None),
        ("d", datetime(2000, 3, 1), 1.0), ("e", datetime(2000, 3, 1), 1.0),
    ]  # fmt: skip
    assert result.stamps.rows() == [
        (1, datetime(2000, 2, 29)),
        (4, datetime(2000, 3, 1)),
        (5, datetime(2000, 3, 1)),
    ]
