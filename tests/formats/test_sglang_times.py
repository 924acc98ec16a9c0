"""Times of single requests in SGLang's text log, read off the sample by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tracelens.formats.base import Chunk, Head, Parsed
from tracelens.formats.server.sglang_log import FORMAT

SAMPLE = Path(__file__).parents[2] / "sample_logs" / "sglang_log" / "request_times_0.5.log"
LINES = SAMPLE.read_text().splitlines()


def parse(lines: list[str]) -> Parsed:
    claim = FORMAT.sniff(Head(tuple(LINES), complete=True))
    assert claim is not None
    frame = pl.DataFrame(
        {"line_no": range(1, len(lines) + 1), "text": lines}, schema_overrides={"line_no": pl.Int64}
    )
    return FORMAT.parse(Chunk(frame, claim))


@pytest.fixture(scope="module")
def rows() -> dict[str, dict[str, Any]]:
    parsed = parse(LINES)
    assert (parsed.understood, parsed.issues.height) == (len(LINES), 0)
    return {row["request_id"]: row for row in parsed.tables["server_request"].to_dicts()}


def test_the_schedulers_line_has_the_queue_and_what_follows_it(rows: dict[str, dict[str, Any]]) -> None:
    row = rows["bde3"]
    assert (row["queue_s"], row["inference_s"], row["prefill_s"]) == (0.00156, 0.1, None)
    assert (row["input_tokens"], row["cached_input_tokens"], row["output_tokens"]) == (1000, 900, 50)
    assert (row["line_no"], row["measured_by"], row["service"]) == (2, "log", "sglang")


def test_a_duration_to_a_stamp_that_was_never_taken_is_none(rows: dict[str, dict[str, Any]]) -> None:
    row = rows["23b2f003434b476aa6d3bf6706e710c0"]
    assert (row["queue_s"], row["inference_s"], row["output_tokens"]) == (None, None, 484)


def test_a_prefill_workers_forward_is_the_prefill(rows: dict[str, dict[str, Any]]) -> None:
    row = rows["request-one"]
    assert (row["queue_s"], row["prefill_s"], row["inference_s"]) == (0.00041, 8.34819, None)


def test_health_checks_are_no_requests(rows: dict[str, dict[str, Any]]) -> None:
    assert not [name for name in rows if name.startswith("HEALTH")]


def test_what_users_wrote_is_not_taken_for_a_number(rows: dict[str, dict[str, Any]]) -> None:
    row = rows["5b0d3b7c8f1e4b0e9a51d6d1d0c50017"]
    # 96.6875 scheduled, 96.9375 first token, 96.125 received
    assert (row["queue_s"], row["prefill_s"], row["ttft_s"], row["e2e_s"]) == (0.5, 0.25, 0.8125, 6.5)
    assert (row["input_tokens"], row["cached_input_tokens"], row["output_tokens"]) == (512, 256, 128)
    assert row["finish_reason"] == "length"
    assert "quick fox" not in str(parse(LINES).tables)


def test_a_queue_without_the_schedulers_times_is_unknown(rows: dict[str, dict[str, Any]]) -> None:
    row = rows["bf890d9ca8ce4008bef7ef25d97f8fba"]
    assert (row["queue_s"], row["ttft_s"], row["e2e_s"]) == (None, None, 1201.9242150001228)
    assert (row["finish_reason"], row["line_no"]) == ("abort", 7)


def test_a_cut_line_has_the_numbers_that_are_whole(rows: dict[str, dict[str, Any]]) -> None:
    row = rows["bde4"]
    assert (row["queue_s"], row["inference_s"], row["input_tokens"]) == (0.00156, None, 1000)
