"""Files of load generators: counts, statuses and first requests as `client_expected.json` states them, and the stand-in
server's own stamps (`client_truth.json`, same clock as the clients').

In `client_expected.json` ``ok?`` is a success without usage (an error inside the stream), ``cancelled`` was let go by the
client.  Counts of cut samples were counted with plain json, csv and sqlite3."""

from __future__ import annotations

import json
import statistics
import sys
from collections import Counter
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parent))
from load_files import EXPECTED, TRUTH, claims_of, figures, memory, parse, requests, sample

from tracelens.formats.base import Claim, Clock, Parsed
from tracelens.ingestion.chunks import Reading
from tracelens.ingestion.parts import parse_source

WORDS = {"ok?": "unknown", "cancelled": "aborted"}
BASES = {
    "usage": "usage", "usage_preferred": "usage", "usage_or_tokenizer": "usage", "usage_or_retokenized": "usage",
    "requested_unless_usage": "requested",
}  # fmt: skip
DETAILED = [each for each in EXPECTED if each["requests"]]
TOOLS = sorted({each["format"] for each in EXPECTED} | {"llmperf", "aiperf_summary", "evalscope_summary"})


def named(each: dict[str, Any]) -> str:
    return f"{each['format']}/{each['file']}"


@cache
def read(name: str, file: str) -> Parsed:
    return parse(sample(name, file), name)


def epoch(stamp: datetime | None) -> float | None:
    return None if stamp is None else stamp.replace(tzinfo=UTC).timestamp()


@pytest.mark.parametrize("each", EXPECTED, ids=named)
def test_a_file_has_as_many_requests_of_each_status_as_stated(each: dict[str, Any]) -> None:
    parsed = read(each["format"], each["file"])
    rows = requests(parsed)
    assert parsed.issues.height == 0
    assert len(rows) == each["requests"]
    assert Counter(row["status"] for row in rows) == {
        WORDS.get(k, k): n for k, n in each["by_status"].items()
    }
    assert sorted(row["line_no"] for row in rows) == list(range(1, len(rows) + 1))


@pytest.mark.parametrize("each", DETAILED, ids=named)
def test_the_first_request_has_the_stated_times(each: dict[str, Any]) -> None:
    row, first = requests(read(each["format"], each["file"]))[0], each["first"]
    streamed = first["streamed"] is not False
    stated = {"client_e2e_s": first["e2e_s"], "client_reported_ttft_s": first["ttft_s"]}
    for column, seconds in stated.items():
        if each["file"] != "v0.32.0_chat_maxconc2_errors_not_detailed.json":
            assert row[column] == (None if seconds is None else pytest.approx(seconds, abs=2e-6))
    if streamed and first["ttft_s"] is not None and row["client_ttft_kind"] == "content":
        assert row["client_ttft_s"] == pytest.approx(first["ttft_s"], abs=2e-6)
    if not streamed:
        assert row["client_ttft_s"] is None
        assert row["client_ttft_kind"] in (None, "whole_response")
    if first["time_base"] == "epoch":
        for column, moment in (
            ("sent", "sent_at"),
            ("headers", "headers_at"),
            ("first_chunk", "first_token_at"),
            ("last_chunk", "last_token_at"),
            ("end", "ended_at"),
        ):
            stamp = epoch(row[f"client_{column}_ts"])
            assert stamp == (None if first[moment] is None else pytest.approx(first[moment], abs=2e-6)), (
                column
            )
    if first["time_base"] == "monotonic":
        assert row["client_sent_s"] == pytest.approx(first["sent_at"], abs=1e-6)


