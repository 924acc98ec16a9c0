"""Where a log's stamps lie in time: the year, the date and the zone that they leave out, and what is said about it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tracelens.formats import named
from tracelens.formats.base import Claim, Clock, Head, Side
from tracelens.ingestion import IngestOptions, IngestReport, TimeOptions, ingest
from tracelens.ingestion.chunks import Reading
from tracelens.ingestion.parts import ParsedSource, parse_source
from tracelens.ingestion.placing import Neighbour, place, zone_of
from tracelens.opening import Input, expand

pytestmark = pytest.mark.usefixtures("_asks_facts_alone")

Rows = Callable[[Path, str], list[dict[str, Any]]]
STAMPS = """
    SELECT regexp_extract(source.path, '[^/]+$') AS file, line_no, event_ts AS ts FROM request_event JOIN source USING (source_id)
    UNION ALL
    SELECT regexp_extract(source.path, '[^/]+$'), line_no, logged_after_ts FROM access_line JOIN source USING (source_id)
    UNION ALL
    SELECT regexp_extract(source.path, '[^/]+$'), line_no, sample_ts FROM gpu_sample JOIN source USING (source_id)
    ORDER BY ALL
"""
DMON_HEAD = "#Time         gpu     sm    mem    enc    dec    jpg    ofa\n#HH:MM:SS     Idx      %      %      %      %      %      %\n"


def at(text: str) -> datetime:
    return datetime.fromisoformat(text)


def vllm(*stamps: str) -> str:
    """One line per stamp; "-" is an access line, which has none."""
    lines = (
        'INFO:     10.0.0.7:1 - "GET /health HTTP/1.1" 200 OK'
        if stamp == "-"
        else f"INFO {stamp} [async_llm.py:1] Added request r{number}."
        for number, stamp in enumerate(stamps)
    )
    return "".join(line + "\n" for line in lines)


def dmon(*times: str) -> str:
    return DMON_HEAD + "".join(
        f" {time}       0     88     40      0      0      0      0\n" for time in times
    )


def client(*instants: str) -> str:
    """A client's file with epoch stamps: one request at each instant (UTC)."""
    return "".join(
        json.dumps(
            {
                "request_id": f"q{number}",
                "sent_at": at(instant).replace(tzinfo=UTC).timestamp(),
                "stream": False,
                "finished_at": at(instant).replace(tzinfo=UTC).timestamp() + 1,
                "status": 200,
            }
        )
        + "\n"
        for number, instant in enumerate(instants)
    )


def write(folder: Path, name: str, text: str, modified: str | None = None) -> str:
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(text)
    if modified:
        seconds = at(modified).replace(tzinfo=UTC).timestamp()
        os.utime(path, (seconds, seconds))
    return str(path)


def stamps(case: Path, rows_of: Rows, file: str) -> list[datetime]:
    return [row["ts"] for row in rows_of(case, STAMPS) if row["file"] == file]


def basis(report: IngestReport) -> dict[str, str]:
    return {Path(one.path).name: one.time_basis for one in report.files}


