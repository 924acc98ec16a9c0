"""A log into which several programs wrote: each is a source of its own, with the line numbers of the file."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import polars as pl
import pytest

import tracelens
from tracelens import ingest
from tracelens.formats.base import Head
from tracelens.ingestion import parts
from tracelens.ingestion.again import reingest
from tracelens.ingestion.report import State
from tracelens.ingestion.verifying import Fate, verify
from tracelens.ingestion.writers import Writer, form_of, leftover, told_apart

if TYPE_CHECKING:
    from pathlib import Path

STATS = (
    "INFO 11-20 10:00:{s:02d} [loggers.py:118] Engine 000: Avg prompt throughput: 10.0 tokens/s, Avg generation throughput: "
    "50.0 tokens/s, Running: {running} reqs, Waiting: {waiting} reqs, GPU KV cache usage: 21.4%, Prefix cache hit rate: 2.1%"
)
NGINX = (
    '172.18.0.5 - - [20/Nov/2025:10:00:{s:02d} +0000] "POST /v1/chat/completions HTTP/1.1" 200 1822 "-" "python-requests/2.32" '
    "rt=9.812 uct=0.000 uht=9.811 urt=9.812"
)
FULL = [STATS.format(s=second, running=16, waiting=40) for second in (0, 10, 20, 30)]
IDLE = [STATS.format(s=second, running=1, waiting=0) for second in (0, 10, 20, 30)]
REDIS = "1:M 20 Nov 2025 10:00:00.000 * Ready to accept connections tcp"


def in_turns(**logs: list[str]) -> list[tuple[str, str]]:
    """Lines of several writers, one of each at a time."""
    longest = max(map(len, logs.values()))
    return [(name, lines[at]) for at in range(longest) for name, lines in logs.items() if at < len(lines)]


def composed(lines: list[tuple[str, str]]) -> str:
    return "".join(f"{name.replace('_', '-')}-1  | {line}\n" for name, line in lines)


def prefixed(lines: list[tuple[str, str]]) -> str:
    return "".join(f"[pod/{name}-7d9f/server] {line}\n" for name, line in lines)


def coloured(lines: list[tuple[str, str]]) -> str:
    return "".join(f"\x1b[36m{name.replace('_', '-')}-1  | \x1b[0m{line}\n" for name, line in lines)


def samples(path: Path, log: str, case: Path) -> dict[str, list[tuple[int, int]]]:
    """Line and running requests of each stats line, by source."""
    (path / "all.log").write_text(log)
    ingest([str(path / "all.log")], case)
    with tracelens.open(case) as opened:
        rows = opened.sql(
            "SELECT parse_filename(path), line_no, running_count FROM engine_sample JOIN source USING (source_id) ORDER BY ALL"
        ).rows
    found: dict[str, list[tuple[int, int]]] = {}
    for name, line_no, running in rows:
        found.setdefault(name, []).append((line_no, running))
    return found


@pytest.mark.parametrize(
    ("written", "names"),
    [
        (composed, ("vllm-a-1", "vllm-b-1")),
        (coloured, ("vllm-a-1", "vllm-b-1")),
        (prefixed, ("vllm_a-7d9f.server", "vllm_b-7d9f.server")),
    ],
)
def test_two_servers_of_one_log_are_two_engines(tmp_path, written, names):
    log = written(in_turns(vllm_a=FULL, vllm_b=IDLE))
    assert samples(tmp_path, log, tmp_path / "case.duckdb") == {
        f"all.log!{names[0]}": [(1, 16), (3, 16), (5, 16), (7, 16)],
        f"all.log!{names[1]}": [(2, 1), (4, 1), (6, 1), (8, 1)],
    }


def test_a_gateway_beside_a_server_is_read_and_what_no_format_knows_stays_with_the_server(tmp_path):
    gateway = [NGINX.format(s=second) for second in (1, 11, 21)]
    log = composed(in_turns(nginx=gateway, vllm=FULL, redis=[REDIS, REDIS]))
    (tmp_path / "all.log").write_text(log)
    report = ingest([str(tmp_path / "all.log")], tmp_path / "case.duckdb")
    read = {one.path.rpartition("!")[2]: one for one in report.files}
    assert {name: one.format for name, one in read.items()} == {
        "nginx-1": "access_text",
        "vllm-1": "vllm_log",
    }
    # Each line is counted in both; the two of redis are kept once, as lines of the server's log.
    assert [one.lines for one in read.values()] == [9, 9]
    assert [one.skipped for one in read.values()] == [0, 2]
    with tracelens.open(tmp_path / "case.duckdb") as case:
        assert case.sql("SELECT line_no, excerpt FROM ingest_issue ORDER BY line_no").rows == [
            (3, f"redis-1  | {REDIS}"),
            (6, f"redis-1  | {REDIS}"),
        ]
        # The log of the server has no year; the gateway's has.
        assert case.sql("SELECT DISTINCT year(sample_ts) FROM engine_sample").rows == [(2025,)]


@pytest.mark.parametrize(
    "log",
    [
        pytest.param(composed(in_turns(vllm=FULL)), id="one writer"),
        pytest.param(
            composed(in_turns(vllm=FULL, redis=[REDIS])), id="one server, and one line of another program"
        ),
        pytest.param(
            composed(in_turns(vllm=FULL, redis=[REDIS] * 4)),
            id="one server, and a program that no format knows",
        ),
        pytest.param("".join(f"{line}\n" for line in FULL), id="no names"),
    ],
)
def test_what_one_server_wrote_is_one_source_of_the_file_s_own_name(tmp_path, log):
    found = samples(tmp_path, log, tmp_path / "case.duckdb")
    assert [(name, len(rows)) for name, rows in found.items()] == [("all.log", 4)]


def test_a_server_is_found_among_programs_that_write_more(tmp_path):
    log = composed(in_turns(redis=[REDIS] * 30, web=["GET / 200"] * 30, vllm=FULL))
    found = samples(tmp_path, log, tmp_path / "case.duckdb")
    assert [len(rows) for rows in found.values()] == [4]


@pytest.mark.parametrize("size", [1, 300, 1 << 20])
def test_where_the_log_is_cut_changes_nothing(tmp_path, monkeypatch, size):
    monkeypatch.setattr(parts, "CHUNK_BYTES", size)
    log = composed(in_turns(vllm_a=FULL, vllm_b=IDLE, redis=[REDIS]))
    found = samples(tmp_path, log, tmp_path / "case.duckdb")
    assert [rows[0] for rows in found.values()] == [(1, 16), (2, 1)]
    assert [len(rows) for rows in found.values()] == [4, 4]


def test_sources_of_one_file_are_verified_and_read_again(tmp_path):
    case = tmp_path / "case.duckdb"
    before = samples(tmp_path, composed(in_turns(vllm_a=FULL, vllm_b=IDLE)), case)
    assert [one.fate for one in verify(case)] == [Fate.SAME, Fate.SAME]
    again = ingest([str(tmp_path / "all.log")], case)
    assert [one.state for one in again.files] == [State.UNCHANGED]
    reingest(case)
    with tracelens.open(case) as opened:
        paths = [
            path.rpartition("/")[2] for (path,) in opened.sql("SELECT path FROM source ORDER BY path").rows
        ]
    assert paths == list(before)
    longer = composed(in_turns(vllm_a=[*FULL, FULL[-1]], vllm_b=[*IDLE, IDLE[-1]]))
    (tmp_path / "all.log").write_text(longer)
    assert [one.state for one in ingest([str(tmp_path / "all.log")], case).files] == [State.REPLACED] * 2


def recorded(lines: list[tuple[str, str]]) -> str:
    """As Fluent Bit writes them."""
    return "".join(
        json.dumps(
            {
                "time": at(place),
                "stream": "stdout",
                "log": line,
                "kubernetes": {"pod_name": name, "host": "n1"},
            }
        )
        + "\n"
        for place, (name, line) in enumerate(lines)
    )


def labelled(lines: list[tuple[str, str]]) -> str:
    """As logcli of Grafana Loki prints them."""
    return "".join(
        f'{at(place)} {{app="llm", pod="{name}"}} {line}\n' for place, (name, line) in enumerate(lines)
    )


def gathered(lines: list[tuple[str, str]]) -> str:
    """As gcloud logging read --format=json has them, the newest first."""
    records = [
        {
            "timestamp": at(place),
            "textPayload": line,
            "resource": {"type": "k8s_container", "labels": {"pod_name": name}},
        }
        for place, (name, line) in enumerate(lines)
    ]
    return json.dumps(records[::-1], indent=1)


def streamed(lines: list[tuple[str, str]]) -> str:
    """As Loki's HTTP API answers."""
    nanos = 1_763_632_800_000_000_000
    streams = [
        {
            "stream": {"app": "llm", "pod": name},
            "values": [
                [str(nanos + place * 10**9), line] for place, (of, line) in enumerate(lines) if of == name
            ],
        }
        for name in dict.fromkeys(name for name, _ in lines)
    ]
    return json.dumps({"status": "success", "data": {"resultType": "streams", "result": streams}})


