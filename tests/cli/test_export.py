"""``export``: a trace in the documented form, spans that come back as the same stages, tables as Parquet."""

from __future__ import annotations

import itertools
import json
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from click.testing import CliRunner, Result
from hypothesis import given, settings
from hypothesis import strategies as st

import tracelens
from tracelens.cli import cli
from tracelens.exporting.perfetto import in_lanes

if TYPE_CHECKING:
    from collections.abc import Callable


def exported(case: Path, kind: str, target: Path, *more: str) -> Result:
    return CliRunner().invoke(cli, ["export", "--format", kind, "-o", str(target), "-c", str(case), *more])


@pytest.fixture(scope="module")
def trace(case: Path, tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    target = tmp_path_factory.mktemp("trace") / "trace.json"
    result = exported(case, "perfetto", target)
    assert result.exit_code == 0, result.stderr
    return json.loads(target.read_text())["traceEvents"]


def test_every_event_has_the_fields_of_its_phase(trace: list[dict[str, Any]]) -> None:
    for event in trace:
        assert event["ph"] in "XCiM"
        assert isinstance(event["pid"], int)
        assert event["ph"] == "M" or isinstance(event["ts"], int)
        if event["ph"] == "X":
            assert event["dur"] >= 1
            assert isinstance(event["tid"], int)
        if event["ph"] == "C":
            assert all(isinstance(value, int | float) for value in event["args"].values())


def test_the_trace_holds_every_request_with_its_measured_stages(
    trace: list[dict[str, Any]], case: Path
) -> None:
    slices = [event for event in trace if event["ph"] == "X" and event["pid"] == 1]
    with tracelens.open(case) as opened:
        requests = opened.query("requests").dicts()
        stages = opened.sql("SELECT request_id, stage FROM request_stage WHERE duration_s > 0").rows
    names = [event["name"] for event in slices]
    assert sorted(set(names) & {row["request_id"] for row in requests}) == sorted(
        row["request_id"] for row in requests
    )
    assert len(slices) == len(requests) + len(stages)


def test_slices_of_a_lane_nest_and_never_cross(trace: list[dict[str, Any]]) -> None:
    lanes = defaultdict(list)
    for event in trace:
        if event["ph"] == "X":
            lanes[event["pid"], event["tid"]].append((event["ts"], event["ts"] + event["dur"]))
    for spans in lanes.values():
        for (start, end), (other, last) in itertools.combinations(
            sorted(spans, key=lambda one: (one[0], -one[1])), 2
        ):
            # Each length is rounded to a microsecond, and there are ten stages.
            assert other >= end - 10 or last <= end + 10, (start, end, other, last)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 100), st.integers(1, 50)), max_size=40))
def test_lanes_are_as_many_as_requests_at_once(times: list[tuple[int, int]]) -> None:
    rows = [{"start_us": start, "length_us": length} for start, length in times]
    placed = list(in_lanes(rows))
    assert len(placed) == len(rows)
    at_once = max((sum(a <= t < a + n for a, n in times) for t, _ in times), default=0)
    assert max((lane for _, lane in placed), default=0) == at_once


def test_spans_come_back_as_the_same_stages(
    log_case: Path, tmp_path: Path, ingested: Callable[..., Any]
) -> None:
    data = Path(__file__).parent / "data" / "incident"
    first, second = tmp_path / "first.duckdb", tmp_path / "second.duckdb"
    ingested(first, data / "otel_spans.jsonl", data / "server.log")
    assert exported(first, "otlp", tmp_path / "spans.jsonl").exit_code == 0
    ingested(second, tmp_path / "spans.jsonl")
    stages = "SELECT request_id, stage, duration_s, provenance FROM request_stage ORDER BY ALL"
    with tracelens.open(first) as one, tracelens.open(second) as other:
        for before, after in zip(one.sql(stages).rows, other.sql(stages).rows, strict=True):
            assert before[:2] == after[:2]
            assert after[2] == pytest.approx(before[2], abs=2e-6)
            assert before[3] == after[3]


def test_parquet_is_a_file_per_table_with_all_its_rows(case: Path, tmp_path: Path) -> None:
    assert exported(case, "parquet", tmp_path / "tables").exit_code == 0
    with tracelens.open(case) as opened:
        for name in ("request", "request_event", "engine_sample", "source"):
            rows = opened.sql(f"SELECT count(*) FROM {name}").rows[0][0]
            assert pl.read_parquet(tmp_path / "tables" / f"{name}.parquet").height == rows


def test_what_cannot_be_written_is_said(case: Path, tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").touch()
    assert exported(case, "parquet", tmp_path / "full").exit_code == 2
    assert exported(case, "parquet", tmp_path / "p", "--run", "default").exit_code == 2
    assert exported(case, "perfetto", tmp_path / "no" / "trace.json").exit_code == 2
    assert exported(case, "otlp", tmp_path / "s.jsonl", "--run", "nobody").exit_code == 2


def test_without_a_server_s_clock_the_own_wait_of_the_client_lies_before_the_send(
    tmp_path: Path, ingested: Callable[..., Any]
) -> None:
    sent = 1_800_000_000.0
    line = {
        "request_id": "r",
        "planned_at": sent - 2,
        "sent_at": sent,
        "ttft_s": 0.5,
        "e2e_s": 1.5,
        "stream": True,
        "status": 200,
    }
    (tmp_path / "client.jsonl").write_text(json.dumps(line) + "\n")
    ingested(tmp_path / "c.duckdb", tmp_path / "client.jsonl")
    with tracelens.open(tmp_path / "c.duckdb") as case:
        (row,) = case.query("request_spans").dicts()
    assert row["arrival_us"] == sent * 1_000_000
    assert row["start_us"] == (sent - 2) * 1_000_000
    assert row["length_us"] == 3_500_000
