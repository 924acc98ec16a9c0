"""Kubernetes' words on a pod; expected rows are read off the samples by hand."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from tracelens import formats
from tracelens.formats.base import Chunk, Head, Parsed
from tracelens.ingestion import ingest
from tracelens.ingestion.chunks import lines_frame
from tracelens.store import Store

SAMPLES = Path(__file__).parents[2] / "sample_logs" / "pod_description"
DESCRIBED = (SAMPLES / "oom_killed.txt").read_text()
FORMAT = formats.named("pod_description")


def parsed(text: str) -> Parsed:
    claim = FORMAT.sniff(Head(tuple(text.splitlines()), complete=True))
    assert claim is not None
    return FORMAT.parse(Chunk(lines_frame(text.encode(), 1), claim))


def events(text: str) -> list[tuple[Any, ...]]:
    return list(parsed(text).tables["log_event"].select("line_no", "kind", "message").iter_rows())


def settings(text: str) -> dict[str, str]:
    return dict(parsed(text).tables["server_setting"].select("key", "value").iter_rows())


def test_the_end_of_a_container_is_a_death_at_its_time() -> None:
    row = parsed(DESCRIBED).tables["log_event"].row(0, named=True)
    assert (row["line_no"], row["last_line_no"], row["kind"]) == (45, 49, "dead")
    assert row["message"] == "Container vllm terminated: OOMKilled, exit code 137"
    assert row["event_ts"] == datetime(2025, 11, 25, 3, 12, 44)


def test_warnings_among_the_events_are_kept_without_a_time() -> None:
    rows = events(DESCRIBED)[1:]
    assert [row[:2] for row in rows] == [(81, "warning"), (82, "warning")]
    assert rows[0][2].startswith("Unhealthy: Liveness probe failed")


def test_settings_are_those_of_the_container_with_the_gpu() -> None:
    found = settings(DESCRIBED)
    assert found.pop("api_key") is not None  # ingest masks it, see below
    assert found == {
        "vllm_version": "0.11.0",
        "max_model_len": "32768",
        "max_num_seqs": "256",
        "cpu_quota_cores": "4.5",
        "omp_num_threads": "64",
    }


def test_of_two_containers_without_a_gpu_no_settings_are_taken() -> None:
    assert settings(DESCRIBED.replace("nvidia.com/gpu", "example.com/disk")) == {}


@pytest.mark.parametrize(
    ("code", "reason", "kind"),
    [("0", "Completed", "stop"), ("143", "Error", "stop"), ("1", "Error", "dead"), ("139", "Error", "dead"), ("0", "OOMKilled", "dead")],
)  # fmt: skip
def test_what_ended_as_it_was_told_did_not_die(code: str, reason: str, kind: str) -> None:
    text = DESCRIBED.replace("Exit Code:    137", f"Exit Code:    {code}").replace("OOMKilled", reason)
    assert events(text)[0][1] == kind


def test_a_list_of_events_tells_of_probes_and_evictions() -> None:
    rows = events((SAMPLES / "events.txt").read_text())
    assert [row[:2] for row in rows] == [(3, "warning"), (4, "dead"), (6, "dead")]


def test_a_row_of_the_list_that_cannot_be_read_is_kept() -> None:
    text = (SAMPLES / "events.txt").read_text() + "what is this\n"
    assert parsed(text).issues["line_no"].to_list() == [7]


def test_a_cut_description_says_less_and_invents_nothing() -> None:
    lines = DESCRIBED.splitlines(keepends=True)
    whole = set(events(DESCRIBED))
    for at in range(16, len(lines)):
        cut = events("".join(lines[:at]))
        assert {row[0] for row in cut} <= {row[0] for row in whole}


def test_no_key_enters_the_case(tmp_path: Path) -> None:
    case = tmp_path / "case.duckdb"
    ingest([str(SAMPLES / "oom_killed.txt")], case)
    with Store(case) as store:
        kept = store.run("SELECT value FROM server_setting WHERE key = 'api_key'").rows
    assert kept == [("***",)]
    assert b"sk-0000" not in case.read_bytes()
