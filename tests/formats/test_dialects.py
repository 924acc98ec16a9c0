"""Every dialect in which people handed in a log, and every sample line of every version: the facts are those of the text."""

from __future__ import annotations

import json
import sys
from collections import Counter
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tracelens.formats.base import Clock, Parsed

sys.path.insert(0, str(Path(__file__).parent))

from dialects import claim_of, parsed

DATA = Path(__file__).parent / "data" / "dialects"
SAMPLES = Path(__file__).parents[2] / "sample_logs" / "vllm_log"
EXPECTED: dict[str, dict[str, Any]] = json.loads((DATA / "expected.json").read_text(encoding="utf-8"))
COLUMNS = {
    "prompt_tps": ("prompt_tps", 1),
    "generation_tps": ("generation_tps", 1),
    "running": ("running_count", 1),
    "waiting": ("waiting_count", 1),
    "kv_pct": ("kv_cache_usage_ratio", 100),
    "hit_pct": ("prefix_cache_hit_ratio", 100),
    "engine": ("engine_index", 1),
}


def lines_of(path: Path) -> list[str]:
    return path.read_bytes().decode().removesuffix("\n").split("\n")


def rows(result: Parsed, table: str) -> list[dict[str, Any]]:
    return result.tables[table].to_dicts() if table in result.tables else []


@cache
def read(name: str) -> Parsed:
    return parsed(lines_of(DATA / f"{name}.log"))


@cache
def sample(name: str) -> Parsed:
    return parsed(lines_of(SAMPLES / name))


def settings(result: Parsed) -> dict[str, str]:
    return {row["key"]: row["value"] for row in rows(result, "server_setting")}


def test_every_dialect_has_its_facts() -> None:
    assert sorted(EXPECTED) == sorted(path.stem for path in DATA.glob("*.log"))


@pytest.mark.parametrize("name", EXPECTED)
def test_facts_of_a_dialect_are_those_of_its_text(name: str) -> None:
    expected = EXPECTED[name]
    result = read(name)
    samples = rows(result, "engine_sample")
    for key, (column, scale) in COLUMNS.items():
        found = [row[column] for row in samples if row[column] is not None]
        if key in expected:
            assert [round(value * scale, 6) for value in found] == expected[key], key
        else:
            assert set(found) <= {0}, key
    assert len(samples) == len(expected.get("running", []))
    assert Counter(row["event"] for row in rows(result, "request_event")) == expected["events"]
    assert [row["status"] for row in rows(result, "access_line")] == expected["http"]
    assert result.issues.height == 0


@pytest.mark.parametrize("name", EXPECTED)
def test_warnings_errors_and_stamps_of_a_dialect_are_those_of_its_text(name: str) -> None:
    expected = EXPECTED[name]
    result = read(name)
    levels = Counter(row["level"] for row in rows(result, "log_event"))
    assert {level: levels[level] for level in ("ERROR", "WARNING") if levels[level]} == expected["levels"]
    stamps = [stamp.strftime("%m-%d %H:%M:%S") for stamp in result.stamps["stamp"]]
    if "first" in expected:
        assert (stamps[0], stamps[-1]) == (expected["first"], expected["last"])
    else:
        assert stamps == []


SETTINGS = {
    "v040-max-num-seqs-1-all-at-once": {
        "max_num_seqs": "1", "max_model_len": "4096", "gpu_memory_utilization": "0.9", "tensor_parallel_size": "1",
        "vllm_version": "0.4.0.post1",
    },
    "v041-tp2-both-gpus-half-busy": {"tensor_parallel_size": "2", "max_model_len": "32768", "vllm_version": "0.4.1", "gpu_blocks": "28411"},
    "v06-one-runs-three-wait-kv-3pct": {"gpu_blocks": "50231"},
    "v071-two-gpus-spin-100pct-no-token": {"gpu_blocks": "5225"},
    "v011-slow-ttft-after-10s-idle": {
        "max_num_batched_tokens": "2048", "vllm_version": "0.11.0+582e4e37.nv25.11", "gpu_blocks": "48296",
    },
    "tp2-3090-no-p2p-lopsided-util": {"tensor_parallel_size": "2", "max_num_seqs": "1"},
    "v020-hybrid-align-mode-zero-hits": {"max_num_batched_tokens": "8192"},
    "v028-decoding-client-gets-0-2-tokens-s": {"max_num_batched_tokens": "8192"},
    "v07-default-256-seats-with-n10": {"max_num_seqs": "None", "max_model_len": "16384", "gpu_memory_utilization": "0.95"},
    "v062-omp-threads-of-node-in-a-4cpu-pod": {"vllm_version": "0.6.2"},
    "v02x-mtp-caps-step-at-2016-tokens": {
        "max_num_batched_tokens": "2048", "max_num_scheduled_tokens": "2016", "max_num_seqs": "8",
    },
}  # fmt: skip


@pytest.mark.parametrize("name", SETTINGS)
def test_settings_that_a_dialect_states(name: str) -> None:
    found = settings(read(name))
    assert {key: found.get(key) for key in SETTINGS[name]} == SETTINGS[name]


