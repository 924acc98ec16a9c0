"""Why one request was slow, in a sentence; then what it was."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from rich.text import Text

from tracelens.marks import Mark
from tracelens.text.terminal import clean, shorten
from tracelens.tui.draw import sentence
from tracelens.tui.ink import Ink
from tracelens.tui.screens.request_lanes import Scene
from tracelens.tui.words import clock
from tracelens.units import STAGE_LETTERS, count, duration, percent, plural

_MEASURES: Final = {"ttft": "TTFT", "e2e": "E2E", "tpot": "TPOT", "queue": "queue", "prefill": "prefill"}
_DOES: Final = {
    "client_wait": "The client held it back for {time} before it was sent",
    "network_in": "{time} went by from the client's send to its arrival at the server",
    "tokenize": "The front end took {time} to accept and tokenize it",
    "step_wait": "It waited {time} for the engine's running step to end",
    "unaccounted": "{time} of it are not accounted for",
    "queue": "It waited {time} in the queue",
    "prefill": "Its prefill took {time}",
    "stream_out": "Its first token took {time} to reach the client",
    "decode": "Its decode took {time}",
}
"""What a stage does to a request that it makes slow."""
_BEFORE_PREFILL: Final = ("network_in", "tokenize", "step_wait", "unaccounted", "queue")
_NOTABLE: Final = 0.3
"""Part of a stage from which on a batch-mate's prefill is told."""
_ALSO: Final = 0.2
"""Part of TTFT from which on a further stage is told."""
_USUAL: Final = 1.2
"""How many times its median a stage takes that is not as usual."""
_LONGER: Final = 2.0
"""How many times the tokens of the others are worth telling."""
_LONG_PROMPT: Final = 1000
"""Tokens from which on it is told what the prefix cache had of them."""
_ASKEW: Final = 10.0
"""How many times the way back a way in takes that is not the network's."""


def why_lines(
    scene: Scene, rank: Mapping[str, Any], mark: Mark | None, width: int, ink: Ink
) -> Iterator[Text]:
    """The sentence, what the request was, its mark."""
    told = why(scene, rank.get("measure", "ttft"))
    yield from sentence(told or "reading its stages …", width, ink.strong if told else ink.dim)
    yield from sentence(" · ".join(_was(scene.facts, rank)), width, ink.dim)
    if mark is not None:
        yield from sentence(f"★ marked{': ' + mark.note if mark.note else ''}", width, ink.warn)


def why(scene: Scene, by: str = "ttft") -> str:
    """Which stages made it slow, what else was there, and how that compares.

    By TTFT the stages up to the first token are judged; a decode that is slower still is told after them.
    """
    known = [row for row in scene.stages if row["duration_s"] is not None and row["stage"] != "client_wait"]
    if not known:
        return "No first token was seen by anyone: where its time went is not known." if scene.stages else ""
    judged = [row for row in known if row["stage"] != "decode" or by in ("e2e", "tpot")] or known
    longest = _longest(scene, judged)
    told = [longest, *(row for row in judged if row is not longest and _counts(scene, row))]
    told += [row for row in (_longest(scene, known),) if row not in told]
    parts = [part for row in told for part in (_does(scene, row), *_around(scene, row))]
    if (
        all(row["stage"] not in ("prefill", "decode") for row in told)
        and scene.seconds("prefill") is not None
    ):
        parts.append(f"Its own prefill took {duration(scene.seconds('prefill'))}")
    if scene.chunks and scene.chunks[0]["stall_count"]:
        stream = scene.chunks[0]
        stalls = plural(stream["stall_count"], "time")
        parts.append(f"Its stream stalled {stalls}, for up to {duration(stream['longest_stall_s'])}")
    return ". ".join(parts) + "."


