"""A dialect is a row of a table: each row says what it is made from, and its sample is its own and of no row before it."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from tracelens.formats.server.event_forms import EVENT_FORMS
from tracelens.formats.server.vllm_lines import LINE_FORMS, LineForm
from tracelens.formats.server.wrapper_forms import WRAPPERS

sys.path.insert(0, str(Path(__file__).parent))

from dialects import parsed

TABLES = {"received": "request_event", "added": "request_event", "finished": "request_event", "aborted": "request_event",
          "generated": "request_event", "ended": "request_event", "preempted": "request_event", "rust_finished": "request_event",
          "grpc": "server_request", "stats": "engine_sample", "step": "engine_step", "companion": "metric_sample"}  # fmt: skip
WITHOUT_FACT = {"body", "details"}


def fits(form: LineForm, message: str) -> bool:
    begins = re.search(form.begins, message) is not None if form.begins else message.startswith(form.starts)
    return begins and form.contains in message


@pytest.mark.parametrize("number", range(len(LINE_FORMS)))
def test_the_sample_of_a_line_form_is_its_own_and_of_no_form_before_it(number: int) -> None:
    form = LINE_FORMS[number]
    assert fits(form, form.sample)
    assert [before.starts for before in LINE_FORMS[:number] if fits(before, form.sample)] == []


def test_the_sample_of_each_line_form_gives_its_fact() -> None:
    lines = [f"(APIServer pid=7) INFO 11-29 12:00:00 [x.py:1] {form.sample}" for form in LINE_FORMS]
    result = parsed(lines)
    assert result.issues.rows() == []
    found = {
        number: name
        for name, rows in result.tables.items()
        if name != "log_event"
        for number in rows["line_no"].to_list()
    }
    assert found == {
        number: TABLES[form.kind]
        for number, form in enumerate(LINE_FORMS, 1)
        if form.kind not in WITHOUT_FACT
    }


def test_every_row_says_what_it_was_made_from() -> None:
    assert [form.sample for form in LINE_FORMS if not (form.versions and form.source and form.sample)] == []
    assert [form.name for form in WRAPPERS if not (form.writer and form.sample)] == []
    assert [form.contains for form in EVENT_FORMS if not form.versions] == []


@pytest.mark.parametrize("number", range(len(EVENT_FORMS)))
def test_the_words_of_an_event_are_not_those_of_an_event_of_another_kind_before_it(number: int) -> None:
    form = EVENT_FORMS[number]
    before = [
        one.contains
        for one in EVENT_FORMS[:number]
        if one.contains in form.contains and one.kind != form.kind
    ]
    assert before == []


@pytest.mark.parametrize("number", range(len(WRAPPERS)))
def test_the_sample_of_a_wrapper_is_its_own(number: int) -> None:
    form = WRAPPERS[number]
    found = re.match(form.pattern, form.sample)
    assert found is not None
    assert found[0] == form.sample