def test_the_year_comes_from_the_files_own_date(case: Path, tmp_path: Path, rows_of: Rows) -> None:
    logs = tmp_path / "logs"
    write(logs, "plain.log", vllm("11-29 12:00:00", "-"), "2026-01-03T00:00")
    write(logs, "ahead.log", vllm("01-01 03:00:00", "-", "01-01 03:00:01"), "2025-12-31T20:00")
    write(
        logs,
        "new_year.log",
        vllm("12-31 23:59:58", "12-31 23:59:59", "-", "01-01 00:00:00", "-", "01-01 00:00:01"),
        "2026-01-01T00:05",
    )
    write(
        logs,
        "two_processes.log",
        vllm(
            "12-31 23:59:59",
            "01-01 00:00:00",
            "12-31 23:59:59",
            "-",
            "01-01 00:00:00",
            "12-31 23:59:59",
            "01-01 00:00:01",
        ),
        "2026-01-01T00:05",
    )
    write(logs, "leap.log", vllm("02-28 23:59:59", "02-29 00:00:00", "-"), "2024-03-01T08:00")
    write(logs, "leap_copied_later.log", vllm("02-28 23:59:59", "02-29 00:00:01"), "2026-03-05T08:00")
    write(
        logs,
        "two_years.log",
        vllm("11-01 00:00:00", "03-01 00:00:00", "11-01 00:00:00", "03-01 00:00:00"),
        "2026-03-01T08:00",
    )
    report = ingest([str(logs)], case)
    assert {name: text.partition(";")[0] for name, text in basis(report).items()} == {
        "plain.log": "year 2025 from the file's own date",
        "ahead.log": "year 2026 from the file's own date",
        "new_year.log": "year 2025 from the file's own date",
        "two_processes.log": "year 2025 from the file's own date",
        "leap.log": "year 2024 from the file's own date",
        "leap_copied_later.log": "year 2024 from the file's own date",
        "two_years.log": "year 2024 from the file's own date",
    }
    assert "runs over 1 year end" in basis(report)["new_year.log"]
    assert "runs over 1 year end" in basis(report)["two_processes.log"]
    assert "runs over 2 year ends" in basis(report)["two_years.log"]
    assert "year end" not in basis(report)["leap.log"]
    assert all("UTC assumed (--tz to change)" in text for text in basis(report).values())
    old, new = datetime(2025, 12, 31, 23, 59, 59), datetime(2026, 1, 1)
    second = timedelta(seconds=1)
    assert stamps(case, rows_of, "plain.log") == [at("2025-11-29T12:00")] * 2
    assert stamps(case, rows_of, "new_year.log") == [old - second, old, old, new, new, new + second]
    assert stamps(case, rows_of, "two_processes.log") == [old, new, old, old, new, old, new + second]
    assert stamps(case, rows_of, "leap.log") == [
        at("2024-02-28T23:59:59"),
        at("2024-02-29"),
        at("2024-02-29"),
    ]
    assert stamps(case, rows_of, "leap_copied_later.log")[1] == at("2024-02-29T00:00:01")
    assert stamps(case, rows_of, "two_years.log") == [
        at("2024-11-01"),
        at("2025-03-01"),
        at("2025-11-01"),
        at("2026-03-01"),
    ]


def test_a_neighbour_with_full_dates_settles_year_and_day(case: Path, tmp_path: Path, rows_of: Rows) -> None:
    logs = tmp_path / "logs"
    write(logs, "client.jsonl", client("2023-12-31T23:50:00", "2024-01-01T00:10:00"), "2026-06-01T00:00")
    write(logs, "server.log", vllm("12-31 23:59:59", "-", "01-01 00:00:00"), "2026-06-01T00:00")
    write(logs, "gpu.log", dmon("23:59:59", "00:00:00"), "2026-06-01T00:00")
    report = ingest([str(logs)], case)
    assert basis(report)["server.log"].startswith("year 2023 from client.jsonl; ")
    assert basis(report)["gpu.log"].startswith("date 2023-12-31 from client.jsonl; ")
    assert "UTC assumed (--gpu-tz to change); runs over 1 day end" in basis(report)["gpu.log"]
    assert basis(report)["client.jsonl"] == "stamps are UTC instants"
    old, new = at("2023-12-31T23:59:59"), at("2024-01-01")
    assert stamps(case, rows_of, "server.log") == [old, old, new]
    assert stamps(case, rows_of, "gpu.log") == [old, new]
    late = write(tmp_path / "more", "late.log", vllm("12-31 23:58:00"), "2026-06-01T00:00")
    assert basis(ingest([late], case))["late.log"].startswith("year 2023 from client.jsonl; "), (
        "it is in the case already"
    )
    sources = {row["path"].rpartition("/")[2]: row for row in rows_of(case, "SELECT * FROM source")}
    assert sources["server.log"]["time_basis"] == basis(report)["server.log"]
    assert (sources["server.log"]["first_ts"], sources["server.log"]["last_ts"]) == (old, new)
    assert {name: row["clock"] for name, row in sources.items()} == {
        "client.jsonl": "utc",
        "server.log": "yearless",
        "gpu.log": "dayless",
        "late.log": "yearless",
    }


def test_the_date_given_is_where_logs_begin(case: Path, tmp_path: Path, rows_of: Rows) -> None:
    logs = tmp_path / "logs"
    write(logs, "client.jsonl", client("2023-12-31T23:50:00"))
    write(logs, "server.log", vllm("12-31 23:59:59", "01-01 00:00:00"))
    write(logs, "gpu.log", dmon("23:59:59", "00:00:00"))
    report = ingest([str(logs)], case, IngestOptions(time=TimeOptions(date=date(2021, 12, 31))))
    assert basis(report)["server.log"].startswith("year 2021 from --date; ")
    assert basis(report)["gpu.log"].startswith("date 2021-12-31 from --date; ")
    assert (
        stamps(case, rows_of, "server.log")
        == stamps(case, rows_of, "gpu.log")
        == [at("2021-12-31T23:59:59"), at("2022-01-01")]
    )


