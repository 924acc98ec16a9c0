"""Scrapes and what else holds metrics: values by the samples' own index, counts by hand, times that people write between scrapes."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracelens import formats
from tracelens.formats.base import Chunk, Claim, Clock, Head, Parsed
from tracelens.formats.metrics.scrape_times import time_of
from tracelens.formats.metrics.series import labels_of

SAMPLES = Path(__file__).parents[2] / "sample_logs"
GAUGE = '# TYPE vllm:num_requests_waiting gauge\nvllm:num_requests_waiting{engine="0"} '
AT = dt.datetime(2026, 11, 29, 12, 0)


def frame(text: str) -> pl.DataFrame:
    lines = text.removesuffix("\n").split("\n")
    return pl.DataFrame(
        {"line_no": range(1, len(lines) + 1), "text": lines}, schema={"line_no": pl.Int64, "text": pl.String}
    )


def claim_of(text: str, name: str) -> Claim:
    found = formats.claims(Head(tuple(text.split("\n")), complete=True))
    assert [kind.name for kind, _ in found] == [name]
    return found[0][1]


def parsed(text: str, name: str = "prometheus_text", is_open: bool = False) -> Parsed:
    result = formats.named(name).parse(Chunk(frame(text), claim_of(text, name), is_open=is_open))
    assert result.understood + result.issues.height == frame(text).height
    return result


def rows(result: Parsed, table: str = "metric_sample") -> list[dict[str, Any]]:
    return result.tables[table].to_dicts()


def sample(folder: str, name: str) -> str:
    return (SAMPLES / folder / name).read_text(encoding="utf-8")


# Text -----------------------------------------------------------------------------------------------------------------


def test_every_line_of_a_scrape_that_is_no_comment_is_a_row_with_its_labels_sorted() -> None:
    text = sample("prometheus_text", "v0.10-0.33_v1.prom")
    found = rows(parsed(text))
    assert len(found) == sum(1 for line in text.splitlines() if not line.startswith("#"))
    assert found[5]["name"] == "vllm:kv_cache_usage_perc"
    assert (found[5]["measured"], found[5]["line_no"], found[5]["sample_ts"]) == (0.991, 14, None)
    assert found[3]["labels"] == '{"engine":"0","model_name":"acme/moe-test-30b","reason":"capacity"}'
    assert found[6]["measured"] == 8.11e6


def test_a_sentinel_of_dcgm_is_no_value() -> None:
    found = {
        row["name"]: row["measured"] for row in rows(parsed(sample("prometheus_text", "dcgm_exporter.prom")))
    }
    assert found["DCGM_FI_DEV_MEMORY_TEMP"] is None
    assert found["DCGM_FI_DEV_POWER_USAGE"] == 492.337


@pytest.mark.parametrize("value", ["NaN", "+Inf", "-Inf"])
def test_what_is_no_number_is_no_value(value: str) -> None:
    assert [row["measured"] for row in rows(parsed(GAUGE + value))] == [None]


@pytest.mark.parametrize(
    ("line", "clock", "stamp", "error_s"),
    [
        ("# scraped_at 1795953600.114", Clock.UTC, AT.replace(microsecond=114000), 0.001),
        ("# scrape_ts 1795953600.725 2026-11-29T12:00:00.724Z duration_s 0.0311", Clock.UTC, AT.replace(microsecond=725000), 0.001),
        ("1795953600", Clock.UTC, AT, 1.0),
        ("1795953600000", Clock.UTC, AT, 0.001),
        ("timestamp 1795953600", Clock.UTC, AT, 1.0),
        ("# 2026-11-29T12:00:00Z", Clock.UTC, AT, 1.0),
        ("=== 2026-11-29 12:00:00+00:00 ===", Clock.UTC, AT, 1.0),
        ("--- 2026-11-29T14:00:00.5+0200 ---", Clock.UTC, AT.replace(microsecond=500000), 0.1),
        ("2026-11-29 12:00:00", Clock.LOCAL, AT, 1.0),
        ("Sun Nov 29 12:00:00 UTC 2026", Clock.UTC, AT, 1.0),
        ("Sun Nov 29 12:00:00 CST 2026", Clock.LOCAL, AT, 1.0),
        ("Sun 29 Nov 2026 12:00:00 PM UTC", Clock.UTC, AT, 1.0),
        ("date: Sun, 29 Nov 2026 12:00:00 GMT", Clock.UTC, AT, 1.0),
        ("# 12:00:00", Clock.DAYLESS, dt.datetime(2000, 1, 1, 12), 1.0),
    ],
)  # fmt: skip
def test_a_line_between_two_scrapes_tells_their_time(
    line: str, clock: Clock, stamp: dt.datetime, error_s: float
) -> None:
    found = time_of(line)
    assert found is not None
    assert (found.at, found.clock, found.error_s) == (stamp, clock, error_s)
    text = f"{line}\n{GAUGE}57.0\n"
    assert claim_of(text, "prometheus_text").clock is clock
    assert [(row["sample_ts"], row["measured"]) for row in rows(parsed(text))] == [(stamp, 57.0)]


@pytest.mark.parametrize(
    "line",
    ["# EOF", "=====", "", "scrape 3 of 5", "2026", "# 99:99:99", "Xxx 29 12:00", "# build 17610500900"],
)
def test_other_lines_tell_no_time(line: str) -> None:
    assert time_of(line) is None


def test_what_curl_writes_around_an_answer_is_understood_and_a_failed_scrape_is_an_issue() -> None:
    text = (
        "HTTP/1.1 200 OK\ndate: Sun, 29 Nov 2026 12:00:00 GMT\nserver: uvicorn\ncontent-type: text/plain\n\n"
        + GAUGE + "3\ncurl: (7) Failed to connect to localhost port 8000\n"
        "HTTP/1.1 200 OK\ndate: Sun, 29 Nov 2026 12:00:30 GMT\n\n" + GAUGE + "4\n"
    )  # fmt: skip
    result = parsed(text)
    assert [(row["measured"], row["sample_ts"]) for row in rows(result)] == [
        (3, AT),
        (4, AT.replace(second=30)),
    ]
    assert result.issues.select("line_no", "reason").rows() == [
        (8, "the scrape failed: the server was not reached")
    ]


@pytest.mark.parametrize("stamp", ["2026-11-29T12:00:00Z", "1795953600", "[2026-11-29 12:00:00+00:00]"])
def test_a_stamp_before_each_line_is_its_time(stamp: str) -> None:
    text = "".join(f"{stamp} {line}\n" for line in (GAUGE + "57.0").split("\n"))
    assert [(row["sample_ts"], row["labels"], row["measured"]) for row in rows(parsed(text))] == [
        (AT, '{"engine":"0"}', 57.0)
    ]


def test_the_time_behind_a_value_is_its_own_in_milliseconds_or_seconds() -> None:
    text = "# TYPE a_total counter\na_total 1 1795953600000\na_total 2 1795953601.5\n"
    assert [row["sample_ts"] for row in rows(parsed(text))] == [AT, AT.replace(second=1, microsecond=500000)]


def test_open_metrics_keeps_its_own_spelling_and_an_exemplar_is_no_value() -> None:
    text = sample("prometheus_text", "metrics_openmetrics_underscore.txt")
    assert [row["name"] for row in rows(parsed(text))] == [
        "vllm_num_requests_waiting",
        "vllm_num_preemptions_total",
    ]
    bucket = '# TYPE a histogram\na_bucket{le="0.5"} 8 # {trace_id="x"} 0.3 1795953600.0\n# EOF\n'
    assert [(row["labels"], row["measured"]) for row in rows(parsed(bucket))] == [('{"le":"0.5"}', 8.0)]


def test_labels_may_hold_quotes_braces_and_commas() -> None:
    assert labels_of(r'a="x\"y",b="{1,2}",c="p\\q\nr",') == {"a": 'x"y', "b": "{1,2}", "c": "p\\q\nr"}
    assert labels_of('"vllm:x", a="1"') == {"__name__": "vllm:x", "a": "1"}
    assert labels_of('a="1') is None
    line = 'vllm:x{a="}",b="{\\"k\\": 1} 2"} 7'
    assert [json.loads(row["labels"]) for row in rows(parsed(f"# TYPE vllm:x gauge\n{line}\n"))] == [
        {"a": "}", "b": '{"k": 1} 2'}
    ]


def test_a_value_that_the_end_of_the_file_may_have_cut_is_none() -> None:
    result = parsed(GAUGE + "57", is_open=True)
    assert rows(result) == []
    assert result.issues.select("line_no", "reason").rows() == [(2, "cut off by the end of the file")]
    assert len(rows(parsed(GAUGE + "57"))) == 1


def test_lines_of_something_else_are_issues() -> None:
    result = parsed(GAUGE + '57\nvllm:num_requests_running{engine="0\nINFO 10-21 12:00:00 hello\n')
    assert [row["measured"] for row in rows(result)] == [57.0]
    assert result.issues["line_no"].to_list() == [3, 4]


# Prometheus -----------------------------------------------------------------------------------------------------------


def test_a_dump_has_its_name_among_the_labels_and_its_time_behind_the_value() -> None:
    found = rows(parsed(sample("promtool_dump", "tsdb_dump.txt"), "promtool_dump"))
    assert [(row["name"], row["measured"], row["sample_ts"]) for row in found] == [
        ("vllm:num_requests_waiting", 57.0, dt.datetime(2025, 10, 21, 12, 34, 50)),
        ("vllm:num_requests_waiting", 61.0, dt.datetime(2025, 10, 21, 12, 35, 5)),
    ]
    assert "__name__" not in found[0]["labels"]


def test_a_range_query_gives_every_point_in_the_order_of_time() -> None:
    text = sample("prometheus_api", "dcgm_range.json")
    document = json.loads(text)
    points = sorted(
        (at, series["metric"]["__name__"], None if value == "NaN" else float(value))
        for series in document["data"]["result"]
        for at, value in series["values"]
    )
    found = rows(parsed(text, "prometheus_api"))
    assert [
        (row["sample_ts"].replace(tzinfo=dt.UTC).timestamp(), row["name"], row["measured"]) for row in found
    ] == points
    assert [row["line_no"] for row in found] == [1, 2, 3, 4, 5, 6]


def test_answers_one_a_line_are_read_and_a_query_that_took_the_name_away_leaves_it_empty() -> None:
    def answer(value: str) -> str:
        return json.dumps(
            {
                "status": "success",
                "data": {
                    "resultType": "vector",
                    "result": [{"metric": {"engine": "0"}, "value": [1795953600, value]}],
                },
            }
        )

    result = parsed(f"{answer('1.5')}\n{answer('2')}\nnonsense\n", "prometheus_api")
    assert [(row["name"], row["labels"], row["measured"]) for row in rows(result)] == [
        ("", '{"engine":"0"}', 1.5),
        ("", '{"engine":"0"}', 2.0),
    ]
    assert result.issues.select("line_no", "reason").rows() == [(3, "not JSON")]


@pytest.mark.parametrize("points", ["null", "[[1]]", '[["x", "1"]]', '[[1e300, "1"]]', "[7]", '{"a": 1}'])
def test_points_that_are_none_are_left_out(points: str) -> None:
    text = (
        f'{{"data": {{"resultType": "matrix", "result": [{{"metric": {{}}, "values": {points}}}, 7, {{}}]}}}}'
    )
    assert rows(parsed(text, "prometheus_api")) == []


# Plugins and load generators ------------------------------------------------------------------------------------------


def test_a_finished_request_of_the_stat_logger_arrived_its_end_to_end_time_before() -> None:
    text = sample("stat_logger", "finished.jsonl")
    said = json.loads(text)
    result = parsed(text, "stat_logger")
    (row,) = rows(result, "server_request")
    assert (
        row["arrival_ts"].replace(tzinfo=dt.UTC).timestamp() == said["iteration_wall"] - said["e2e_latency"]
    )
    assert [row[key] for key in ("queue_s", "prefill_s", "decode_s", "inference_s", "e2e_s")] == [
        0.5,
        0.25,
        5.5,
        5.75,
        6.5,
    ]
    assert [
        row[key] for key in ("input_tokens", "cached_input_tokens", "output_tokens", "preemption_count")
    ] == [512, 256, 128, 0]
    assert (row["request_id"], row["finish_reason"]) == ("chatcmpl-trace-000017", "stop")
    assert rows(result, "server_setting") == [
        {"line_no": 1, "key": "vllm_version", "value": "0.28.0", "basis": "stated"}
    ]


def test_a_scrape_of_aiperf_gives_what_a_scrape_would() -> None:
    text = sample("aiperf_scrapes", "server_metrics_export.jsonl")
    found = rows(parsed(text, "aiperf_scrapes"))
    first = json.loads(text.splitlines()[0])
    ttft = [row for row in found if row["line_no"] == 1 and "time_to_first" in row["name"]]
    assert [(row["name"].removeprefix("vllm:time_to_first_token_seconds"), row["measured"]) for row in ttft] == [
        ("_bucket", 59.0), ("_bucket", 118.0), ("_bucket", 118.0), ("_sum", 7.08), ("_count", 118.0)
    ]  # fmt: skip
    assert found[0]["sample_ts"].replace(tzinfo=dt.UTC).timestamp() == pytest.approx(
        first["timestamp_ns"] / 1e9, abs=1e-6
    )
    assert {json.loads(row["labels"])["instance"] for row in found} == {first["endpoint_url"]}


@pytest.mark.parametrize("name", ["server_metrics_export.json", "server_metrics_export.csv"])
def test_aggregates_of_aiperf_stay_aggregates(name: str) -> None:
    found = rows(parsed(sample("aiperf_server", name), "aiperf_server"))
    assert all(json.loads(row["labels"])["over"] == "profiling" for row in found)
    by_name = {
        (row["name"], json.loads(row["labels"]).get("stat"), json.loads(row["labels"]).get("le")): row[
            "measured"
        ]
        for row in found
    }
    assert by_name["vllm:time_to_first_token_seconds_count", None, None] == 20
    assert by_name["vllm:time_to_first_token_seconds_sum", None, None] == pytest.approx(1.2)
    assert by_name["vllm:time_to_first_token_seconds_bucket", None, "0.05"] == 10
    assert by_name["vllm:prompt_tokens_total", None, None] == 400
    assert by_name["vllm:kv_cache_usage_perc", "max", None] == pytest.approx(0.08)


# Any text -------------------------------------------------------------------------------------------------------------

PIECES = st.sampled_from(
    ["vllm:x", "{", "}", 'a="1"', ",", " ", "1.5", "1e400", "NaN", "#", "# TYPE vllm:x gauge", "\\", '"', "1795953600", "2026-11-29T12:00:00Z",
     "Nov 29 12:00:00", "curl: (7) no", "é", "\r", "\t"]
)  # fmt: skip


@settings(max_examples=30, deadline=None)
@given(st.lists(st.lists(PIECES, max_size=6).map("".join), max_size=8))
def test_any_text_is_understood_or_an_issue(lines: list[str]) -> None:
    text = GAUGE + "1\n" + "\n".join(lines)
    for name in ("prometheus_text", "promtool_dump"):
        known = formats.named(name)
        settings_of = {"timing": "line", "prefix": None, "error_s": 1.0}
        result = known.parse(Chunk(frame(text), Claim("forced", Clock.UTC, settings_of)))
        assert result.understood + result.issues.height == frame(text).height
