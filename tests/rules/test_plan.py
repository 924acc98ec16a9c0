"""One plan: ordered, without repeats and contradictions.  What is given and expected stands in ``data/plan.toml``."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from tracelens.outcomes import Outcome
from tracelens.plan import asks, keep_planned, make_plan
from tracelens.rulebook import Remedy

CASES = tomllib.loads((Path(__file__).parent / "data" / "plan.toml").read_text(encoding="utf-8"))["case"]


def finding(given: dict[str, Any], place: int) -> Outcome:
    remedies = tuple(Remedy(*words) for words in given["remedies"])
    return Outcome(
        given.get("rule", f"toy.rule{place}"),
        given.get("cause", "toy"),
        "",
        "",
        "fired",
        "warning",
        given.get("confidence", "high"),
        given.get("run", "default"),
        "",
        "",
        remedies=remedies,
    )


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_a_plan_is_what_was_worked_out_by_hand(case: dict[str, Any]) -> None:
    findings = [finding(given, place) for place, given in enumerate(case["findings"], start=1)]
    plan = make_plan(findings, {"default": case.get("settings", {})})
    assert [[step.kind, step.text] for step in plan.steps] == case.get("steps", [])
    assert [[held.text, held.reason] for held in plan.withheld] == case.get("withheld", [])


def test_steps_are_numbered_in_each_run_and_name_all_who_ask() -> None:
    seats = {"remedies": [["config", "Raise --max-num-seqs."]]}
    plan = make_plan(
        [
            finding({**seats, "cause": "a"}, 1),
            finding({"remedies": [["config", "Increase max_num_seqs in steps."]], "cause": "b"}, 2),
            finding({**seats, "run": "other"}, 3),
        ]
    )
    assert [(step.run, step.step, step.causes, step.rules) for step in plan.steps] == [
        ("default", 1, ("a", "b"), ("toy.rule1", "toy.rule2")),
        ("other", 1, ("toy",), ("toy.rule3",)),
    ]
    assert plan.step_of("default", Remedy("config", "Increase max_num_seqs in steps.")) == 1
    assert plan.step_of("default", Remedy("config", "Something else.")) is None


def test_hardware_comes_last_and_says_when() -> None:
    given = {"remedies": [["hardware", "Add cards."], ["config", "Turn a knob."]], "cause": "prefill-bound"}
    (first, last) = make_plan([finding(given, 1)]).steps
    assert (first.note, last.note) == ("", "only if the limit still binds after the steps before it")


def test_a_finding_keeps_the_remedies_of_the_plan_only() -> None:
    one = finding({"remedies": [["config", "Turn a knob."], ["hardware", "Add cards."]]}, 1)
    assert [remedy.text for remedy in keep_planned(one, make_plan([one])).remedies] == ["Turn a knob."]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (
            "Raise --max-num-seqs to 256, lower max_model_len.",
            {("max_num_seqs", "up"): 256, ("max_model_len", "down"): None},
        ),
        ("Start without --disable-log-stats.", {("disable_log_stats", "off"): None}),
        ("Remove --no-enable-prefix-caching.", {("enable_prefix_caching", "on"): None}),
        ("Do not raise --max-num-seqs.", {}),
        ("Raise --max-num-seqs. --max-model-len decides the rest.", {("max_num_seqs", "up"): None}),
        ("Look at --max-num-seqs.", {}),
        ("Turn on --enable-chunked-prefill", {("enable_chunked_prefill", "on"): None}),
        ("Raise gpu_memory_utilization instead of --max-num-seqs", {("gpu_memory_utilization", "up"): None}),
    ],
)
def test_a_remedy_s_words_say_what_it_does_to_which_setting(text: str, found: dict[Any, Any]) -> None:
    assert asks(text) == found
