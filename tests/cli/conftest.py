"""A small case that all tests of the command line read, and the truth about it in plain Python."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner, Result

import tracelens
from tracelens.cli import cli
from tracelens.ingestion import IngestOptions, IngestReport, ingest

if TYPE_CHECKING:
    from collections.abc import Callable

DATA = Path(__file__).parent / "data" / "incident"


@pytest.fixture(scope="session")
def logs() -> Path:
    return DATA


@pytest.fixture(scope="session")
def ingested() -> Callable[..., IngestReport]:
    """Read sources into a case without the command."""

    def read(case: Path, *sources: Path, run: str = "default") -> IngestReport:
        report = ingest([str(source) for source in sources], case, IngestOptions(run))
        assert report.recognised
        return report

    return read


@pytest.fixture(scope="session")
def case(tmp_path_factory: pytest.TempPathFactory, ingested: Callable[..., IngestReport]) -> Path:
    path = tmp_path_factory.mktemp("case") / "incident.duckdb"
    ingested(path, DATA)
    return path


@pytest.fixture(scope="session")
def log_case(tmp_path_factory: pytest.TempPathFactory, ingested: Callable[..., IngestReport]) -> Path:
    """A case of the server's log alone: no spans, no client."""
    path = tmp_path_factory.mktemp("log_case") / "log.duckdb"
    ingested(path, DATA / "server.log")
    return path


@pytest.fixture
def run(case: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """Call a command as a shell would, on the shared case unless -c says otherwise."""
    monkeypatch.setenv("TRACELENS_CASE", str(case))
    monkeypatch.delenv("COLUMNS", raising=False)

    def call(*args: str, stdin: str | bytes | None = None) -> Result:
        return CliRunner().invoke(cli, [str(arg) for arg in args], input=stdin)

    return call


@pytest.fixture
def shell(case: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run the command in a process of its own."""

    def call(*args: str, **options: Any) -> subprocess.CompletedProcess[str]:
        here = str(Path(tracelens.__file__).parent.parent)
        environment = {
            **os.environ,
            "PYTHONPATH": here,
            "TRACELENS_CASE": str(case),
            **options.pop("env", {}),
        }
        return subprocess.run(
            [sys.executable, "-m", "tracelens", *args],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            env=environment,
            **options,
        )

    return call


@pytest.fixture(scope="session")
def clients() -> dict[str, dict[str, Any]]:
    """The client's lines by the server's id, with TTFT and end-to-end time worked out from their stamps."""
    rows = [json.loads(line) for line in (DATA / "client.jsonl").read_text().splitlines()]
    for row in rows:
        row["ttft_s"] = row["first_content_at"] - row["sent_at"]
        row["e2e_s"] = row["finished_at"] - row["sent_at"]
    return {row["response_id"]: row for row in rows}


@pytest.fixture(scope="session")
def spans() -> dict[str, dict[str, float]]:
    """The spans' attributes by the server's id."""
    found = {}
    for line in (DATA / "otel_spans.jsonl").read_text().splitlines():
        for resource in json.loads(line)["resourceSpans"]:
            for scope in resource["scopeSpans"]:
                for span in scope["spans"]:
                    values = {a["key"]: next(iter(a["value"].values())) for a in span["attributes"]}
                    values["start"] = int(span["startTimeUnixNano"]) / 1e9
                    found[values["gen_ai.request.id"]] = values
    return found
