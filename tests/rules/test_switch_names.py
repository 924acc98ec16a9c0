"""A run hears the switches of the engine that it ran."""

from __future__ import annotations

import pytest

from tracelens.outcomes import Outcome
from tracelens.plan import make_plan
from tracelens.rulebook import Remedy
from tracelens.switch_names import other_engines, renamed, renamed_plan

ADVICE = "Raise --max-num-seqs; keep --max-num-seqs-like and --api-server-count."


def outcome(run: str) -> Outcome:
    remedy = Remedy("config", ADVICE, "queue", "KV cache")
    return Outcome(
        "queue.x", "x", "title", "belief", "fired", "warning", "high", run, "", "look at --max-model-len", "--enforce-eager?",
        remedies=(remedy,),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("formats", "engines"),
    [
        (["sglang_log"], {"r": "sglang_log"}),
        (["tgi_log", "dmon"], {"r": "tgi_log"}),
        (["sglang_log", "vllm_log"], {}),
        (["sglang_log", "tgi_log"], {}),
        (["vllm_log"], {}),
        (["dmon"], {}),
    ],
)
def test_a_run_is_of_another_engine_where_only_that_one_wrote_a_log(
    formats: list[str], engines: dict[str, str]
) -> None:
    assert other_engines({"run_id": "r", "format": name} for name in formats) == engines


def test_whole_switches_are_renamed_where_the_other_engine_has_them() -> None:
    said = renamed(outcome("r"), {"r": "sglang_log"})
    assert said.message == "look at --context-length"
    assert said.verdict == "--disable-cuda-graph?"
    assert (
        said.remedies[0].text
        == "Raise --max-running-requests; keep --max-num-seqs-like and --api-server-count."
    )


def test_a_run_of_vllm_keeps_its_words() -> None:
    assert renamed(outcome("r"), {"other": "sglang_log"}) == outcome("r")


def test_a_remedy_and_its_step_of_the_plan_still_belong_together() -> None:
    engines = {"r": "sglang_log"}
    plan = renamed_plan(make_plan([outcome("r")]), engines)
    assert plan.steps[0].text.startswith("Raise --max-running-requests")
    assert plan.step_of("r", renamed(outcome("r"), engines).remedies[0]) == 1
