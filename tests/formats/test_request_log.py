"""A server's own request log: expected values are those of the sample's JSON."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import jsonschema
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracelens.formats.base import Chunk, Claim, Clock, Head, Parsed
from tracelens.formats.client import client_stream
from tracelens.formats.traces.request_log import COUNTS, DURATIONS, FORMAT, KEYS

ROOT = Path(__file__).parents[2]
LINES = (ROOT / "sample_logs/request_log/gateway.jsonl").read_text().splitlines()
FORM = jsonschema.Draft202012Validator(
    json.loads((ROOT / "schemas/inputs/request_log.schema.json").read_text())
)


def frame(lines: list[str], first: int = 1) -> pl.DataFrame:
    numbers = list(range(first, first + len(lines)))
    return pl.DataFrame({"line_no": numbers, "text": lines}, schema={"line_no": pl.Int64, "text": pl.String})


def parse(lines: list[str], clock: Clock = Clock.UTC) -> Parsed:
    return FORMAT.parse(Chunk(frame(lines), Claim("x", clock)))


def test_the_sample_is_claimed_by_this_format_alone() -> None:
    head = Head(tuple(LINES), complete=True)
    claim = FORMAT.sniff(head)
    assert claim is not None
    assert claim.clock is Clock.UTC
    assert client_stream.FORMAT.sniff(head) is None
    assert FORMAT.sniff(Head(('{"request_id": "a", "sent_at": 1795956414.5, "ttft_s": 1.0}',))) is None


def test_rows_have_the_numbers_of_the_log() -> None:
    got = parse(LINES).tables["server_request"].to_dicts()
    for line, row in zip(map(json.loads, LINES[:2]), got[:2], strict=True):
        assert (row["request_id"], row["measured_by"]) == (line["request_id"], "log")
        assert row["finish_reason"] == line["finish_reason"]
        for name in (*DURATIONS, *COUNTS):
            assert row[name] == line.get(name), name
    assert got[0]["arrival_ts"] == datetime(2026, 11, 29, 12, 46, 54, 500000)
    assert got[1]["arrival_ts"] == datetime(2026, 11, 29, 12, 46, 55, 750000)
    assert json.loads(got[0]["other"]) == {"node": "gpu-3"}
    assert (got[2]["queue_s"], got[2]["prefill_s"], got[2]["input_tokens"]) == (None, 0.5, None)


def test_the_schema_and_the_reader_name_the_same_keys() -> None:
    assert set(FORM.schema["properties"]) == set(KEYS)
    for line in LINES[:2]:
        FORM.validate(json.loads(line))
    for example in FORM.schema["examples"]:
        FORM.validate(example)
        assert parse([json.dumps(example)]).understood == 1


@pytest.mark.parametrize(
    "line",
    [
        json.loads(LINES[2]),
        {"request_id": "x"},
        {"request_id": "x", "ttft_s": 1.0},
        {"queue_s": 1.0},
        {"request_id": "x", "arrival_ts": 12.5, "ttft_s": 1.0},
        {"request_id": "x", "queue_s": "soon"},
        "x",
    ],
)
def test_the_schema_refuses_what_it_did_not_ask_for(line: Any) -> None:
    assert not FORM.is_valid(line)


VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**70), 2**70), st.floats(), st.text(max_size=6), st.sampled_from([1795956414.5, "2026-11-29"]),
    st.lists(st.integers(), max_size=2),
)  # fmt: skip
OBJECTS = st.dictionaries(st.sampled_from(sorted(KEYS)) | st.text(max_size=4), VALUES, max_size=8).map(
    json.dumps
)
TEXTS = st.text(alphabet=st.characters(exclude_categories=["Cs"], exclude_characters="\n"), max_size=20)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(OBJECTS | TEXTS, max_size=6),
    st.integers(0, 6),
    st.sampled_from([Clock.UTC, Clock.LOCAL, Clock.NONE]),
)
def test_any_lines_are_understood_or_issues_however_they_are_cut(
    lines: list[str], at: int, clock: Clock
) -> None:
    whole = parse(lines, clock)
    FORMAT.sniff(Head(tuple(lines), complete=True))
    assert whole.understood + whole.issues.height == len(lines)
    cut = [
        FORMAT.parse(Chunk(part, Claim("x", clock)))
        for part in (frame(lines[:at]), frame(lines[at:], 1 + len(lines[:at])))
    ]
    assert pl.concat([part.issues for part in cut]).equals(whole.issues)
    assert pl.concat([part.tables["server_request"] for part in cut]).equals(whole.tables["server_request"])