def instrumented(lines: list[tuple[str, str]]) -> str:
    """As an OpenTelemetry collector writes them, a resource for each pod."""
    resources = [
        {
            "resource": {"attributes": [{"key": "k8s.pod.name", "value": {"stringValue": name}}]},
            "scopeLogs": [{"logRecords": [
                {"timeUnixNano": str(1_763_632_800_000_000_000 + place * 10**9), "body": {"stringValue": line}}
                for place, (of, line) in enumerate(lines) if of == name
            ]}],
        }
        for name in dict.fromkeys(name for name, _ in lines)
    ]  # fmt: skip
    return json.dumps({"resourceLogs": resources})


def at(place: int) -> str:
    return f"2025-11-20T10:00:{place:02d}.123456Z"


@pytest.mark.parametrize("written", [recorded, labelled, gathered, streamed, instrumented])
def test_records_that_name_their_pods_are_a_source_for_each(tmp_path, written):
    log = written(in_turns(vllm_a=FULL, vllm_b=IDLE))
    found = samples(tmp_path, log, tmp_path / "case.duckdb")
    assert {name: [running for _, running in rows] for name, rows in found.items()} == {
        "all.log!vllm_a": [16] * 4,
        "all.log!vllm_b": [1] * 4,
    }


@pytest.mark.parametrize("written", [recorded, gathered, streamed])
def test_records_of_one_pod_are_one_source(tmp_path, written):
    found = samples(tmp_path, written(in_turns(vllm_a=FULL)), tmp_path / "case.duckdb")
    assert [(name, len(rows)) for name, rows in found.items()] == [("all.log", 4)]


