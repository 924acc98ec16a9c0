"""Whether two runs can be compared: what they do not have in common, and what of that forbids it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from tracelens import units
from tracelens.compare.values import Difference

Profile = Mapping[tuple[str, str], Mapping[str, Any]]
_FEWEST: Final = 5
_BLOCKS: Final[Mapping[str, str]] = {
    "model": "another model",
    "TTFT measured by": "TTFT starts and ends at other points",
}
"""Facts that must be the same where both are known, and why."""
_LIMITS: Final[Mapping[str, tuple[float, bool, str]]] = {
    "input tokens, median": (1.33, True, "another workload: prompts of other lengths"),
    "input tokens, 90 %": (1.5, True, "another workload: prompts of other lengths"),
    "output tokens, median": (1.5, True, "another workload: answers of other lengths"),
    "output tokens, 90 %": (1.5, False, "answers of other lengths"),
    "arrivals per second": (1.5, False, "another load; with a fixed number of clients it follows from the times themselves"),
}  # fmt: skip
"""Facts that may differ by this factor; whether more than that blocks; why."""
_APART: Final[Mapping[str, tuple[float, bool, str]]] = {
    "share streamed": (0.2, True, "client times of streamed and whole answers are not the same thing"),
    "share of input tokens cached": (
        0.3,
        False,
        "more of the prompts hit the prefix cache: the fix itself, or the same prompts sent once more",
    ),
    "share failed or aborted": (0.02, False, "requests that fail or give up are missing in the times"),
}
"""Shares that may differ by this much; whether more blocks; why."""
_CACHED: Final = ("load", "share of input tokens cached")
_SERVER: Final = ("server", "setting")


def profile(rows: Sequence[Mapping[str, Any]]) -> Profile:
    """Rows of the query `run_profile` by kind and fact, without what a start took."""
    return {
        (row["kind"], row["fact"]): row for row in rows if not row["fact"].endswith(("_s", "_bytes"))
    }  # what a start took is no setting


def differences(before: Profile, after: Profile) -> list[Difference]:
    """What two profiles do not have in common, and too few requests on either side; what blocks comes first."""
    found = [*_unlike(before, after), *_too_few(before, after)]
    return sorted(found, key=lambda one: not one.blocks)


def _unlike(before: Profile, after: Profile) -> Iterator[Difference]:
    told = [any(kind in _SERVER for kind, _ in side) for side in (before, after)]
    if told[0] != told[1]:
        words = ["known" if one else units.UNKNOWN for one in told]
        yield Difference("setting", "settings of the server", words[0], words[1])
    for key in sorted({*before, *after}):
        one, other = before.get(key), after.get(key)
        if key[0] in _SERVER and not all(told):
            continue
        if one is None or other is None or one["told"] != other["told"]:
            found = _difference(key, one, other)
            if found is not None:
                yield found


def _too_few(before: Profile, after: Profile) -> Iterator[Difference]:
    for name, side in (("before", before), ("after", after)):
        requests = side.get(("load", "requests"))
        if requests is None or requests["amount"] < _FEWEST:
            known = "0" if requests is None else requests["told"]
            why = f"too few requests {name} to say anything"
            yield Difference("load", f"requests {name}", known, known, blocks=True, why=why)


def cached(before: Profile, after: Profile) -> tuple[float, float] | None:
    """The share of input tokens from the prefix cache on either side, where the sides are far apart."""
    one, other = before.get(_CACHED), after.get(_CACHED)
    if one is None or other is None or _gap(one, other) <= _APART[_CACHED[1]][0]:
        return None
    return float(one["amount"] or 0.0), float(other["amount"] or 0.0)


def _difference(
    key: tuple[str, str], before: Mapping[str, Any] | None, after: Mapping[str, Any] | None
) -> Difference | None:
    kind, fact = key
    told = (_told(fact, before), _told(fact, after))
    both = before is not None and after is not None
    if fact in _BLOCKS:
        return Difference(kind, fact, *told, blocks=both, why=_BLOCKS[fact] if both else "")
    if fact in _LIMITS or fact in _APART:
        if before is None or after is None:
            return Difference(kind, fact, *told)
        limit, blocks, why = _LIMITS.get(fact) or _APART[fact]
        apart = _factor(before, after) > limit if fact in _LIMITS else _gap(before, after) > limit
        return Difference(kind, fact, *told, blocks=blocks, why=why) if apart else None
    if kind == "load":
        return None
    if kind == "setting" and not (both or _is_stated(before or after)):
        return None
    return Difference(kind, f"files of {fact}" if kind == "source" else fact, *told)


def _told(fact: str, side: Mapping[str, Any] | None) -> str:
    """A fact of one side as people read it."""
    if side is None:
        return units.UNKNOWN
    if fact in _APART:
        return units.percent(side["amount"])
    return units.number(side["amount"]) if fact in _LIMITS else str(side["told"])


def _factor(before: Mapping[str, Any], after: Mapping[str, Any]) -> float:
    low, high = sorted((before["amount"] or 0.0, after["amount"] or 0.0))
    return 1.0 if high == low else high / low if low > 0 else float("inf")


def _gap(before: Mapping[str, Any], after: Mapping[str, Any]) -> float:
    return abs(float(before["amount"] or 0.0) - float(after["amount"] or 0.0))


def _is_stated(fact: Mapping[str, Any] | None) -> bool:
    return fact is not None and bool(fact["is_stated"])


def refusal(differences: Sequence[Difference]) -> str:
    """Why the runs cannot be compared, in a sentence."""
    reasons = dict.fromkeys(one.why for one in differences if one.blocks)
    return f"These runs cannot be compared: {'; '.join(reasons)}."