@pytest.mark.parametrize("each", DETAILED, ids=named)
def test_the_first_request_has_the_stated_facts(each: dict[str, Any]) -> None:
    row, first = requests(read(each["format"], each["file"]))[0], each["first"]
    is_error = first["status"] == "error"
    assert row["output_tokens"] == first["output_tokens"]
    if first["output_tokens"] is not None:
        assert row["output_tokens_basis"] == BASES[first["output_tokens_source"]]
    if each["format"] != "genai_perf" and not is_error:  # a failed request's prompt of 0 tokens is none
        assert row["input_tokens"] == first["prompt_tokens"]
    if first["client_request_id"] and not first["client_request_id"].startswith("#"):
        assert row.get("client_id") == first["client_request_id"]
    told = row.get("response_id") or f"chatcmpl-{row.get('client_id')}"
    if first["server_request_id"]:
        assert told == first["server_request_id"]
    if not is_error:  # of a request that was refused nobody knows whether a stream would have come
        assert row["streamed"] == first["streamed"]
    if first["n_chunks"] is not None and first["streamed"]:
        role_count = 1 if row["client_ttft_kind"] == "role" else 0
        assert row["chunk_count"] == first["n_chunks"] - role_count
    assert (row["error"] is not None) == (first["error"] is not None)


@pytest.mark.parametrize(
    "each",
    [
        each
        for each in DETAILED
        if each["format"] in ("aiperf", "guidellm", "genai_perf", "inference_perf", "evalscope")
    ],
    ids=named,
)
def test_the_first_content_came_when_the_server_sent_it(each: dict[str, Any]) -> None:
    """Same host, same clock: the client's first content lies at most a few ms behind the server's; outliers are the client's."""
    behind_s, checked = [], 0
    names = TRUTH["columns"]
    for row in requests(read(each["format"], each["file"])):
        ids = [row["response_id"], f"chatcmpl-{row['client_id']}", f"cmpl-{row['client_id']}"]
        told = next((TRUTH["by_id"][name] for name in ids if name in TRUTH["by_id"]), None)
        truth = dict(zip(names, told, strict=True)) if told else {}
        checked += bool(truth)
        if not truth.get("first") or row["client_ttft_s"] is None:
            continue
        later_s = row["client_ttft_s"] - (truth["first"] - truth["arrived"])
        stamp = epoch(row["client_first_chunk_ts"])
        behind_s.append(later_s if stamp is None else stamp - truth["first"])
        assert later_s > -0.002
    if each["file"] != "v0.3.1_chat.json":  # it keeps no ids
        assert checked > 0
    if behind_s:
        assert min(behind_s) > -0.005
        typical_s = statistics.median(behind_s) if each["first"]["time_base"] == "epoch" else min(behind_s)
        assert typical_s < 0.007  # without an epoch the way there counts too, and the first requests connect


@pytest.mark.parametrize("each", DETAILED, ids=named)
def test_times_of_one_request_fit_together(each: dict[str, Any]) -> None:
    parsed = read(each["format"], each["file"])
    rows = requests(parsed)
    for row in rows:
        if row["client_ttft_s"] is not None and row["client_e2e_s"] is not None:
            assert row["client_ttft_s"] <= row["client_e2e_s"] + 1e-6
        assert (row["client_reported_ttft_s"] is None) == (row["client_ttft_kind"] is None)
        assert row["streamed"] is not False or row["client_ttft_s"] is None
        assert row["output_tokens"] is None or row["output_tokens_basis"] in (
            "usage",
            "client",
            "requested",
            "chunks",
        )
    by_line = {row["line_no"]: row for row in rows}
    for stream in parsed.tables["client_stream"].to_dicts():
        row = by_line[stream["line_no"]]
        assert len(stream["chunk_offset_s"]) == len(stream["chunk_kind"])
        first = next(
            at
            for at, kind in zip(stream["chunk_offset_s"], stream["chunk_kind"], strict=True)
            if kind in "ct"
        )
        assert row["client_ttft_s"] == pytest.approx(first, abs=1e-5)


@pytest.mark.parametrize("name", TOOLS)
def test_no_prompt_and_no_answer_is_kept_unless_asked_for(name: str) -> None:
    for file in sorted({each["file"] for each in EXPECTED if each["format"] == name}):
        parsed = parse(sample(name, file), name)
        assert "request_text" not in parsed.tables
        kept = json.dumps([frame.to_dicts() for frame in parsed.tables.values()], default=str)
        assert "quick brown fox" not in kept
        assert "seven wizards" not in kept


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("aiperf", "v0.13.0_chat_raw.jsonl"),
        ("genai_perf", "handmade_profile_export.json"),
        ("guidellm", "v0.8.1_chat.json"),
        ("inference_perf", "v0.7.0_errors_per_request.json"),
        ("sglang_bench", "v0.5.23_chat_details.jsonl"),
    ],
)
def test_answers_are_kept_when_asked_for(name: str, file: str) -> None:
    texts = parse(sample(name, file), name, keep_text=True).tables["request_text"]
    assert "the quick brown fox jumps over a lazy dog while seven wizards quietly brew strong coffee" in set(
        texts["content"]
    )


