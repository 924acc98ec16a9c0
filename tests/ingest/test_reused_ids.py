"""An id that is used again names another request: after a start of the server, or after the end of the first one."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from tracelens.ingestion import IngestOptions, TimeOptions, ingest

pytestmark = pytest.mark.usefixtures("_asks_facts_alone")

Rows = Callable[[Path, str], list[dict[str, Any]]]
PARAMS = "params: SamplingParams(n=1, max_tokens=7), lora_request: None."
START = "vLLM API server version 0.14.1"
OPTIONS = IngestOptions(time=TimeOptions(date=date(2025, 11, 29)))


def info(message: str, minute: int, second: int = 0) -> str:
    return f"(APIServer pid=7) INFO 11-29 12:{minute:02d}:{second:02d} [x.py:1] {message}"


def request(name: str, minute: int, *, end: str = "") -> list[str]:
    """The lines of one request; each has an internal id of its own."""
    lines = [
        info(f"Received request {name}: {PARAMS}", minute),
        info(f"Added request {name}-{minute:08x}.", minute),
        info(f"Generated response {name} (streaming delta): output: 'a', output_token_ids: [1], finish_reason: None", minute, 1),
        info(f"Generated response {name} (streaming delta): output: 'b', output_token_ids: [2], finish_reason: None", minute, 2),
    ]  # fmt: skip
    ends = {
        "finished": [f"Generated response {name} (streaming complete): output: 'ab', output_token_ids: None, finish_reason: streaming_complete"],
        "aborted": [f"Aborted request(s) {name}-{minute:08x}.", f"Request {name} aborted."],
    }  # fmt: skip
    return lines + [info(message, minute, 9) for message in ends.get(end, [])]


def told(case: Path, rows_of: Rows) -> dict[str, list[tuple[str, int]]]:
    """Events and their minutes, by request."""
    found: dict[str, list[tuple[str, int]]] = {}
    for row in rows_of(
        case,
        "SELECT request_id, event::VARCHAR AS event, event_ts FROM request_event ORDER BY event_ts, source_id, line_no",
    ):
        found.setdefault(row["request_id"], []).append((row["event"], row["event_ts"].minute))
    return found


def read(case: Path, folder: Path, files: dict[str, list[str]], *, at_once: bool = True) -> None:
    paths = []
    for name, lines in files.items():
        (folder / name).write_text("".join(line + "\n" for line in lines))
        paths.append(str(folder / name))
    for chosen in [paths] if at_once else [[path] for path in paths]:
        ingest(chosen, case, OPTIONS)


def life(minute: int, *ends: str) -> list[tuple[str, int]]:
    return [(event, minute) for event in ("received", "added", "first_token", *ends)]


def test_by_a_server_started_anew_in_the_same_file(case: Path, tmp_path: Path, rows_of: Rows) -> None:
    lines = [
        info(START, 0),
        *request("x", 1),
        info(START, 5),
        *request("x", 6),
        info(START, 8),
        *request("x", 9),
    ]
    read(case, tmp_path, {"server.log": lines})
    assert told(case, rows_of) == {"x": life(1), "x#2": life(6), "x#3": life(9)}


def test_by_a_client_that_sends_it_again_after_its_end(case: Path, tmp_path: Path, rows_of: Rows) -> None:
    lines = [
        *request("x", 1, end="finished"),
        *request("y", 2),
        *request("x", 3, end="aborted"),
        *request("x", 4),
    ]
    read(case, tmp_path, {"server.log": lines})
    assert told(case, rows_of) == {
        "x": life(1, "finished"),
        "y": life(2),
        "x#2": life(3, "aborted", "aborted"),
        "x#3": life(4),
    }


def test_with_the_same_internal_id_and_no_line_that_it_was_received(
    case: Path, tmp_path: Path, rows_of: Rows
) -> None:
    lines = [
        line
        for minute in (1, 4)
        for line in (
            info("Added request x-0000000a.", minute),
            info("Request x aborted.", minute, 2),
        )
    ]
    read(case, tmp_path, {"server.log": lines})
    assert told(case, rows_of) == {
        "x": [("added", 1), ("aborted", 1)],
        "x#2": [("added", 4), ("aborted", 4)],
    }


def test_not_by_a_client_that_sends_it_again_before_its_end(
    case: Path, tmp_path: Path, rows_of: Rows
) -> None:
    """Without an end or a start between nothing tells two requests from one that was logged twice."""
    read(case, tmp_path, {"server.log": [*request("x", 1), *request("x", 2)]})
    assert set(told(case, rows_of)) == {"x"}


def test_not_by_the_answers_to_one_request(case: Path, tmp_path: Path, rows_of: Rows) -> None:
    lines = [
        info(f"Received request x: {PARAMS}", 1),
        info("Added request 0_x-0000000a.", 1),
        info("Aborted request(s) 0_x-0000000a.", 1, 1),
        info("Added request 1_x-0000000a.", 1, 1),
        info("Request x aborted.", 1, 2),
    ]
    read(case, tmp_path, {"server.log": lines})
    assert set(told(case, rows_of)) == {"x"}


def test_in_a_rotated_log_whose_start_stands_in_the_other_file(
    case: Path, tmp_path: Path, rows_of: Rows
) -> None:
    old = [info(START, 0), *request("x", 1), *request("long", 2)[:2]]
    new = [*request("long", 3, end="finished")[2:], info(START, 5), *request("x", 6)]
    expected = {
        "x": life(1),
        "long": [("received", 2), ("added", 2), ("first_token", 3), ("finished", 3)],
        "x#2": life(6),
    }
    read(case, tmp_path, {"server.log": new, "server.log.1": old})
    assert told(case, rows_of) == expected


def test_in_a_rotated_log_that_is_read_file_by_file(case: Path, tmp_path: Path, rows_of: Rows) -> None:
    files = {
        "server.log.2": [*request("x", 1, end="finished"), *request("x", 2)],
        "server.log.1": [info(START, 4), *request("y", 5)],
        "server.log": [*request("x", 6), *request("y", 7)],
    }
    read(case, tmp_path, files, at_once=False)
    ingest([str(tmp_path)], case, OPTIONS)
    assert told(case, rows_of) == {
        "x": life(1, "finished"),
        "x#2": life(2),
        "y": [*life(5), *life(7)],
        "x#3": life(6),
    }


def test_not_by_two_files_that_tell_of_the_same_request(case: Path, tmp_path: Path, rows_of: Rows) -> None:
    lines = [info(START, 0), *request("x", 1, end="finished")]
    wrapped = [f"vllm-1  | {line}" for line in lines]
    read(case, tmp_path, {"server.log": lines, "compose.log": wrapped})
    assert set(told(case, rows_of)) == {"x"}


def test_an_id_that_ends_like_a_number_of_ours_stays_itself(
    case: Path, tmp_path: Path, rows_of: Rows
) -> None:
    files = {"server.log.1": request("x#2", 1, end="finished"), "server.log": request("x#2", 3)}
    read(case, tmp_path, files, at_once=False)
    assert told(case, rows_of) == {"x#2": life(1, "finished"), "x#2#2": life(3)}
