"""LiteLLM, captured streams, curl, hey and ab: by the index of the recorded files, and by hand."""

from __future__ import annotations

import csv
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracelens import formats
from tracelens.formats.base import Chunk, Clock, Format, Head, Parsed
from tracelens.formats.client import (
    curl_responses,
    curl_timings,
    curl_trace,
    litellm,
    load_tools,
    sse_capture,
)
from tracelens.formats.client.sse_events import event_of

SAMPLES = Path(__file__).parents[2] / "sample_logs"
NAMES = ["litellm", "sse_capture", "curl_trace", "curl_responses", "curl_timings", "load_tools"]
FILES = sorted(path for name in NAMES for path in (SAMPLES / name).iterdir() if path.name != "README.md")


def frame(lines: list[str], first: int = 1) -> pl.DataFrame:
    numbers = list(range(first, first + len(lines)))
    return pl.DataFrame({"line_no": numbers, "text": lines}, schema={"line_no": pl.Int64, "text": pl.String})


def parse(kind: Format, lines: list[str], **more: Any) -> Parsed:
    claim = kind.sniff(Head(tuple(lines), complete=True))
    assert claim is not None
    return kind.parse(Chunk(frame(lines), claim, **more))


def lines_of(name: str) -> list[str]:
    return (SAMPLES / name).read_text().splitlines()


def rows_of(kind: Format, name: str) -> list[dict[str, Any]]:
    lines = lines_of(name)
    parsed = parse(kind, lines)
    assert (parsed.understood, parsed.issues.height) == (len(lines), 0)
    return parsed.tables["client_request"].to_dicts()


def epoch(stamp: datetime) -> float:
    return stamp.replace(tzinfo=UTC).timestamp()


LITELLM = "litellm/v1.108.7_standard_logging_payload.jsonl"


def test_litellm_gives_what_the_index_states() -> None:
    rows = rows_of(litellm.FORMAT, LITELLM)
    statuses = [row["status"] for row in rows]
    assert (len(rows), statuses.count("ok"), statuses.count("error")) == (13, 10, 3)
    first = rows[0]
    assert (first["client_id"], first["response_id"]) == (
        "cli-1",
        "chatcmpl-c6dc5e4da97e4c299b5d00261f0dbd85",
    )
    assert epoch(first["client_sent_ts"]) == pytest.approx(1795956867.919633, abs=1e-6)
    assert epoch(first["client_first_chunk_ts"]) == pytest.approx(1795956869.197118, abs=1e-6)
    assert epoch(first["client_end_ts"]) == pytest.approx(1795956869.350352, abs=1e-6)
    assert (first["client_ttft_s"], first["client_e2e_s"]) == (1.277485, 1.430719)
    assert (first["input_tokens"], first["output_tokens"], first["output_tokens_basis"]) == (10, 16, "usage")
    assert (first["streamed"], first["client_ttft_kind"]) == (True, "content")


def test_a_call_that_was_not_streamed_has_no_ttft() -> None:
    row = rows_of(litellm.FORMAT, LITELLM)[5]
    assert (row["streamed"], row["client_ttft_s"], row["client_first_chunk_ts"]) == (False, None, None)
    assert (row["client_ttft_kind"], row["client_reported_ttft_s"]) == ("whole_response", 0.1882619857788086)


def test_failures_have_no_id_of_the_server_and_keep_what_came() -> None:
    refused, cut, broken = [row for row in rows_of(litellm.FORMAT, LITELLM) if row["status"] == "error"]
    assert [row["response_id"] for row in (refused, cut, broken)] == [None] * 3
    assert (refused["http_status"], refused["output_tokens"], refused["input_tokens"]) == (500, None, None)
    assert (cut["output_tokens"], cut["http_status"]) == (5, None)
    assert "EngineCore encountered an issue" in broken["error"]


