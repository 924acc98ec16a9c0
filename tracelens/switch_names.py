"""Rules name the switches of vLLM; a run of SGLang or TGI hears what the same is called there.

Written from the manuals of SGLang 0.5 (server arguments) and TGI 3 (launcher arguments).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from tracelens.outcomes import Outcome
from tracelens.plan import Plan
from tracelens.rulebook import Remedy

OTHER_NAMES: Final[Mapping[str, Mapping[str, str]]] = {
    "sglang_log": {
        "--max-num-seqs": "--max-running-requests",
        "--max-num-batched-tokens": "--chunked-prefill-size",
        "--gpu-memory-utilization": "--mem-fraction-static",
        "--max-model-len": "--context-length",
        "--enforce-eager": "--disable-cuda-graph",
        "--speculative-config": "--speculative-algorithm",
        "--enable-log-requests": "--log-requests",
    },
    "tgi_log": {
        "--max-num-seqs": "--max-batch-size",
        "--max-num-batched-tokens": "--max-batch-prefill-tokens",
        "--gpu-memory-utilization": "--cuda-memory-fraction",
        "--max-model-len": "--max-total-tokens",
        "--enforce-eager": "--cuda-graphs 0",
    },
}
"""By the format of the log: what vLLM calls a switch, and what that engine calls it."""
_VLLM: Final = "vllm_log"
_SWITCH: Final = re.compile(r"--[a-z][a-z-]*[a-z]\b")


def other_engines(sources: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """The format of the log of each run that one other engine wrote alone."""
    formats: dict[str, set[str]] = {}
    for row in sources:
        if row["format"] in OTHER_NAMES or row["format"] == _VLLM:
            formats.setdefault(str(row["run_id"]), set()).add(str(row["format"]))
    return {
        run: next(iter(found)) for run, found in formats.items() if len(found) == 1 and _VLLM not in found
    }


def renamed(outcome: Outcome, engines: Mapping[str, str]) -> Outcome:
    """An outcome with the switches of its run's engine in what it says and advises."""
    names = OTHER_NAMES.get(engines.get(outcome.run, ""))
    if not names:
        return outcome
    return replace(
        outcome,
        message=_said(outcome.message, names),
        verdict=_said(outcome.verdict, names),
        remedies=_advised(outcome.remedies, names),
    )


def renamed_plan(plan: Plan, engines: Mapping[str, str]) -> Plan:
    """The same for what the plan advises, and for what it does not."""

    def names(run: str) -> Mapping[str, str]:
        return OTHER_NAMES.get(engines.get(run, ""), {})

    steps = (
        replace(
            step, text=_said(step.text, names(step.run)), remedies=_advised(step.remedies, names(step.run))
        )
        for step in plan.steps
    )
    withheld = (replace(one, text=_said(one.text, names(one.run))) for one in plan.withheld)
    return Plan(tuple(steps), tuple(withheld))


def _advised(remedies: Iterable[Remedy], names: Mapping[str, str]) -> tuple[Remedy, ...]:
    return tuple(replace(remedy, text=_said(remedy.text, names)) for remedy in remedies)


def _said(text: str, names: Mapping[str, str]) -> str:
    return _SWITCH.sub(lambda found: names.get(found[0], found[0]), text)
