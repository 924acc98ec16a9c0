"""What to record next time, so that the rules that could not decide can: grouped by the switch that records it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from tracelens.outcomes import Outcome

SWITCHES: Final = (
    ("--enable-logging-iteration-details (what each engine step did)", r"--enable-logging-iteration-details"),
    ("--enable-log-requests (when each request came and went)", r"--enable-log-requests"),
    (
        "--otlp-traces-endpoint URL, or --enable-per-request-metrics (queue, prefill, TTFT of each request)",
        r"--otlp-traces-endpoint|--enable-per-request-metrics|\bspans?\b",
    ),
    ("stats lines (run without --disable-log-stats)", r"--disable-log-stats|stats lines?"),
    ("dcgmi dmon -e 1002,1004,1005 (SM, tensor and DRAM activity)", r"dcgmi|DCGM|--gpm-metrics"),
    ("nvidia-smi dmon -s pucvmet -o DT (utilisation, power, clocks, throttling)", r"nvidia-smi|\bdmon\b"),
    ("ids that client and server share (X-Request-Id, traceparent)", r"X-Request-Id|traceparent"),
    ("a streaming client that stamps the send and every chunk", r"\bclient\b|\bchunks?\b"),
    (
        "the server log from its first line, or its command line (version and settings)",
        r"start-?up|\bstart of the\b|first line|command line|--max-num-seqs|configuration|settings?\b",
    ),
)
"""What records something, and the words by which a rule asks for it; the first that matches counts."""

RECORDED: Final = {
    "engine_step": SWITCHES[0][0],
    "request_event": SWITCHES[1][0],
    "server_request": SWITCHES[2][0],
    "engine_sample": SWITCHES[3][0],
}
"""The table that has rows where a switch was on; rows of it are all that the switch gives."""
IN_PART: Final = {"gpu_sample": SWITCHES[5][0], "client_request": SWITCHES[7][0]}
"""The same, where rows may still lack what a rule asks for."""


FEW: Final = 3
NOTHING: Final = "nothing: "
"""How the words of a rule begin that cannot decide and needs nothing more; what follows says why."""
OTHER: Final = "what single rules ask for (tracelens check lists it)"


@dataclass(frozen=True, slots=True)
class Gap:
    """Something to record, and the rules that wait for it; `is_switch` where many rules ask for it by the same words."""

    collect: str
    rules: tuple[str, ...]
    is_switch: bool = True


def to_collect(outcomes: Iterable[Outcome]) -> tuple[Gap, ...]:
    """What the undecided rules lack; first what most of them wait for."""
    waiting: dict[str, dict[str, None]] = {}
    for outcome in outcomes:
        for collect in outcome.collect:
            waiting.setdefault(collect, {})[outcome.rule] = None
    known = {switch for switch, _ in SWITCHES}
    gaps = [Gap(collect, tuple(sorted(rules)), collect in known) for collect, rules in waiting.items()]
    return tuple(sorted(gaps, key=lambda gap: (not gap.is_switch, -len(gap.rules), gap.collect)))


def in_short(gaps: Sequence[Gap]) -> list[Gap]:
    """The switches, and what else a few rules ask for; more than `FEW` of those as one."""
    special = [gap for gap in gaps if not gap.is_switch]
    if len(special) <= FEW:
        return list(gaps)
    rules = sorted({rule for gap in special for rule in gap.rules})
    return [*(gap for gap in gaps if gap.is_switch), Gap(OTHER, tuple(rules), is_switch=False)]


def switch_of(missing: str) -> str:
    """The switch that a rule's own words mean; empty where they mean none that is known."""
    return next((switch for switch, words in SWITCHES if re.search(words, missing)), "")


def still_missing(missing: Sequence[str], having: Callable[[str], bool]) -> tuple[str, ...]:
    """What is missing, without what was on: `having` says whether a table has rows.  All of it where that leaves nothing."""
    on = {switch for relation, switch in RECORDED.items() if having(relation)}
    return tuple(words for words in missing if switch_of(words) not in on) or tuple(missing)


def switches(missing: Sequence[str], having: Callable[[str], bool]) -> tuple[str, ...]:
    """The switches that were off and record what is missing; the rule's own words where there is none, without `NOTHING`."""
    on = {switch for relation, switch in {**RECORDED, **IN_PART}.items() if having(relation)}
    wanted = [words for words in missing if not words.startswith(NOTHING)]
    off = dict.fromkeys(switch for words in wanted if (switch := switch_of(words)) and switch not in on)
    return tuple(off) or tuple(wanted)
