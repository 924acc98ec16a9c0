"""Client logs: expected values are computed here from the samples' JSON by plain arithmetic, or counted by hand."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import jsonschema
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracelens.formats.base import Chunk, Claim, Clock, Head, Parsed
from tracelens.formats.client.client_stream import FORMAT

ROOT = Path(__file__).parents[2]
SAMPLES = ROOT / "sample_logs" / "client_stream"
FORM = jsonschema.Draft202012Validator(
    json.loads((ROOT / "schemas/inputs/client_stream.schema.json").read_text())
)


def frame(lines: list[str], first: int = 1) -> pl.DataFrame:
    numbers = list(range(first, first + len(lines)))
    return pl.DataFrame({"line_no": numbers, "text": lines}, schema={"line_no": pl.Int64, "text": pl.String})


def claim_of(lines: list[str]) -> Claim:
    claim = FORMAT.sniff(Head(tuple(lines[:400]), complete=len(lines) <= 400))
    assert claim is not None
    return claim


def parse(lines: list[str], keep_text: bool = False) -> Parsed:
    return FORMAT.parse(Chunk(frame(lines), claim_of(lines), keep_text=keep_text))


def one(**line: Any) -> dict[str, Any]:
    """The row of `client_request` that a file of this single line gives."""
    parsed = parse([json.dumps(line)])
    assert parsed.issues.height == 0
    return parsed.tables["client_request"].to_dicts()[0]


def sample(name: str) -> list[str]:
    return (SAMPLES / name).read_text().splitlines()


def rows(parsed: Parsed, table: str = "client_request") -> list[dict[str, Any]]:
    return parsed.tables[table].to_dicts()


def instant(epoch_s: float | None) -> datetime | None:
    if epoch_s is None:
        return None
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=round(epoch_s * 1e6))).replace(
        tzinfo=None
    )


def content_at(line: dict[str, Any]) -> list[float]:
    return [at for at, kind in zip(line["chunk_at"], line["chunk_kind"], strict=True) if kind in "ct"]


@pytest.mark.parametrize("path", sorted(SAMPLES.glob("*.jsonl")), ids=lambda path: path.name)
def test_every_sample_is_claimed_and_understood(path: Path) -> None:
    lines = path.read_text().splitlines()
    parsed = parse(lines)
    assert parsed.understood == len(lines)
    assert len(rows(parsed)) == sum(bool(line.strip()) for line in lines)


@pytest.mark.parametrize("name", ["vllm_0.32_queue.jsonl", "vllm_0.32_response_metrics.jsonl"])
def test_a_recorded_stream_has_the_times_of_its_chunks(name: str) -> None:
    lines = sample(name)
    for line, row in zip(map(json.loads, lines), rows(parse(lines)), strict=True):
        arrivals, sent = content_at(line), line["sent_at"]
        assert row["client_id"] == line["request_id"]
        assert row["response_id"] == line["response_id"]
        assert row["trace_id"] == line["trace_id"]
        assert row["client_ttft_s"] == pytest.approx(arrivals[0] - sent, abs=2e-6)
        assert row["client_reported_ttft_s"] == pytest.approx(line["first_content_at"] - sent, abs=2e-6)
        assert row["client_e2e_s"] == pytest.approx(line["finished_at"] - sent, abs=2e-6)
        assert row["client_wait_s"] == pytest.approx(sent - line["scheduled_at"], abs=2e-6)
        assert row["client_headers_s"] == pytest.approx(line["headers_at"] - sent, abs=2e-6)
        assert row["client_first_byte_s"] == pytest.approx(line["first_byte_at"] - sent, abs=2e-6)
        assert row["client_planned_ts"] == instant(line["scheduled_at"])
        assert row["client_sent_ts"] == instant(sent)
        assert row["client_first_chunk_ts"] == instant(arrivals[0])
        assert row["client_end_ts"] == instant(line["finished_at"])
        assert (row["input_tokens"], row["output_tokens"]) == (
            line["prompt_tokens"],
            line["completion_tokens"],
        )
        assert (row["cached_input_tokens"], row["max_tokens"]) == (line["cached_tokens"], line["max_tokens"])
        assert row["chunk_count"] == len(arrivals)
        assert (row["status"], row["http_status"], row["streamed"]) == ("ok", 200, True)
        assert row["client_ttft_kind"] == "content"


def test_the_last_token_of_vllm_comes_with_the_finish_message() -> None:
    lines = sample("vllm_0.32_queue.jsonl")
    for line, row in zip(map(json.loads, lines), rows(parse(lines)), strict=True):
        finish = line["chunk_at"][line["chunk_kind"].index("f")]
        assert sum(line["chunk_kind"].count(kind) for kind in "ce") == line["completion_tokens"] - 1
        assert row["client_last_chunk_ts"] == instant(finish)
        expected = (finish - content_at(line)[0]) / (line["completion_tokens"] - 1)
        assert row["client_tpot_s"] == pytest.approx(expected, abs=1e-6)


def test_chunk_offsets_count_from_the_send() -> None:
    lines = sample("vllm_0.32_queue.jsonl")
    for line, row in zip(map(json.loads, lines), rows(parse(lines), "client_stream"), strict=True):
        assert row["chunk_kind"] == line["chunk_kind"]
        expected = [at - line["sent_at"] for at in line["chunk_at"]]
        assert row["chunk_offset_s"] == pytest.approx(expected, abs=2e-6)


def test_a_client_without_a_stream_has_no_ttft() -> None:
    lines = sample("vllm_0.32_not_streamed.jsonl")
    parsed = parse(lines)
    assert parsed.tables["client_stream"].height == 0
    for line, row in zip(map(json.loads, lines), rows(parsed), strict=True):
        assert row["client_ttft_s"] is None
        assert row["client_tpot_s"] is None
        assert row["streamed"] is False
        assert row["client_ttft_kind"] == "whole_response"
        assert row["client_reported_ttft_s"] == pytest.approx(
            line["first_byte_at"] - line["sent_at"], abs=2e-6
        )


def test_endings_are_told_apart() -> None:
    lines = sample("vllm_0.32_aborts_errors.jsonl")
    for line, row in zip(map(json.loads, lines), rows(parse(lines)), strict=True):
        if line["status"] in (400, 404):
            expected: tuple[str, bool | None] = ("rejected", None)
        else:
            expected = ("aborted" if line["error"] else "ok", line["stream"])
        assert (row["status"], row["streamed"]) == expected
        assert row["client_end_ts"] == instant(line["finished_at"] or line["closed_at"])
        assert (row["client_e2e_s"] is None) == (line["finished_at"] is None)
        assert (row["error"] is None) == (line["error"] is None)


def test_vllm_metrics_of_the_answer_become_a_measured_request() -> None:
    lines = sample("vllm_0.32_response_metrics.jsonl")
    for line, row in zip(map(json.loads, lines), rows(parse(lines), "server_request"), strict=True):
        metrics = line["response_metrics"]
        assert row["request_id"] == line["response_id"]
        assert row["measured_by"] == "response"
        assert row["queue_s"] == pytest.approx(metrics["queue_time_ms"] / 1000)
        assert row["prefill_s"] == pytest.approx(metrics["time_to_first_token_ms"] / 1000)
        assert row["decode_s"] == pytest.approx(metrics["generation_time_ms"] / 1000)
        assert json.loads(row["other"])["tokens_per_second"] == metrics["tokens_per_second"]


def test_the_role_only_chunk_is_not_the_first_token() -> None:
    parsed = parse(sample("home_made_chunks_with_kinds.jsonl"))
    (row,) = rows(parsed)
    assert row["client_ttft_s"] == pytest.approx(2.2)
    assert row["chunk_count"] == 40
    assert (row["client_sent_s"], row["client_sent_ts"]) == (0.0, None)
    (stream,) = rows(parsed, "client_stream")
    assert stream["chunk_kind"] == "r" + "c" * 40 + "fu"
    assert stream["chunk_offset_s"][:2] == pytest.approx([0.9, 2.2])


def test_a_reported_ttft_that_stops_at_the_role_is_named() -> None:
    row = one(t_send=1.0, ttft_s=0.9, chunks=[[1.9, "role"], [3.2, "content"], [3.3, "content"]], stream=True)
    assert row["client_ttft_s"] == pytest.approx(2.2)
    assert (row["client_reported_ttft_s"], row["client_ttft_kind"]) == (0.9, "role")


def test_home_made_durations_are_taken_as_they_are() -> None:
    lines = sample("home_made_ttft_e2e.jsonl")
    assert claim_of(lines).clock is Clock.RELATIVE
    for line, row in zip(map(json.loads, lines), rows(parse(lines)), strict=True):
        assert row["client_id"] == str(line["request"])
        assert row["client_sent_s"] == pytest.approx(line["t_send"])
        assert row["client_ttft_s"] == row["client_reported_ttft_s"] == line["ttft_s"]
        assert row["client_e2e_s"] == line["e2e_s"]
        assert row["client_ttft_kind"] is None
        assert json.loads(row["other"])["gap_before_s"] == line["gap_before_s"]
        assert row["status"] == "unknown"


def test_chunks_without_kinds_start_at_the_first_one() -> None:
    parsed = parse(sample("home_made_chunk_times.jsonl"))
    got = {row["client_id"]: (row["label"], row["client_ttft_s"], row["chunk_count"]) for row in rows(parsed)}
    assert got["d60"] == ("direct", 0.5, 60)
    assert got["g60"] == ("gateway", 16.5, 60)
    assert got["g200"][1] == 17.5
    assert set(parsed.tables["client_stream"]["chunk_kind"][0]) == {"?"}


def test_a_first_byte_is_a_ttft_of_nobody() -> None:
    lines = sample("home_made_first_byte.jsonl")
    for line, row in zip(map(json.loads, lines), rows(parse(lines)), strict=True):
        assert row["client_ttft_s"] is None
        assert row["client_first_byte_s"] == row["client_reported_ttft_s"] == line["first_byte_s"]
        assert row["client_ttft_kind"] == ("first_byte" if line["stream"] else "whole_response")


def test_tokens_alone_are_requests_without_times() -> None:
    lines = sample("home_made_cached_tokens_only.jsonl")
    assert claim_of(lines).clock is Clock.NONE
    got = rows(parse(lines))
    assert [row["cached_input_tokens"] for row in got] == [
        json.loads(line)["cached_tokens"] for line in lines
    ]
    assert json.loads(got[1]["other"]) == {"turn": 2, "system_len": 23432, "messages": 4}


def test_the_form_that_is_asked_for() -> None:
    parsed = parse(sample("asked_for_epoch.jsonl"))
    first, second, third = rows(parsed)
    assert first["client_ttft_s"] == pytest.approx(0.5)  # the reasoning chunk at +0.5, not the role at +0.375
    assert first["client_tpot_s"] == pytest.approx(0.25 / 2)
    assert first["client_wait_s"] == pytest.approx(0.125)
    assert first["cached_input_tokens"] == 128
    assert (second["status"], second["client_ttft_s"], second["error"]) == (
        "rejected",
        None,
        "Too Many Requests",
    )
    assert (third["status"], third["client_ttft_s"], third["client_e2e_s"]) == ("aborted", 1.5, None)
    assert third["client_end_ts"] == instant(1795956420.0)
    assert [row["chunk_kind"] for row in rows(parsed, "client_stream")] == ["rctcuD", "kt"]
    assert parsed.stamps["line_no"].to_list() == [1, 2, 4]


def test_milliseconds_of_a_clock_of_its_own() -> None:
    lines = sample("asked_for_relative_ms.jsonl")
    first, second, third = rows(parse(lines))
    assert [row["client_sent_s"] for row in (first, second, third)] == [1.0, 2.0, 2.5]
    assert (first["client_ttft_s"], second["client_ttft_s"]) == pytest.approx((0.3, 0.8))
    assert (first["client_e2e_s"], third["client_e2e_s"]) == (0.5, 0.5)
    assert first["client_tpot_s"] == pytest.approx((1.5 - 1.3) / 2)
    assert (third["status"], third["streamed"], third["client_ttft_kind"]) == ("error", None, None)


@pytest.mark.parametrize("unit", [("", 1), ("_ms", 10**3), ("_us", 10**6), ("_ns", 10**9)])
@pytest.mark.parametrize("key", ["sent_at", "t_send", "start_time"])
def test_epochs_of_every_unit_are_the_same_instant(unit: tuple[str, int], key: str) -> None:
    suffix, scale = unit
    for name in {key, key + suffix}:
        line = {name: 1795956414 * scale, f"chunk_at{suffix}": [1795956416 * scale], "stream": True}
        row = one(**line)
        assert row["client_sent_ts"] == instant(1795956414)
        assert row["client_ttft_s"] == pytest.approx(2.0)


def test_iso_texts_are_instants() -> None:
    zoned = one(
        sent_at="2026-11-29T13:46:54.651777+01:00",
        first_content_at="2026-11-29T12:46:55.651777Z",
        stream=True,
    )
    assert zoned["client_sent_ts"] == datetime(2026, 11, 29, 12, 46, 54, 651777)
    assert zoned["client_ttft_s"] == pytest.approx(1.0)
    assert claim_of(['{"sent_at": "2026-11-29 12:46:54", "e2e_s": 1}']).clock is Clock.LOCAL
    mixed = rows(
        parse(['{"sent_at": "2026-11-29 12:46:54", "e2e_s": 1}', '{"sent_at": 1795956414, "e2e_s": 1}'])
    )
    assert [row["client_sent_ts"] is None for row in mixed].count(
        True
    ) == 1  # two clocks cannot share a column


def test_chunk_times_count_from_the_send_where_the_zero_of_the_file_cannot_be() -> None:
    lines = [
        json.dumps({"t_send": sent, "chunks_t": [0.5, 0.75], "stream": True}) for sent in (0.0, 0.25, 10.0)
    ]
    assert [row["client_ttft_s"] for row in rows(parse(lines))] == [0.5, 0.5, 0.5]
    lines = [
        json.dumps({"t_send": sent, "chunks_t": [sent + 0.5], "stream": True}) for sent in (0.0, 0.25, 10.0)
    ]
    assert [row["client_ttft_s"] for row in rows(parse(lines))] == [0.5, 0.5, 0.5]
    lines = [json.dumps({"t_send": 0.25, "ttft_s": 0.5, "chunks_t": [0.5, 0.75], "stream": True})]
    assert rows(parse(lines), "client_stream")[0]["chunk_offset_s"] == [0.5, 0.75]


def test_gaps_add_up_from_the_ttft() -> None:
    parsed = parse(['{"ttft_ms": 500, "itl_ms": [10, 20], "output_tokens": 3}'])
    assert rows(parsed, "client_stream")[0]["chunk_offset_s"] == pytest.approx([0.5, 0.51, 0.53])
    (row,) = rows(parsed)
    assert (row["client_ttft_s"], row["client_tpot_s"]) == pytest.approx((0.5, 0.015))
    assert (row["output_tokens"], row["output_tokens_basis"]) == (3, None)


def test_the_answers_usage_object_counts() -> None:
    usage = {"prompt_tokens": 5, "completion_tokens": 7, "prompt_tokens_details": {"cached_tokens": 4}}
    row = one(id="chatcmpl-1", ttft=0.5, usage=usage)
    assert (row["input_tokens"], row["output_tokens"], row["cached_input_tokens"]) == (5, 7, 4)
    assert (row["output_tokens_basis"], row["response_id"]) == ("usage", "chatcmpl-1")


@pytest.mark.parametrize(
    ("line", "status"),
    [
        ({"status": 200}, "ok"),
        ({"status": "200"}, "ok"),
        ({"status": 499}, "aborted"),
        ({"status": 429, "error": "timeout"}, "rejected"),
        ({"status": 503}, "rejected"),
        ({"status": 500, "error": "rendering timed out"}, "error"),
        ({"status": 200, "error": "client_timeout 1.0s"}, "aborted"),
        ({"status": 200, "error": "Traceback"}, "error"),
        ({"status": None, "error": "CancelledError()"}, "aborted"),
        ({"status": None, "error": {"message": "boom"}}, "error"),
        ({"status": "cancelled"}, "aborted"),
        ({"ok": True}, "ok"),
        ({"ok": False}, "error"),
        ({"finish_reason": "length"}, "ok"),
        ({"finish_reason": "abort"}, "aborted"),
        ({"error": None}, "ok"),
        ({}, "unknown"),
    ],
)
def test_status_words(line: dict[str, Any], status: str) -> None:
    assert one(e2e_s=1.0, **line)["status"] == status


def test_numbers_that_cannot_be_are_null() -> None:
    row = one(
        sent_at=1795956414.5, finished_at=1795956414.0, ttft_s=-1, completion_tokens=2.5, prompt_tokens="12"
    )
    assert (row["client_e2e_s"], row["client_ttft_s"], row["output_tokens"]) == (None, None, None)
    assert row["input_tokens"] == 12
    assert one(ttft_s="1.5")["client_ttft_s"] == 1.5
    parsed = parse(['{"ttft_s": NaN, "e2e_s": 2.0}'])
    assert (rows(parsed)[0]["client_ttft_s"], rows(parsed)[0]["client_e2e_s"]) == (None, 2.0)


def test_lines_that_hold_no_request_are_issues() -> None:
    good = '{"sent_at": 1795956414.5, "e2e_s": 1.0}'
    lines = [good, good, "", "[1]", '{"config": 1}', good, '{"sent_at": 1795956']
    parsed = FORMAT.parse(Chunk(frame(lines), claim_of([good])))
    assert parsed.understood == 4
    assert [(issue["line_no"], issue["reason"]) for issue in parsed.issues.to_dicts()] == [
        (4, "not a JSON object"),
        (5, "no request in it"),
        (7, "not JSON"),
    ]


def test_texts_and_keys_are_kept_only_when_asked_for() -> None:
    line = json.dumps(
        {
            "id": "x", "t_send": 0.0, "stream": True, "prompt": "SECRET", "messages": [{"role": "user", "content": "SECRET"}],
            "headers": {"Authorization": "SECRET"}, "api_key": "SECRET", "user_query": "SECRET", "body": {"a": "SECRET"},
            "chunks": [[0.5, "role", ""], [0.6, "content", "SECRET"], [0.7, "content", " too"]], "node": "n1",
        }
    )  # fmt: skip
    parsed = parse([line])
    assert "request_text" not in parsed.tables
    assert all("SECRET" not in str(table.to_dicts()) for table in parsed.tables.values())
    assert json.loads(rows(parsed)[0]["other"]) == {"node": "n1"}
    texts = {row["kind"]: row["content"] for row in rows(parse([line], keep_text=True), "request_text")}
    assert texts == {"prompt": "SECRET", "output": "SECRET too"}


@pytest.mark.parametrize(
    "line",
    [
        '{"ts": 1795956409.725, "load1": 3.44, "cpu_jiffies_user_nice_sys": [1, 2]}',
        '{"resourceSpans": []}',
        '{"date": "20261129-122409", "backend": "openai", "num_prompts": 1, "duration": 1.0, "ttfts": [0.1], "itls": [[]]}',
        '{"index": 0, "memory_used_mib": 2, "utilization_gpu_pct": 0, "utc": "2026-08-16T06:02:10Z"}',
        '{"asctime": "2026-11-05 22:10:07,512", "levelname": "INFO", "name": "vllm", "message": "Added request x."}',
        '{"request_id": "x", "iteration_wall": 1761050102.6, "queued_time": 0.5, "e2e_latency": 6.5}',
        '{"time_starttransfer": 0.00169, "time_total": 0.168642, "http_code": 200}',
        '{"msec": 1795956659.661, "remote_addr": "127.0.0.1", "status": 200, "request_time": 0.176}',
        '{"request_id": "x", "arrival_ts": 1795956414.5, "queue_s": 0.1, "ttft_s": 0.5}',
        '{"timestamp": 27482, "input_length": 6955, "output_length": 52, "hash_ids": [46]}',
        '{"step": "build", "duration": 3.2}',
        '{"prompt": "hello", "output_tokens": 128}',
        "{",
        "INFO 11-29 12:00:00 [x.py:1] ttft_s",
        "",
    ],
)
def test_other_files_are_not_claimed(line: str) -> None:
    assert FORMAT.sniff(Head((line, line), complete=True)) is None


def test_the_schema_takes_what_it_asks_for() -> None:
    names = [
        "asked_for_epoch.jsonl",
        "asked_for_relative_ms.jsonl",
        *(path.name for path in SAMPLES.glob("vllm_*.jsonl")),
    ]
    for name in names:
        for line in filter(None, sample(name)):
            FORM.validate(json.loads(line))
    for example in FORM.schema["examples"]:
        FORM.validate(example)
        assert one(**example)["client_id"] is not None


@pytest.mark.parametrize(
    "line",
    [
        {"request_id": "x"},
        {"sent_at": True},
        {"sent_at": 1795956414.5, "status": 99},
        {"sent_at": 1795956414.5, "chunk_kind": "rxz"},
        {"sent_at": 1795956414.5, "chunks": [[1.0]]},
        {"sent_at": 1795956414.5, "completion_tokens": -1},
        {"sent_at": 1795956414.5, "ttft_ms": "fast"},
        {"sent_at_ms": "2026"},
        [1],
    ],
)
def test_the_schema_refuses_what_it_did_not_ask_for(line: Any) -> None:
    assert not FORM.is_valid(line)


def test_the_schema_explains_every_property() -> None:
    for name, about in {**FORM.schema["properties"], **FORM.schema["patternProperties"]}.items():
        assert about["title"], name
        assert about["description"], name


LEAVES = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**70), 2**70), st.floats(), st.text(max_size=8), st.sampled_from(
        [1795956414.5, 1795956414500, "2026-11-29T12:46:54Z", "0001-01-01T00:00:00+14:00", "content", "1.5", 1e308, "1e999"]
    ),
)  # fmt: skip
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)
KEYS = st.sampled_from(
    [
        "sent_at", "sent_at_ms", "t_send", "ttft_s", "ttft_ns", "e2e_s", "e2e", "chunk_at", "chunks", "chunks_ms", "chunk_kind", "itl",
        "chunk_offset_s", "first_byte", "first_byte_s", "finished_at", "closed_at", "scheduled_at", "stream", "status", "error",
        "request_id", "completion_tokens", "usage", "timings", "response_metrics", "prompt", "output", "other", "http_status", "trace_id",
    ]
)  # fmt: skip
OBJECTS = st.dictionaries(KEYS | st.text(max_size=6), VALUES, max_size=8).map(json.dumps)
LINES = st.lists(
    OBJECTS
    | st.text(alphabet=st.characters(exclude_categories=["Cs"], exclude_characters="\n"), max_size=30),
    max_size=8,
)
CLOCKS = st.sampled_from([Clock.UTC, Clock.LOCAL, Clock.RELATIVE, Clock.NONE])


@settings(max_examples=50, deadline=None)
@given(LINES, CLOCKS, st.booleans(), st.integers(0, 8))
def test_any_lines_are_understood_or_issues_however_they_are_cut(
    lines: list[str], clock: Clock, since_send: bool, at: int
) -> None:
    claim = Claim("x", clock, {"chunks_since_send": since_send})
    FORMAT.sniff(Head(tuple(lines), complete=True))
    whole = FORMAT.parse(Chunk(frame(lines), claim, keep_text=True))
    assert whole.understood + whole.issues.height == len(lines)
    parts = [(lines[:at], 1), (lines[at:], 1 + len(lines[:at]))]
    cut = [FORMAT.parse(Chunk(frame(part, first), claim, keep_text=True)) for part, first in parts]
    assert sum(part.understood for part in cut) == whole.understood
    assert pl.concat([part.issues for part in cut]).equals(whole.issues)
    assert pl.concat([part.stamps for part in cut]).equals(whole.stamps)
    for name, table in whole.tables.items():
        assert pl.concat([part.tables[name] for part in cut]).equals(table)


@pytest.mark.parametrize("odd", [True, False, None, "soon", [], {}])
def test_what_is_no_number_among_the_times_of_chunks_is_not_known(odd: Any) -> None:
    line = {"id": "a", "sent_at": 1795956414.0, "chunk_offset_s": [0.5, 1, odd, 2.5], "chunk_kind": "rccc"}
    whole = line | {"id": "b", "chunk_offset_s": [0, 1, 1.5, 2.5]}
    (first, second) = rows(parse([json.dumps(line), json.dumps(whole)]), "client_stream")
    assert first["chunk_offset_s"] == [0.5, 1.0, None, 2.5]
    assert second["chunk_offset_s"] == [0.0, 1.0, 1.5, 2.5]


def test_lines_with_other_keys_and_units_are_read_side_by_side() -> None:
    lines = [
        {"id": "s", "sent_at": 1795956414.0, "ttft_s": 0.5, "e2e_s": 2.0},
        {"request_id": "ms", "send_at_ms": 1795956414000.0, "ttft_ms": 250, "latency_ms": 1000.0},
        {"rid": "us", "t_send": 1795956414000000, "time_to_first_token_us": 125000, "extra": 7},
    ]
    found = rows(parse([json.dumps(line) for line in lines]))
    assert [row["client_id"] for row in found] == ["s", "ms", "us"]
    assert [row["client_ttft_s"] for row in found] == [0.5, 0.25, 0.125]
    assert [row["client_e2e_s"] for row in found] == [2.0, 1.0, None]
    assert {row["client_sent_ts"] for row in found} == {instant(1795956414.0)}
    assert [row["other"] for row in found] == [None, None, '{"extra":7}']
