"""OTLP spans: expected values are computed here from the samples' JSON by plain Python."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracelens.formats.base import Chunk, Claim, Clock, Head, Parsed
from tracelens.formats.traces.otlp_spans import FORMAT

SAMPLES = Path(__file__).parents[2] / "sample_logs" / "otlp_spans"
COLUMNS = {
    "queue_s": "gen_ai.latency.time_in_queue",
    "prefill_s": "gen_ai.latency.time_in_model_prefill",
    "decode_s": "gen_ai.latency.time_in_model_decode",
    "inference_s": "gen_ai.latency.time_in_model_inference",
    "ttft_s": "gen_ai.latency.time_to_first_token",
    "e2e_s": "gen_ai.latency.e2e",
    "input_tokens": "gen_ai.usage.prompt_tokens",
    "output_tokens": "gen_ai.usage.completion_tokens",
    "max_tokens": "gen_ai.request.max_tokens",
    "sequence_count": "gen_ai.request.n",
}


def frame(lines: list[str], first: int = 1) -> pl.DataFrame:
    numbers = list(range(first, first + len(lines)))
    return pl.DataFrame({"line_no": numbers, "text": lines}, schema={"line_no": pl.Int64, "text": pl.String})


def parse(lines: list[str]) -> Parsed:
    return FORMAT.parse(Chunk(frame(lines), Claim("x", Clock.UTC)))


def spans(lines: list[str]) -> list[tuple[int, dict[str, Any]]]:
    return [
        (line_no, span)
        for line_no, line in enumerate(lines, 1)
        for resource in json.loads(line)["resourceSpans"]
        for scope in resource["scopeSpans"]
        for span in scope["spans"]
        if span["name"] == "llm_request"
    ]


def export(*attributes: tuple[str, dict[str, Any]], **span: Any) -> str:
    told = {
        "name": "llm_request",
        "attributes": [{"key": key, "value": value} for key, value in attributes],
    } | span
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [told]}]}]})


@pytest.mark.parametrize("path", sorted(SAMPLES.glob("*.jsonl")), ids=lambda path: path.name)
def test_spans_are_rows_with_their_own_numbers(path: Path) -> None:
    lines = path.read_text().splitlines()
    claim = FORMAT.sniff(Head(tuple(lines), complete=True))
    assert claim is not None
    assert claim.clock is Clock.UTC
    parsed = FORMAT.parse(Chunk(frame(lines), claim))
    assert (parsed.understood, parsed.issues.height) == (len(lines), 0)
    expected = spans(lines)
    got = parsed.tables["server_request"].to_dicts()
    assert len(got) == len(expected)
    for (line_no, span), row in zip(expected, got, strict=True):
        told = {each["key"]: next(iter(each["value"].values())) for each in span["attributes"]}
        assert row["line_no"] == line_no
        assert row["request_id"] == told["gen_ai.request.id"]
        assert row["trace_id"] == span["traceId"]
        assert (row["measured_by"], row["service"]) == ("span", "vllm-server")
        started = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(
            microseconds=int(span["startTimeUnixNano"]) // 1000
        )
        assert row["arrival_ts"] == started.replace(tzinfo=None)
        for column, name in COLUMNS.items():
            assert row[column] == (None if name not in told else pytest.approx(float(told[name]))), column
    assert parsed.stamps["line_no"].to_list() == [line_no for line_no, _ in expected]


def test_start_up_spans_are_understood_and_no_requests() -> None:
    parsed = parse((SAMPLES / "v0.32_startup.jsonl").read_text().splitlines())
    assert parsed.tables["server_request"].height == 0
    assert parsed.issues.height == 0


def test_latencies_without_a_column_are_kept() -> None:
    parsed = parse((SAMPLES / "v0.9.1_v0_engine.jsonl").read_text().splitlines())
    other = json.loads(parsed.tables["server_request"]["other"][0])
    assert other["gen_ai.latency.time_in_scheduler"] == pytest.approx(0.01380667600005836)


def test_numbers_and_ids_come_in_several_spellings() -> None:
    line = export(
        ("gen_ai.usage.prompt_tokens", {"intValue": 12}),
        ("gen_ai.usage.completion_tokens", {"intValue": "7"}),
        ("gen_ai.latency.e2e", {"doubleValue": "1.5"}),
        ("gen_ai.latency.time_in_queue", {"doubleValue": -0.25}),
        ("gen_ai.response.finish_reasons", {"arrayValue": {"values": [{"stringValue": "length"}]}}),
        traceId="5F1E9C0D7A4B4C0F9B3D2E1A0C8B7F66",
        startTimeUnixNano=1795956414735280896,
    )
    (row,) = (
        parse([line.replace("scopeSpans", "instrumentationLibrarySpans")]).tables["server_request"].to_dicts()
    )
    assert (row["input_tokens"], row["output_tokens"], row["e2e_s"], row["queue_s"]) == (12, 7, 1.5, None)
    assert row["trace_id"] == "5f1e9c0d7a4b4c0f9b3d2e1a0c8b7f66"
    assert row["arrival_ts"].microsecond == 735280
    assert (row["request_id"], row["finish_reason"], row["service"]) == (None, "length", None)


def test_several_spans_of_a_line_share_its_number() -> None:
    parsed = parse([export(), json.dumps({"resourceSpans": [json.loads(export())["resourceSpans"][0]] * 3})])
    assert parsed.tables["server_request"]["line_no"].to_list() == [1, 2, 2, 2]


def test_lines_without_spans_are_issues() -> None:
    pretty = json.dumps(json.loads(export()), indent=1).splitlines()
    parsed = parse(["", *pretty, '{"resourceLogs": []}', export()[:-9]])
    assert parsed.understood == 1
    assert parsed.issues.height == len(pretty) + 2
    assert parsed.issues["reason"].to_list()[-2:] == ["no spans in it", "not JSON"]
    assert FORMAT.sniff(Head(tuple(pretty), complete=True)) is None


@pytest.mark.parametrize(
    "line", ['{"data": [{"traceID": "a"}]}', '{"batches": []}', '{"resourceSpans": 1}', "resourceSpans", ""]
)
def test_other_files_are_not_claimed(line: str) -> None:
    assert FORMAT.sniff(Head((line,), complete=True)) is None


LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.text(max_size=6),
    st.just("llm_request"),
)
KEYS = st.sampled_from(
    ["resourceSpans", "resource", "scopeSpans", "scope", "spans", "name", "attributes", "key", "value", "traceId",
     "startTimeUnixNano", "intValue", "doubleValue", "arrayValue", "values"]
)  # fmt: skip
TREES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)
ATTRIBUTES = st.tuples(
    st.sampled_from([*COLUMNS.values(), "gen_ai.request.id", "gen_ai.latency.x"]),
    st.dictionaries(KEYS, TREES, max_size=2),
)
EXPORTS = st.lists(ATTRIBUTES, max_size=4).flatmap(
    lambda attributes: TREES.map(lambda start: export(*attributes, startTimeUnixNano=start, traceId=start))
)
LINES = st.lists(
    EXPORTS
    | st.dictionaries(KEYS, TREES, max_size=3).map(json.dumps)
    | st.text(alphabet=st.characters(exclude_categories=["Cs"], exclude_characters="\n"), max_size=20),
    max_size=6,
)


@settings(max_examples=50, deadline=None)
@given(LINES, st.integers(0, 6))
def test_any_lines_are_understood_or_issues_however_they_are_cut(lines: list[str], at: int) -> None:
    whole = parse(lines)
    FORMAT.sniff(Head(tuple(lines), complete=True))
    assert whole.understood + whole.issues.height == len(lines)
    cut = [
        FORMAT.parse(Chunk(part, Claim("x", Clock.UTC)))
        for part in (frame(lines[:at]), frame(lines[at:], 1 + len(lines[:at])))
    ]
    assert sum(part.understood for part in cut) == whole.understood
    assert pl.concat([part.issues for part in cut]).equals(whole.issues)
    assert pl.concat([part.tables["server_request"] for part in cut]).equals(whole.tables["server_request"])
