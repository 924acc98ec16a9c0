"""One ordered plan out of the remedies of all findings: configuration, then architecture, then hardware.

A remedy that moves nothing but what is known (its ``moves`` begins with "what": what is compared, what is believed) mends no
fault, and comes behind those of its kind that do.

Remedies of different rules may repeat or contradict each other, may ask for what is already so, or for cards that no
finding calls for.  What is kept is a `Step`; what is not is `Withheld`, with the reason.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Final

from tracelens.outcomes import CONFIDENCES, Outcome
from tracelens.rulebook import KINDS, Remedy

SATURATED: Final = {"hbm-bandwidth-bound": "high", "kv-cache-pressure": "medium", "prefill-bound": "medium"}
"""Causes that show a limit of the hardware, and the confidence from which on they do."""
MENDED: Final = frozenset(
    {"gpu-faulty-state", "gpu-hidden-slow-state", "thermal-power-throttling", "tp-imbalance-or-pcie"}
)
"""Causes whose own hardware remedy mends what is there, instead of adding to it."""
HARDWARE_LAST: Final = "only if the limit still binds after the steps before it"

Ask = tuple[str, str]
"""A setting and where it should go: ``("max_num_seqs", "up")``."""

_VERBS: Final = {
    "up": "raise increase enlarge higher larger",
    "down": "lower reduce decrease cut shrink smaller",
    "on": "enable activate use set add pass start",
    "off": "disable deactivate remove drop omit",
}
_SAYS: Final = {verb: way for way, verbs in _VERBS.items() for verb in verbs.split()} | {
    "turn on": "on", "switch on": "on", "turn off": "off", "switch off": "off",
}  # fmt: skip
_AGAINST: Final = {"up": "down", "down": "up", "on": "off", "off": "on"}
_SETTINGS: Final = (
    "max_num_seqs", "max_num_batched_tokens", "max_model_len", "gpu_memory_utilization", "tensor_parallel_size",
    "data_parallel_size", "long_prefill_token_threshold", "max_num_partial_prefills", "max_long_partial_prefills",
    "enable_prefix_caching", "enable_chunked_prefill", "enforce_eager", "async_scheduling", "api_server_count",
    "num_scheduler_steps", "block_size", "swap_space",
)  # fmt: skip
"""Settings that are known without the two dashes."""
_WORD: Final = re.compile(
    r"(?P<stop>[.;:](?=\s|$)|\binstead of\b)|(?P<no>\b(?:not|never|without|than)\b)"
    r"|(?P<flag>--[a-z][a-z0-9-]+|\b(?:" + "|".join(name.replace("_", "[_-]") for name in _SETTINGS) + r")\b)"
    r"|(?P<verb>\b(?:" + "|".join(sorted(_SAYS, key=len, reverse=True)) + r")\b)"
    r"|\b(?:to|at least)\s+(?P<to>\d[\d,]*(?:\.\d+)?)\b",
    re.IGNORECASE,
)
_ON: Final = ("true",)
_OFF_AT_ZERO: Final = frozenset({"long_prefill_token_threshold"})
"""Numbers that are a limit where they are set, and no limit where they are 0."""
_KNOWLEDGE: Final = "what "


@dataclass(frozen=True, slots=True)
class Step:
    """One thing to do.  `causes` and `rules` are those of the findings that ask for it, `remedies` their own words."""

    run: str
    step: int
    kind: str
    text: str
    moves: str
    next_limit: str
    causes: tuple[str, ...]
    rules: tuple[str, ...]
    note: str = ""
    remedies: tuple[Remedy, ...] = ()


@dataclass(frozen=True, slots=True)
class Withheld:
    """A remedy that the plan leaves out, and why."""

    run: str
    kind: str
    text: str
    rule: str
    reason: str


@dataclass(frozen=True, slots=True)
class Plan:
    """The steps of every run, numbered within the run, and what is not advised."""

    steps: tuple[Step, ...] = ()
    withheld: tuple[Withheld, ...] = ()

    def step_of(self, run: str, remedy: Remedy) -> int | None:
        """Number of the step that a remedy became; None where the plan leaves it out."""
        return next((step.step for step in self.steps if step.run == run and remedy in step.remedies), None)


@dataclass(frozen=True, slots=True)
class _Advice:
    """A remedy with the finding that asks for it, and what it does to which setting."""

    finding: Outcome
    remedy: Remedy
    asks: Mapping[Ask, float | None]


@dataclass(slots=True)
class _Draft:
    """The plan of one run while it is made."""

    kept: list[list[_Advice]] = field(default_factory=list)
    withheld: list[Withheld] = field(default_factory=list)
    asked: dict[Ask, _Advice] = field(default_factory=dict)


def make_plan(findings: Iterable[Outcome], settings: Mapping[str, Mapping[str, str]] | None = None) -> Plan:
    """The plan for fired outcomes in the order of their rank; `settings` are each run's, ``{run: {key: value}}``."""
    steps: list[Step] = []
    withheld: list[Withheld] = []
    for run, group in groupby(sorted(findings, key=lambda one: one.run), key=lambda one: one.run):
        draft = _draft(list(group), (settings or {}).get(run, {}))
        ordered = sorted(draft.kept, key=_place)
        steps += [_step(run, number, same) for number, same in enumerate(ordered, start=1)]
        withheld += draft.withheld
    return Plan(tuple(steps), tuple(withheld))


def _place(same: Sequence[_Advice]) -> tuple[int, bool]:
    informs = all(one.remedy.moves.startswith(_KNOWLEDGE) for one in same)
    return KINDS.index(same[0].remedy.kind), informs