def _longest(scene: Scene, rows: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """The stage that takes most beyond the median of similar requests; the longest where none takes more."""
    excess = {row["stage"]: row["excess_s"] or 0.0 for row in scene.peers}
    longest = max(rows, key=lambda row: (excess.get(row["stage"], 0.0), row["duration_s"]))
    return longest if excess.get(longest["stage"], 0.0) > 0 else max(rows, key=lambda row: row["duration_s"])


def _counts(scene: Scene, row: Mapping[str, Any]) -> bool:
    """Whether a stage is a part of TTFT worth telling, and longer than it usually is."""
    peer = next((one for one in scene.peers if one["stage"] == row["stage"]), row)
    times = peer["times_median"]
    return (row["share_of_ttft_ratio"] or 0.0) >= _ALSO and (times is None or times >= _USUAL)


def _does(scene: Scene, row: Mapping[str, Any]) -> str:
    said = _DOES[row["stage"]].format(time=duration(row["duration_s"]))
    if row["share_of_ttft_ratio"] is not None:
        said += f", {percent(row['share_of_ttft_ratio'])} of its TTFT"
    peer = next((one for one in scene.peers if one["stage"] == row["stage"]), None)
    usual = row["median_s"] if peer is None else peer["median_s"]
    if row["stage"] == "decode" and peer is not None and scene.facts.get("output_tokens") is not None:
        said += f" for {plural(scene.facts['output_tokens'], 'token')}"
        return f"{said} ({scene.likeness}: {duration(usual)} for {count(peer['mean_output_tokens'])})"
    return f"{said} ({scene.likeness}: {duration(usual)})"


def _around(scene: Scene, row: Mapping[str, Any]) -> Iterator[str]:
    """What lay behind a stage."""
    stage = row["stage"]
    if stage == "network_in":
        yield _way(row, scene.seconds("stream_out"))
    elif stage == "unaccounted":
        yield from _held(scene, row["basis"])
    elif stage == "queue":
        yield from _waited_for(scene)
    elif stage == "prefill":
        yield from _own_prompt(scene)
    yield from _prefilled(scene, stage)


def _way(row: Mapping[str, Any], back_s: float | None) -> str:
    """What a long way in was, by the way back: a network is slow on both."""
    back = "" if back_s is None else f"The way back took {duration(back_s)}"
    if "holds tokenization" in row["basis"]:
        return f"{back or 'That is the network'}; tokenization is in the way in: this version stamps the arrival after it"
    if back_s is None:
        return "That is a wait for a connection of the client's, or the network"
    if row["duration_s"] >= _ASKEW * back_s:
        return f"{back}: it rather waited for a connection, in the client or to be accepted, than for the network"
    return f"{back}: the network, or a proxy on it"


def _held(scene: Scene, basis: str) -> Iterator[str]:
    """The stages that unaccounted time holds, and what would tell them apart."""
    _, _, stages = clean(basis).partition("in it: ")
    if not stages:
        yield basis[:1].upper() + basis[1:]
        return
    wanted = (row["basis"].partition("needs ")[2] for row in scene.stages if row["duration_s"] is None)
    needs = next((f"; telling which needs {want}" for want in wanted if want), "")
    *most, last = stages.split(", ")
    yield f"They lie in {', '.join(most)}{' or ' if most else ''}{last}{needs}"


def _own_prompt(scene: Scene) -> Iterator[str]:
    tokens, cached = scene.facts.get("input_tokens") or 0, scene.facts.get("cached_input_tokens")
    usual = scene.peers[0]["mean_input_tokens"] if scene.peers else None
    if usual and tokens >= _LONGER * usual:
        yield f"Its prompt has {count(tokens)} tokens, the mean of the others is {count(usual)}"
    if cached is not None and tokens >= _LONG_PROMPT:
        yield f"{count(cached)} of its {count(tokens)} prompt tokens were in the prefix cache"


def _prefilled(scene: Scene, stage: str) -> Iterator[str]:
    """Who was in prefill during the stage that is this request's excess."""
    excess = "wait" if stage in _BEFORE_PREFILL else stage
    mates = [
        mate
        for mate in scene.mates or []
        if mate["excess_stage"] == excess and (mate["prefill_ratio"] or 0.0) >= _NOTABLE
    ]
    if mates:
        most = max(mates, key=lambda mate: (mate["input_tokens"] or 0, mate["prefill_ratio"]))
        name = shorten(clean(most["request_id"]), 24, middle=True)
        more = f", and {plural(len(mates) - 1, 'other')} beside it" if len(mates) > 1 else ""
        when = "of its wait" if excess == "wait" else "of that time"
        yield f"For {percent(most['prefill_ratio'])} {when} {name} ({count(most['input_tokens'])} tokens in) was in prefill{more}"


def _waited_for(scene: Scene) -> Iterator[str]:
    """What bound the engine through most of the time until the first token."""
    rows = scene.engine or []
    until = max(round(len(rows) * (scene.facts.get("whole_ttft_s") or 0.0) / (scene.whole_s or 1.0)), 1)
    limits = Counter(row["bound_by"] for row in rows[:until])
    del limits[None], limits["none"], limits["unknown"]
    if limits:
        yield _limited(limits.most_common(1)[0][0], rows[0])
    if scene.company.get("served_meanwhile_count"):
        yield f"{plural(scene.company['served_meanwhile_count'], 'other')} got their first token while it waited for its own"


def _limited(limit: str, lane: Mapping[str, Any]) -> str:
    seats, full = lane["seat_highest_count"], lane["kv_cache_usage_highest_ratio"]
    return {
        "seats": f"All {plural(seats, 'seat')} (--max-num-seqs) were taken"
        if seats
        else "All seats were taken",
        "kv": "The KV cache was short" if full is None else f"The KV cache was up to {percent(full)} full",
        "prefill": "Seats and KV cache had room: prefills before its own held it up",
        "stalled": "The engine computed nothing meanwhile",
        "deferred": "Requests were held back by something else than seats and KV cache",
    }[limit]


def _was(facts: Mapping[str, Any], rank: Mapping[str, Any]) -> Iterator[str]:
    if rank.get("measure_s") is not None:
        yield f"{count(rank['place'])} of {count(rank['known_count'])} by {_MEASURES[rank['measure']]}"
    ended = f" ({clean(facts['finish_reason'])})" if facts["finish_reason"] else ""
    yield f"status {facts['status']}{ended}"
    cached = (
        f" ({count(facts['cached_input_tokens'])} cached)" if facts["cached_input_tokens"] is not None else ""
    )
    yield f"{count(facts['input_tokens'])} tokens in{cached}, {count(facts['output_tokens'])} out"
    if facts["tpot_s"] is not None:
        yield f"TPOT {duration(facts['tpot_s'])}"
    if facts["preemption_count"]:
        yield plural(facts["preemption_count"], "preemption")
    if facts["streamed"] is False:
        yield "not streamed: the client saw no first token"
    yield f"arrived {clock(facts['arrival_ts'], finely=True)} UTC ({facts['arrival_basis'] or 'no stamp'})"
    if facts["client_path"] and facts["join_basis"]:
        yield f"joined by {clean(facts['join_basis'])}"
    elif facts["client_path"]:
        yield "seen by the client only"
    else:
        yield "no client file has it"


STAGES_TOLD: Final = tuple(_DOES)
"""Stages that have a sentence; every one that can have a length."""
assert set(STAGES_TOLD) | {"kv_alloc", "sample"} == set(STAGE_LETTERS)
