"""Why one request was slow, in a sentence; then what it was."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from rich.text import Text

from tracelens.marks import Mark
from tracelens.text.terminal import clean, shorten
from tracelens.tui.draw import LIMITS, sentence
from tracelens.tui.ink import Ink
from tracelens.tui.screens.request_lanes import Scene
from tracelens.tui.words import clock
from tracelens.units import STAGE_LETTERS, count, duration, percent, plural

_MEASURES: Final = {"ttft": "TTFT", "e2e": "E2E", "tpot": "TPOT", "queue": "queue", "prefill": "prefill"}
_DOES: Final = {
    "client_wait": "The client held it back for {time} before it was sent",
    "network_in": "It was {time} on its way to the server",
    "tokenize": "The front end took {time} to accept and tokenize it",
    "step_wait": "It waited {time} for the engine's running step to end",
    "unaccounted": "{time} of it are not accounted for",
    "queue": "It waited {time} in the queue",
    "prefill": "Its prefill took {time}",
    "stream_out": "Its first token took {time} to reach the client",
    "decode": "Its decode took {time}",
}
"""What a stage does to a request that it makes slow."""
_NOTABLE: Final = 0.3
"""Part of the excess from which on a batch-mate's prefill is told."""


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
    """Which stage made it slow, what else was there, and how that compares.

    By TTFT the stages up to the first token are judged; a decode that is slower still is told after it.
    """
    known = [row for row in scene.stages if row["duration_s"] is not None and row["stage"] != "client_wait"]
    if not known:
        return "No first token was seen by anyone: where its time went is not known." if scene.stages else ""
    judged = [row for row in known if row["stage"] != "decode" or by in ("e2e", "tpot")] or known
    longest = _longest(scene, judged)
    parts = [_does(scene, longest), *_around(scene, longest)]
    if longest["stage"] not in ("prefill", "decode") and scene.seconds("prefill") is not None:
        parts.append(f"Its own prefill took {duration(scene.seconds('prefill'))}")
    if _longest(scene, known) is not longest:
        parts.append(_does(scene, _longest(scene, known)))
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


def _around(scene: Scene, longest: Mapping[str, Any]) -> Iterator[str]:
    if longest["stage"] == "queue":
        yield from _waited_for(scene)
    elif longest["stage"] in ("step_wait", "prefill", "decode"):
        yield from _prefilled(scene, longest["stage"])
    elif longest["stage"] == "unaccounted":
        yield longest["basis"][:1].upper() + longest["basis"][1:]


def _prefilled(scene: Scene, stage: str) -> Iterator[str]:
    if stage == "prefill" and scene.facts.get("cached_input_tokens") is not None:
        yield (
            f"{count(scene.facts['cached_input_tokens'])} of its {count(scene.facts['input_tokens'])} prompt tokens "
            "were in the prefix cache"
        )
    mates = [mate for mate in scene.mates or [] if (mate["prefill_ratio"] or 0.0) >= _NOTABLE]
    told = {"wait": "before it was scheduled", "prefill": "of its prefill", "decode": "of its decode"}
    if mates:
        most = max(mates, key=lambda mate: (mate["input_tokens"] or 0, mate["prefill_ratio"]))
        of_what = told[most["excess_stage"]]
        yield (
            f"{shorten(clean(most['request_id']), 24, middle=True)} ({count(most['input_tokens'])} tokens in) was in prefill "
            f"for {percent(most['prefill_ratio'])} {'of the time ' if of_what.startswith('before') else ''}{of_what}"
        )


def _median(scene: Scene, stage: str) -> float | None:
    found = next((row["median_s"] for row in scene.peers if row["stage"] == stage), None)
    if found is None:
        found = next((row["median_s"] for row in scene.stages if row["stage"] == stage), None)
    return found


def _does(scene: Scene, row: Mapping[str, Any]) -> str:
    share = (
        f", {percent(row['share_of_ttft_ratio'])} of its TTFT"
        if row["share_of_ttft_ratio"] is not None
        else ""
    )
    said = _DOES[row["stage"]].format(time=duration(row["duration_s"]))
    return f"{said}{share} (similar requests: {duration(_median(scene, row['stage']))})"


def _waited_for(scene: Scene) -> Iterator[str]:
    limits = [
        row["bound_by"] for row in scene.engine or [] if row["bound_by"] not in (None, "none", "unknown")
    ]
    if limits:
        first = limits[0]
        seats = scene.engine[0]["seat_highest_count"] if scene.engine else None
        yield (
            f"All {plural(seats, 'seat')} were taken"
            if first == "seats" and seats
            else f"The queue waited for {LIMITS[first][1]}"
        )
    if scene.company.get("served_meanwhile_count"):
        yield f"{plural(scene.company['served_meanwhile_count'], 'other')} got their first token while it waited for its own"


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
