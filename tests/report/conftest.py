"""Cases that the tests of the report read."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from report_pages import asked

from tracelens import resources
from tracelens.ingestion import IngestOptions, ingest
from tracelens.marks import Mark, write_marks

INCIDENT = Path(__file__).parent.parent / "cli" / "data" / "incident"


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The packaged incident, with a bookmark and a note."""
    case = tmp_path_factory.mktemp("demo") / "demo.duckdb"
    ingest([str(resources.demo_incident())], case, IngestOptions())
    worst = asked(case, "slowest")[0]["request_id"]
    marks = [
        Mark("request", "default", worst, "the first of the burst"),
        Mark("finding", "default", "queue.seats_exhausted"),
    ]
    write_marks(case, marks)
    return case


@pytest.fixture(scope="session")
def two_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs of one case: all sources, and the server's log alone."""
    case = tmp_path_factory.mktemp("two") / "two.duckdb"
    ingest([str(INCIDENT)], case, IngestOptions("before"))
    folder = tmp_path_factory.mktemp("copy")
    lines = (INCIDENT / "server.log").read_text().splitlines(keepends=True)
    (folder / "server.log").write_text("".join(lines[:-1]))
    ingest([str(folder / "server.log")], case, IngestOptions("after"))
    return case