def test_messages_answers_and_keys_of_litellm_are_not_kept() -> None:
    lines = lines_of(LITELLM)
    values = json.loads(lines[0])
    values["slp"]["error_str"] = "Incorrect API key provided: sk-abcdef1234567890"
    values["slp"]["api_base"] = "https://user:pass@host/v1?key=secret"
    text = str(parse(litellm.FORMAT, [json.dumps(values), *lines]).tables["client_request"].to_dicts())
    for secret in (
        "short story",
        "quick brown",
        "litellm_proxy_master_key",
        "sk-abcdef",
        "pass@",
        "key=secret",
    ):
        assert secret not in text


def test_payloads_come_bare_and_as_spend_rows() -> None:
    payload = json.loads(lines_of(LITELLM)[1])["slp"]
    (bare,) = parse(litellm.FORMAT, [json.dumps(payload)]).tables["client_request"].to_dicts()
    assert bare["client_ttft_s"] == 0.075253
    spent = {
        "request_id": payload["id"],
        "call_type": "acompletion",
        "startTime": "2026-11-29T12:54:29.393964",
        "completionStartTime": "2026-11-29T12:54:29.469217",
        "endTime": "2026-11-29T12:54:29.616767",
        "completion_tokens": 16,
    }
    (row,) = parse(litellm.FORMAT, [json.dumps(spent)]).tables["client_request"].to_dicts()
    for name in ("client_sent_ts", "client_ttft_s", "client_e2e_s", "response_id"):
        assert row[name] == bare[name], name


def test_a_first_byte_of_a_pass_through_call_is_no_token() -> None:
    payload = json.loads(lines_of(LITELLM)[1])["slp"] | {"call_type": "pass_through_endpoint"}
    (row,) = parse(litellm.FORMAT, [json.dumps(payload)]).tables["client_request"].to_dicts()
    assert (row["client_ttft_s"], row["client_ttft_kind"]) == (None, "first_byte")


def test_a_stamped_stream_gives_what_the_index_states() -> None:
    (row,) = rows_of(sse_capture.FORMAT, "sse_capture/ts_epoch.txt")
    assert row["response_id"] == "chatcmpl-c661fbf3e2954e0b852df88378c419c5"
    assert epoch(row["client_first_byte_ts"]) == pytest.approx(1795956664.555279, abs=1e-6)
    assert epoch(row["client_first_chunk_ts"]) == pytest.approx(1795956664.555829, abs=1e-6)
    assert epoch(row["client_last_chunk_ts"]) == pytest.approx(1795956664.651894, abs=1e-6)
    assert epoch(row["client_end_ts"]) == pytest.approx(1795956664.654619, abs=1e-6)
    assert (row["input_tokens"], row["output_tokens"], row["output_tokens_basis"]) == (10, 12, "usage")
    assert (row["chunk_count"], row["status"], row["streamed"]) == (12, "ok", True)
    # Nothing says when it was sent.
    assert (row["client_sent_ts"], row["client_ttft_s"], row["client_e2e_s"]) == (None, None, None)
    assert row["client_tpot_s"] == pytest.approx((0.651894 - 0.555829) / 11, abs=1e-9)


def test_reasoning_counts_and_a_keep_alive_does_not() -> None:
    lines = lines_of("sse_capture/ts_relative_reasoning.txt")
    parsed = parse(sse_capture.FORMAT, lines)
    (row,) = parsed.tables["client_request"].to_dicts()
    assert (row["chunk_count"], row["output_tokens"], row["finish_reason"]) == (3, 12, "length")
    # First reasoning at 0.018413, last content at 0.084032.
    assert row["client_tpot_s"] == pytest.approx((0.084032 - 0.018413) / 11, abs=1e-9)
    assert parsed.tables["client_stream"].height == 0
    assert parsed.stamps.height == 0


