"""A server log's way into the case: grouped tracebacks, request ids made one, and what lines carry over cuts."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from tracelens.ingestion import chunks, ingest, parts

Rows = Callable[[Path, str], list[dict[str, Any]]]
SAMPLES = Path(__file__).parents[2] / "sample_logs" / "vllm_log"


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Cut files into chunks of so many bytes."""

    def cut(size: int) -> None:
        monkeypatch.setattr(chunks, "CHUNK_BYTES", size)
        monkeypatch.setattr(parts, "CHUNK_BYTES", size)

    return cut


def write(folder: Path, *lines: str) -> str:
    path = folder / "server.log"
    path.write_text("".join(line + "\n" for line in lines))
    return str(path)


def info(message: str, second: int = 0, level: str = "INFO", process: str = "APIServer pid=7") -> str:
    return f"({process}) {level} 11-29 12:00:{second:02d} [x.py:1] {message}"


def events(case: Path, rows_of: Rows) -> list[tuple[Any, ...]]:
    found = rows_of(
        case, "SELECT line_no, last_line_no, kind, level, process, event_ts FROM log_event ORDER BY line_no"
    )
    return [tuple(row.values()) for row in found]


NOON = datetime(2025, 11, 29, 12)


def noon(second: int) -> datetime:
    return NOON.replace(second=second)


ENGINE_DIES = [
    info("Added request a.", 1),
    info("EngineCore encountered a fatal error.", 2, "ERROR", "EngineCore pid=8"),
    info("Added request b.", 2),
    info("Traceback (most recent call last):", 2, "ERROR", "EngineCore pid=8"),
    info('  File "/srv/vllm/core.py", line 7, in step', 2, "ERROR", "EngineCore pid=8"),
    'INFO:     10.0.0.7:1 - "GET /health HTTP/1.1" 200 OK',
    info("AsyncLLM output_handler failed.", 2, "ERROR"),
    info("ValueError: no", 2, "ERROR", "EngineCore pid=8"),
    info("EngineDeadError: see above", 2, "ERROR"),
    info("hot", 3, "WARNING", "EngineCore pid=8"),
    info("hot", 3, "WARNING", "EngineCore pid=8"),
    "ERROR:    Exception in ASGI application",
    "Traceback (most recent call last):",
    '  File "/srv/app.py", line 1, in run',
    "    await app()",
    "          ^^^^^",
    "TimeoutError: 30 s",
    info("Added request c.", 4),
    "Traceback (most recent call last):",
    "KeyError: 'x'",
]


@pytest.mark.parametrize("size", [1 << 20, 150, 64])
def test_lines_of_one_record_are_one_event_with_other_processes_between_and_wherever_it_is_cut(
    size: int, case: Path, tmp_path: Path, rows_of: Rows, small_chunks: Callable[[int], None]
) -> None:
    small_chunks(size)
    ingest([write(tmp_path, *ENGINE_DIES)], case, _in_2025())
    assert events(case, rows_of) == [
        (2, 8, "dead", "ERROR", "EngineCore", noon(2)),
        (7, 9, "dead", "ERROR", "APIServer", noon(2)),
        (10, 10, "warning", "WARNING", "EngineCore", noon(3)),
        (11, 11, "warning", "WARNING", "EngineCore", noon(3)),
        (12, 12, "error", "ERROR", None, noon(3)),
        (13, 17, "traceback", None, None, noon(3)),
        (19, 20, "traceback", None, None, noon(4)),
    ]
    (whole,) = rows_of(case, "SELECT message FROM log_event WHERE line_no = 13")
    assert whole["message"] == "\n".join(ENGINE_DIES[12:17])
    (between,) = rows_of(case, "SELECT logged_after_ts AS ts, status FROM access_line")
    assert between == {"ts": noon(2), "status": 200}


def _in_2025() -> Any:
    from datetime import date

    from tracelens.ingestion import IngestOptions, TimeOptions

    return IngestOptions(time=TimeOptions(date=date(2025, 11, 29)))


def test_tracebacks_of_the_recording_are_one_event_each(case: Path, rows_of: Rows) -> None:
    name = "v0.32.0_v1_tracebacks.log"
    ingest([str(SAMPLES / name)], case, _in_2025())
    lines = (SAMPLES / name).read_text().split("\n")
    begins = [number for number, line in enumerate(lines, 1) if line == "Traceback (most recent call last):"]
    ends = [number for number, line in enumerate(lines, 1) if line.startswith("TimeoutError: ")]
    found = [(first, last) for first, last, kind, *_ in events(case, rows_of) if kind == "traceback"]
    assert begins == [22, 114, 211]
    assert found == [(22, ends[0]), (114, ends[1]), (211, 214)], "the excerpt ends inside the third"
    assert ends == [109, 201]