def test_records_glued_on_one_line_keep_the_process_that_wrote_them() -> None:
    samples = rows(read("v027-ray-records-glued-on-one-line"), "engine_sample")
    assert {row["process"] for row in samples} == {"_AsyncLLMEngine"}
    assert {row["line_no"] for row in samples} == {1}


def test_a_log_without_stamps_has_none() -> None:
    name = "v1-stats-wrapped-no-timestamps-100-cap"
    assert claim_of(lines_of(DATA / f"{name}.log")).clock is Clock.NONE
    assert {(row["sample_ts"], row["error_s"]) for row in rows(read(name), "engine_sample")} == {(None, None)}


def test_a_header_of_the_users_own_has_its_year() -> None:
    samples = rows(read("v06-one-runs-three-wait-kv-3pct"), "engine_sample")
    assert (
        samples[0]["sample_ts"] == datetime(2026, 12, 23, 18, 28, 45) or samples[0]["sample_ts"].year == 2026
    )


def test_a_clock_outside_gives_the_year_and_how_far_the_logs_own_is_off() -> None:
    result = read("v05-low-kv-usage-is-not-a-fault")
    assert result.clock_steps == {-32: 3}, "eight hours, in quarters, of three lines"
    assert result.stamps["stamp"][0] == datetime(2024, 7, 8, 7, 17, 34)


def test_stats_lines_keep_their_level() -> None:
    levels = [row["level"] for row in rows(read("v021-ansi-debug-stats-of-a-hung-engine"), "engine_sample")]
    assert levels == ["INFO", "INFO", "DEBUG", "DEBUG", "DEBUG"]


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("v054-fsm-compile-progress-bar-glued", {"notice": 1}),
        ("v071-two-gpus-spin-100pct-no-token", {"notice": 3}),
        ("v085-engine-core-fatal-padded-lines", {"dead": 3}),
        ("v028-first-request-compiles-12-kernels", {"compile": 12, "ready": 1}),
        ("v011-no-shm-block-every-60s-then-rpc-timeout", {"stall": 4}),
        ("v042-detokenizer-20ms-per-token", {"notice": 3}),
        ("tp2-3090-no-p2p-lopsided-util", {"notice": 1}),
    ],
)
def test_what_happened_to_the_server(name: str, kinds: dict[str, int]) -> None:
    found = Counter(row["kind"] for row in rows(read(name), "log_event"))
    assert {kind: found[kind] for kind in kinds} == kinds


# The samples of each version, read by eye; those of test_vllm_log.py are counted there.
STATED = {
    "v0.4-0.5_v0_engine.log": {"vllm_version": "0.4.2", "max_num_seqs": "256", "max_model_len": "8192", "tensor_parallel_size": "2", "gpu_blocks": "53128"},
    "v0.6-0.7_v0_mq_engine.log": {"vllm_version": "0.6.3.post1", "max_num_batched_tokens": "512", "gpu_memory_utilization": "0.92", "gpu_blocks": "21840"},
    "v0.8-0.10.0_v1.log": {"vllm_version": "0.8.5.post1", "max_num_batched_tokens": "8192", "tensor_parallel_size": "4", "kv_cache_tokens": "704512"},
    "v0.10.1-0.11_v1_ansi_prefix.log": {"vllm_version": "0.11.0", "max_num_seqs": "384", "data_parallel_size": "2", "gpu_blocks": "46080"},
    "v0.11.1-0.16_v1.log": {"vllm_version": "0.14.1", "max_model_len": "32768", "tensor_parallel_size": "4"},
    "v0.17-0.30_v1.log": {"vllm_version": "0.28.0", "max_num_batched_tokens": "16384", "tensor_parallel_size": "8", "kv_cache_tokens": "1048576"},
    "v0.31-0.33_v1_text.log": {"max_model_len": "16384", "kv_cache_tokens": "409600", "api_key": "***"},
    "v0.22plus_rust_frontend.txt": {"kv_cache_tokens": "409600"},
    "v0.10.1-0.30_custom_json_with_prefix.ndjson": {"kv_cache_tokens": "737280"},
}  # fmt: skip


@pytest.mark.parametrize("name", STATED)
def test_settings_that_a_sample_states(name: str) -> None:
    found = settings(sample(name))
    assert {key: found.get(key) for key in STATED[name]} == STATED[name]


def at(text: str, year: int = 2000) -> datetime:
    return datetime.fromisoformat(f"{year}-{text}")


