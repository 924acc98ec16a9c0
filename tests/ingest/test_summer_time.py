"""Server logs in wall time: the hour that comes twice, and clocks that were set while the server ran."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from tracelens.ingestion import IngestOptions, TimeOptions, chunks, ingest, parts

pytestmark = pytest.mark.usefixtures("_asks_facts_alone")

Rows = Callable[[Path, str], list[dict[str, Any]]]
BERLIN = ZoneInfo("Europe/Berlin")
AFTER = datetime(2025, 11, 1, tzinfo=UTC)


def utc(text: str) -> datetime:
    return datetime.fromisoformat(f"2025-10-{text}")


def written(instant: datetime, zone: str = "Europe/Berlin") -> str:
    """An instant (UTC) as a clock on the wall shows it, without year."""
    return instant.replace(tzinfo=UTC).astimezone(ZoneInfo(zone)).strftime("%m-%d %H:%M:%S")


def log(*stamps: str) -> str:
    return "".join(f"INFO {stamp} [x.py:1] Added request r{n}.\n" for n, stamp in enumerate(stamps))


def placed(
    case: Path, folder: Path, rows_of: Rows, text: str, zone: str | None
) -> tuple[list[tuple[datetime, float]], str]:
    """Instants and errors of the events in the order of their lines, and what was said of the time."""
    path = folder / "server.log"
    path.write_text(text)
    os.utime(path, (AFTER.timestamp(), AFTER.timestamp()))
    report = ingest([str(path)], case, IngestOptions(time=TimeOptions(tz=zone)))
    rows = rows_of(case, "SELECT event_ts, error_s FROM request_event ORDER BY line_no")
    return [(row["event_ts"], row["error_s"]) for row in rows], report.files[0].time_basis


def every(minutes: int, begin: str, end: str) -> list[datetime]:
    low, high = utc(begin), utc(end)
    return [
        low + timedelta(minutes=step)
        for step in range(0, int((high - low).total_seconds() / 60) + 1, minutes)
    ]


@pytest.mark.parametrize("size", [1 << 20, 100])
@pytest.mark.parametrize("zone", ["Europe/Berlin", "Europe/London"])
def test_the_hour_that_comes_twice_is_placed_by_the_order_of_lines(
    zone: str, size: int, case: Path, tmp_path: Path, rows_of: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chunks, "CHUNK_BYTES", size)
    monkeypatch.setattr(parts, "CHUNK_BYTES", size)
    instants = every(10, "25 22:00:00", "26 04:00:00")
    found, said = placed(case, tmp_path, rows_of, log(*(written(one, zone) for one in instants)), zone)
    assert found == [(one, 1.0) for one in instants]
    line = 1 + next(n for n, one in enumerate(instants) if one == utc("26 01:00:00"))
    assert f"comes twice, the second time from line {line} on" in said


def test_a_pause_over_the_change_is_told_where_stamps_still_go_back(
    case: Path, tmp_path: Path, rows_of: Rows
) -> None:
    instants = [utc("26 00:50:00"), utc("26 01:20:00"), utc("26 01:30:00")]
    found, _ = placed(case, tmp_path, rows_of, log(*map(written, instants)), "Europe/Berlin")
    assert [stamp for stamp, _ in found] == instants


def test_lines_of_two_processes_cross_at_the_change(case: Path, tmp_path: Path, rows_of: Rows) -> None:
    instants = [utc(f"26 {time}") for time in ("00:59:58", "01:00:00", "00:59:59", "01:00:01", "01:00:02")]
    found, _ = placed(case, tmp_path, rows_of, log(*map(written, instants)), "Europe/Berlin")
    assert [stamp for stamp, _ in found] == instants


def test_where_order_does_not_tell_the_error_says_so(case: Path, tmp_path: Path, rows_of: Rows) -> None:
    stamps = ["10-26 01:30:00", "10-26 02:10:00", "10-26 02:40:00", "10-26 03:30:00"]
    found, said = placed(case, tmp_path, rows_of, log(*stamps), "Europe/Berlin")
    assert found == [
        (utc("25 23:30:00"), 1.0),
        (utc("26 00:10:00"), 3601.0),
        (utc("26 00:40:00"), 3601.0),
        (utc("26 02:30:00"), 1.0),
    ]
    assert "2025-10-26 02:00 to 03:00 comes twice" in said
    assert "3600 s later" in said


def test_other_days_of_the_year_are_left_alone(case: Path, tmp_path: Path, rows_of: Rows) -> None:
    stamps = ["10-20 02:10:00", "10-20 02:40:00"]
    found, said = placed(case, tmp_path, rows_of, log(*stamps), "Europe/Berlin")
    assert found == [(utc("20 00:10:00"), 1.0), (utc("20 00:40:00"), 1.0)]
    assert "twice" not in said


def test_the_hour_that_is_missing_in_spring_needs_nothing(case: Path, tmp_path: Path, rows_of: Rows) -> None:
    stamps = ["03-30 01:59:50", "03-30 03:00:10"]
    found, said = placed(case, tmp_path, rows_of, log(*stamps), "Europe/Berlin")
    assert [stamp for stamp, _ in found] == [
        datetime(2025, 3, 30, 0, 59, 50),
        datetime(2025, 3, 30, 1, 0, 10),
    ]
    assert "twice" not in said


def test_without_a_zone_a_step_back_of_an_hour_in_that_night_is_taken_for_it(
    case: Path, tmp_path: Path, rows_of: Rows
) -> None:
    instants = every(1, "25 23:00:00", "26 02:00:00")
    found, said = placed(case, tmp_path, rows_of, log(*map(written, instants)), None)
    assert [stamp for stamp, _ in found] == [one + timedelta(hours=1) for one in instants], (
        "UTC assumed: winter"
    )
    assert "goes back an hour as when summer time ends" in said


@pytest.mark.parametrize(
    ("stamps", "zone"),
    [
        (["10-21 14:59:50", "10-21 14:00:00", "10-21 14:00:10"], None),
        (["10-21 14:59:50", "10-21 14:00:00", "10-21 14:00:10"], "Europe/Berlin"),
        (["10-26 02:59:50", "10-26 02:00:00"], "+01:00"),
        (["10-26 02:59:50", "10-26 02:00:00"], "UTC"),
        (["10-21 14:59:50", "10-21 14:52:30"], None),
    ],
)
def test_a_clock_that_was_set_is_said_and_its_stamps_stay(
    stamps: list[str], zone: str | None, case: Path, tmp_path: Path, rows_of: Rows
) -> None:
    found, said = placed(case, tmp_path, rows_of, log(*stamps), zone)
    ahead = {"Europe/Berlin": 2, "+01:00": 1}.get(zone or "", 0)
    assert [stamp for stamp, _ in found] == [
        datetime.fromisoformat(f"2025-{stamp}") - timedelta(hours=ahead) for stamp in stamps
    ]
    assert " at line 2: the clock was set, or logs were joined; times as written" in said


def test_lines_that_cross_by_seconds_are_not_worth_a_word(case: Path, tmp_path: Path, rows_of: Rows) -> None:
    _, said = placed(case, tmp_path, rows_of, log("10-21 14:00:50", "10-21 14:00:00", "10-21 14:00:55"), None)
    assert "set" not in said


def test_new_year_is_no_clock_that_was_set(case: Path, tmp_path: Path, rows_of: Rows) -> None:
    found, said = placed(case, tmp_path, rows_of, log("12-31 23:59:59", "01-01 00:00:03"), "Europe/Berlin")
    assert [stamp for stamp, _ in found] == [
        datetime(2024, 12, 31, 22, 59, 59),
        datetime(2024, 12, 31, 23, 0, 3),
    ]
    assert "set" not in said