# 2025-03-30 is the day on which Berlin's clocks jump from 02:00 (UTC+1) to 03:00 (UTC+2).
@pytest.mark.parametrize(
    ("zone", "expected"),
    [
        ("Europe/Berlin", ["2025-03-30T00:59:59", "2025-03-30T01:00:00", "2025-07-01T10:00:00"]),
        ("+05:30", ["2025-03-29T20:29:59", "2025-03-29T21:30:00", "2025-07-01T06:30:00"]),
        ("-0800", ["2025-03-30T09:59:59", "2025-03-30T11:00:00", "2025-07-01T20:00:00"]),
    ],
)
def test_a_zone_that_is_given_makes_wall_clocks_utc(
    zone: str, expected: list[str], case: Path, tmp_path: Path, rows_of: Rows
) -> None:
    logs = tmp_path / "logs"
    write(logs, "server.log", vllm("03-30 01:59:59", "03-30 03:00:00", "07-01 12:00:00"), "2025-07-02T00:00")
    write(logs, "client.jsonl", client("2025-07-01T10:00:00"))
    report = ingest([str(logs)], case, IngestOptions(time=TimeOptions(tz=zone)))
    assert basis(report)["server.log"] == f"year 2025 from client.jsonl; zone {zone} as given"
    assert stamps(case, rows_of, "server.log") == [at(one) for one in expected]
    assert rows_of(case, "SELECT client_sent_ts AS ts FROM client_request") == [
        {"ts": at("2025-07-01T10:00")}
    ], "instants stay"


def parsed(first: str, last: str, days: int = 0) -> ParsedSource:
    """Times of day on the placeholder's first day, as formats write them."""
    whole = ParsedSource(first_stamp=at(f"2000-01-01T{first}"), last_stamp=at(f"2000-01-01T{last}"))
    whole.steps.extend(range(10, 10 + days))
    return whole


def neighbour(first: str, last: str) -> Neighbour:
    return Neighbour("client.jsonl", at(first), at(last))


# What the log says (first, last, midnights passed), its neighbour (UTC), --gpu-tz, and the day of its first line.
@pytest.mark.parametrize(
    ("log", "beside", "zone", "day"),
    [
        (("12:00:00", "13:00:00", 0), ("2025-05-05T12:10", "2025-05-05T12:50"), None, "2025-05-05"),
        (("23:50:00", "00:10:00", 1), ("2025-05-05T23:55", "2025-05-06T00:05"), None, "2025-05-05"),
        # The neighbour's middle is just past midnight, the log ends just before it; and the other way round.
        (("23:00:00", "23:59:59", 0), ("2025-05-05T23:30", "2025-05-06T00:40"), None, "2025-05-05"),
        (("00:00:01", "01:00:00", 0), ("2025-05-05T23:10", "2025-05-06T00:20"), None, "2025-05-06"),
        # 05:00 in Tokyo is 20:00 UTC of the day before; 20:00 in Los Angeles is 03:00 UTC of the next.
        (("05:00:00", "05:30:00", 0), ("2025-05-05T20:00", "2025-05-05T20:30"), "Asia/Tokyo", "2025-05-06"),
        (
            ("20:00:00", "20:30:00", 0),
            ("2025-05-06T03:00", "2025-05-06T03:30"),
            "America/Los_Angeles",
            "2025-05-05",
        ),
        (("20:00:00", "20:30:00", 0), ("2025-05-06T03:00", "2025-05-06T03:30"), "-07:00", "2025-05-05"),
        (("12:00:00", "12:00:00", 3), ("2025-05-05T12:00", "2025-05-08T12:00"), None, "2025-05-05"),
    ],
)
def test_times_of_day_get_the_day_nearest_to_their_neighbour(
    log: tuple[str, str, int], beside: tuple[str, str], zone: str | None, day: str
) -> None:
    placement, said = place(
        Clock.DAYLESS, Side.GPU, parsed(*log), TimeOptions(gpu_tz=zone), [neighbour(*beside)], None
    )
    assert date(2000, 1, 1) + timedelta(days=placement.days) == date.fromisoformat(day)
    assert said.startswith(f"date {day} from client.jsonl; ")


