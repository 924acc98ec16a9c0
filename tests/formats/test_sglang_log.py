"""SGLang server log: two samples with hand counts, and what holds for any lines at all."""

from __future__ import annotations

import json
import re
from datetime import datetime
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracelens.formats.base import Chunk, Claim, Clock, Head, Parsed
from tracelens.formats.server import sglang_log, tgi_log, vllm_log

SAMPLES = Path(__file__).parents[2] / "sample_logs" / "sglang_log"
OLD, NEW = SAMPLES / "decode_batches_0.4.log", SAMPLES / "serving_0.5.log"
CLAIM = Claim("", Clock.LOCAL)
CARRIED = {"access_line": "logged_after_ts", "log_event": "event_ts"}


def lines_of(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").removesuffix("\n").split("\n")


def parsed(lines: list[str], first: int = 1) -> Parsed:
    frame = pl.DataFrame(
        {"line_no": range(first, first + len(lines)), "text": lines},
        schema={"line_no": pl.Int64, "text": pl.String},
    )
    return sglang_log.parse(Chunk(frame, CLAIM))


def rows(result: Parsed, table: str) -> list[dict[str, object]]:
    return result.tables[table].to_dicts() if table in result.tables else []


def test_both_samples_are_claimed_here_and_nowhere_else() -> None:
    for path, variant in ((OLD, "0.4 and older"), (NEW, "0.5 and later")):
        head = Head(tuple(lines_of(path)), complete=True)
        claim = sglang_log.sniff(head)
        assert claim is not None
        assert (claim.variant, claim.clock) == (variant, Clock.LOCAL)
        assert tgi_log.sniff(head) is None
        assert vllm_log.sniff(head) is None


@pytest.mark.parametrize(
    "line",
    [
        "INFO 10-21 12:34:56 [loggers.py:118] Engine 000: Avg prompt throughput: 1.0 tokens/s, Avg generation "
        "throughput: 2.0 tokens/s, Running: 1 reqs, Waiting: 0 reqs, GPU KV cache usage: 0.1%",
        "(raylet) [2026-04-02 11:00:21,114 E 88 88] (raylet) node_manager.cc:3065: 1 Workers killed",
        "(EngineCore_DP0 pid=7) [2025-10-21 12:00:00,123] LMCache INFO: Reqid: r, Total tokens 5 (a.py:1:b)",
        '{"asctime": "2026-11-05 22:10:07,512", "levelname": "INFO", "message": "Added request x."}',
        "",
    ],
)
def test_lines_of_vllm_and_its_neighbours_are_not_claimed(line: str) -> None:
    assert sglang_log.sniff(Head((line,))) is None


def test_every_decode_line_is_a_sample_with_the_numbers_of_the_line() -> None:
    lines = lines_of(OLD)
    result = parsed(lines)
    samples = rows(result, "engine_sample")
    # Facts stated with the sample: 40 stats lines, running at most 8, waiting at most 0, token usage at most 0.14.
    assert (len(samples), result.understood, result.issues.height) == (40, 40, 0)
    assert max(row["running_count"] for row in samples) == 8  # type: ignore[type-var]
    assert max(row["waiting_count"] for row in samples) == 0  # type: ignore[type-var]
    assert max(row["kv_cache_usage_ratio"] for row in samples) == 0.14  # type: ignore[type-var]
    for line, row in zip(lines, samples, strict=True):
        assert row["generation_tps"] == float(re.findall(r"token/s\): ([\d.]+)", line)[0])
        assert row["sample_ts"] == datetime.fromisoformat(line[1:20])
        assert json.loads(str(row["other"]))["#token"] == int(re.findall(r"#token: (\d+)", line)[0])
        assert (row["process"], row["engine_index"], row["error_s"]) == ("TP0", 0, 1.0)
        assert row["prompt_tps"] is None
    assert result.stamps.height == 40


def test_newer_spellings_keep_every_number() -> None:
    result = parsed(lines_of(NEW))
    samples = {row["line_no"]: row for row in rows(result, "engine_sample")}
    assert sorted(samples) == [8, 10, 11, 12, 13]  # type: ignore[type-var]
    glued, hybrid, decode = samples[11], samples[12], samples[13]
    assert (glued["running_count"], glued["waiting_count"], glued["prompt_tps"]) == (31, 2, 4042.20)
    assert glued["generation_tps"] is None
    assert json.loads(str(glued["other"])) == {
        "batch": "prefill",
        "#new-seq": 1,
        "#new-token": 172,
        "#cached-token": 0,
        "cuda graph": True,
    }
    assert hybrid["kv_cache_usage_ratio"] == 0.74
    assert json.loads(str(hybrid["other"]))["mamba usage"] == 0.80
    assert (decode["generation_tps"], decode["running_count"], decode["kv_cache_usage_ratio"]) == (
        155.34,
        40,
        0.74,
    )
    assert json.loads(str(decode["other"]))["accept len"] == 3.13


def test_cut_and_foreign_lines_are_issues_and_all_others_are_understood() -> None:
    result = parsed(lines_of(NEW))
    issues = {row["line_no"]: row["reason"] for row in result.issues.to_dicts()}
    assert issues == {15: "batch line cut or changed", 22: "no SGLang header"}
    assert result.understood == 23 - 2


def test_access_lines_have_the_stamp_of_their_own_line_or_of_the_last_one() -> None:
    stamped, bare = rows(parsed(lines_of(NEW)), "access_line")
    assert (stamped["line_no"], stamped["status"], stamped["path"]) == (9, 200, "/v1/chat/completions")
    assert stamped["logged_after_ts"] == datetime(2026, 4, 5, 20, 2, 49)
    assert (bare["line_no"], bare["status"], bare["path"]) == (23, 503, "/health")
    assert bare["logged_after_ts"] == datetime(2026, 7, 4, 5, 1, 37)


def test_events_are_found_and_the_arguments_are_not_repeated_in_them() -> None:
    events = {row["line_no"]: row for row in rows(parsed(lines_of(NEW)), "log_event")}
    kinds = {line_no: row["kind"] for line_no, row in events.items()}
    assert kinds == {
        1: "start", 4: "compile", 6: "start", 7: "ready", 14: "preemption", 16: "dead",
        17: "traceback", 18: "traceback", 19: "traceback", 21: "dead",
    }  # fmt: skip
    assert events[19]["event_ts"] == datetime(2026, 7, 4, 5, 1, 37)
    assert events[19]["error_s"] is None
    assert not any("invented" in str(row["message"]) for row in events.values())


def test_settings_are_given_in_sglangs_names_and_where_they_mean_the_same_in_vllms() -> None:
    found = {row["key"]: row for row in rows(parsed(lines_of(NEW)), "server_setting")}
    assert {
        key: found[key]["value"] for key in ("tp_size", "tensor_parallel_size", "max_num_seqs", "model")
    } == {
        "tp_size": "2",
        "tensor_parallel_size": "2",
        "max_num_seqs": "4096",
        "model": "/models/dense-8b",
    }
    assert found["max_num_seqs"]["basis"] == "stated as max_running_requests"
    assert found["enable_prefix_caching"]["value"] == "True"
    assert found["max_model_len"]["value"] == "32768"
    assert found["cuda_graph_bs"]["value"] == "[1, 2, 4, 8]"
    assert found["api_key"]["value"] == "***"


def test_milliseconds_and_data_parallel_ranks_are_kept() -> None:
    line = (
        "[2025-09-01 10:00:00.250 DP3 TP6] Decode batch [120]. #running-req: 2, #token: 10, token usage: 0.50, "
        "cache hit rate: 25.00%, gen throughput (token/s): 9.50, #queue-req: 7"
    )
    (row,) = rows(parsed([line]), "engine_sample")
    assert row["sample_ts"] == datetime(2025, 9, 1, 10, 0, 0, 250_000)
    assert (row["error_s"], row["engine_index"], row["process"]) == (0.001, 3, "DP3 TP6")
    assert (row["waiting_count"], row["prefix_cache_hit_ratio"]) == (7, 0.25)


pieces = st.one_of(
    st.sampled_from([*lines_of(OLD)[:2], *lines_of(NEW)]),
    st.text(max_size=40).map(lambda text: text.replace("\n", " ")),
    st.builds(lambda line, at: line[:at], st.sampled_from(lines_of(NEW)), st.integers(0, 120)),
    st.text(max_size=30).map(
        lambda text: "[2025-02-30 04:46:39 TP0] Decode batch. #" + text.replace("\n", " ")
    ),
    st.text(max_size=30).map(
        lambda text: "[2025-02-28 04:46:39] server_args=ServerArgs(" + text.replace("\n", " ")
    ),
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
    for table in sglang_log.FORMAT.fills:
        drop = CARRIED.get(table)
        apart = [
            {k: v for k, v in row.items() if k != drop}
            for part in (first, second)
            for row in rows(part, table)
        ]
        together = [{k: v for k, v in row.items() if k != drop} for row in rows(whole, table)]
        assert together == apart
    for row in rows(whole, "engine_sample"):
        json.loads(str(row["other"]))