def test_response_metrics_of_vllm_start_at_scheduling() -> None:
    parsed = parse(sse_capture.FORMAT, lines_of("sse_capture/per_request_metrics.sse"))
    (measured,) = parsed.tables["server_request"].to_dicts()
    (row,) = parsed.tables["client_request"].to_dicts()
    assert (measured["queue_s"], measured["prefill_s"], measured["decode_s"]) == (0.5, 0.25, 5.5)
    assert (measured["request_id"], measured["measured_by"]) == ("chatcmpl-trace-000017", "response")
    assert measured["line_no"] == row["line_no"]
    assert (row["input_tokens"], row["cached_input_tokens"], row["output_tokens"]) == (512, 256, 128)
    assert (row["chunk_count"], row["client_ttft_s"]) == (None, None)


def test_saved_answers_have_usage_and_what_the_server_measured() -> None:
    lines = lines_of("curl_responses/vllm_0.28_metrics.json")
    parsed = parse(curl_responses.FORMAT, lines)
    answer, refused = parsed.tables["client_request"].to_dicts()
    (measured,) = parsed.tables["server_request"].to_dicts()
    assert (measured["queue_s"], measured["prefill_s"], measured["decode_s"]) == (0.5, 0.25, 5.5)
    assert (measured["line_no"], measured["request_id"]) == (1, "chatcmpl-trace-000017")
    assert (answer["input_tokens"], answer["cached_input_tokens"], answer["output_tokens"]) == (512, 256, 128)
    assert (answer["status"], answer["streamed"], answer["client_ttft_s"]) == ("ok", False, None)
    assert (refused["status"], refused["line_no"]) == ("error", lines.index("{", 1) + 1)
    assert "quick brown" not in str(parsed.tables)


def test_an_error_in_a_stream_that_began_with_200_is_an_error() -> None:
    (row,) = rows_of(sse_capture.FORMAT, "sse_capture/error_in_stream.sse")
    assert (row["status"], row["http_status"], row["chunk_count"]) == ("error", 200, 2)
    assert "EngineCore" in row["error"]


def test_answers_that_follow_one_another_are_rows_of_their_own() -> None:
    one = lines_of("sse_capture/ts_epoch.txt")
    two = [line.replace("c661fbf3", "d772aaaa") for line in one]
    rows = parse(sse_capture.FORMAT, one[:-2] + two).tables["client_request"].to_dicts()
    assert [row["response_id"][9:17] for row in rows] == ["c661fbf3", "d772aaaa"]
    assert [row["status"] for row in rows] == ["ok", "ok"]
    assert [row["line_no"] for row in rows] == [1, len(one) - 1]


@pytest.mark.parametrize(
    ("stamp", "clock"),
    [("12:51:04.900210", Clock.DAYLESS), ("12:51:04", Clock.NONE), ("Nov 29 12:51:04", Clock.NONE)],
)
def test_other_stamps_of_ts(stamp: str, clock: Clock) -> None:
    lines = [f"{stamp} {line.partition(' ')[2]}" for line in lines_of("sse_capture/ts_epoch.txt")]
    claim = sse_capture.sniff(Head(tuple(lines), complete=True))
    assert claim is not None
    assert claim.clock is clock
    (row,) = parse(sse_capture.FORMAT, lines).tables["client_request"].to_dicts()
    expected = datetime(2000, 1, 1, 12, 51, 4, 900210) if clock is Clock.DAYLESS else None
    assert (row["client_first_chunk_ts"], row["output_tokens"]) == (expected, 12)


def test_texts_are_kept_only_when_asked_for() -> None:
    lines = lines_of("sse_capture/ts_epoch.txt")
    assert "request_text" not in parse(sse_capture.FORMAT, lines).tables
    (row,) = parse(sse_capture.FORMAT, lines, keep_text=True).tables["request_text"].to_dicts()
    assert row["content"] == "the quick brown fox jumps over a lazy dog while seven wizards"