def _draft(findings: Sequence[Outcome], settings: Mapping[str, str]) -> _Draft:
    draft = _Draft()
    saturated = any(_shows_saturation(finding) for finding in findings)
    for finding in findings:
        for remedy in finding.remedies:
            advice = _Advice(finding, remedy, asks(remedy.text))
            reason = _already(advice, settings) or _opposed(advice, draft) or _needless(advice, saturated)
            if reason:
                draft.withheld.append(_withheld(advice, reason))
            else:
                _keep(advice, draft)
    return draft


def _shows_saturation(finding: Outcome) -> bool:
    least = SATURATED.get(finding.cause)
    return least is not None and CONFIDENCES.index(finding.confidence) >= CONFIDENCES.index(least)


def _already(advice: _Advice, settings: Mapping[str, str]) -> str:
    """Why there is nothing left to do: all that the remedy asks for is so."""
    said = [_is_so(ask, goal, settings) for ask, goal in advice.asks.items()]
    return "; ".join(said) if said and all(said) else ""


def _is_so(ask: Ask, goal: float | None, settings: Mapping[str, str]) -> str:
    setting, way = ask
    value = settings.get(setting, "")
    if way == "on" and value.lower() in _ON:
        return f"{setting} is on already"
    if way == "off" and value.lower() == "false":
        return f"{setting} is off already"
    amount = _number(value)
    if way == "on" and setting in _OFF_AT_ZERO and amount:
        return f"{setting} is {value} already"
    if goal is None or amount is None:
        return ""
    reached = (way == "up" and amount >= goal) or (way == "down" and amount <= goal)
    return f"{setting} is {value} already" if reached else ""


def _number(text: str) -> float | None:
    try:
        return float(text.replace(",", ""))
    except ValueError:
        return None


def _opposed(advice: _Advice, draft: _Draft) -> str:
    for setting, way in advice.asks:
        other = draft.asked.get((setting, _AGAINST[way]))
        if other is not None:
            return f"contradicts {other.remedy.text!r} of {other.finding.rule}, which explains more of the lost time"
    return ""


def _needless(advice: _Advice, saturated: bool) -> str:
    if advice.remedy.kind != "hardware" or saturated or advice.finding.cause in MENDED:
        return ""
    return "no finding shows that the hardware is saturated"


def _withheld(advice: _Advice, reason: str) -> Withheld:
    return Withheld(advice.finding.run, advice.remedy.kind, advice.remedy.text, advice.finding.rule, reason)


def _keep(advice: _Advice, draft: _Draft) -> None:
    for ask in advice.asks:
        draft.asked.setdefault(ask, advice)
    twin = next((same for same in draft.kept if _same(same[0], advice)), None)
    if twin is None:
        draft.kept.append([advice])
    else:
        twin.append(advice)


def _same(one: _Advice, other: _Advice) -> bool:
    """Whether two remedies ask for the same: the same change of the same settings, or words that begin alike."""
    if one.remedy.kind != other.remedy.kind:
        return False
    if one.asks or other.asks:
        return one.asks.keys() == other.asks.keys()
    shorter, longer = sorted((_words(one.remedy.text), _words(other.remedy.text)), key=len)
    return longer[: len(shorter)] == shorter


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.casefold())


def _step(run: str, number: int, same: Sequence[_Advice]) -> Step:
    first = same[0].remedy
    needs_note = first.kind == "hardware" and any(one.finding.cause not in MENDED for one in same)
    return Step(
        run, number, first.kind, first.text,
        next((one.remedy.moves for one in same if one.remedy.moves), ""),
        next((one.remedy.next_limit for one in same if one.remedy.next_limit), ""),
        tuple(dict.fromkeys(one.finding.cause for one in same)),
        tuple(dict.fromkeys(one.finding.rule for one in same)),
        HARDWARE_LAST if needs_note else "",
        tuple(dict.fromkeys(one.remedy for one in same)),
    )  # fmt: skip


def keep_planned(outcome: Outcome, plan: Plan) -> Outcome:
    """An outcome with the remedies that the plan keeps, in its order."""
    steps = {remedy: plan.step_of(outcome.run, remedy) for remedy in outcome.remedies}
    kept = tuple(sorted((remedy for remedy in steps if steps[remedy]), key=lambda remedy: steps[remedy] or 0))
    return outcome if kept == outcome.remedies else replace(outcome, remedies=kept)


def asks(text: str) -> dict[Ask, float | None]:
    """What a remedy does to which settings, and up or down to which number, as far as its words say it.

    A setting belongs to the last verb before it in the same sentence; a verb behind "not" counts for nothing.
    """
    found: dict[Ask, float | None] = {}
    way, last, negated = "", None, False
    for match in _WORD.finditer(text):
        kind = match.lastgroup or ""
        if kind == "stop":
            way, last, negated = "", None, False
        elif kind == "no":
            negated = True
        elif kind == "verb":
            way, negated = ("" if negated else _SAYS[match.group().lower()]), False
        elif kind == "flag":
            last, negated = _ask(match.group(), way, negated), False
            found |= {last: None} if last else {}
        elif last is not None:
            found[last] = _number(match["to"])
    return found


def _ask(flag: str, way: str, negated: bool) -> Ask | None:
    """A flag by the name of its setting; ``--no-X`` is X the other way, and so is a start without ``--X``."""
    if not way or (negated and way not in ("on", "off")):
        return None
    setting = flag.lower().removeprefix("--").replace("-", "_")
    bare = setting.removeprefix("no_")
    turned = (bare != setting) != negated
    return bare, _AGAINST[way] if turned else way
