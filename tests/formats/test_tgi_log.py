"""Log of text-generation-inference: three samples with hand counts, and what holds for any lines at all."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracelens.formats.base import Chunk, Claim, Clock, Head, Parsed
from tracelens.formats.server import sglang_log, tgi_log, vllm_log

SAMPLES = Path(__file__).parents[2] / "sample_logs" / "tgi_log"
GRAMMAR, LAUNCHER, JSON_LINES = (
    SAMPLES / f"{name}.log" for name in ("grammar_3.1.1", "launcher_3", "router_json")
)
CLAIM = Claim("", Clock.UTC)


def lines_of(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").removesuffix("\n").split("\n")


def parsed(lines: list[str], first: int = 1) -> Parsed:
    frame = pl.DataFrame(
        {"line_no": range(first, first + len(lines)), "text": lines},
        schema={"line_no": pl.Int64, "text": pl.String},
    )
    return tgi_log.parse(Chunk(frame, CLAIM))


def rows(result: Parsed, table: str) -> list[dict[str, object]]:
    return result.tables[table].to_dicts() if table in result.tables else []


@pytest.mark.parametrize(
    ("path", "variant"),
    [(GRAMMAR, "text"), (LAUNCHER, "text"), (JSON_LINES, "JSON lines")],
    ids=lambda value: str(value)[-12:],
)
def test_samples_are_claimed_here_and_nowhere_else(path: Path, variant: str) -> None:
    head = Head(tuple(lines_of(path)), complete=True)
    claim = tgi_log.sniff(head)
    assert claim is not None
    assert (claim.variant, claim.clock) == (variant, Clock.UTC)
    assert sglang_log.sniff(head) is None
    assert vllm_log.sniff(head) is None


@pytest.mark.parametrize(
    "line",
    [
        "2025-10-21T12:34:56.789012345Z INFO 10-21 12:34:56 [loggers.py:118] Engine 000: Avg prompt throughput: 1.0",
        "(APIServer pid=1) INFO 11-05 22:00:01 [startup.py:96] non-default args: {'model': 'a'}",
        '{"asctime": "2026-11-05 22:10:07,512", "levelname": "INFO", "message": "text_generation_router"}',
        '{"timestamp": "2026-11-05T22:10:07Z", "level": "INFO", "target": "vllm", "message": "x"}',
        "",
    ],
)
def test_lines_of_others_are_not_claimed(line: str) -> None:
    assert tgi_log.sniff(Head((line,))) is None


def test_each_success_line_is_one_request_with_its_times_in_seconds() -> None:
    result = parsed(lines_of(GRAMMAR))
    requests = rows(result, "server_request")
    # Facts stated with the sample: 4 requests, queue_time from 5 microseconds to 161.454 s, 3 with a grammar.
    assert (len(requests), result.understood, result.issues.height) == (4, 5, 0)
    queues = [row["queue_s"] for row in requests]
    assert queues == pytest.approx([161.454300714, 148.203118402, 5.113e-6, 0.1719021], rel=1e-12)
    assert [row["e2e_s"] for row in requests] == pytest.approx([173.9010628, 160.650, 12.4463, 12.6189])
    assert [row["inference_s"] for row in requests] == pytest.approx([12.441092311] * 4)
    others = [json.loads(str(row["other"])) for row in requests]
    assert [other["grammar"] for other in others] == ["json", "json", None, "json"]
    assert [other["validation_s"] for other in others] == pytest.approx([0.005669107] * 4)
    assert [other["time_per_token_s"] for other in others] == pytest.approx([0.0243] * 4)
    assert {(row["request_id"], row["measured_by"], row["max_tokens"]) for row in requests} == {
        (None, "log", 1024)
    }


def test_a_request_arrives_its_total_time_before_its_line() -> None:
    first = rows(parsed(lines_of(GRAMMAR)), "server_request")[0]
    assert first["arrival_ts"] == datetime(2025, 4, 15, 9, 30, 0, 123_456) - timedelta(
        microseconds=173_901_063
    )


def test_json_lines_say_the_same_as_text_lines() -> None:
    text = rows(parsed(lines_of(GRAMMAR)), "server_request")
    result = parsed(lines_of(JSON_LINES))
    numbers = [{k: v for k, v in row.items() if k != "line_no"} for row in rows(result, "server_request")]
    assert numbers == [{k: v for k, v in text[n].items() if k != "line_no"} for n in (0, 2)]
    (event,) = rows(result, "log_event")
    assert (event["line_no"], event["level"], event["kind"], event["message"]) == (
        2,
        "WARNING",
        "warning",
        "slow",
    )
    assert event["origin"] == "router/src/server.rs:9"


def test_events_are_found_in_launcher_and_router_lines() -> None:
    result = parsed(lines_of(LAUNCHER))
    events = {row["line_no"]: row for row in rows(result, "log_event")}
    assert {line_no: row["kind"] for line_no, row in events.items()} == {
        13: "start", 14: "ready", 15: "error", 16: "warning", 17: "error", 18: "traceback", 19: "traceback",
        20: "traceback", 21: "oom", 23: "dead",
    }  # fmt: skip
    assert events[15]["message"] == "Model is overloaded"
    assert events[15]["origin"] == "router/src/infer/mod.rs:192"
    assert events[17]["message"] == "Method Decode encountered an error."
    assert events[21]["event_ts"] == datetime(2025, 4, 15, 9, 25, 0, 500_000)


def test_words_of_a_user_are_not_taken_for_times() -> None:
    (row,) = rows(parsed(lines_of(LAUNCHER)), "server_request")
    other = json.loads(str(row["other"]))
    assert (row["line_no"], row["max_tokens"]) == (24, 16)
    assert (row["e2e_s"], row["queue_s"]) == pytest.approx((0.25, 40.5e-6))
    assert row["inference_s"] == pytest.approx(249.958e-6)
    assert other["validation_s"] == pytest.approx(900e-9)


def test_times_that_cannot_be_read_are_an_issue() -> None:
    result = parsed(lines_of(LAUNCHER))
    assert [(row["line_no"], row["reason"]) for row in result.issues.to_dicts()] == [
        (25, "times not readable")
    ]
    assert result.understood == 24
    huge = lines_of(GRAMMAR)[0].replace("173.9010628s", "9" * 30 + "s")
    assert parsed([huge, "x y z"]).issues["reason"].to_list() == ["times not readable", "no TGI header"]


def test_the_launchers_arguments_are_settings_without_secrets() -> None:
    found = {row["key"]: row["value"] for row in rows(parsed(lines_of(LAUNCHER)), "server_setting")}
    assert found == {
        "model_id": "acme/dense-8b",
        "model": "acme/dense-8b",
        "max_concurrent_requests": "128",
        "max_total_tokens": "8192",
        "max_model_len": "8192",
        "max_batch_size": "None",
        "api_key": "***",
        "env": "false",
    }
    old = '2023-06-01T10:00:00.000000Z  INFO text_generation_launcher: Args { model_id: "a/b", num_shard: Some(2), port: 80 }'
    found = {row["key"]: row["value"] for row in rows(parsed([old]), "server_setting")}
    assert found == {
        "model_id": "a/b",
        "model": "a/b",
        "num_shard": "2",
        "tensor_parallel_size": "2",
        "port": "80",
    }


every_line = [*lines_of(GRAMMAR), *lines_of(LAUNCHER), *lines_of(JSON_LINES)]
pieces = st.one_of(
    st.sampled_from(every_line),
    st.text(max_size=40).map(lambda text: text.replace("\n", " ")),
    st.builds(lambda line, at: line[:at], st.sampled_from(every_line), st.integers(0, 600)),
    st.text(max_size=30).map(
        lambda text: "2025-04-15T09:30:00.1Z  INFO generate{" + text.replace("\n", " ") + ": Success"
    ),
    st.dictionaries(
        st.sampled_from(["timestamp", "level", "target", "span", "message", "filename"]),
        st.one_of(
            st.none(),
            st.text(max_size=5),
            st.integers(),
            st.dictionaries(st.just("total_time"), st.just("1s")),
        ),
    ).map(json.dumps),
)


@settings(max_examples=20, deadline=None)
@given(st.lists(pieces, max_size=12), st.integers(0, 12))
def test_any_lines_are_understood_or_issues_wherever_the_file_is_cut(lines: list[str], cut: int) -> None:
    cut = min(cut, len(lines))
    whole, first, second = parsed(lines), parsed(lines[:cut]), parsed(lines[cut:], cut + 1)
    assert whole.understood + whole.issues.height == len(lines)
    assert whole.understood == first.understood + second.understood
    assert whole.issues.rows() == first.issues.rows() + second.issues.rows()
    assert whole.stamps.rows() == first.stamps.rows() + second.stamps.rows()
    for table in tgi_log.FORMAT.fills:
        drop = tgi_log.FORMAT.carried.get(table)
        apart = [
            {k: v for k, v in row.items() if k != drop}
            for part in (first, second)
            for row in rows(part, table)
        ]
        together = [{k: v for k, v in row.items() if k != drop} for row in rows(whole, table)]
        assert together == apart