@pytest.mark.parametrize(
    ("payload", "kind"),
    [
        ('{"choices":[{"delta":{"role":"assistant","content":""}}]}', "r"),
        ('{"choices":[{"delta":{"content":"a"},"finish_reason":"stop"}]}', "c"),
        ('{"choices":[{"delta":{"tool_calls":[{"index":0}]}}]}', "c"),
        ('{"choices":[{"delta":{"reasoning_content":"a"}}]}', "t"),
        ('{"choices":[{"delta":{"content":""}}]}', "e"),
        ('{"choices":[{"delta":{"content":""},"finish_reason":"stop"}]}', "f"),
        ('{"choices":[],"usage":{"prompt_tokens":1}}', "u"),
        ('{"choices":[{"text":"a"}]}', "c"),
        ('{"object":"error","message":"x"}', "E"),
        ('{"type":"response.output_text.delta","delta":"a"}', "c"),
        ('{"type":"response.completed","response":{"id":"resp_1","usage":{"output_tokens":3}}}', "u"),
        ('{"type":"content_block_delta","delta":{"type":"thinking_delta","thinking":"a"}}', "t"),
        ("[DONE]", "D"),
    ],
)
def test_kinds_of_events(payload: str, kind: str) -> None:
    event = event_of(payload)
    assert event is not None
    assert event.kind == kind


def test_the_trace_of_curl_has_the_send() -> None:
    lines = lines_of("curl_trace/curl_7.88.1_trace_ascii.txt")
    parsed = parse(curl_trace.FORMAT, lines)
    (row,) = parsed.tables["client_request"].to_dicts()
    # Stamps of "=> Send header", the first "<= Recv header", the role chunk, the first content, the last one.
    assert row["client_sent_ts"] == datetime(2026, 11, 29, 12, 51, 4, 286673)
    assert row["client_headers_s"] == pytest.approx(0.287385 - 0.286673)
    assert row["client_first_byte_s"] == pytest.approx(0.348193 - 0.286673)
    assert row["client_ttft_s"] == pytest.approx(0.348452 - 0.286673)
    assert row["client_e2e_s"] == pytest.approx(0.443825 - 0.286673)
    assert (row["response_id"], row["status"]) == ("chatcmpl-8d1025c1d8c94644871f0391ef3cc9c5", "ok")
    assert (row["chunk_count"], row["input_tokens"], row["output_tokens"]) == (12, 10, 12)
    (stream,) = parsed.tables["client_stream"].to_dicts()
    assert stream["chunk_kind"] == "r" + "c" * 12 + "uD"
    assert stream["chunk_offset_s"][1] == pytest.approx(0.061779, abs=1e-6)
    assert parsed.understood == len(lines)
    assert "story" not in str(parsed.tables)


def test_a_trace_of_another_zone_is_placed_by_the_date_header() -> None:
    lines = [
        line.replace("12:51:04.", "18:21:04.") for line in lines_of("curl_trace/curl_7.88.1_trace_ascii.txt")
    ]
    (row,) = parse(curl_trace.FORMAT, lines).tables["client_request"].to_dicts()
    assert row["client_sent_ts"] == datetime(2026, 11, 29, 12, 51, 4, 286673)


def test_a_trace_without_a_date_has_times_of_day() -> None:
    lines = [line for line in lines_of("curl_trace/curl_7.88.1_trace_ascii.txt") if "Date: " not in line]
    claim = curl_trace.sniff(Head(tuple(lines), complete=True))
    assert claim is not None
    assert claim.clock is Clock.DAYLESS
    (row,) = parse(curl_trace.FORMAT, lines).tables["client_request"].to_dicts()
    assert row["client_ttft_s"] == pytest.approx(0.061779)


def test_write_out_of_curl_stops_at_the_headers() -> None:
    rows = rows_of(curl_timings.FORMAT, "curl_timings/curl_w.jsonl")
    told = [json.loads(line) for line in lines_of("curl_timings/curl_w.jsonl")]
    assert [row["client_headers_s"] for row in rows] == [each["time_starttransfer"] for each in told]
    assert [row["client_e2e_s"] for row in rows] == [each["time_total"] for each in told]
    assert {(row["client_ttft_s"], row["client_ttft_kind"], row["status"]) for row in rows} == {
        (None, "headers", "ok")
    }


