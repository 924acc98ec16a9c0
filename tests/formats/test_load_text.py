"""What Locust and k6 print and write; values read off the samples by eye, or with plain csv and json."""

from __future__ import annotations

import csv
import json
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from load_files import claims_of, parse, requests, sample

from tracelens import formats
from tracelens.formats.base import Chunk, Parsed
from tracelens.ingestion.chunks import lines_frame

Row = dict[str, Any]


def rows(parsed: Parsed) -> list[Row]:
    return parsed.tables["client_summary"].to_dicts()


def last(found: list[Row], subject: str | None) -> dict[tuple[str, str | None], float]:
    return {(row["name"], row["statistic"]): row["measured"] for row in found if row["subject"] == subject}


def test_locusts_tables_are_totals_in_milliseconds_by_type_and_name() -> None:
    parsed = parse(sample("locust", "v2.47.0_printed.txt"), "locust")
    assert parsed.issues.height == 0
    chat = last(rows(parsed), "POST /v1/chat/completions")
    assert chat["Request Count", None] == 46
    assert chat["Failure Count", None] == 3
    assert [chat["Response Time", word] for word in ("mean", "min", "max", "p50", "p90", "p99", "p99.9")] == [
        124, 2, 182, 120, 170, 180, 180,
    ]  # fmt: skip
    assert (chat["Requests/s", None], chat["Failures/s", None]) == (6.92, 0.45)
    assert last(rows(parsed), "TTFT first chunk")["Response Time", "p66"] == 310
    assert last(rows(parsed), None)["Request Count", None] == 99
    error = next(row for row in rows(parsed) if row["name"] == "Error report")
    assert (error["subject"], error["measured"]) == ("POST /v1/chat/completions: HTTPError 503", 3)


def test_the_files_of_locust_say_the_same_in_the_same_words() -> None:
    text = sample("locust", "v2.47.0_stats.csv").decode()
    found = last(rows(parse(text, "locust")), "TTFT first chunk")
    stated = next(row for row in csv.DictReader(text.splitlines()) if row["Type"] == "TTFT")
    assert found["Response Time", "mean"] == float(stated["Average Response Time"])
    assert found["Response Time", "p95"] == float(stated["95%"])
    assert found["Request Count", None] == 39
    failures = rows(parse(sample("locust", "v2.47.0_failures.csv"), "locust"))
    assert [(row["subject"], row["measured"]) for row in failures] == [
        ("POST /v1/chat/completions: HTTPError 503", 3)
    ]


def test_a_history_keeps_totals_and_the_last_seconds_apart_and_zeros_of_nothing_out() -> None:
    text = sample("locust", "v2.47.0_stats_history.csv").decode()
    found = rows(parse(text, "locust"))
    first = [row for row in found if row["line_no"] == 2]  # nobody has asked yet: N/A, and zeros
    assert {row["name"] for row in first if row["statistic"]} == set()
    assert [row["measured"] for row in first if row["name"] == "Timestamp"] == [1796031275]
    third = {(row["name"], row["statistic"]) for row in found if row["line_no"] == 3}
    assert ("Total Response Time", "mean") in third
    assert ("Response Time", "p50") not in third  # 0 req/s in the last seconds


def test_no_text_of_an_error_is_kept_since_scripts_put_answers_in_it() -> None:
    line = "7                  POST /v1/completions: CatchResponseError('bad answer: my secret is')\n"
    table = sample("locust", "v2.47.0_printed.txt").decode().split("Error report")[0] + "Error report\n"
    found = rows(parse(table + line, "locust"))
    assert "secret" not in json.dumps(found)
    assert found[-1]["subject"] == "POST /v1/completions: CatchResponseError"


def test_a_table_of_locust_1_has_no_types() -> None:
    text = (
        " Name                              # reqs      # fails  |     Avg     Min     Max  Median  |   req/s failures/s\n"
        "-----------------------------------------------------------------------------------------------------------\n"
        " POST /generate                        12     1(8.33%)  |     310      98     902     250  |    1.20    0.10\n"
    )
    found = last(rows(parse(text, "locust")), "POST /generate")
    assert (found["Failure Count", None], found["Response Time", "p50"]) == (1, 250)


