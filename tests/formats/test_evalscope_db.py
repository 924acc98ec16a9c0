"""A database is read without trusting it: nothing in it may run, and what it breaks is an issue."""

from __future__ import annotations

import base64
import contextlib
import pickle
import sqlite3
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parent))

from load_files import TRUTH, claims_of, parse, requests, sample

from tracelens.formats.base import Claim, Clock
from tracelens.formats.client.evalscope import response_id
from tracelens.formats.client.sqlite_rows import BROKEN, NO_TABLE, NOT_SQLITE, rows_of

FORCED = Claim("forced", Clock.RELATIVE)
COLUMNS = "request TEXT, start_time REAL, inter_token_latencies TEXT, success INTEGER, completed_time REAL, first_chunk_latency REAL, prompt_tokens INTEGER, completion_tokens INTEGER"


def database(*statements: str, journal: str = "delete") -> bytes:
    with contextlib.closing(sqlite3.connect(":memory:")) as made:
        made.execute(f"PRAGMA journal_mode = {journal}")
        for statement in statements:
            made.execute(statement)
        made.commit()
        return made.serialize()


def row(**values: Any) -> dict[str, Any]:
    names, marks = ", ".join(values), ", ".join(repr(value) for value in values.values())
    data = database(f"CREATE TABLE result({COLUMNS})", f"INSERT INTO result({names}) VALUES ({marks})")
    (found,) = requests(parse(data, "evalscope", claim=FORCED))
    return found


def test_rows_are_those_that_sqlite_reads() -> None:
    data = sample("evalscope", "v1.14.1_chat.db")
    with contextlib.closing(sqlite3.connect(":memory:")) as read:
        read.deserialize(data)
        stated = read.execute(
            "SELECT start_time, first_chunk_latency, latency, prompt_tokens, completion_tokens FROM result"
        ).fetchall()
    got = requests(parse(data, "evalscope"))
    assert [(r["client_sent_s"], r["input_tokens"], r["output_tokens"]) for r in got] == [
        (s[0], s[3], s[4]) for s in stated
    ]
    assert [r["client_reported_ttft_s"] for r in got] == [s[1] for s in stated]
    assert [r["client_e2e_s"] for r in got] == pytest.approx([s[2] for s in stated], abs=1e-6)


def test_an_older_table_without_the_last_columns_is_read() -> None:
    got = row(
        start_time=5.0,
        completed_time=7.0,
        success=1,
        first_chunk_latency=0.5,
        inter_token_latencies="[0.25, 0.25]",
        completion_tokens=3,
    )
    assert (got["client_sent_s"], got["client_e2e_s"], got["client_ttft_s"], got["chunk_count"]) == (
        5.0,
        2.0,
        0.5,
        3,
    )
    assert (got["streamed"], got["output_tokens_basis"], got["status"]) == (True, "client", "ok")
    assert got["client_tpot_s"] == pytest.approx(0.25)


def test_without_a_stream_the_first_chunk_is_the_whole_response() -> None:
    data = database(
        f"CREATE TABLE result({COLUMNS}, is_stream INTEGER)",
        "INSERT INTO result(start_time, completed_time, success, first_chunk_latency, inter_token_latencies, is_stream) VALUES (1.0, 2.0, 1, 1.0, '[]', 0)",
    )
    (got,) = requests(parse(data, "evalscope", claim=FORCED))
    assert (
        got["streamed"],
        got["client_ttft_s"],
        got["client_reported_ttft_s"],
        got["client_ttft_kind"],
    ) == (False, None, 1.0, "whole_response")


class Bomb:
    def __reduce__(self) -> tuple[Any, ...]:
        return (pytest.fail, ("a pickle of the file was loaded",))


def test_a_pickle_is_never_loaded() -> None:
    bomb = base64.b64encode(pickle.dumps([Bomb()])).decode()
    data = database(
        f"CREATE TABLE result({COLUMNS}, response_messages TEXT)",
        f"INSERT INTO result(start_time, response_messages) VALUES (1.0, '{bomb}')",
    )
    (got,) = requests(parse(data, "evalscope", claim=FORCED, keep_text=True))
    assert got["response_id"] is None


def test_the_id_is_read_from_the_bytes_of_the_pickle() -> None:
    name = "chatcmpl-" + "0123456789abcdef" * 2
    text = base64.b64encode(
        pickle.dumps([{"id": name, "object": "chat.completion.chunk"}] * 3, protocol=4)
    ).decode()
    assert response_id(text) == name
    assert response_id(text[:20]) is None
    assert response_id("not base64!") is None
    ids = [r["response_id"] for r in requests(parse(sample("evalscope", "v1.14.1_chat.db"), "evalscope"))]
    assert len(set(ids)) == 8
    assert set(ids) <= set(TRUTH["by_id"])


@pytest.mark.parametrize(
    ("statements", "reason"),
    [
        (("CREATE TABLE other(a)",), NO_TABLE),
        (
            ("CREATE TABLE t(a)", "CREATE VIEW result AS SELECT load_extension('x') AS start_time FROM t"),
            NO_TABLE,
        ),
        (("CREATE TABLE result(a, start_time GENERATED ALWAYS AS (a + 1))",), NO_TABLE),
    ],
)
def test_what_would_run_code_is_refused(statements: tuple[str, ...], reason: str) -> None:
    assert rows_of(database(*statements), "result", ("start_time",)).reason == reason
    parsed = parse(database(*statements), "evalscope", claim=FORCED)
    assert parsed.issues["reason"].to_list() == [reason]


def test_a_database_in_wal_mode_is_read_without_its_log() -> None:
    data = bytearray(sample("evalscope", "v1.14.1_chat.db"))
    data[18:20] = b"\x02\x02"
    assert len(requests(parse(bytes(data), "evalscope"))) == 8


def test_a_database_cut_off_gives_what_is_whole_and_an_issue() -> None:
    data = sample("evalscope", "v1.14.1_chat.db")
    parsed = parse(data[: len(data) // 2], "evalscope")
    assert parsed.issues["reason"].to_list() == [BROKEN]
    whole = requests(parse(data, "evalscope"))
    assert all(got in whole for got in requests(parsed))


def test_other_bytes_are_no_database() -> None:
    assert rows_of(b"", "result", ()).reason == NOT_SQLITE
    assert rows_of(b"SQLite format 3\x00" + b"\xff" * 200, "result", ("start_time",)).reason == BROKEN
    assert claims_of(database("CREATE TABLE other(a)")) == []


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.floats(0, 1), st.binary(min_size=1, max_size=8)), min_size=1, max_size=8))
def test_any_damage_is_an_issue_at_most(damage: list[tuple[float, bytes]]) -> None:
    data = bytearray(sample("evalscope", "v1.14.1_errors.db"))
    for share, piece in damage:
        at = int(share * (len(data) - len(piece)))
        data[at : at + len(piece)] = piece
    parse(bytes(data), "evalscope", claim=FORCED)
