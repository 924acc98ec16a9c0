"""Whatever stands around the lines comes off, its stamp is used, and what was cut is put together again."""

from __future__ import annotations

import json
import sys
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tracelens.formats.base import Clock
from tracelens.formats.server import json_records, vllm_log, wrappers
from tracelens.formats.server.wrapper_forms import WRAPPERS, WrapperForm

sys.path.insert(0, str(Path(__file__).parent))

from dialects import (
    JSON_WRAPPERS,
    LINE_WRAPPERS,
    NESTED,
    POOL,
    claim_of,
    expected,
    facts,
    frame_of,
    instant,
    parsed,
    wrapped,
)

RECORD = (
    "(APIServer pid=1) INFO 10-21 12:34:56 [async_llm.py:382] Added request chatcmpl-trace-000017-1c9be07a."
)
ACCESS = '(APIServer pid=1) INFO:     10.20.0.7:41022 - "POST /v1/chat/completions HTTP/1.1" 200 OK'
LINES = [known.plain(second) for second, known in enumerate(POOL)]
STAMPED = {*LINE_WRAPPERS, *JSON_WRAPPERS} - {
    "syslog", "ts", "compose", "kubectl prefix", "stern", "outer time", "wall clock", "csv of wall clocks", "rank", "bullet", "numbered",
}  # fmt: skip


def events(lines: list[str]) -> list[tuple[Any, ...]]:
    table = parsed(lines).tables["request_event"]
    return table.select("line_no", "logged_id", "event_ts", "error_s").rows()


@pytest.mark.parametrize("form", WRAPPERS, ids=lambda form: form.name)
def test_the_sample_of_each_wrapper_is_taken_off(form: WrapperForm) -> None:
    """A file in which every line has it; and one line of a file without."""
    everywhere = [form.sample + RECORD, form.sample + ACCESS]
    result = parsed(everywhere)
    assert result.tables["request_event"]["logged_id"].to_list() == ["chatcmpl-trace-000017-1c9be07a"]
    assert result.tables["access_line"]["process"].to_list() == ["APIServer"]
    assert result.issues.height == 0
    assert wrappers.detect(everywhere) == (() if form.alone else (form.name,))
    once = [RECORD, RECORD, RECORD, form.sample + RECORD, form.sample + ACCESS]
    assert wrappers.detect(once) == ()
    result = parsed(once)
    assert result.tables["request_event"]["line_no"].to_list() == [1, 2, 3, 4]
    assert result.tables["access_line"]["line_no"].to_list() == [5]


@pytest.mark.parametrize("form", WRAPPERS, ids=lambda form: form.name)
def test_a_wrapper_is_named_in_the_variant(form: WrapperForm) -> None:
    claim = claim_of([form.sample + RECORD] * 3)
    assert form.alone or form.name in claim.variant.split(", ")


@pytest.mark.parametrize("name", [*LINE_WRAPPERS, *JSON_WRAPPERS])
def test_the_same_facts_in_every_wrapper(name: str) -> None:
    result = parsed([wrapped(name, line, second) for second, line in enumerate(LINES)])
    assert facts(result.tables) == expected(POOL)
    assert result.issues.height == 0


@pytest.mark.parametrize(("outer", "inner"), NESTED)
def test_wrappers_two_deep(outer: str, inner: str) -> None:
    result = parsed(
        [wrapped(outer, wrapped(inner, line, second), second) for second, line in enumerate(LINES)]
    )
    assert facts(result.tables) == expected(POOL)
    assert result.issues.height == 0


