"""A few seconds of what `fuzz.py` does for hours, and every input that ever broke something."""

from __future__ import annotations

from pathlib import Path

import pytest
from fuzz import run

from tracelens.formats.client.client_tables import REQUEST_SCHEMA, requests_frame
from tracelens.formats.json_lines import number


def test_some_seconds_of_broken_files_break_nothing(tmp_path: Path) -> None:
    tally = run(4, 20261129, tmp_path)
    assert tally.files > 0
    assert {what: count for what, count in tally.found.items() if not what.endswith(" slow")} == {}


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
