"""What holds for every request, whatever the sources say of it: stages add up, and nothing unknown is a number."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from statistics import median
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tracelens.given import fill
from tracelens.store import MemoryCase

STAGES = [
    *("client_wait", "network_in", "tokenize", "step_wait", "queue", "kv_alloc"),
    *("prefill", "sample", "stream_out", "decode", "unaccounted"),
]
OUTSIDE_TTFT = ("client_wait", "decode")
START = datetime(2026, 11, 29, 10)
VERSIONS = [
    None,
    ("0.9.1", "V0"),
    ("0.9.1", "V1"),
    ("0.16.0", "V1"),
    ("0.32.0", None),
    ("0.32.0", "V1"),
    ("weird", None),
    ("0.99999999999.1", None),
]
Rows = list[dict[str, Any]]
Stages = dict[str, dict[str, Any]]
"""Rows of request_stage of one request, by stage."""


@pytest.fixture(scope="module")
def memory() -> MemoryCase:
    return MemoryCase()


def maybe(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | values


lengths = st.integers(0, 30_000_000).map(lambda us: us / 1e6)
"""Seconds, 0 to 30, in microseconds."""
# Few distinct instants make ties; the rest make everything else.
instants = (st.integers(0, 60_000_000) | st.sampled_from([0, 1_000_000, 2_500_000])).map(
    lambda us: START + timedelta(microseconds=us)
)
whole_seconds = st.integers(0, 60).map(lambda s: START + timedelta(seconds=s))
ids = st.sampled_from(["a", "b", "c", "chatcmpl-a", "chatcmpl-a-0123abcd", "cmpl-b-0", "d"])
tokens = st.integers(0, 5000)


def rows_of(
    columns: dict[str, st.SearchStrategy[Any]], **fixed: st.SearchStrategy[Any]
) -> st.SearchStrategy[Rows]:
    """Up to six rows, any of `columns` left out."""
    row = st.fixed_dictionaries(fixed, optional=columns)
    return st.lists(
        row.map(lambda found: {key: value for key, value in found.items() if value is not None}), max_size=6
    )


def server_rows(seconds: st.SearchStrategy[float]) -> st.SearchStrategy[Rows]:
    lengths_of = dict.fromkeys(("queue_s", "prefill_s", "decode_s", "ttft_s", "e2e_s"), seconds)
    return rows_of(
        {
            **lengths_of,
            "arrival_ts": instants,
            "output_tokens": tokens,
            "input_tokens": tokens,
            "request_id": ids,
        },
        source_id=st.sampled_from([1, 1, 1, 5]),
        measured_by=st.sampled_from(["span", "span", "log"]),
    )


def client_rows(seconds: st.SearchStrategy[float]) -> st.SearchStrategy[Rows]:
    stamps = dict.fromkeys(
        ("client_sent_ts", "client_headers_ts", "client_first_chunk_ts", "client_end_ts"), instants
    )
    lengths_of = dict.fromkeys(("client_wait_s", "client_ttft_s", "client_e2e_s", "client_tpot_s"), seconds)
    return rows_of(
        {
            **stamps,
            **lengths_of,
            "client_id": ids,
            "response_id": ids,
            "output_tokens": tokens,
            "input_tokens": tokens,
            "position": st.integers(0, 3),
        },
        source_id=st.sampled_from([3, 3, 4]),
        streamed=maybe(st.booleans()),
        status=maybe(st.sampled_from(["ok", "error", "aborted", "rejected", "unknown"])),
        http_status=maybe(st.sampled_from([200, 400, 503])),
    )


@st.composite
def incidents(draw: Callable[..., Any], seconds: st.SearchStrategy[float] = lengths) -> dict[str, Rows]:
    """What several sources say of a few requests, agreeing or not."""
    clients = draw(client_rows(seconds))
    metrics = dict.fromkeys(("queue_s", "prefill_s", "decode_s"), seconds)
    responses = [
        {
            "source_id": row["source_id"],
            "line_no": line_no,
            "measured_by": "response",
            **draw(st.fixed_dictionaries({}, optional=metrics)),
        }
        for line_no, row in enumerate(clients, start=1)
        if draw(st.booleans())
    ]
    version = draw(st.sampled_from(VERSIONS))
    settings_of = dict(zip(("vllm_version", "engine_version"), version or (), strict=False))
    return {
        "server_request": [*draw(server_rows(seconds)), *responses],
        "client_request": clients,
        "request_event": draw(
            rows_of(
                {"event_ts": whole_seconds, "error_s": st.just(1.0)},
                source_id=st.just(2),
                request_id=ids,
                event=st.sampled_from(["received", "received", "added", "finished", "aborted", "failed"]),
            )
        ),
        "engine_step": draw(rows_of({"step_ts": whole_seconds, "elapsed_s": seconds}, source_id=st.just(2))),
        "server_setting": [
            {"source_id": 2, "key": key, "value": value} for key, value in settings_of.items() if value
        ],
        "access_line": [
            {
                "source_id": 2,
                "method": "POST",
                "client_addr": draw(st.sampled_from(["127.0.0.1:1", "10.0.0.1:1"])),
            }
        ],
    }


quick = settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""Few, since planning the views takes longer than running them; each holds several requests.  More: edit it."""


