"""Request traces of Dynamo and SGLang; expected values are read off the samples."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracelens.formats.base import Chunk, Claim, Clock, Format, Head, Parsed
from tracelens.formats.traces import dynamo_trace, sglang_requests

SAMPLES = Path(__file__).parents[2] / "sample_logs"
KINDS = [dynamo_trace.FORMAT, sglang_requests.FORMAT]


def frame(lines: list[str], first: int = 1) -> pl.DataFrame:
    numbers = list(range(first, first + len(lines)))
    return pl.DataFrame({"line_no": numbers, "text": lines}, schema={"line_no": pl.Int64, "text": pl.String})


def parse(kind: Format, lines: list[str], first: int = 1) -> Parsed:
    return kind.parse(Chunk(frame(lines, first), Claim("x", Clock.UTC)))


def sample(name: str) -> list[str]:
    return (SAMPLES / name).read_text().splitlines()


def rows(kind: Format, lines: list[str]) -> list[dict[str, Any]]:
    return parse(kind, lines).tables["server_request"].to_dicts()


def test_dynamo_times_are_the_front_ends() -> None:
    first, replayed = rows(dynamo_trace.FORMAT, sample("dynamo_trace/request_trace_v1.jsonl"))
    assert (first["request_id"], first["measured_by"], first["service"]) == ("trace-000017", "log", "dynamo")
    assert first["arrival_ts"] == datetime(2025, 10, 21, 12, 34, 56, 125000)
    assert (first["ttft_s"], first["e2e_s"]) == (0.8125, 6.5)
    assert (first["input_tokens"], first["cached_input_tokens"], first["output_tokens"]) == (512, 256, 128)
    assert first["finish_reason"] == "length"
    # The engine's queue is inside what Dynamo calls prefill: neither is a stage of the engine.
    assert (first["queue_s"], first["prefill_s"], first["decode_s"]) == (None, None, None)
    other = json.loads(first["other"])
    assert (other["prefill_wait_time_ms"], other["prefill_time_ms"]) == (62.5, 750.0)
    assert other["dynamo_request_id"] == "6f1c0e6a-0001"
    assert (replayed["request_id"], replayed["input_tokens"], replayed["ttft_s"]) == (
        "6f1c0e6a-0002",
        192,
        None,
    )
    assert replayed["arrival_ts"] == datetime(2025, 10, 21, 12, 35, 3)


def test_prompts_in_payload_events_are_not_kept() -> None:
    parsed = parse(dynamo_trace.FORMAT, sample("dynamo_trace/request_trace_v1.jsonl"))
    assert (parsed.understood, parsed.issues.height) == (4, 0)
    assert "hello" not in str(parsed.tables)


@pytest.mark.parametrize("name", ["log_requests_json.jsonl", "exported_metrics.jsonl"])
def test_sglang_states_queue_and_prefill(name: str) -> None:
    row = rows(sglang_requests.FORMAT, sample(f"sglang_requests/{name}"))[0]
    assert row["request_id"] == "5b0d3b7c8f1e4b0e9a51d6d1d0c50017"
    assert row["arrival_ts"] == datetime(2025, 10, 21, 12, 34, 56, 125000)
    # 96.6875 scheduled, 96.9375 first token, 96.125 received
    assert (row["queue_s"], row["prefill_s"], row["ttft_s"], row["e2e_s"]) == (0.5, 0.25, 0.8125, 6.5)
    assert (row["input_tokens"], row["cached_input_tokens"], row["output_tokens"]) == (512, 256, 128)
    assert (row["finish_reason"], row["decode_s"]) == ("length", None)


def test_a_queue_time_without_the_schedulers_times_is_no_number() -> None:
    _, row = rows(sglang_requests.FORMAT, sample("sglang_requests/log_requests_json.jsonl"))
    assert (row["finish_reason"], row["queue_s"], row["prefill_s"], row["ttft_s"]) == (
        "abort",
        None,
        None,
        None,
    )
    assert row["e2e_s"] == 1201.9242150001228


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_cut_empty_and_foreign_lines(kind: Format) -> None:
    (path, *_) = sorted((SAMPLES / kind.name).glob("*.jsonl"))
    lines = path.read_text().splitlines()
    parsed = parse(kind, [lines[0][:-5], "", '{"a": 1}', "x", *lines])
    reasons = parsed.issues["reason"].to_list()
    assert (reasons[0], reasons[2], len(reasons)) == ("not JSON", "not JSON", 3)
    assert parsed.understood == len(lines) + 1
    assert kind.sniff(Head(())) is None
    assert kind.sniff(Head(('{"a": 1}', "{}"), complete=True)) is None


LEAVES = st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=6)


@settings(max_examples=30, deadline=None)
@given(st.sampled_from(KINDS), st.data())
def test_any_values_are_read_without_an_error_however_lines_are_cut(
    kind: Format, data: st.DataObject
) -> None:
    paths = sorted((SAMPLES / kind.name).glob("*.jsonl"))
    whole = [json.loads(line) for path in paths for line in path.read_text().splitlines()]

    def spoilt(value: Any) -> Any:
        if data.draw(st.integers(0, 6)) == 0:
            return data.draw(LEAVES)
        return {key: spoilt(inner) for key, inner in value.items()} if isinstance(value, dict) else value

    lines = [json.dumps(spoilt(data.draw(st.sampled_from(whole)))) for _ in range(3)]
    together = parse(kind, lines)
    assert together.understood + together.issues.height == len(lines)
    parts = [parse(kind, lines[:1]), parse(kind, lines[1:], 2)]
    assert pl.concat([part.tables["server_request"] for part in parts]).equals(
        together.tables["server_request"]
    )