def test_a_client_that_notes_which_pod_answered_is_one_client(tmp_path):
    rows = [
        {
            "request_id": f"r{number}",
            "sent_at": 1.0 + number,
            "first_byte_at": 1.5 + number,
            "finished_at": 2.0 + number,
            "pod": f"vllm-{number % 2}",
        }
        for number in range(8)
    ]
    (tmp_path / "client.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    report = ingest([str(tmp_path / "client.jsonl")], tmp_path / "case.duckdb")
    assert [(one.format, one.rows["client_request"]) for one in report.files] == [("client_stream", 8)]


def test_names_before_bars_are_writers_only_where_they_come_again():
    def names(*lines: str) -> list[str]:
        form = form_of(Head(lines))
        frame = pl.DataFrame({"line_no": range(1, len(lines) + 1), "text": lines})
        return [writer.name for writer, _ in told_apart([frame], form)] if form else []

    assert names(*(f"row{number} | {number}" for number in range(20))) == []
    assert names(*(f"row{number % 70} | {number}" for number in range(200))) == []
    assert names(*FULL, "a | b", "a | b", "c | d", "c | d") == []
    assert names("b | 1", "a | 2", "c | 3", "a | 4", "b | 5") == ["b", "a"]


def test_a_server_that_begins_long_after_another_is_found(tmp_path):
    began = [f"INFO 11-20 09:59:00 [loader.py:1] layer {number} is loaded" for number in range(900)]
    log = composed([("vllm_a", line) for line in [*FULL, *began]] + [("vllm_b", line) for line in IDLE])
    found = samples(tmp_path, log, tmp_path / "case.duckdb")
    assert {name: rows[0] for name, rows in found.items()} == {
        "all.log!vllm-a-1": (1, 16),
        "all.log!vllm-b-1": (905, 1),
    }


def test_each_line_is_of_exactly_one_writer():
    lines = pl.DataFrame({"line_no": range(1, 6), "text": ["a | 1", "b | 2", "no name", "c | 3", "a | 4"]})
    form = form_of(Head(tuple(lines["text"])))
    assert form
    named = [Writer("a", form), Writer("b", form)]
    own = [leftover(named[0], named).own(lines), named[1].own(lines)]
    assert [frame["text"].to_list() for frame in own] == [["1", "no name", "c | 3", "4"], ["2"]]
    assert sorted(number for frame in own for number in frame["line_no"]) == [1, 2, 3, 4, 5]
