"""The cases beside the views, and the runner that checks them."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tracelens import resources
from tracelens.cases import Case, Row, check_case, read_cases
from tracelens.errors import CaseError
from tracelens.store import MemoryCase

VIEWS = resources.schemas() / "views"
CASES = [
    pytest.param(case, id=f"{path.name.removesuffix('.cases.toml')}/{case.name}")
    for path in sorted(VIEWS.glob("*.cases.toml"))
    for case in read_cases(path)
]


@pytest.fixture(scope="module")
def memory() -> MemoryCase:
    return MemoryCase()


@pytest.mark.parametrize("case", CASES)
def test_a_view_gives_the_rows_worked_out_by_hand(memory: MemoryCase, case: Case) -> None:
    assert check_case(memory, case) == ""


def test_every_public_view_has_cases(memory: MemoryCase) -> None:
    views = memory.run(
        "SELECT view_name FROM duckdb_views() WHERE NOT internal AND view_name NOT LIKE '\\_%' ESCAPE '\\'"
    )
    tested = {path.name.removesuffix(".cases.toml").partition("_")[2] for path in VIEWS.glob("*.cases.toml")}
    assert {row[0] for row in views.rows} == tested


def test_case_names_of_a_file_are_distinct() -> None:
    for path in VIEWS.glob("*.cases.toml"):
        names = [case.name for case in read_cases(path)]
        assert len(names) == len(set(names)), path.name


# The runner -----------------------------------------------------------------------------------------------------------

QUEUES = {"server_request": [{"request_id": "r1", "queue_s": 0.5}, {"request_id": "r2", "queue_s": 1.5}]}
BOTH = "SELECT request_id, queue_s FROM server_request ORDER BY queue_s"


def check(memory: MemoryCase, expect: Sequence[Row], **changed: Any) -> str:
    return check_case(memory, replace(Case("it", QUEUES, BOTH, expect), **changed))


def test_a_difference_names_the_case_and_both_rows(memory: MemoryCase) -> None:
    found = check(memory, [{"request_id": "r1", "queue_s": 0.5}, {"request_id": "r2", "queue_s": 2.5}])
    assert found.splitlines() == [
        "it:",
        "  expected, not there: {request_id: r2, queue_s: 2.5}",
        "  there, not expected: {request_id: r2, queue_s: 1.5}",
    ]


def test_a_column_left_out_of_an_expected_row_is_null(memory: MemoryCase) -> None:
    assert "expected, not there: {request_id: r2, queue_s: NULL}" in check(
        memory, [{"request_id": "r1", "queue_s": 0.5}, {"request_id": "r2"}]
    )


def test_numbers_within_a_billionth_are_equal(memory: MemoryCase) -> None:
    near = [{"request_id": "r1", "queue_s": 0.5 + 9e-10}, {"request_id": "r2", "queue_s": 1.5}]
    far = [{"request_id": "r1", "queue_s": 0.5 + 2e-9}, {"request_id": "r2", "queue_s": 1.5}]
    assert check(memory, near) == ""
    assert check(memory, far) != ""


def test_order_matters_only_where_a_case_says_so(memory: MemoryCase) -> None:
    turned: Sequence[Row] = [
        {"request_id": "r2", "queue_s": 1.5},
        {"request_id": "r1", "queue_s": 0.5},
    ]
    assert check(memory, turned) == ""
    assert "in another order" in check(memory, turned, ordered=True)


def test_further_rows_are_a_difference_unless_a_case_is_not_complete(memory: MemoryCase) -> None:
    one: Sequence[Row] = [{"request_id": "r1", "queue_s": 0.5}]
    assert "there, not expected" in check(memory, one)
    assert check(memory, one, complete=False) == ""


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"server_requests": [{}]}, "there is no table or view server_requests"),
        ({"server_request": [{"queue": 1}]}, "server_request has no column queue"),
        ({"server_request": [{"queue_s": "long"}]}, "Could not convert string 'long' to DOUBLE"),
    ],
)
def test_a_mistake_in_given_rows_is_said(memory: MemoryCase, given: object, said: str) -> None:
    found = check(memory, [], given=given)
    assert found.startswith("it: ")
    assert said in found


def test_a_mistake_in_the_query_or_in_expected_columns_is_said(memory: MemoryCase) -> None:
    assert "Parser Error" in check(memory, [], query="SELEC 1")
    assert check(memory, [{"queue": 1}]) == "it: the query has no column queue"


def test_a_case_leaves_nothing_behind(memory: MemoryCase) -> None:
    assert (
        check(memory, [], query="SELECT 1 WHERE FALSE", given={**QUEUES, "request": [{"request_id": "r1"}]})
        == ""
    )
    assert memory.run("SELECT (SELECT count(*) FROM server_request), (SELECT count(*) FROM source)").rows == [
        (0, 0)
    ]
    assert memory.run("SELECT 1 FROM duckdb_views() WHERE view_name = 'request'").rows == [(1,)]


def test_an_instant_with_a_zone_is_stored_as_utc(memory: MemoryCase) -> None:
    text = '[[case]]\nname = "it"\ngiven.engine_sample = [{ sample_ts = 2026-11-29T10:00:00+02:00 }]\nexpect = [{ sample_ts = 2026-11-29T08:00:00 }]'
    assert [check_case(memory, case) for case in written(text, "1_engine_sample.cases.toml")] == [""]


def test_rows_for_every_case_of_a_file_go_before_its_own() -> None:
    text = '[given]\nsource = [{ source_id = 1 }]\n[[case]]\nname = "it"\ngiven.source = [{ source_id = 2 }]\nexpect = []'
    (case,) = written(text)
    assert case.given == {"source": [{"source_id": 1}, {"source_id": 2}]}
    assert case.query == "SELECT * FROM view"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[[case]]\nname = 1 2", "1_view.cases.toml: "),
        ('[[case]]\nname = "it"', "needs name and expect"),
        ('[[case]]\nname = "it"\nexpected = []\nexpect = []', "no such key: expected"),
        ("", "'case'"),
    ],
)
def test_a_file_that_is_no_cases_file_is_an_error(text: str, said: str) -> None:
    with pytest.raises(CaseError, match=said):
        list(written(text))


def written(text: str, name: str = "1_view.cases.toml") -> Iterator[Case]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_text(text, encoding="utf-8")
        yield from read_cases(path)