def test_internal_ids_become_external_ones_only_where_these_are_known(
    case: Path, tmp_path: Path, rows_of: Rows
) -> None:
    params = "params: SamplingParams(n=2, max_tokens=7), lora_request: None."
    path = write(
        tmp_path,
        info(f"Received request chatcmpl-a: {params}"),
        info("Added request 0_chatcmpl-a-1c9be07a."),
        info("Added request 1_chatcmpl-a-1c9be07a."),
        info("Aborted request(s) 0_chatcmpl-a-1c9be07a,1_chatcmpl-a-1c9be07a."),
        info("Request chatcmpl-a aborted."),
        # An external id that ends like an internal one, and its internal id.
        info(f"Received request chatcmpl-x-0badcafe: {params}"),
        info("Added request chatcmpl-x-0badcafe-00c0ffee."),
        info("Added request chatcmpl-x-0badcafe."),
        # Nobody wrote this one's external id: it stays.
        info("Added request chatcmpl-unknown-deadbeef."),
        info("Added request 0_cmpl-lonely-0-deadbeef."),
        # A digit and an underscore may belong to the id itself.
        info(f"Received request 7_x: {params}"),
        info("Added request 7_x-12345678."),
        # Upper case and other lengths are no suffix of vLLM's.
        info(f"Received request b: {params}"),
        info("Added request b-DEADBEEF."),
        info("Added request b-123456789."),
    )
    ingest([path], case)
    found = [
        tuple(row.values())
        for row in rows_of(
            case, "SELECT line_no, event, logged_id, request_id FROM request_event ORDER BY ALL"
        )
    ]
    assert [(number, request) for number, _, _, request in found] == [
        (1, "chatcmpl-a"), (2, "chatcmpl-a"), (3, "chatcmpl-a"), (4, "chatcmpl-a"), (4, "chatcmpl-a"), (5, "chatcmpl-a"),
        (6, "chatcmpl-x-0badcafe"), (7, "chatcmpl-x-0badcafe"), (8, "chatcmpl-x-0badcafe"),
        (9, "chatcmpl-unknown-deadbeef"), (10, "0_cmpl-lonely-0-deadbeef"),
        (11, "7_x"), (12, "7_x"), (13, "b"), (14, "b-DEADBEEF"), (15, "b-123456789"),
    ]  # fmt: skip
    assert [logged for number, _, logged, _ in found if number == 4] == [
        "0_chatcmpl-a-1c9be07a",
        "1_chatcmpl-a-1c9be07a",
    ]


@pytest.mark.parametrize("size", [1 << 20, 2000])
def test_requests_of_the_recordings_are_told_by_one_id(
    size: int, case: Path, rows_of: Rows, small_chunks: Callable[[int], None]
) -> None:
    small_chunks(size)
    names = ("v0.32.0_v1_aborts_errors.log", "v0.32.0_v1_deltas.log")
    ingest([str(SAMPLES / name) for name in names], case)
    rows = rows_of(case, "SELECT regexp_extract(path, '[^/]+$') AS file, request_id, event::VARCHAR AS event, line_no"
                         " FROM request_event JOIN source USING (source_id)")  # fmt: skip
    for name in names:
        expected: set[tuple[str, str]] = set()
        for line in (SAMPLES / name).read_text().split("\n"):
            for pattern, event in (
                (r"Received request (\S+): ", "received"), (r"Added request (\S+)-[0-9a-f]{8}\.$", "added"),
                (r"Aborted request\(s\) (\S+)-[0-9a-f]{8}\.$", "aborted"), (r"Request (\S+) aborted\.$", "aborted"),
                (r"Generated response (\S+) \(streaming delta\)", "first_token"),
                (r"Generated response (\S+)(?: \(streaming complete\))?: ", "finished"),
            ):  # fmt: skip
                expected |= {(request, event) for request in re.findall(r"\] " + pattern, line)}
        known = {request for request, event in expected if event in ("received", "finished")}
        found = {(row["request_id"], row["event"]) for row in rows if row["file"] == name}
        assert {pair for pair in found if pair[0] in known} == {pair for pair in expected if pair[0] in known}
        assert len(known) >= 3
    firsts = [row for row in rows if row["event"] == "first_token"]
    assert len(firsts) == len({row["request_id"] for row in firsts}), "of many deltas the first one counts"
    assert len(firsts) >= 2


def test_a_case_is_the_same_however_its_files_were_cut(
    case: Path,
    empty_case: Path,
    tmp_path: Path,
    everything: Callable[[Path], Any],
    small_chunks: Callable[[int], None],
) -> None:
    samples = [str(path) for path in sorted(SAMPLES.glob("v0*.log")) if path.stat().st_size < 6_000]
    assert len(samples) >= 8
    ingest(samples, case, _in_2025())
    other = tmp_path / "other.duckdb"
    shutil.copyfile(empty_case, other)
    small_chunks(1500)
    ingest(samples, other, _in_2025())
    whole, cut = everything(case), everything(other)
    assert sum(map(len, whole.values())) > 300
    assert cut == whole


def test_settings_come_with_the_version_and_its_defaults(case: Path, rows_of: Rows) -> None:
    ingest([str(SAMPLES / "v0.32.0_v1_queue.log")], case)
    stated = {
        row["key"]: row["value"]
        for row in rows_of(case, "SELECT key, value FROM server_setting WHERE basis = 'stated'")
    }
    assert (stated["vllm_version"], stated["max_num_seqs"], stated["model"]) == (
        "0.32.0",
        "2",
        "/models/tiny-llama",
    )
    assumed = {row["key"] for row in rows_of(case, "SELECT key FROM server_setting WHERE basis <> 'stated'")}
    assert "max_num_seqs" not in assumed