def stages_of(memory: MemoryCase) -> dict[str, Stages]:
    """Request -> stage -> row of request_stage."""
    found: dict[str, Stages] = defaultdict(dict)
    rows = memory.run("SELECT * FROM request_stage ORDER BY request_id, stage_index").dicts()
    for row in rows:
        found[row["request_id"]][row["stage"]] = row
    assert len(rows) == len(STAGES) * len(found)
    assert all(
        [(row["stage"], row["stage_index"]) for row in stages.values()]
        == [(s, i) for i, s in enumerate(STAGES)]
        for stages in found.values()
    )
    return found


def known_sum(stages: Stages, *without: str) -> float:
    return sum(row["duration_s"] or 0.0 for stage, row in stages.items() if stage not in without)


def check_sums(request: dict[str, Any], stages: Stages) -> None:
    ttft_s = request["ttft_s"] if request["client_ttft_s"] is None else request["client_ttft_s"]
    if ttft_s is not None:
        assert known_sum(stages, *OUTSIDE_TTFT) == pytest.approx(ttft_s, abs=1e-6)
    at_client = request["client_ttft_s"] is not None or (
        ttft_s is None and request["client_e2e_s"] is not None
    )
    e2e_s = request["client_e2e_s"] if at_client else request["e2e_s"]
    if e2e_s is not None and stages["decode"]["provenance"] != "unknown":
        assert known_sum(stages, "client_wait") == pytest.approx(e2e_s, abs=1e-6)
    if ttft_s is None and e2e_s is None:
        assert stages["unaccounted"]["duration_s"] is None


def check_row(stage: str, row: dict[str, Any], stages: Stages) -> None:
    known = row["provenance"] in ("observed", "derived")
    assert known == (row["duration_s"] is not None) == (row["error_s"] is not None)
    assert row["basis"]
    if known:
        assert row["error_s"] >= 0
        assert row["duration_s"] >= 0 or stage == "unaccounted"
        assert row["duration_s"] >= -0.001 or "the sources disagree" in row["basis"]
    if row["provenance"] == "within" and stage != "kv_alloc":
        inside = row["basis"].removeprefix("inside ").split()[0].rstrip(":")
        assert stages[inside]["duration_s"] is not None


def check_summary(summary: Rows, stages: Sequence[Stages]) -> None:
    for row in summary:
        lengths = [of_it[row["stage"]]["duration_s"] for of_it in stages]
        known = [length for length in lengths if length is not None]
        assert (row["observed_count"], row["request_count"]) == (len(known), len(lengths))
        assert row["max_s"] == pytest.approx(max(known, default=None))
        assert row["p50_s"] == (pytest.approx(median(known)) if known else None)
    shares = [row["share_of_ttft_ratio"] for row in summary if row["share_of_ttft_ratio"] is not None]
    assert not shares or sum(shares) == pytest.approx(1.0)


@quick
@given(incident=incidents(), join=st.booleans())
def test_the_stages_of_every_request_add_up_and_say_how_they_are_known(
    memory: MemoryCase, incident: dict[str, Rows], join: bool
) -> None:
    with memory.trial():
        fill(memory, incident, join=join)
        requests = memory.run("SELECT * FROM request").dicts()
        stages = stages_of(memory)
        summary = memory.run("SELECT * FROM stage_summary").dicts()
    assert len({request["request_id"] for request in requests}) == len(requests)
    assert {request["request_id"] for request in requests} == set(stages)
    for request in requests:
        of_it = stages[request["request_id"]]
        check_sums(request, of_it)
        for stage, row in of_it.items():
            check_row(stage, row, of_it)
    check_summary(summary, list(stages.values()))


@quick
@given(incident=incidents(), join=st.booleans())
def test_no_row_of_a_source_is_lost_and_none_counts_twice(
    memory: MemoryCase, incident: dict[str, Rows], join: bool
) -> None:
    with memory.trial():
        fill(memory, incident, join=join)
        places = memory.run(
            "SELECT client_source_id, client_line_no FROM request WHERE client_line_no IS NOT NULL"
        ).rows
        named = {row[0] for row in memory.run("SELECT request_id FROM request").rows}
        stated = {
            row[0]
            for row in memory.run(
                "SELECT request_id FROM request_event UNION SELECT request_id FROM server_request "
                "WHERE measured_by <> 'response' AND request_id IS NOT NULL"
            ).rows
        }
        unnamed = memory.run(
            "SELECT count(*) FROM server_request WHERE measured_by <> 'response' AND request_id IS NULL"
        ).rows[0][0]
    assert sorted(places) == sorted(
        (row["source_id"], line_no) for line_no, row in enumerate(incident["client_request"], start=1)
    )
    assert stated <= named
    assert len(named) >= len(stated) + unnamed


@settings(quick, max_examples=8)
@given(
    incident=incidents(
        st.sampled_from([0.0, 1.0, -1.0, 1e-300, 1e300, float("inf"), float("-inf"), float("nan")])
    )
)
def test_numbers_that_are_no_lengths_break_no_view(memory: MemoryCase, incident: dict[str, Rows]) -> None:
    with memory.trial():
        fill(memory, incident, join=True)
        stages_of(memory)
        for view in (
            "request",
            "clock_offset",
            "stage_summary",
            "time_window",
            "prompt_length_curve",
            "queue_wait_estimate",
        ):
            memory.run(f"SELECT * FROM {view}")
