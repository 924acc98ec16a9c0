"""Gateways' access logs: counts and first values by the index of the recorded files, the rest read off the samples."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracelens.formats.base import Chunk, Clock, Format, Head, Parsed
from tracelens.formats.client import access_json, access_text

SAMPLES = Path(__file__).parents[2] / "sample_logs"
KINDS = {"access_json": access_json.FORMAT, "access_text": access_text.FORMAT}
FILES = sorted(path for name in KINDS for path in (SAMPLES / name).iterdir() if path.name != "README.md")


def frame(lines: list[str], first: int = 1) -> pl.DataFrame:
    numbers = list(range(first, first + len(lines)))
    return pl.DataFrame({"line_no": numbers, "text": lines}, schema={"line_no": pl.Int64, "text": pl.String})


def parse(kind: Format, lines: list[str], first: int = 1, is_open: bool = False) -> Parsed:
    claim = kind.sniff(Head(tuple(lines), complete=True))
    assert claim is not None
    return kind.parse(Chunk(frame(lines, first), claim, is_open=is_open))


def rows_of(name: str) -> list[dict[str, Any]]:
    kind = KINDS[name.partition("/")[0]]
    lines = (SAMPLES / name).read_text().splitlines()
    parsed = parse(kind, lines)
    assert (parsed.understood, parsed.issues.height) == (len(lines), 0)
    return parsed.tables["client_request"].to_dicts()


def epoch(stamp: datetime) -> float:
    return stamp.replace(tzinfo=UTC).timestamp()


def test_nginx_json_gives_what_the_index_states() -> None:
    rows = rows_of("access_json/nginx_1.22.1.jsonl")
    statuses = [row["status"] for row in rows]
    assert (len(rows), statuses.count("ok"), statuses.count("error")) == (22, 21, 1)
    first = rows[0]
    # The mock's id was chatcmpl- and the id that nginx sent on.
    assert "chatcmpl-" + first["client_id"] == "chatcmpl-f1f8ce8cdee6e4770c49be1f6c14804f"
    assert epoch(first["client_sent_ts"]) == pytest.approx(1795956659.485, abs=1e-6)
    assert epoch(first["client_headers_ts"]) == pytest.approx(1795956659.489, abs=1e-6)
    assert epoch(first["client_end_ts"]) == pytest.approx(1795956659.661, abs=1e-6)
    assert (first["attempt"], first["client_e2e_s"]) == (1, 0.176)
    assert first["client_first_byte_ts"] is None
    assert first["streamed"] is None


def test_the_time_to_headers_is_never_a_ttft() -> None:
    for path in FILES:
        for row in rows_of(f"{path.parent.name}/{path.name}"):
            assert row["client_ttft_s"] is None
            assert row["client_reported_ttft_s"] is None
            assert row["client_first_chunk_ts"] is None
            expected = None if row["client_headers_s"] is None else "headers"
            assert row["client_ttft_kind"] == expected
            assert row["seen_by"] == "http_gateway"


def test_every_json_line_has_its_own_numbers() -> None:
    path = SAMPLES / "access_json" / "nginx_1.22.1.jsonl"
    told = [json.loads(line) for line in path.read_text().splitlines()]
    for values, row in zip(told, rows_of("access_json/nginx_1.22.1.jsonl"), strict=True):
        assert row["client_e2e_s"] == values["request_time"]
        assert row["http_status"] == values["status"]
        assert row["gateway_id"] == values["request_id"]
        assert row["attempt"] == len(values["upstream_status"].split(","))
        assert epoch(row["client_end_ts"]) == pytest.approx(values["msec"], abs=1e-6)
        # The one request with two tries: the first took no time.
        assert row["client_headers_s"] == float(values["upstream_header_time"].split(", ")[-1])
        assert row["label"] == "/v1/chat/completions"


def test_text_and_json_of_the_same_requests_agree() -> None:
    text = rows_of("access_text/nginx_1.22.1_upstream_times.log")
    written = rows_of("access_json/nginx_1.22.1.jsonl")
    # The text format does not log the client's own id.
    assert {row["client_id"] for row in written if row["client_id"] != row["gateway_id"]} >= {"cli-req-1"}
    for name in (
        "gateway_id",
        "client_e2e_s",
        "client_headers_s",
        "http_status",
        "status",
        "label",
    ):
        assert [row[name] for row in text] == [row[name] for row in written], name


def test_stamps_of_whole_seconds_make_the_arrival_early_never_late() -> None:
    text = rows_of("access_text/nginx_1.22.1_upstream_times.log")
    written = rows_of("access_json/nginx_1.22.1.jsonl")
    for early, exact in zip(text, written, strict=True):
        late_by = epoch(exact["client_sent_ts"]) - epoch(early["client_sent_ts"])
        assert 0 <= late_by < 1
        assert (early["client_end_ts"], early["client_headers_ts"]) == (None, None)


def test_combined_has_status_and_second_alone() -> None:
    rows = rows_of("access_text/nginx_1.22.1_combined.log")
    lines = (SAMPLES / "access_text" / "nginx_1.22.1_combined.log").read_text().splitlines()
    assert [row["http_status"] for row in rows] == [int(re.findall(r'" (\d{3}) ', line)[0]) for line in lines]
    assert rows[0]["client_end_ts"] == datetime(2026, 11, 29, 12, 50, 59)
    assert {row["client_e2e_s"] for row in rows} == {None}
    assert {row["client_sent_ts"] for row in rows} == {None}


def test_envoys_milliseconds_flags_and_health_checks() -> None:
    stream, refused, left = rows_of("access_json/envoy_istio.jsonl")
    assert stream["client_sent_ts"] == datetime(2025, 10, 21, 12, 34, 56, 100000)
    # RESPONSE_DURATION (31) goes before the service time (27).
    assert (stream["client_headers_s"], stream["client_e2e_s"], stream["status"]) == (0.031, 6.54, "ok")
    assert stream["trace_id"] == "5f1e9c0d7a4b4c0f9b3d2e1a0c8b7f66"
    assert (refused["status"], refused["http_status"], refused["label"]) == (
        "rejected",
        503,
        "/v1/completions",
    )
    assert (left["status"], left["http_status"], left["client_headers_s"]) == ("aborted", 200, 0.03)


@pytest.mark.parametrize("name", ["envoy_default.log", "istio_default.log"])
def test_envoys_text_formats(name: str) -> None:
    first = rows_of(f"access_text/{name}")[0]
    assert (first["client_headers_s"], first["client_e2e_s"], first["http_status"]) == (0.027, 6.54, 200)
    assert first["client_id"] == "8c2f0a34-1f6f-4d1e-9a51-d6d1d0c50017"
    assert first["client_sent_ts"] == datetime(2025, 10, 21, 12, 34, 56, 100000)


def test_haproxys_timers() -> None:
    stream, queued, left = rows_of("access_text/haproxy_http.log")
    # 0 + 12 + 1 + 18 ms to the headers
    assert (stream["client_headers_s"], stream["client_e2e_s"]) == (0.031, 6.54)
    assert (queued["client_headers_s"], queued["client_e2e_s"], queued["status"]) == (None, 1.0, "rejected")
    assert (left["status"], left["error"]) == ("aborted", None)
    claim = access_text.sniff(
        Head(tuple((SAMPLES / "access_text" / "haproxy_http.log").read_text().splitlines()))
    )
    assert claim is not None
    assert claim.clock is Clock.LOCAL


def test_ingress_nginx_has_its_own_order() -> None:
    one, two = rows_of("access_text/ingress_nginx.log")
    assert (one["client_e2e_s"], one["attempt"], one["client_headers_s"]) == (6.54, 1, None)
    assert (two["client_e2e_s"], two["attempt"]) == (1.502, 2)
    assert two["client_id"] == "8c2f0a341f6f4d1e9a51d6d1d0c50018"


def test_the_clients_own_id_goes_before_the_gateways() -> None:
    line = (SAMPLES / "access_json" / "nginx_1.22.1.jsonl").read_text().splitlines()[0]
    values = json.loads(line) | {"http_x_request_id": "cli-7"}
    (row,) = parse(access_json.FORMAT, [json.dumps(values)]).tables["client_request"].to_dicts()
    assert (row["client_id"], row["gateway_id"]) == ("cli-7", values["request_id"])


def test_tries_before_the_last_one_are_added() -> None:
    line = (SAMPLES / "access_json" / "nginx_1.22.1.jsonl").read_text().splitlines()[0]
    values = json.loads(line) | {
        "upstream_header_time": "0.5, 0.002",
        "upstream_response_time": "1.5, 0.2",
        "upstream_status": "502, 200",
    }
    (row,) = parse(access_json.FORMAT, [json.dumps(values)]).tables["client_request"].to_dicts()
    assert (row["client_headers_s"], row["attempt"]) == (1.502, 2)


def test_what_nginx_writes_without_escaping_for_json_is_mended() -> None:
    line = (
        '{"msec":1795956659.661,"request_id":"f1","method":"POST","uri":"/v1/completions","status":504,"request_time":60.001,'
        '"upstream_status":"504","upstream_header_time":-,"upstream_response_time":,"user_agent":"a \\x22b\\x22"}'
    )
    (row,) = parse(access_json.FORMAT, [line]).tables["client_request"].to_dicts()
    assert (row["client_e2e_s"], row["client_headers_s"], row["status"]) == (60.001, None, "error")


def test_queries_and_user_agents_are_not_kept() -> None:
    line = '10.0.0.1 - bob [29/Nov/2026:12:50:59 +0000] "POST /v1/completions?api_key=secret HTTP/1.1" 200 1 "-" "secret-agent" rt=0.5'
    (row,) = parse(access_text.FORMAT, [line]).tables["client_request"].to_dicts()
    assert "secret" not in str(row)
    assert "bob" not in str(row)
    assert (row["label"], row["client_e2e_s"]) == ("/v1/completions", 0.5)


def test_a_number_cut_by_the_end_of_the_file_is_no_value() -> None:
    lines = (SAMPLES / "access_text" / "nginx_1.22.1_upstream_times.log").read_text().splitlines()[:2]
    cut = lines[1][: lines[1].index("rt=0.187") + len("rt=0.1")]
    rows = parse(access_text.FORMAT, [lines[0], cut], is_open=True).tables["client_request"].to_dicts()
    assert [row["client_e2e_s"] for row in rows] == [0.176, None]
    rid = (
        parse(access_text.FORMAT, [lines[0], lines[1][:-4]], is_open=True).tables["client_request"].to_dicts()
    )
    assert [row["client_id"] for row in rid] == ["f1f8ce8cdee6e4770c49be1f6c14804f", None]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_cut_empty_and_foreign_lines(path: Path) -> None:
    kind = KINDS[path.parent.name]
    lines = path.read_text().splitlines()
    mixed = ["", *lines, "some other line", lines[0][:25]]
    claim = kind.sniff(Head(tuple(lines), complete=True))
    assert claim is not None
    parsed = kind.parse(Chunk(frame(mixed), claim))
    assert parsed.issues["line_no"].to_list() == [len(lines) + 2, len(lines) + 3]
    assert parsed.understood == len(lines) + 1
    assert kind.sniff(Head(())) is None


@pytest.mark.parametrize("kind", KINDS.values(), ids=lambda kind: kind.name)
def test_web_servers_that_serve_no_model_are_not_claimed(kind: Format) -> None:
    pages = [
        '1.2.3.4 - - [29/Nov/2025:12:00:00 +0000] "GET /index.html HTTP/1.1" 200 12 "-" "x"',
        '{"status": 200, "request_time": 0.1, "uri": "/index.html", "method": "GET"}',
        '{"status": 200, "request_time": 0.1}',
    ]
    assert [kind.sniff(Head((page,) * 3, complete=True)) for page in pages] == [None] * 3


def test_envoys_start_in_whole_seconds_gives_no_end() -> None:
    values = json.loads((SAMPLES / "access_json" / "envoy_istio.jsonl").read_text().splitlines()[0])
    line = json.dumps(values | {"start_time": "2025-10-21T12:34:56Z"})
    (row,) = parse(access_json.FORMAT, [line]).tables["client_request"].to_dicts()
    assert row["client_sent_ts"] == datetime(2025, 10, 21, 12, 34, 56)
    assert (row["client_end_ts"], row["client_headers_ts"], row["client_e2e_s"]) == (None, None, 6.54)


@settings(max_examples=30, deadline=None)
@given(st.sampled_from(FILES), st.data())
def test_any_lines_are_read_without_an_error_however_they_are_cut(path: Path, data: st.DataObject) -> None:
    kind = KINDS[path.parent.name]
    whole = path.read_text().splitlines()
    claim = kind.sniff(Head(tuple(whole), complete=True))
    assert claim is not None

    def spoilt() -> str:
        line = data.draw(st.sampled_from(whole))
        at = data.draw(st.integers(0, len(line)))
        return line[:at] + data.draw(st.sampled_from(["", "", "9", "-", '"', " ", "é", "1e400"])) + line[at:]

    lines = [spoilt() for _ in range(4)]
    together = kind.parse(Chunk(frame(lines), claim))
    assert together.understood + together.issues.height == len(lines)
    parts = [kind.parse(Chunk(frame(lines[:2]), claim)), kind.parse(Chunk(frame(lines[2:], 3), claim))]
    assert pl.concat([part.tables["client_request"] for part in parts]).equals(
        together.tables["client_request"]
    )