@pytest.mark.parametrize(
    ("name", "first", "last"),
    [
        ("v0.4-0.5_v0_engine.log", at("05-14 09:12:01"), at("05-14 09:15:15")),
        ("v0.6-0.7_v0_mq_engine.log", at("10-21 12:30:01"), at("10-21 12:35:20")),
        ("v0.8-0.10.0_v1.log", at("06-03 14:00:11"), at("06-03 14:11:02")),
        ("v0.10.1-0.11_v1_ansi_prefix.log", at("10-21 12:20:01"), at("10-21 12:36:12")),
        ("v0.11.1-0.16_v1.log", at("01-20 08:00:02"), at("01-20 08:11:10")),
        ("v0.12plus_colour_tty.log", at("03-11 10:00:01"), at("03-11 10:00:02")),
        ("v0.17-0.30_v1.log", at("08-26 03:00:01"), at("08-26 03:20:33")),
        ("v0.22plus_rust_frontend.txt", at("11-05 22:00:12"), at("11-05 22:01:00")),
        ("v0.31-0.33_v1_text.log", at("11-05 22:00:01"), at("11-05 22:11:00")),
        ("ray_worker_prefix.txt", at("04-02 11:00:00"), at("04-02 11:00:20")),
        (
            "v0.31-0.33_json_formatter.ndjson",
            at("11-05 22:10:07.512", 2026),
            at("11-05 22:11:00.117", 2026),
        ),
        (
            "v0.10.1-0.30_custom_json_with_prefix.ndjson",
            at("10-21 12:34:56.789", 2025),
            at("10-21 12:35:00.002", 2025),
        ),
    ],
)
def test_first_and_last_stamp_of_a_sample(name: str, first: datetime, last: datetime) -> None:
    stamps = sample(name).stamps["stamp"]
    assert (stamps[0], stamps[-1]) == (first, last)


def test_ray_workers() -> None:
    result = sample("ray_worker_prefix.txt")
    events = [
        (row["line_no"], row["level"], row["process"], row["repeat_count"])
        for row in rows(result, "log_event")
    ]
    assert events == [(3, "WARNING", "RayWorkerWrapper", 5), (5, "ERROR", None, None)]
    assert result.issues.height == 0
    assert settings(result)["kv_cache_memory_gib"] == "33.75"


def test_json_of_a_users_own_logger_behind_a_process_prefix() -> None:
    (event,) = rows(sample("v0.10.1-0.30_custom_json_with_prefix.ndjson"), "request_event")
    shown = ("event", "logged_id", "max_tokens", "sequence_count", "process", "event_ts")
    assert [event[name] for name in shown] == [
        "received", "chatcmpl-abc", 32, 1, "APIServer", datetime(2025, 10, 21, 12, 34, 56, 789000),
    ]  # fmt: skip


def test_json_of_vllms_own_formatter() -> None:
    result = sample("v0.31-0.33_json_formatter.ndjson")
    events = [(row["event"], row["logged_id"], row["max_tokens"]) for row in rows(result, "request_event")]
    assert events == [
        ("received", "chatcmpl-c0ffee0123456789", 256),
        ("added", "chatcmpl-c0ffee0123456789-0badcafe", None),
    ]
    (access,) = rows(result, "access_line")
    assert (access["client_addr"], access["method"], access["path"], access["status"]) == (
        "10.20.0.77:55010",
        "POST",
        "/v1/chat/completions",
        200,
    )
    (stats,) = rows(result, "engine_sample")
    assert [stats[name] for name, _ in COLUMNS.values()] == [1204.4, 640.0, 18, 4, 0.44, 0.182, 0]
    assert stats["error_s"] == pytest.approx(0.001)
    (dead,) = rows(result, "log_event")
    assert (dead["kind"], dead["level"], dead["process"]) == ("dead", "ERROR", "EngineCore")
    assert dead["message"].endswith("CUDA error: an illegal memory access was encountered")


def test_the_rust_front_end() -> None:
    result = sample("v0.22plus_rust_frontend.txt")
    (event,) = rows(result, "request_event")
    shown = ("event", "logged_id", "engine_id", "input_tokens", "output_tokens", "finish_reason")
    assert [event[name] for name in shown] == [
        "finished", "chatcmpl-c0ffee0123456789", "chatcmpl-c0ffee0123456789-0badcafe", 211, 96, "stop",
    ]  # fmt: skip
    (stats,) = rows(result, "engine_sample")
    assert [stats[name] for name, _ in COLUMNS.values()] == [1204.4, 640.0, 18, 4, 0.44, 0.182, 0]
    (call,) = rows(result, "server_request")
    assert (call["request_id"], call["e2e_s"]) == ("req-9", 0.842)
    assert [(row["name"], row["measured"]) for row in rows(result, "metric_sample")] == [
        ("MFU: TF/s/GPU", 120.5),
        ("MFU: GB/s/GPU", 900.1),
    ]


def test_one_line_in_nine_wrappers_is_nine_events() -> None:
    result = sample("wrappers_docker_k8s_journald.txt")
    events = rows(result, "request_event")
    assert [(row["line_no"], row["event"]) for row in events] == [
        (1, "added"), (2, "added"), (3, "received"), (5, "added"), (6, "added"), (7, "added"), (8, "added"), (9, "added"),
        (10, "added"), (11, "added"),
    ]  # fmt: skip
    assert {row["logged_id"] for row in events if row["event"] == "added"} == {
        "chatcmpl-trace-000017-1c9be07a"
    }
    assert [row["max_tokens"] for row in events if row["event"] == "received"] == [8]
    assert result.issues.height == 0