@pytest.mark.parametrize(
    ("log", "modified", "zone", "day"),
    [
        (("12:00:00", "13:00:00", 0), "2025-05-05T13:00", None, "2025-05-05"),
        (("23:50:00", "00:10:00", 1), "2025-05-06T00:10", None, "2025-05-05"),
        (("23:00:00", "23:59:59", 0), "2025-05-06T00:00", None, "2025-05-05"),
        # Nobody gave a zone: a wall clock may be up to 14 hours ahead of the file's date, which is UTC.
        (("22:00:00", "23:00:00", 0), "2025-05-05T13:00", None, "2025-05-05"),
        (("22:00:00", "23:00:00", 0), "2025-05-05T08:00", None, "2025-05-04"),
        (("05:00:00", "05:30:00", 0), "2025-05-05T20:30", "+09:00", "2025-05-06"),
        (("20:00:00", "20:30:00", 0), "2025-05-06T03:30", "-07:00", "2025-05-05"),
        (("23:00:00", "23:30:00", 0), "2025-05-05T12:00", "+09:00", "2025-05-04"),
    ],
)
def test_times_of_day_end_at_the_files_own_date(
    log: tuple[str, str, int], modified: str, zone: str | None, day: str
) -> None:
    seconds = at(modified).replace(tzinfo=UTC).timestamp()
    placement, said = place(Clock.DAYLESS, Side.GPU, parsed(*log), TimeOptions(tz=zone), [], seconds)
    assert date(2000, 1, 1) + timedelta(days=placement.days) == date.fromisoformat(day)
    assert said.startswith(f"date {day} from the file's own date; ")


def test_the_neighbour_of_the_same_month_is_asked_first() -> None:
    log = ParsedSource(first_stamp=at("2000-11-29T12:00"), last_stamp=at("2000-11-29T13:00"))
    near, far = (
        neighbour("2024-11-29T12:00", "2024-11-29T13:00"),
        Neighbour("old", at("2023-04-01"), at("2023-07-01")),
    )
    for beside in ([near, far], [far, near]):
        assert place(Clock.YEARLESS, Side.SERVER, log, TimeOptions(), beside, None)[1].startswith(
            "year 2024 from client.jsonl"
        )


def test_clocks_that_cannot_be_placed_say_so_and_stay() -> None:
    nothing = ParsedSource()
    for clock, words in (
        (Clock.UTC, "UTC instants"),
        (Clock.RELATIVE, "unknown zero"),
        (Clock.NONE, "no time"),
        (Clock.YEARLESS, "no stamps"),
    ):
        placement, said = place(clock, Side.SERVER, nothing, TimeOptions(tz="Europe/Berlin"), [], None)
        assert words in said
        assert (placement.years, placement.days, placement.zone, placement.shift_s) == (0, 0, None, 0)


def test_each_side_has_its_own_zone_option() -> None:
    options = TimeOptions(tz="UTC", gpu_tz="+01:00", client_tz="+02:00")
    assert [options.zone(side) for side in Side] == ["UTC", "+01:00", "+02:00"]
    assert [TimeOptions(tz="UTC").zone(side) for side in Side] == ["UTC", "UTC", None]
    assert zone_of("utc") == zone_of("Z") == (None, timedelta(0))
    assert zone_of("-03:30") == (None, -timedelta(hours=3, minutes=30))


@pytest.mark.parametrize("kind", ["vllm_log", "nvidia_dmon"])
def test_year_and_day_ends_are_found_wherever_the_file_is_cut(kind: str, tmp_path: Path) -> None:
    if kind == "vllm_log":
        text = vllm(
            "12-31 23:59:58", "12-31 23:59:59", "-", "01-01 00:00:00", "12-31 23:59:59", "01-01 00:00:00", "-"
        )
        expected = ([4, 6], [5])
    else:
        text = dmon(
            "23:59:59",
            "23:59:59",
            "00:00:00",
            "00:00:01",
            "23:59:59",
            "00:00:02",
            "12:00:00",
            "23:59:00",
            "00:00:00",
        )
        expected = ([5, 8, 11], [7])
    path = write(tmp_path, "log", text)
    (source,) = (one for one in expand([path]) if isinstance(one, Input))
    lines = tuple(text.splitlines())
    clock = Clock.YEARLESS if kind == "vllm_log" else Clock.DAYLESS
    claim = named(kind).sniff(Head(lines, complete=True))
    assert isinstance(claim, Claim)
    assert claim.clock is clock
    for size in (1, 60, 90, 150, 200, 1000, 1 << 20):
        folder = tmp_path / str(size)
        folder.mkdir()
        whole = parse_source((named(kind), claim), Reading(source), folder, keep_text=False, chunk_bytes=size)
        assert (whole.steps, whole.back_steps) == expected, size
        assert whole.line_count == len(lines)