def test_k6_says_what_was_measured_and_which_thresholds_held() -> None:
    parsed = parse(sample("k6_summary", "v1_compact.txt"), "k6_summary")
    assert parsed.issues.height == 0
    whole = last(rows(parsed), None)
    times = {row["statistic"]: row["measured_s"] for row in rows(parsed) if row["line_no"] == 42}
    assert times == {"mean": 2.61, "min": 0.08831, "p50": 2.4, "max": 7.07, "p90": 4.9, "p95": 5.61}
    assert whole["http_req_failed", "count"] == 3
    assert whole["time_to_first_token", "mean"] == 641.2
    assert last(rows(parsed), "expected_response:true")["http_req_duration", "p50"] == 2.44
    assert [(row["name"], row["stated"]) for row in rows(parsed) if row["stated"]] == [
        ("http_req_duration p(95)<4000", "crossed"),
        ("http_req_duration med<3000", "held"),
        ("http_req_failed rate<0.05", "held"),
    ]
    assert [(row["measured"], row["unit"]) for row in rows(parsed) if row["name"] == "data_received"] == [
        (3.4, "MB"),
        (108, "kB/s"),
    ]


def test_an_older_k6_marks_the_metric_and_writes_minutes() -> None:
    found = rows(parse(sample("k6_summary", "v0.48_legacy.txt"), "k6_summary"))
    assert [(row["name"], row["stated"]) for row in found if row["stated"]] == [
        ("http_req_duration thresholds", "crossed"),
        ("http_req_failed thresholds", "held"),
    ]
    duration = {row["statistic"]: row["measured_s"] for row in found if row["line_no"] == 28}
    assert (duration["max"], duration["p90"]) == (60.0, 4.41)
    blocked = {row["statistic"]: row["measured_s"] for row in found if row["line_no"] == 26}
    assert blocked["p50"] == pytest.approx(4.3e-6)


def test_a_part_of_a_metric_is_known_by_the_line_above_wherever_the_file_is_cut() -> None:
    kind, text = formats.named("k6_summary"), sample("k6_summary", "v1_compact.txt").decode()
    claim = claims_of(text.encode())[0][1]
    at = text.index("      { expected_response:true }")
    below = lines_frame(text[at:].encode(), 43)
    part = kind.parse(Chunk(below, claim, context=kind.context(text[:at], None)))
    assert rows(part)[0]["name"] == "http_req_duration"
    lost = kind.parse(Chunk(below, claim))
    assert lost.issues["line_no"].to_list() == [43]


@pytest.mark.parametrize(
    ("name", "file"), [("k6_summary", "v1_compact.txt"), ("locust", "v2.47.0_printed.txt"), ("locust", "v2.47.0_stats.csv")]
)  # fmt: skip
def test_a_number_cut_by_the_files_end_is_none(name: str, file: str) -> None:
    text = sample(name, file).decode()
    whole = rows(parse(text, name))
    for end in range(len(text) - 400, len(text)):
        kind, claim = claims_of(text.encode())[0]
        cut = kind.parse(Chunk(lines_frame(text[:end].encode(), 1), claim, is_open=text[end - 1] != "\n"))
        assert all(row in whole for row in rows(cut))


def test_each_duration_of_k6_is_a_request_without_a_first_token() -> None:
    parsed = parse(sample("k6_points", "points.json"), "k6_points")
    found = requests(parsed)
    assert [(row["status"], row["http_status"]) for row in found] == [
        ("ok", 200), ("rejected", 503), ("aborted", None),
    ]  # fmt: skip
    assert found[0]["client_end_ts"] == datetime(2025, 11, 25, 2, 12, 41, 625742)
    assert found[0]["client_e2e_s"] == pytest.approx(2.612402117)
    assert found[0]["client_sent_ts"] == datetime(2025, 11, 25, 2, 12, 39, 13340)
    assert {row["client_ttft_s"] for row in found} == {None}


@pytest.mark.parametrize(
    "data", ['{"time": "x", "value": 1}', '{"time": "2025-11-25T03:12:41Z", "value": 1e300}', "{}"]
)
def test_a_point_that_tells_no_request_is_an_issue(data: str) -> None:
    line = f'{{"metric": "http_req_duration", "type": "Point", "data": {data}}}\n'
    parsed = parse(line + '{"metric": "vus", "type": "Point", "data": {"value": 1}}\n{"a": 1}\n', "k6_points")
    assert parsed.issues["line_no"].to_list() == [1, 3]


@pytest.mark.parametrize("name", ["locust", "k6_summary", "k6_points"])
@pytest.mark.parametrize("text", ["", "\n", "{}", "nothing of the kind\n", "POST / 3\n", "\x00\x01"])
def test_foreign_text_gives_no_rows(name: str, text: str) -> None:
    file = {"locust": "v2.47.0_printed.txt", "k6_summary": "v1_compact.txt", "k6_points": "points.json"}[name]
    claim = claims_of(sample(name, file))[0][1]
    parsed = parse(text, name, claim=claim)
    assert sum(frame.height for frame in parsed.tables.values()) == 0