@pytest.mark.parametrize("name", TOOLS)
@pytest.mark.parametrize(
    "text", ["", "\n", "{}", "[]", "[\n", "nothing of the kind\n", '{"a": 1}\n{"b": [}\n', "\x00\x01"]
)
def test_foreign_text_is_issues_and_no_rows(name: str, text: str) -> None:
    parsed = parse(text, name, claim=Claim("forced", Clock.NONE))
    assert sum(frame.height for frame in parsed.tables.values()) == 0


@pytest.mark.parametrize("each", [each for each in EXPECTED if each["format"] != "evalscope"], ids=named)
def test_a_file_cut_in_the_middle_gives_whole_requests_or_none(each: dict[str, Any]) -> None:
    data = sample(each["format"], each["file"])
    whole = {repr(sorted(row.items(), key=str)) for row in requests(parse(data, each["format"]))}
    claim = claims_of(data)[0][1]
    parsed = parse(data[: len(data) * 3 // 5], each["format"], claim=claim)
    assert parsed.issues.height > 0
    cut = parsed.tables.get("client_request")
    rows = {repr(sorted(row.items(), key=str)) for row in cut.to_dicts()} if cut is not None else set()
    assert rows <= whole
    assert bool(rows) == (
        each["format"] in ("aiperf", "inference_perf")
        or each["file"] == "v0.32.0_chat_append_multitoken_detailed.json"
    )


ODD = st.one_of(st.none(), st.booleans(), st.floats(), st.integers(-(2**70), 2**70), st.text(max_size=4), st.lists(st.floats(), max_size=2), st.just({}), st.just([{}]))  # fmt: skip


@st.composite
def broken(draw: st.DrawFn) -> tuple[str, str]:
    """A sample's JSON with a few values exchanged for odd ones."""
    each = draw(
        st.sampled_from([each for each in EXPECTED if each["format"] not in ("evalscope", "vllm_bench")])
    )
    text = sample(each["format"], each["file"]).decode()
    lines = text.splitlines()
    value = json.loads(lines[0] if each["file"].endswith(".jsonl") else text)
    for _ in range(draw(st.integers(1, 4))):
        _exchange(draw, value)
    return each["format"], json.dumps(value)


def _exchange(draw: st.DrawFn, value: Any) -> None:
    while isinstance(value, dict | list) and value:
        keys = list(value) if isinstance(value, dict) else list(range(len(value)))
        key = draw(st.sampled_from(keys))
        if draw(st.booleans()) or not isinstance(value[key], dict | list):
            value[key] = draw(ODD)
            return
        value = value[key]


@settings(max_examples=30, deadline=None)
@given(broken())
def test_odd_values_are_unknown_and_never_an_error(named_text: tuple[str, str]) -> None:
    name, text = named_text
    parse(text, name, keep_text=True, claim=Claim("forced", Clock.UTC, {"usage": True}))


def test_figures_of_one_run_are_the_same_in_json_and_in_a_table() -> None:
    table = figures(parse(sample("guidellm", "v0.8.1_chat.csv"), "guidellm"))
    whole = figures(parse(sample("guidellm", "v0.8.1_chat.json"), "guidellm"))
    for statistic in ("mean", "p50", "std", "p1", "p95", "p99", "p99.9"):
        assert table[("Time to First Token: Successful ms", statistic)] == pytest.approx(
            whole[("time_to_first_token_ms", statistic)]
        )


@pytest.mark.parametrize("size", [3_000, 9_000, 50_000])
@pytest.mark.parametrize("file", ["v0.13.0_errors.jsonl", "v0.13.0_chat_raw.jsonl"])
def test_where_records_of_aiperf_are_cut_changes_nothing(file: str, size: int, tmp_path: Path) -> None:
    data = sample("aiperf", file)
    kind, claim = claims_of(data)[0]
    whole = parse_source((kind, claim), Reading(memory(data)), tmp_path, keep_text=True, chunk_bytes=size)
    found = pl.concat([pl.read_parquet(part) for part in whole.parts["client_request"]])
    assert found.equals(parse(data, "aiperf").tables["client_request"])


def elements(count: int) -> list[dict[str, Any]]:
    return json.loads(sample("inference_perf", "v0.7.0_errors_per_request.json"))[:count]


@pytest.mark.parametrize("indent", [None, 1, 2, 4])
def test_an_array_is_read_alike_however_it_is_indented(indent: int | None) -> None:
    text = json.dumps(elements(6), indent=indent)
    assert requests(parse(text, "inference_perf")) == requests(
        read("inference_perf", "v0.7.0_errors_per_request.json")
    )


def test_a_broken_element_costs_its_own_lines_only() -> None:
    lines = json.dumps(elements(3), indent=2).splitlines()
    second = [at for at, line in enumerate(lines) if line == "  {"][1]
    lines[second + 1] = '    "start_time": 24x,'
    parsed = parse("\n".join(lines), "inference_perf")
    assert len(requests(parsed)) == 2
    assert parsed.issues["line_no"][0] == second + 1
    assert parsed.issues["reason"].to_list()[:2] == ["not JSON", "part of a broken JSON document"]


def test_the_error_inside_a_stream_is_told_where_the_file_keeps_the_text() -> None:
    rows = requests(read("inference_perf", "v0.7.0_errors_per_request.json"))
    assert ["EngineCore" in (row["error"] or "") for row in rows] == [True, False, False, True, False, False]
    assert [row["http_status"] for row in rows] == [500, None, None, None, None, None]
    doubtful = [row for row in requests(read("aiperf", "v0.13.0_errors.jsonl")) if row["status"] == "unknown"]
    assert {json.loads(row["other"])["suspect"] for row in doubtful} == {
        "success without usage, which other answers of the file have"
    }
    assert {row["output_tokens"] for row in doubtful} == {None}


def test_planned_and_actual_send_are_both_kept() -> None:
    for name, file in (
        ("aiperf", "v0.13.0_chat.jsonl"),
        ("guidellm", "v0.8.1_chat.json"),
        ("guidellm", "v0.3.1_chat.json"),
    ):
        for row in requests(read(name, file)):
            assert row["client_planned_ts"] < row["client_sent_ts"]
            assert row["client_wait_s"] == pytest.approx(
                (row["client_sent_ts"] - row["client_planned_ts"]).total_seconds(), abs=2e-6
            )


def test_reasoning_is_content_and_told_apart() -> None:
    parsed = read("aiperf", "v0.13.0_reasoning.jsonl")
    lines = map(json.loads, sample("aiperf", "v0.13.0_reasoning.jsonl").decode().splitlines())
    for line, stream in zip(lines, parsed.tables["client_stream"].to_dicts(), strict=True):
        told_s = line["metrics"]["time_to_first_output_token"]["value"] / 1000
        first_output = stream["chunk_kind"].index("c")
        assert stream["chunk_kind"] == "ttcc"
        assert stream["chunk_offset_s"][first_output] == pytest.approx(told_s, abs=1e-5)


def test_a_benchmark_that_was_cut_short_has_aborted_requests() -> None:
    result = json.loads(sample("guidellm", "v0.8.1_chat_errors.json"))
    groups = result["benchmarks"][0]["requests"]
    groups["incomplete"], groups["errored"] = groups["errored"][:1], []
    groups["incomplete"][0]["info"]["error"] = None
    rows = requests(parse(json.dumps(result), "guidellm"))
    assert [row["status"] for row in rows] == ["ok", "ok", "ok", "aborted"]
    assert rows[3]["output_tokens_basis"] == "chunks"


def test_what_the_server_says_of_itself_in_an_answer_is_its_own_row() -> None:
    """The metrics object of vLLM's --enable-per-request-metrics: its time to first token starts at scheduling."""
    metrics = {"queue_time_ms": 12.0, "time_to_first_token_ms": 30.0, "generation_time_ms": 130.0}
    result = json.loads(sample("guidellm", "v0.8.1_chat.json"))
    result["benchmarks"][0]["requests"]["successful"][0]["response_metrics"] = metrics
    (row,) = parse(json.dumps(result), "guidellm").tables["server_request"].to_dicts()
    assert (row["queue_s"], row["prefill_s"], row["decode_s"], row["measured_by"]) == (
        0.012,
        0.03,
        0.13,
        "response",
    )
    raw = json.loads(sample("aiperf", "v0.13.0_chat_raw.jsonl").splitlines()[0])
    usage = {
        "id": "chatcmpl-x",
        "choices": [],
        "usage": {"prompt_tokens": 1, "completion_tokens": 2},
        "metrics": metrics,
    }
    raw["responses"][-2]["packets"][0]["value"] = json.dumps(usage)
    assert parse(json.dumps(raw), "aiperf").tables["server_request"]["queue_s"].to_list() == [0.012]


def test_raw_records_show_the_error_inside_a_stream_and_the_keep_alive_before_it() -> None:
    raw = json.loads(sample("aiperf", "v0.13.0_chat_raw.jsonl").splitlines()[0])
    start, responses = raw["start_perf_ns"], raw["responses"]
    error = {"error": {"message": "EngineCore encountered an issue.", "code": 500}}
    raw["responses"] = [
        {"perf_ns": start + 20_000_000, "packets": [{"name": "comment", "value": "keep-alive"}]},
        *responses[:4],
        {
            "perf_ns": responses[4]["perf_ns"],
            "packets": [{"name": "data", "value": json.dumps(error)}, {"name": "data", "value": "[DONE]"}],
        },
    ]
    parsed = parse(json.dumps(raw), "aiperf")
    (row,), (stream,) = requests(parsed), parsed.tables["client_stream"].to_dicts()
    assert stream["chunk_kind"] == "krcccED"
    assert (row["status"], row["output_tokens"], row["chunk_count"]) == ("error", None, 3)
    assert "EngineCore" in row["error"]
    assert row["client_first_byte_s"] == pytest.approx(0.02)
    assert row["client_ttft_s"] == pytest.approx((responses[1]["perf_ns"] - start) / 1e9)


def test_a_profile_without_content_has_no_first_token() -> None:
    profile = json.loads(sample("genai_perf", "handmade_profile_export.json"))
    request = profile["experiments"][0]["requests"][0]
    request["response_outputs"] = [
        {"response": 'data: {"error": {"message": "out of memory", "code": 500}}\n\ndata: [DONE]\n\n'}
    ]
    row = requests(parse(json.dumps(profile), "genai_perf"))[0]
    assert (row["status"], row["client_ttft_s"], row["client_ttft_kind"], row["chunk_count"]) == (
        "error",
        None,
        None,
        0,
    )
    assert row["client_first_byte_s"] is not None


def test_gaps_of_another_unit_and_ends_that_were_never_measured() -> None:
    line = json.loads(sample("aiperf", "v0.13.0_chat.jsonl").splitlines()[0])
    line["metadata"]["request_end_ns"] = line["metadata"]["request_start_ns"]
    line["metrics"]["time_to_first_token"] = {"value": 0.5, "unit": "sec"}
    line["metrics"]["inter_chunk_latency"] = {"value": [1_000_000, 2_000_000], "unit": "ns"}
    (row,) = requests(parse(json.dumps(line), "aiperf"))
    assert (row["client_e2e_s"], row["client_end_ts"], row["client_ttft_s"], row["chunk_count"]) == (
        None,
        None,
        0.5,
        3,
    )
    assert row["client_tpot_s"] == pytest.approx(0.003 / 15)
    line["metrics"]["time_to_first_token"]["unit"] = "fortnights"
    (row,) = requests(parse(json.dumps(line), "aiperf"))
    assert (row["client_ttft_s"], row["client_ttft_kind"], row["chunk_count"]) == (None, None, None)
