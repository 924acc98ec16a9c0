"""A few seconds of what `fuzz.py` does for hours, and every input that ever broke something."""

from __future__ import annotations

from pathlib import Path

import pytest
from fuzz import run, samples

from tracelens.formats.base import Chunk
from tracelens.formats.client.client_tables import REQUEST_SCHEMA, requests_frame
from tracelens.formats.json_lines import number
from tracelens.formats.privacy import scrubbed
from tracelens.ingestion.chunks import framed

CORPUS = Path(__file__).parent / "corpus"
"""Inputs of `fuzz_atheris.py` that reached code no sample reaches, a file per format."""


def test_some_seconds_of_broken_files_break_nothing(tmp_path: Path) -> None:
    tally = run(4, 20261129, tmp_path)
    assert tally.files > 0
    assert {what: count for what, count in tally.found.items() if not what.endswith(" slow")} == {}


def test_inputs_that_reached_new_code_are_read_without_a_loss() -> None:
    claims = {kind.name: (kind, claim) for kind, claim, _ in samples() if (CORPUS / kind.name).exists()}
    assert len(claims) == len(list(CORPUS.iterdir())) > 40
    for name, (kind, claim) in claims.items():
        data = (CORPUS / name).read_bytes()
        lines, raw = framed(data, 1, binary=kind.binary)
        found = kind.parse(Chunk(lines, claim, is_open=not data.endswith(b"\n"), raw=raw, prompt_key=1))
        assert found.understood + found.issues.height == lines.height, name
        tables = {**found.tables, "ingest_issue": found.issues}
        clean = scrubbed(tables, keep_text=False, prompt_key=1)
        assert {table: frame.height for table, frame in clean.items()} == {
            table: frame.height for table, frame in tables.items()
        }


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