@pytest.mark.parametrize("name", sorted(STAMPED))
def test_a_wrappers_stamp_is_used_with_its_own_precision(name: str) -> None:
    """Logged at 12:00 on a clock eight hours behind; the wrapper's 20:00 is UTC."""
    lines = [wrapped(name, known.plain(second), second) for second, known in enumerate(POOL)]
    claim = claim_of(lines)
    assert claim.clock is Clock.UTC
    result = parsed(lines)
    found = result.tables["request_event"].select("line_no", "event_ts", "error_s").rows()
    kept = {"journald full": 10**6, "event": 1000, "csv of instants": 1000, "csv of epochs": 1000}.get(
        name, 1
    )
    for line_no, at, error_s in found:
        said = instant(line_no - 1)
        assert at == said.replace(microsecond=said.microsecond // kept * kept), name
        assert error_s == (1.0 if kept == 10**6 else 0.01)
    assert result.clock_steps == {-32: sum(not known.is_access for known in POOL)}
    accesses = result.tables["access_line"].select("line_no", "logged_after_ts").rows()
    assert all(at == instant(line_no - 1).replace(microsecond=at.microsecond) for line_no, at in accesses)
    where = (
        f"the wrapper ({name.removesuffix(' with a zone')})" if name in LINE_WRAPPERS else "the JSON records"
    )
    assert claim.stamps.startswith(f"stamps of {where.removesuffix(')')}")


def test_events_of_a_wrapped_file_have_the_wrappers_time() -> None:
    line = "(APIServer pid=7) INFO:     Application startup complete."
    lines = [wrapped("timestamps", line, 5), wrapped("timestamps", POOL[-1].plain(6), 6)]
    rows = (
        parsed([*lines, wrapped("timestamps", "Traceback (most recent call last):", 7)])
        .tables["log_event"]
        .to_dicts()
    )
    assert [(row["event_ts"], row["error_s"], row["kind"]) for row in rows] == [
        (instant(5), 0.01, "ready"),
        (instant(7), 0.01, "traceback"),
    ]


@pytest.mark.parametrize(
    ("stamp", "at"),
    [
        ("2025-10-21T12:34:56.789012345Z", datetime(2025, 10, 21, 12, 34, 56, 789012)),
        ("2025-10-21T12:34:56Z", datetime(2025, 10, 21, 12, 34, 56)),
        ("2025-10-21T14:34:56.5+02:00", datetime(2025, 10, 21, 12, 34, 56, 500000)),
        ("2025-10-21T05:34:56.789-0700", datetime(2025, 10, 21, 12, 34, 56, 789000)),
        ("2025-10-21 18:04:56,789+05:30", datetime(2025, 10, 21, 12, 34, 56, 789000)),
        ("2025-02-30T12:34:56.789Z", datetime(2025, 10, 21, 12, 34, 56)),  # then the log's own stamp counts
    ],
)
def test_stamps_with_a_zone(stamp: str, at: datetime) -> None:
    lines = [f"{stamp} {RECORD}", f"2025-10-21T12:34:57.5Z {RECORD}"]
    assert events(lines)[0][2] == at


def long_record(tokens: int) -> str:
    listed = ", ".join(["128000"] * tokens)
    return (
        "(APIServer pid=1) INFO 10-21 12:34:56 [logger.py:40] Received request chatcmpl-long: prompt: '" + "lorem ipsum " * 2000
        + f"', params: SamplingParams(n=1, max_tokens=8), prompt_token_ids: [{listed}], lora_request: None."
    )  # fmt: skip


def parts_of(line: str, size: int = 16 << 10) -> list[str]:
    return [line[start : start + size] for start in range(0, len(line), size)]


def cri(stream: str, tag: str, text: str, second: int = 0) -> str:
    return f"2025-10-21T12:34:{second:02d}.5Z {stream} {tag} {text}"


def test_parts_of_a_container_are_one_record() -> None:
    parts = parts_of(long_record(9000))
    assert len(parts) > 4
    lines = [
        cri("stdout", "F" if part is parts[-1] else "P", part, second) for second, part in enumerate(parts)
    ]
    result = parsed([cri("stdout", "F", RECORD), *lines, cri("stdout", "F", RECORD)])
    rows = result.tables["request_event"].to_dicts()
    assert [(row["line_no"], row["event"]) for row in rows] == [
        (1, "added"),
        (2, "received"),
        (2 + len(parts), "added"),
    ]
    assert (rows[1]["input_tokens"], rows[1]["max_tokens"], rows[1]["input_char_count"]) == (9000, 8, 24_000)
    assert rows[1]["event_ts"] == datetime(2025, 10, 21, 12, 34, len(parts) - 1, 500000)
    assert result.issues.height == 0


def test_parts_of_two_streams_in_each_other() -> None:
    first, second, third = parts_of(long_record(900), 15_000)
    lines = [
        cri("stdout", "P", first), cri("stderr", "F", "/x.py:1: UserWarning: a"), cri("stdout", "P", second),
        cri("stderr", "P", "/x.py:1: UserWarning: half "), cri("stdout", "F", third), cri("stderr", "F", "and half"),
    ]  # fmt: skip
    result = parsed(lines)
    (row,) = result.tables["request_event"].to_dicts()
    assert (row["line_no"], row["input_tokens"]) == (1, 900)
    assert result.tables["log_event"]["message"].to_list() == ["UserWarning: a", "UserWarning: half and half"]
    assert result.issues.height == 0


def test_a_part_without_its_beginning_is_an_issue_and_no_fact() -> None:
    quoted = "', 'INFO 10-21 12:34:56 [x.py:1] Added request evil."
    tail = f"ipsum {quoted} now', params: SamplingParams(n=1, max_tokens=8), prompt_token_ids: [1, 2], lora_request: None."
    result = parsed([cri("stdout", "F", tail), cri("stdout", "F", RECORD)])
    assert result.tables["request_event"]["line_no"].to_list() == [2]
    assert result.issues["line_no"].to_list() == [1]


@pytest.mark.parametrize("name", ["docker", "fluent bit"])
def test_parts_in_json(name: str) -> None:
    parts = parts_of(long_record(9000))
    lines = []
    for part in parts:
        last = part is parts[-1]
        if name == "docker":
            record = {
                "log": part + ("\n" if last else ""),
                "stream": "stdout",
                "time": "2025-10-21T12:34:56.5Z",
            }
        else:
            record = {"date": 1761050096.5, "log": part, "stream": "stdout", "logtag": "F" if last else "P"}
        lines.append(json.dumps(record))
    other = json.dumps({"log": RECORD + "\n", "stream": "stderr", "time": "2025-10-21T12:34:56.5Z"})
    result = parsed([*lines[:1], other, *lines[1:]])
    rows = {row["event"]: row for row in result.tables["request_event"].to_dicts()}
    assert (rows["received"]["input_tokens"], rows["received"]["line_no"]) == (9000, 1)
    assert rows["received"]["event_ts"] == datetime(2025, 10, 21, 12, 34, 56, 500000)
    assert rows["added"]["line_no"] == 2
    assert result.issues.height == 0


JSON_LINE = {
    "asctime": "2025-10-21 12:34:56,789",
    "levelname": "INFO",
    "name": "vllm.v1.engine.async_llm",
    "message": "Added request a.",
}
AT = datetime(2025, 10, 21, 12, 34, 56, 789000)


@pytest.mark.parametrize(
    ("line", "clock", "at", "error_s"),
    [
        (JSON_LINE, Clock.LOCAL, AT, 0.001),
        ({**JSON_LINE, "asctime": "2025-10-21 12:34:56"}, Clock.LOCAL, AT.replace(microsecond=0), 1.0),
        ({"timestamp": "2025-10-21T12:34:56.789Z", "severity": "info", "logger": "vllm", "msg": "Added request a."}, Clock.UTC, AT, 0.001),
        ({"ts": 1761050096.789, "level": "INFO", "message": "Added request a."}, Clock.UTC, AT, 0.001),
        ({"time": 1761050096789, "lvl": "info", "message": "Added request a."}, Clock.UTC, AT, 0.001),
        ({"@timestamp": "2025-10-21T14:34:56.789+02:00", "level": "Info", "text": "Added request a."}, Clock.UTC, AT, 0.001),
        ({"ts": "1761050096789012345", "logger": "vllm", "message": "Added request a."}, Clock.UTC, AT.replace(microsecond=789012), 0.001),
        ({"time": "2025-10-21T12:34:56.789Z", "message": "INFO 10-21 05:34:56 [x.py:1] Added request a."}, Clock.UTC, AT, 0.01),
        ({"timestamp": "2025-10-21T12:34:56.789Z", "textPayload": "(APIServer pid=1) INFO 10-21 05:34:56 [x.py:1] Added request a.\n"}, Clock.UTC, AT, 0.01),
        ({"log": "2025-10-21T12:34:56.789012345Z stdout F INFO 10-21 05:34:56 [x.py:1] Added request a.", "ts": 1761050097.1}, Clock.UTC, AT.replace(microsecond=100000, second=57), 0.01),
    ],
)  # fmt: skip
def test_json_loggers_and_collectors(
    line: dict[str, Any], clock: Clock, at: datetime, error_s: float
) -> None:
    lines = [json.dumps(line)] * 2
    assert claim_of(lines).clock is clock
    assert events(lines) == [(1, "a", at, error_s), (2, "a", at, error_s)]


@pytest.mark.parametrize("prefix", ["(APIServer pid=101) ", "\x1b[1;36m(APIServer pid=101)\x1b[0;0m ", ""])
def test_json_behind_a_process_prefix(prefix: str) -> None:
    lines = [prefix + json.dumps(JSON_LINE)] * 2
    rows = parsed(lines).tables["request_event"].to_dicts()
    assert [(row["logged_id"], row["process"]) for row in rows] == [
        ("a", "APIServer" if prefix else None)
    ] * 2


@pytest.mark.parametrize(
    "line",
    [
        {"role": "user", "text": "Added request evil."},
        {"message": "Added request evil."},
        {"event": "Added request evil.", "content": {"level": "INFO"}},
        {"messages": [{"role": "user", "content": "Added request evil."}]},
        ["Added request evil."],
        "Added request evil.",
    ],
)  # fmt: skip
def test_json_that_is_no_log_record_is_an_issue(line: Any) -> None:
    result = parsed([RECORD, json.dumps(line), RECORD])
    assert result.tables["request_event"]["line_no"].to_list() == [1, 3]
    assert result.issues["line_no"].to_list() == [2]


def test_an_error_as_json_is_one_event_with_its_traceback() -> None:
    line = {**JSON_LINE, "levelname": "ERROR", "message": "EngineCore encountered a fatal error.",
            "exc_info": "Traceback (most recent call last):\n  File \"x.py\", line 1\nRuntimeError: CUDA error", "processName": "EngineCore"}  # fmt: skip
    (row,) = parsed([json.dumps(line)]).tables["log_event"].to_dicts()
    assert (row["level"], row["kind"], row["process"], row["event_ts"]) == ("ERROR", "dead", "EngineCore", AT)
    assert row["message"].endswith("RuntimeError: CUDA error")
    assert row["message"].count("\n") == 3


def test_a_warning_with_a_path_in_it_is_still_a_warning() -> None:
    line = {**JSON_LINE, "levelname": "WARNING", "message": 'slow "POST /v1 HTTP/1.1" again'}
    (row,) = parsed([json.dumps(line)] * 1).tables["log_event"].to_dicts()
    assert (row["level"], row["kind"]) == ("WARNING", "warning")


def test_an_access_line_as_json() -> None:
    line = {
        **JSON_LINE,
        "name": "uvicorn.access",
        "message": '10.20.0.77:55010 - "POST /v1/chat/completions HTTP/1.1" 200',
    }
    (row,) = parsed([json.dumps(JSON_LINE), json.dumps(line)]).tables["access_line"].to_dicts()
    assert (row["method"], row["path"], row["status"], row["logged_after_ts"]) == (
        "POST",
        "/v1/chat/completions",
        200,
        AT,
    )


def test_the_banner_as_one_json_record_states_its_settings() -> None:
    banner = "\n       #     #     #   #\n ## ## #     #     ## ##  version 0.33.0\n   ###  #     #     # # #  model   acme/x\n"
    table = parsed([json.dumps({**JSON_LINE, "message": banner})]).tables["server_setting"]
    assert dict(table.select("key", "value").rows()) == {"vllm_version": "0.33.0", "model": "acme/x"}


@pytest.mark.parametrize(
    "name", ["timestamps", "cri", "docker json", "journald json", "collector", "compose"]
)
def test_progress_bars_and_colours_inside_wrappers(name: str) -> None:
    bar = "Capturing CUDA graph shapes:  97%|#########7| 34/35 [00:18<00:00,  1.90it/s]"
    lines = [
        f"Loading: 25%|##   | 1/4\rLoading: 50%|###  | 2/4\r{bar}",
        f"{bar}\r{bar}{RECORD}",
        f"{RECORD}\r{bar}",
        RECORD.replace("(APIServer pid=1) INFO", "\x1b[0;36m(APIServer pid=1)\x1b[0;0m \x1b[32mINFO\x1b[0m"),
    ]
    result = parsed([wrapped(name, line, second) for second, line in enumerate(lines)])
    assert result.tables["request_event"]["line_no"].to_list() == [2, 3, 4]
    assert result.issues.height == 0
    if name in STAMPED:
        assert result.tables["request_event"]["event_ts"].to_list() == [instant(1), instant(2), instant(3)]


def test_a_prefix_of_the_users_own_is_taken_off() -> None:
    """VLLM_LOGGING_PREFIX stands before the level, from 0.31 before the process."""
    config = "INFO 10-21 12:34:56 [utils.py:1] non-default args: {'max_num_seqs': 7}"
    for prefix in ("[node3] ", "blue| ", "@"):
        lines = [f"(APIServer pid=1) {prefix}{config}", f"{prefix}{RECORD}", f"{prefix}{RECORD}"]
        result = parsed(lines)
        assert result.tables["request_event"]["process"].to_list() == ["APIServer", "APIServer"]
        assert dict(result.tables["server_setting"].select("key", "value").rows()) == {"max_num_seqs": "7"}
        assert result.issues.height == 0


def test_the_outer_time_gives_the_year_and_its_distance() -> None:
    """Local time outside, UTC inside; at New Year they are in different years."""
    lines = [
        "[2025-01-01 06:59:58] INFO 12-31 22:59:58 metrics.py:334] Avg prompt throughput: 1.0 tokens/s, Avg generation throughput: 1.0 tokens/s, Running: 1 reqs, Swapped: 0 reqs, Pending: 0 reqs, GPU KV cache usage: 1.0%, CPU KV cache usage: 0.0%",
        "[2025-01-01 08:00:02] INFO 01-01 00:00:02 async_llm_engine.py:1] Added request a.",
        '[2025-01-01 08:00:03] INFO:     10.0.0.1:1 - "GET /health HTTP/1.1" 200 OK',
    ]  # fmt: skip
    claim, result = claim_of(lines), parsed(lines)
    assert (claim.clock, claim.stamps) == (
        Clock.LOCAL,
        "dates of the wrapper (outer time: supervisors, ts with a format)",
    )
    assert result.tables["engine_sample"]["sample_ts"].to_list() == [datetime(2024, 12, 31, 22, 59, 58)]
    assert events(lines) == [(2, "a", datetime(2025, 1, 1, 0, 0, 2), 1.0)]
    assert result.tables["access_line"]["logged_after_ts"].to_list() == [datetime(2025, 1, 1, 0, 0, 2)]
    assert result.clock_steps == {-32: 2}


def test_the_outer_time_counts_where_the_log_has_none() -> None:
    lines = [
        '[2025-01-01 08:00:03] INFO:     10.0.0.1:1 - "GET /health HTTP/1.1" 200 OK',
        "[2025-01-01 08:00:04] Engine 000: Avg prompt throughput: 1.0 tokens/s, Avg generation throughput: 1.0 tokens/s, Running: 1 reqs, Waiting: 0 reqs, GPU KV cache usage: 1.0%",
    ]  # fmt: skip
    assert claim_of(lines).clock is Clock.LOCAL
    assert parsed(lines).tables["engine_sample"]["sample_ts"].to_list() == [datetime(2025, 1, 1, 8, 0, 4)]


def test_a_library_that_logs_beside_has_no_time_in_the_placeholder_year() -> None:
    glog = "[rank1]:[E1021 12:34:57.426415540 ProcessGroupNCCL.cpp:685] [Rank 1] Watchdog caught collective operation timeout"
    for name in ("timestamps", "docker json"):
        (row,) = parsed([wrapped(name, RECORD, 0), wrapped(name, glog, 1)]).tables["log_event"].to_dicts()
        assert (row["kind"], row["event_ts"]) == ("stall", instant(1))


def test_no_wrapper_is_seen_in_a_plain_log() -> None:
    assert wrappers.detect(LINES) == ()
    plain = frame_of(LINES)
    unwrapped = wrappers.unwrap_by_line(
        wrappers.unwrap(plain, ()).with_columns(more_lines=pl.lit(None, pl.List(pl.Int64)))
    )
    assert unwrapped["text"].equals(plain["text"])


def test_a_wrapped_tail_does_not_end_a_chunk() -> None:
    claim = claim_of([cri("stdout", "F", RECORD)] * 2)
    whole, part = cri("stdout", "F", "x" * 5000).encode(), cri("stdout", "P", "x" * (16 << 10)).encode()
    other = cri("stderr", "F", "y").encode()
    assert vllm_log.may_cut(whole + b"\n", claim)
    assert not vllm_log.may_cut(whole + b"\n" + part + b"\n", claim)
    assert not vllm_log.may_cut(part + b"\n" + other + b"\n", claim)
    assert vllm_log.may_cut(part + b"\n" + other + b"\n" + whole + b"\n", claim)
    docker = [
        json.dumps({"log": text, "stream": "stdout", "time": "x"}).encode() for text in ('a\\n"', "b\n")
    ]
    assert not vllm_log.may_cut(docker[0] + b"\n", claim), "a backslash and an n are no line end"
    assert vllm_log.may_cut(docker[0] + b"\n" + docker[1] + b"\n", claim)
    collected = json.dumps({"log": "a", "stream": "stdout", "time": "x", "kubernetes": {}}).encode()
    assert vllm_log.may_cut(collected + b"\n", claim)


@pytest.mark.parametrize(
    "stamp",
    [
        "2025-13-01 00:00:00",
        "99999999999999999999",
        "",
        "NaN",
        "2025-10-21T12:34:56+99:99",
        "0001-01-01T00:00:00+14:00",
    ],
)
def test_stamps_of_json_that_are_none(stamp: str) -> None:
    line = {"timestamp": stamp, "level": "INFO", "message": "Added request a."}
    assert events([json.dumps(line)]) == [(1, "a", None, None)]


def test_the_epoch_in_any_unit() -> None:
    texts = ("1761050096", "1761050096.789", "1761050096789", "1761050096789012", "1761050096789012345")
    found = [json_records._stamp(text) for text in texts]
    assert [stamp.utc for stamp in found] == [
        AT.replace(microsecond=0), AT, AT, AT + timedelta(microseconds=12), AT + timedelta(microseconds=12),
    ]  # fmt: skip
    assert [stamp.error_s for stamp in found] == [1.0, 0.001, 0.001, 0.001, 0.001]
