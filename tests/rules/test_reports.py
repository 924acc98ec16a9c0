"""Excerpts from public reports, all runs of one case: the cause that their threads name, and none that they rule out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

import tracelens
from tracelens.ingestion import IngestOptions, ingest

FOLDER = Path(__file__).parent / "data" / "reports"
CAUSES = {
    "worker_exception": {"engine-dead"},
    "swap_preemption": {"kv-cache-pressure"},
    "no_block_found": {"engine-hung"},
    "only_500": {"engine-dead"},
    "pasted_on_one_line": {"engine-dead"},
    "lines_left_out": set[str](),  # long answers of eight at once, before the cache is full
    "failed_to_start": {"engine-dead"},
    "idle": set[str](),
    "adapters_capture": {"slow-startup"},
    "blocks_expired": {"kv-transfer-failed"},
    "transfer_failed": {"kv-transfer-failed"},
    "seats_of_batches": {"max-num-seqs-too-small", "queue-dominated-ttft"},
    "drafts_of_mtp": {"speculative-decoding-rejected"},
    "prompts_first": {"long-prompt-starvation"},
}
"""What is found above information, and nothing else."""


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory, facts_alone: Callable[[], Any]) -> Mapping[str, set[str]]:
    case = tmp_path_factory.mktemp("reports") / "case.duckdb"

    def add(name: str) -> None:
        ingest([str(FOLDER / f"{name}.log")], case, IngestOptions(run=name))

    *names, last = CAUSES
    with facts_alone():
        for name in names:
            add(name)
    add(last)
    with tracelens.open(str(case)) as opened:
        check = opened.check()
    return {
        name: {one.cause for one in check.fired() if one.run == name and one.severity != "info"}
        for name in CAUSES
    }


@pytest.mark.parametrize("name", CAUSES)
def test_a_report_s_cause_is_found_and_no_other(found: Mapping[str, set[str]], name: str) -> None:
    assert found[name] == CAUSES[name]
