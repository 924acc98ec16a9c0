"""Spans in every shape: one request written in five ways is one and the same row."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracelens.formats.base import Chunk, Claim, Clock, Format, Head, Parsed
from tracelens.formats.traces import otlp_spans
from tracelens.formats.traces.span_documents import FORMAT
from tracelens.formats.traces.span_shapes import trace_id_of

SAMPLES = Path(__file__).parents[2] / "sample_logs"
ONE_REQUEST = [
    "otlp_spans/v0.28_by_hand.jsonl",
    "span_documents/console_exporter.json",
    "span_documents/jaeger_ui_download.json",
    "span_documents/tempo_api_v1.json",
    "span_documents/zipkin_v2.json",
]
TRUTH = {
    "request_id": "chatcmpl-trace-000017",
    "trace_id": "5f1e9c0d7a4b4c0f9b3d2e1a0c8b7f66",
    "measured_by": "span",
    "service": "vllm-server",
    "arrival_ts": datetime(2025, 10, 21, 12, 34, 56, 125000),  # 1761050096125000000 ns
    "queue_s": 0.5,
    "prefill_s": 0.25,
    "decode_s": 5.5,
    "inference_s": 5.75,
    "ttft_s": 0.8125,
    "e2e_s": 6.5,
    "input_tokens": 512,
    "cached_input_tokens": None,
    "output_tokens": 128,
    "max_tokens": 2048,
    "sequence_count": 1,
    "finish_reason": None,
}


def lines_of(text: str, first: int = 1) -> pl.DataFrame:
    lines = text.split("\n")
    numbers = list(range(first, first + len(lines)))
    return pl.DataFrame({"line_no": numbers, "text": lines}, schema={"line_no": pl.Int64, "text": pl.String})


def parse(text: str, kind: Format = FORMAT) -> Parsed:
    return kind.parse(Chunk(lines_of(text), Claim("x", Clock.UTC)))


def rows(text: str) -> list[dict[str, Any]]:
    return parse(text).tables["server_request"].to_dicts()


def sample(name: str) -> str:
    return (SAMPLES / name).read_text().rstrip("\n")


@pytest.mark.parametrize("name", ONE_REQUEST)
def test_the_same_request_is_the_same_row_in_every_shape(name: str) -> None:
    text = sample(name)
    kind = otlp_spans.FORMAT if name.startswith("otlp") else FORMAT
    parsed = parse(text, kind)
    assert (parsed.understood, parsed.issues.height) == (len(text.split("\n")), 0)
    (row,) = parsed.tables["server_request"].to_dicts()
    other = json.loads(row.pop("other"))
    assert row == TRUTH | {"line_no": 1}
    assert {key: float(value) for key, value in other.items()} == {
        "gen_ai.request.top_p": 0.9,
        "gen_ai.request.temperature": 0.7,
    }
    assert parsed.stamps.rows() == [(1, TRUTH["arrival_ts"])]


def recorded() -> list[dict[str, Any]]:
    """The spans of a recorded file, attributes as plain values."""
    exports = [json.loads(line) for line in sample("otlp_spans/v0.32_v1_engine.jsonl").split("\n")]
    spans = [span for one in exports for span in one["resourceSpans"][0]["scopeSpans"][0]["spans"]]
    for span in spans:
        pairs = ((each["key"], next(iter(each["value"].items()))) for each in span["attributes"])
        span["plain"] = {key: int(held) if kind == "intValue" else held for key, (kind, held) in pairs}
    return spans


def as_jaeger(spans: list[dict[str, Any]]) -> str:
    written = [
        {
            "traceID": span["traceId"].lstrip("0"),
            "operationName": span["name"],
            "startTime": int(span["startTimeUnixNano"]) // 1000,
            "duration": (int(span["endTimeUnixNano"]) - int(span["startTimeUnixNano"])) // 1000,
            "tags": [{"key": key, "value": value} for key, value in span["plain"].items()],
            "processID": "p1",
        }
        for span in spans
    ]
    trace = {"traceID": "1", "spans": written, "processes": {"p1": {"serviceName": "vllm-server"}}}
    return json.dumps({"data": [trace]})


def as_console(spans: list[dict[str, Any]]) -> str:
    def iso(nanoseconds: str) -> str:
        return (datetime(1970, 1, 1) + timedelta(microseconds=int(nanoseconds) // 1000)).isoformat() + "Z"

    written = [
        {
            "name": span["name"],
            "context": {"trace_id": "0x" + span["traceId"]},
            "start_time": iso(span["startTimeUnixNano"]),
            "end_time": iso(span["endTimeUnixNano"]),
            "attributes": span["plain"],
            "resource": {"attributes": {"service.name": "vllm-server"}},
        }
        for span in spans
    ]
    return "\n".join(json.dumps(each, indent=4) for each in written)


@pytest.mark.parametrize("write", [as_jaeger, as_console])
def test_recorded_spans_are_the_same_rows_in_other_shapes(write: Any) -> None:
    whole = parse(sample("otlp_spans/v0.32_v1_engine.jsonl"), otlp_spans.FORMAT).tables["server_request"]
    other = parse(write(recorded())).tables["server_request"]
    assert whole.height == 15
    assert other.drop("line_no").equals(whole.drop("line_no"))


def test_prefill_of_sglang_does_not_hold_the_queue() -> None:
    (row,) = rows(sample("span_documents/sglang_jaeger.json"))
    assert (row["queue_s"], row["prefill_s"], row["decode_s"]) == (0.5, 0.25, 5.6875)
    assert (row["ttft_s"], row["e2e_s"], row["inference_s"]) == (0.8125, 6.5, None)
    assert json.loads(row["other"])["gen_ai.latency.time_in_model_prefill"] == 0.7875
    assert (row["request_id"], row["finish_reason"]) == ("5b0d3b7c8f1e4b0e9a51d6d1d0c50017", "length")
    assert (row["cached_input_tokens"], row["service"]) == (256, "sglang")
    assert row["trace_id"] == "001e9c0d7a4b4c0f9b3d2e1a0c8b7f66"


def test_stages_of_a_trace_with_two_requests_belong_to_none() -> None:
    document = json.loads(sample("span_documents/sglang_jaeger.json"))
    spans = document["data"][0]["spans"]
    spans.append({**spans[0], "spanID": "a2"})
    found = rows(json.dumps(document))
    assert [(row["queue_s"], row["prefill_s"]) for row in found] == [(None, None)] * 2


def test_spans_of_gateways_and_clients_are_understood_and_no_requests() -> None:
    document = json.loads(sample("span_documents/sglang_jaeger.json"))
    trace = document["data"][0]
    trace["spans"] = [
        span for span in trace["spans"] if span["operationName"].startswith(("POST", "Scheduler"))
    ]
    text = json.dumps(document, indent=1)
    parsed = parse(text)
    assert parsed.understood == len(text.split("\n"))
    assert parsed.tables["server_request"].height == 0


@pytest.mark.parametrize(
    "wrap",
    [
        lambda export: {"result": export},
        lambda export: {"trace": export},
        lambda export: {"batches": export["resourceSpans"]},
        lambda export: export,
    ],
)
def test_otlp_documents_come_bare_or_wrapped(wrap: Any) -> None:
    export = json.loads(sample("otlp_spans/v0.28_by_hand.jsonl"))
    (row,) = rows(json.dumps(wrap(export), indent=1))
    assert {key: row[key] for key in TRUTH} == TRUTH


def test_names_in_snake_case_are_read() -> None:
    text = sample("otlp_spans/v0.28_by_hand.jsonl")
    for name in ("resourceSpans", "scopeSpans", "traceId", "startTimeUnixNano", "doubleValue", "intValue"):
        snake = "".join(f"_{char.lower()}" if char.isupper() else char for char in name)
        text = text.replace(f'"{name}"', f'"{snake}"')
    (row,) = parse(text, otlp_spans.FORMAT).tables["server_request"].to_dicts()
    assert (row["ttft_s"], row["input_tokens"]) == (0.8125, 512)
    assert row["arrival_ts"] == TRUTH["arrival_ts"]


def test_console_spans_between_other_lines() -> None:
    span = sample("span_documents/console_exporter.json")
    text = f"Starting\n{span}\n\n{span}\nDone {{\n{span[:-40]}"
    parsed = parse(text)
    height = len(span.split("\n"))
    assert parsed.tables["server_request"]["line_no"].to_list() == [2, height + 3]
    told = {row["line_no"] for row in parsed.issues.to_dicts()}
    assert {1, 2 * height + 3} < told
    assert parsed.understood + parsed.issues.height == len(text.split("\n"))


def test_a_cut_download_gives_the_spans_that_are_whole() -> None:
    text = sample("span_documents/sglang_jaeger.json")
    cut = text[: text.index('"operationName": "prefill_forward"')]
    (row,) = rows(cut)
    assert (row["request_id"], row["ttft_s"]) == ("5b0d3b7c8f1e4b0e9a51d6d1d0c50017", 0.8125)


def test_documents_without_spans_are_issues() -> None:
    parsed = parse('{\n "a": 1\n}')
    assert parsed.issues["reason"].to_list() == ["no spans in it"] * 3


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("5F1E9C0D7A4B4C0F9B3D2E1A0C8B7F66", "5f1e9c0d7a4b4c0f9b3d2e1a0c8b7f66"),
        ("0x5f1e9c0d7a4b4c0f9b3d2e1a0c8b7f66", "5f1e9c0d7a4b4c0f9b3d2e1a0c8b7f66"),
        ("Xx6cDXpLTA+bPS4aDIt/Zg==", "5f1e9c0d7a4b4c0f9b3d2e1a0c8b7f66"),
        ("Xx6cDXpLTA-bPS4aDIt_Zg", "5f1e9c0d7a4b4c0f9b3d2e1a0c8b7f66"),
        ("7a4b4c0f9b3d2e1a", "00000000000000007a4b4c0f9b3d2e1a"),
        ("0" * 32, None),
        ("", None),
        (7, None),
        ("not an id", None),
    ],
)
def test_trace_ids_in_hex_and_base64(written: Any, expected: str | None) -> None:
    assert trace_id_of(written) == expected


@pytest.mark.parametrize(
    "text", ["", "{", '{"data": [1]}', '{\n "spans": 1\n}', '[{"traceId": 1}]', "log line\n" * 20]
)
def test_other_files_are_not_claimed(text: str) -> None:
    assert FORMAT.sniff(Head(tuple(text.split("\n")), complete=True)) is None


def test_a_server_log_with_a_span_in_it_stays_a_server_log() -> None:
    span = sample("span_documents/console_exporter.json")
    log = "INFO 11-29 12:00:00 [loggers.py:1] Avg prompt throughput: 1.0 tokens/s\n" * 5
    assert FORMAT.sniff(Head(tuple((log + span).split("\n")), complete=True)) is None


def test_spans_in_the_output_of_another_program_are_claimed() -> None:
    span = sample("span_documents/console_exporter.json")
    text = "app: started\napp: calling the model\n" + span
    assert FORMAT.sniff(Head(tuple(text.split("\n")), complete=True)) is not None


def test_an_export_longer_than_the_part_seen_is_claimed() -> None:
    text = sample("otlp_spans/v0.28_by_hand.jsonl")[:600]
    assert otlp_spans.sniff(Head((text,))) is not None
    assert otlp_spans.sniff(Head((text,), complete=True)) is None


PIECES = [
    sample("span_documents/console_exporter.json"),
    "{",
    "}",
    "[",
    "plain",
    '{"a": 1}',
    "",
    '"name": "x",',
]


@settings(max_examples=30, deadline=None)
@given(st.lists(st.sampled_from(PIECES) | st.text(max_size=8), max_size=6), st.integers(0, 300))
def test_every_line_is_understood_or_an_issue(pieces: list[str], drop: int) -> None:
    text = "\n".join(pieces)
    text = text[: max(0, len(text) - drop)]
    parsed = parse(text)
    FORMAT.sniff(Head(tuple(text.split("\n")), complete=True))
    assert parsed.understood + parsed.issues.height == len(text.split("\n"))
    assert parsed.issues["line_no"].is_unique().all()
