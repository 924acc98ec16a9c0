"""A few seconds of what `fuzz.py` does for hours, and every input that ever broke something."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from breaking import read, samples
from fuzz import Files, Small, run

from tracelens.formats.client.client_tables import REQUEST_SCHEMA, requests_frame
from tracelens.formats.client.tool_requests import plus
from tracelens.formats.json_lines import number
from tracelens.formats.privacy import scrubbed

CORPUS = Path(__file__).parent / "corpus"
"""Inputs of `fuzz_atheris.py` that reached code no sample reaches, a file per format."""


@pytest.mark.parametrize("way", [Small, Files])
def test_some_seconds_of_broken_files_break_nothing(way: type[Small | Files], tmp_path: Path) -> None:
    tally = run(way, 2, 20261129, tmp_path)
    assert tally.inputs > 0
    assert {what: count for what, count in tally.found.items() if not what.endswith(" slow")} == {}


def test_inputs_that_reached_new_code_are_read_without_a_loss() -> None:
    claims = {kind.name: (kind, claim) for kind, claim, _ in samples() if (CORPUS / kind.name).exists()}
    assert len(claims) == len(list(CORPUS.iterdir())) > 40
    for name, (kind, claim) in claims.items():
        data = (CORPUS / name).read_bytes()
        found, _, wrong = read(data, kind, claim)
        assert wrong == []
        tables = {**found.tables, "ingest_issue": found.issues}
        clean = scrubbed(tables, keep_text=False, prompt_key=1)
        assert {table: frame.height for table, frame in clean.items()} == {
            table: frame.height for table, frame in tables.items()
        }


def test_a_carriage_return_in_a_row_of_aiperf_server_is_no_row_and_never_raises() -> None:
    kind, claim, data = next(
        each for each in samples() if each[0].name == "aiperf_server" and b"Endpoint," in each[2]
    )
    lines = data.split(b"\n")
    at = next(at for at, line in enumerate(lines) if line.startswith(b"Endpoint,")) + 1
    whole, _, _ = read(data, kind, claim)
    broken, count, wrong = read(
        b"\n".join([*lines[:at], lines[at].replace(b",", b",\r7,", 1), *lines[at + 1 :]]), kind, claim
    )
    assert wrong == []
    lost = whole.tables["metric_sample"].filter(pl.col("line_no") == at + 1).height
    assert broken.tables["metric_sample"].height == whole.tables["metric_sample"].height - lost < count * 50


def test_a_carriage_return_before_any_heading_of_aiperf_server_is_no_row() -> None:
    kind, claim, data = next(
        each for each in samples() if each[0].name == "aiperf_server" and b"Endpoint," in each[2]
    )
    found, _, wrong = read(b"a,\rb\n" + data, kind, claim)
    assert wrong == []
    assert (
        found.tables["metric_sample"].height == read(data, kind, claim)[0].tables["metric_sample"].height > 0
    )


@pytest.mark.parametrize("blank", ["\x1c", "\x1d", "\x1e", "\x1f", "\x85", "\xa0", "\u2003"])
def test_a_number_with_an_odd_blank_beside_it_is_read_or_not_and_never_raises(blank: str) -> None:
    assert number(f"137.5{blank}") in (137.5, None)
    assert number(f"{blank}137") in (137, None)


@pytest.mark.parametrize("instant", [17959579595795956012345, 10**45])
def test_an_instant_beyond_all_calendars_is_not_known(instant: int) -> None:
    assert "client_sent_ts" in REQUEST_SCHEMA
    rows = [
        {"line_no": 1, "client_sent_ts": instant},
        {"line_no": 2, "client_sent_ts": 1_700_000_000_000_000},
    ]
    found = requests_frame(rows)
    assert found["client_sent_ts"].is_null().to_list() == [True, False]


@pytest.mark.parametrize("span_s", [1e300, 1.7e308, 1e10])
def test_a_latency_beyond_all_runs_gives_no_instant(span_s: float) -> None:
    assert plus(1_700_000_000_000_000_000, span_s) is None
    assert plus(1_700_000_000_000_000_000, 1.5) == 1_700_000_001_500_000_000
