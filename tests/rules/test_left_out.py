"""What a folder shows is not denied by a part of it: fewer files make a finding undecided, never clear."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

import tracelens
from tracelens.ingestion import IngestOptions, ingest

INCIDENT = Path(__file__).parents[2] / "sample_logs" / "incidents" / "seats_exhausted"
FILES = sorted(path for path in INCIDENT.iterdir() if path.is_file())
WHOLE = "all files"
PARTS = {f"without {left.name}": [path for path in FILES if path != left] for left in FILES}


@pytest.fixture(scope="module")
def said(
    tmp_path_factory: pytest.TempPathFactory, facts_alone: Callable[[], Any]
) -> Mapping[str, Mapping[str, set[str]]]:
    """For each part of the folder, all of them runs of one case: what each rule says."""
    case = tmp_path_factory.mktemp("left_out") / "case.duckdb"
    with facts_alone():
        for name, files in PARTS.items():
            ingest([str(path) for path in files], case, IngestOptions(run=name))
    ingest([str(path) for path in FILES], case, IngestOptions(run=WHOLE))
    found: dict[str, dict[str, set[str]]] = {}
    with tracelens.open(str(case)) as opened:
        for one in opened.check().outcomes:
            found.setdefault(one.run, {}).setdefault(one.rule, set()).add(one.outcome)
    return found


@pytest.mark.parametrize("part", PARTS)
def test_what_the_whole_folder_shows_is_never_cleared_by_a_part_of_it(
    said: Mapping[str, Mapping[str, set[str]]], part: str
) -> None:
    shown = {rule for rule, outcomes in said[WHOLE].items() if "fired" in outcomes}
    assert shown
    assert {rule for rule in shown if said[part][rule] == {"clear"}} == set()


def test_no_rule_breaks_on_a_part(said: Mapping[str, Mapping[str, set[str]]]) -> None:
    assert {
        rule for part in said.values() for rule, outcomes in part.items() if "failed" in outcomes
    } == set()
