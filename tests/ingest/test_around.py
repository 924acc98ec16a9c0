"""The lines around a line of a source: from the file only where it is still what was read."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest

import tracelens
from tracelens.errors import QueryStopped
from tracelens.ingestion.around import BESIDE, SHOWN_CHARS, Around, around
from tracelens.store import Stop

LINES = [
    f"INFO 06-01 10:00:{place % 60:02d} [api_server.py:1289] line {place + 1}" for place in range(59)
] + ["INFO 06-01 10:00:59 [api_server.py:1289] evil \x1b[31m " + "x" * 5000]


@pytest.fixture
def read(tmp_path: Path):
    """Write a file, ingest it, and give what stands around a line of it after something was done to it."""

    def run(line_no: int, text: bytes | None = None, name: str = "server.log", done: Any = None) -> Around:
        file = tmp_path / name
        text = "".join(f"{line}\n" for line in LINES).encode() if text is None else text
        file.write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
        case = tmp_path / "case.duckdb"
        tracelens.ingest([file], case)
        if done is not None:
            done(file)
        with tracelens.open(case) as opened:
            (row,) = opened.query("source_file", path=str(file)).dicts()
        return around(case, row, line_no, Stop())

    return run


@pytest.mark.parametrize("name", ["server.log", "server.log.gz"])
def test_a_line_stands_between_those_beside_it(read, name) -> None:
    found = read(30, name=name)
    assert found.lines == tuple((place, LINES[place - 1]) for place in range(30 - BESIDE, 30 + BESIDE + 1))
    assert found.note == "from the file, the same as when it was read"


def test_at_the_ends_of_the_file_there_are_fewer(read) -> None:
    assert [number for number, _ in read(1).lines] == list(range(1, 2 + BESIDE))


def test_a_long_line_is_cut_and_a_carriage_return_is_no_part_of_it(read) -> None:
    text = "".join(f"{line}\r\n" for line in LINES).encode()
    number, last = read(60, text).lines[-1]
    assert number == 60
    assert last == LINES[-1][:SHOWN_CHARS] + "…"
    assert dict(read(60, text).lines)[59] == LINES[58]


def test_a_file_that_has_grown_still_has_it(read) -> None:
    def grow(file: Path) -> None:
        with file.open("a") as stream:
            stream.write("INFO 06-01 10:01:00 [api_server.py:1289] line 61\n")

    found = read(30, done=grow)
    assert dict(found.lines)[30] == LINES[29]
    assert "has grown" in found.note


@pytest.mark.parametrize(
    ("done", "said"),
    [
        (lambda file: file.write_text(file.read_text().replace("line 3", "LINE 3")), "has changed"),
        (lambda file: file.write_text("short\n"), "has changed"),
        (lambda file: file.write_text("x" * 100_000), "has changed"),
        (lambda file: file.unlink(), "is not where it was read"),
    ],
)
def test_of_another_file_nothing_is_shown_and_it_is_said_why(read, done, said) -> None:
    found = read(30, done=done)
    assert found.lines == ()
    assert said in found.note


def test_a_line_that_the_file_does_not_have_is_told(read) -> None:
    found = read(99)
    assert found.lines == ()
    assert "fewer lines" in found.note


def test_reading_ends_when_it_is_stopped(tmp_path) -> None:
    file = tmp_path / "server.log"
    file.write_text("".join(f"{line}\n" for line in LINES))
    case = tmp_path / "case.duckdb"
    tracelens.ingest([file], case)
    with tracelens.open(case) as opened:
        (row,) = opened.query("source_file", path=str(file)).dicts()
    stop = Stop()
    stop.pull()
    with pytest.raises(QueryStopped):
        around(case, row, 3, stop)
