"""JSON documents that log services give out become the lines they hold, with the service's times, the oldest first."""

from __future__ import annotations

import gzip
import io
import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, cast

import pytest

import tracelens
from tracelens.opening.exports import as_lines

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.usefixtures("_asks_facts_alone")

STATS = (
    "(APIServer pid=1) INFO 11-19 12:16:{:02d} [loggers.py:127] Engine 000: Avg prompt throughput: 102.2 tokens/s, Avg generation "
    "throughput: 52.2 tokens/s, Running: {} reqs, Waiting: 0 reqs, GPU KV cache usage: 0.8%, Prefix cache hit rate: 0.0%"
)
ACCESS = '(APIServer pid=1) INFO:     10.0.0.1:123 - "POST /v1/completions HTTP/1.1" 200 OK'
LINES = [STATS.format(0, 3), ACCESS, STATS.format(10, 5), ACCESS]
FIRST = datetime(2025, 11, 19, 20, 16, tzinfo=UTC)
TIMES = [FIRST + timedelta(seconds=second, milliseconds=96) for second in (0, 4, 10, 15)]


def iso(at: datetime) -> str:
    return at.isoformat().replace("+00:00", "Z")


def epoch(at: datetime, per_second: int) -> int:
    return round(at.timestamp() * 1000) * per_second // 1000


PAIRS = list(zip(TIMES, LINES, strict=True))
NANOS = 1_000_000_000
DOCUMENTS: dict[str, Any] = {
    "gcloud": [{"insertId": "x", "severity": "INFO", "textPayload": line, "timestamp": iso(at)} for at, line in PAIRS],
    "gcloud json payload": [{"jsonPayload": {"message": line}, "timestamp": iso(at)} for at, line in PAIRS],
    "aws logs": {"events": [{"timestamp": epoch(at, 1000), "message": line, "ingestionTime": 1} for at, line in PAIRS]},
    "insights": {
        "results": [
            [{"field": "@timestamp", "value": f"{at:%Y-%m-%d %H:%M:%S}.096"}, {"field": "@message", "value": line}]
            for at, line in PAIRS
        ]
    },
    "loki, newest first": {
        "status": "success",
        "data": {"result": [{"stream": {"app": "v"}, "values": [[str(epoch(at, NANOS)), line] for at, line in PAIRS[::-1]]}]},
    },
    "grafana": [{"line": line, "timestamp": str(epoch(at, NANOS)), "fields": {}} for at, line in PAIRS[::-1]],
    "elastic": {"took": 3, "hits": {"hits": [{"_source": {"@timestamp": iso(at), "message": line}} for at, line in PAIRS]}},
    "otlp": {
        "resourceLogs": [
            {"scopeLogs": [{"logRecords": [{"timeUnixNano": str(epoch(at, NANOS)), "body": {"stringValue": line}} for at, line in PAIRS]}]}
        ]
    },
}  # fmt: skip


def found(path: Path, tmp_path: Path) -> list[tuple[Any, ...]]:
    case = tmp_path / "case.duckdb"
    tracelens.ingest([str(path)], case=case)
    with tracelens.open(case) as opened:
        rows = opened.sql("SELECT sample_ts, running_count FROM engine_sample ORDER BY line_no").rows
        (count,) = opened.sql("SELECT count(*) FROM access_line WHERE status = 200").rows[0]
        (issues,) = opened.sql("SELECT count(*) FROM ingest_issue").rows[0]
    return [*rows, (count, issues)]


EXPECTED = [
    (datetime(2025, 11, 19, 20, 16, 0, 96000), 3),
    (datetime(2025, 11, 19, 20, 16, 10, 96000), 5),
    (2, 0),
]


@pytest.mark.parametrize("name", DOCUMENTS)
@pytest.mark.parametrize("indent", [None, 2])
def test_the_lines_of_a_document_are_read_with_its_times(
    name: str, indent: int | None, tmp_path: Path
) -> None:
    path = tmp_path / "export.json"
    path.write_text(json.dumps(DOCUMENTS[name], indent=indent))
    assert [tuple(row) for row in found(path, tmp_path)] == EXPECTED


def test_a_compressed_document_and_one_a_line_are_the_same(tmp_path: Path) -> None:
    lines = "\n".join(
        json.dumps({"resourceLogs": [{"scopeLogs": [{"logRecords": [{"timeUnixNano": str(epoch(at, NANOS)), "body": {"stringValue": line}}]}]}]})
        for at, line in PAIRS
    )  # fmt: skip
    path = tmp_path / "export.json.gz"
    path.write_bytes(gzip.compress(lines.encode()))
    assert [tuple(row) for row in found(path, tmp_path)] == EXPECTED


def test_a_document_that_is_in_the_case_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "export.json"
    path.write_text(json.dumps(DOCUMENTS["gcloud"]))
    case = tmp_path / "case.duckdb"
    tracelens.ingest([str(path)], case=case)
    (again,) = tracelens.ingest([str(path)], case=case).files
    assert again.state.name == "UNCHANGED"


CHAT = [{"role": "user", "message": f"why {LINES[0]}", "timestamp": iso(FIRST)}]


@pytest.mark.parametrize(
    "text",
    [
        json.dumps({"status": "success", "data": {"result": [{"metric": {}, "values": [[1763583360, "1"]]}]}}),
        json.dumps({"resourceSpans": [{"scopeSpans": []}], "note": LINES[0]}),
        json.dumps([{"message": "hello", "timestamp": iso(FIRST)}] * 9 + CHAT),
        json.dumps(DOCUMENTS["gcloud"])[:-9],
        '{"log": "' + LINES[0] + '", "stream": "stdout"}',
        LINES[0],
        "",
        "[" * 90_000,
    ],
)  # fmt: skip
def test_what_is_no_such_document_stays_byte_for_byte(text: str) -> None:
    stream = as_lines(cast("Any", io.BytesIO(text.encode())))
    parts = []
    while part := stream.read(1000):
        parts.append(part)
    assert b"".join(parts) == text.encode()


def test_a_record_of_several_lines_keeps_them_and_its_time() -> None:
    document = [{"textPayload": f"{LINES[0]}\nTraceback:\n", "timestamp": "2025-11-19T20:16:00Z"}]
    read = as_lines(cast("Any", io.BytesIO(json.dumps(document).encode()))).read().decode()
    assert read.split("\n") == [f"2025-11-19T20:16:00Z {LINES[0]}", "2025-11-19T20:16:00Z Traceback:", ""]


def test_a_record_without_a_known_text_is_kept_as_a_line_of_its_own() -> None:
    audit = {"protoPayload": {"methodName": "x"}, "timestamp": iso(TIMES[-1] + timedelta(seconds=1))}
    document = json.dumps([*DOCUMENTS["gcloud"], audit]).encode()
    lines = as_lines(io.BytesIO(document)).read().decode().splitlines()
    assert len(lines) == len(LINES) + 1
    assert '"methodName":"x"' in lines[-1]
