"""What is said of a server log's time: whose stamps they are, how far the log's own clock is off, and the span of all stamps."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pytest

from tracelens.ingestion import IngestOptions, TimeOptions, chunks, ingest, parts

pytestmark = pytest.mark.usefixtures("_asks_facts_alone")

Rows = Callable[[Path, str], list[dict[str, Any]]]
INNER = "(APIServer pid=1) INFO 10-21 05:34:{second:02d} [async_llm.py:382] Added request r{second}."
OPTIONS = IngestOptions(time=TimeOptions(date=date(2025, 10, 21)))


def lines(wrap: Callable[[str, int], str], count: int = 4) -> list[str]:
    return [wrap(INNER.format(second=second), second) for second in range(count)]


def said(case: Path, folder: Path, text: list[str]) -> str:
    path = folder / "server.log"
    path.write_text("".join(line + "\n" for line in text))
    (report,) = ingest([str(path)], case, OPTIONS).files
    return report.time_basis


def json_stamp(line: str, second: int) -> str:
    return json.dumps(
        {
            "asctime": f"2025-10-21 12:34:{second:02d},500",
            "levelname": "INFO",
            "name": "vllm.x",
            "message": line.partition("] ")[2],
        }
    )


@pytest.mark.parametrize(
    ("wrap", "basis"),
    [
        (
            lambda line, n: f"2025-10-21T12:34:{n:02d}.000000001Z {line}",
            "stamps of the wrapper (timestamps: docker logs -t, kubectl logs --timestamps, CI logs) are UTC instants, "
            "the log's own clock is 7:00 h behind",
        ),
        (
            lambda line, n: f"2025-10-21T12:34:{n:02d}.5Z stdout F {line}",
            "stamps of the wrapper (cri: containerd and CRI-O files) are UTC instants, the log's own clock is 7:00 h behind",
        ),
        (
            lambda line, n: f"2025-10-21T05:34:{n:02d}+0000 node-3 vllm[4021]: {line}",
            "stamps of the wrapper (journald iso: journalctl -o short-iso, short-iso-precise) are UTC instants, "
            "the log's own clock is the same",
        ),
        (
            lambda line, n: json.dumps({"log": line + "\n", "stream": "stdout", "time": f"2025-10-21T12:34:{n:02d}.5Z"}),
            "stamps of the JSON records are UTC instants, the log's own clock is 7:00 h behind",
        ),
        (json_stamp, "dates of the JSON records; zone not in the log, UTC assumed (--tz to change)"),
        (
            lambda line, n: f"[2025-10-21 13:34:{n:02d}] {line}",
            "dates of the wrapper (outer time: supervisors, ts with a format), the log's own clock is 8:00 h behind; "
            "zone not in the log, UTC assumed (--tz to change)",
        ),
        (lambda line, n: f"vllm-1  | {line}", "year 2025 from --date; zone not in the log, UTC assumed (--tz to change)"),
    ],
    ids=["docker -t", "CRI", "journald", "docker json-file", "JSON formatter", "outer time", "compose"],
)  # fmt: skip
def test_it_is_said_whose_stamps_they_are(
    wrap: Callable[[str, int], str], basis: str, case: Path, tmp_path: Path
) -> None:
    assert said(case, tmp_path, lines(wrap)) == basis


def test_one_line_of_another_clock_is_counted(case: Path, tmp_path: Path) -> None:
    text = lines(lambda line, n: f"2025-10-21T{12 if n else 13}:34:{n:02d}.5Z {line}")
    assert said(case, tmp_path, text).endswith("the log's own clock is 7:00 h behind on 3 of 4 lines")


@pytest.mark.parametrize("size", [1 << 20, 120])
def test_the_span_is_that_of_all_stamps(
    size: int, case: Path, tmp_path: Path, rows_of: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lines that are no fact have stamps too: the log of an idle server goes on."""
    monkeypatch.setattr(chunks, "CHUNK_BYTES", size)
    monkeypatch.setattr(parts, "CHUNK_BYTES", size)
    text = [
        "INFO 12-31 23:59:01 [x.py:1] nothing to tell",
        "INFO 12-31 23:59:30 [x.py:1] Added request a.",
        "INFO 01-01 00:00:10 [x.py:1] Added request b.",
        "INFO 01-01 00:20:00 [x.py:1] nothing to tell either",
    ]
    said(case, tmp_path, text)
    (row,) = rows_of(case, "SELECT first_ts, last_ts FROM source")
    assert row == {"first_ts": datetime(2025, 12, 31, 23, 59, 1), "last_ts": datetime(2026, 1, 1, 0, 20)}


def test_the_span_moves_with_the_zone_that_was_found(case: Path, tmp_path: Path, rows_of: Rows) -> None:
    path = tmp_path / "server.log"
    received = "params: SamplingParams(n=1, max_tokens=7), lora_request: None."
    text = [
        f"INFO 10-21 14:00:{n:02d} [x.py:1] Received request chatcmpl-q{n}: {received}\n" for n in range(5)
    ]
    path.write_text("INFO 10-21 13:00:00 [x.py:1] nothing\n" + "".join(text))
    (tmp_path / "client.jsonl").write_text(
        "".join(
            json.dumps(
                {
                    "request_id": f"q{n}",
                    "response_id": f"chatcmpl-q{n}",
                    "t_send": 1761048000 + n,
                    "e2e_s": 0.5,
                    "ttft_s": 0.1,
                    "stream": True,
                }
            )
            + "\n"
            for n in range(5)
        )
    )
    ingest([str(tmp_path)], case)
    (row,) = rows_of(case, "SELECT first_ts, last_ts, time_basis FROM source WHERE format = 'vllm_log'")
    assert "zone +02:00 found from 5 requests" in row["time_basis"]
    assert (row["first_ts"], row["last_ts"]) == (datetime(2025, 10, 21, 11), datetime(2025, 10, 21, 12, 0, 4))