def test_a_curl_that_got_no_answer_has_no_headers() -> None:
    line = '{"time_starttransfer":0.000000,"time_total":5.0,"http_code":000,"exitcode":28,"errormsg":"Operation timed out"}'
    (row,) = parse(curl_timings.FORMAT, [line.replace(":000,", ":0,")]).tables["client_request"].to_dicts()
    assert (row["client_headers_s"], row["http_status"], row["status"]) == (None, None, "aborted")


def test_hey_and_ab_have_times_to_headers() -> None:
    rows = rows_of(load_tools.FORMAT, "load_tools/hey_v0.1.4.csv")
    told = list(csv.DictReader(lines_of("load_tools/hey_v0.1.4.csv")))
    assert len(rows) == len(told) == 12
    for row, each in zip(rows, told, strict=True):
        assert row["client_e2e_s"] == float(each["response-time"])
        assert row["client_sent_s"] == float(each["offset"])
        assert (row["http_status"], row["status"]) == (200, "ok")
        # To the headers and from there to the end is the whole, to the rounding of five numbers.
        assert row["client_headers_s"] + float(each["Response-read"]) == pytest.approx(
            row["client_e2e_s"], abs=3e-4
        )
    rows = rows_of(load_tools.FORMAT, "load_tools/ab_2.4_gnuplot.tsv")
    told = list(csv.DictReader(lines_of("load_tools/ab_2.4_gnuplot.tsv"), delimiter="\t"))
    assert len(rows) == len(told) == 12
    for row, each in zip(rows, told, strict=True):
        assert epoch(row["client_sent_ts"]) == int(each["seconds"])
        assert row["client_e2e_s"] == pytest.approx(int(each["ttime"]) / 1000)
        assert row["client_headers_s"] == pytest.approx((int(each["ctime"]) + int(each["wait"])) / 1000)
        assert (row["client_ttft_s"], row["http_status"], row["status"]) == (None, None, "unknown")


def test_the_last_row_of_a_file_without_a_line_end_may_be_cut() -> None:
    parsed = parse(load_tools.FORMAT, lines_of("load_tools/hey_v0.1.4.csv"), is_open=True)
    assert parsed.tables["client_request"].height == 11
    assert parsed.issues["reason"].to_list() == ["row cut off by the file's end"]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_cut_empty_and_foreign_lines(path: Path) -> None:
    kind = formats.named(path.parent.name)
    lines = path.read_text().splitlines()
    claim = kind.sniff(Head(tuple(lines), complete=True))
    assert claim is not None
    parsed = kind.parse(Chunk(frame([*lines, "", "some other line", "{"]), claim))
    assert parsed.issues["line_no"].to_list() == [len(lines) + 2, len(lines) + 3]
    half = kind.parse(Chunk(frame([*lines[:2], lines[2][: len(lines[2]) // 2]]), claim))
    assert half.understood + half.issues.height == 3
    assert kind.sniff(Head(())) is None
    assert kind.sniff(Head(("a", "b: c", "{}"), complete=True)) is None


@settings(max_examples=30, deadline=None)
@given(st.sampled_from(FILES), st.data())
def test_any_lines_are_understood_or_issues(path: Path, data: st.DataObject) -> None:
    kind = formats.named(path.parent.name)
    whole = path.read_text().splitlines()
    claim = kind.sniff(Head(tuple(whole), complete=True))
    assert claim is not None

    def spoilt() -> str:
        line = data.draw(st.sampled_from(whole))
        at = data.draw(st.integers(0, len(line)))
        return line[:at] + data.draw(st.sampled_from(["", "", "9", "-", '"', " ", "é", "null"])) + line[at:]

    lines = [spoilt() for _ in range(4)]
    together = kind.parse(Chunk(frame(lines), claim))
    assert together.understood + together.issues.height == len(lines)
    if not kind.whole:
        parts = [kind.parse(Chunk(frame(lines[:2]), claim)), kind.parse(Chunk(frame(lines[2:], 3), claim))]
        assert pl.concat([part.tables["client_request"] for part in parts]).equals(
            together.tables["client_request"]
        )
