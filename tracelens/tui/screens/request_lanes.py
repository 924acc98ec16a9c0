"""The lanes of one request: its own stages, those of its peers, who was served meanwhile, the engine.  All share one axis."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final

from rich.text import Text

from tracelens.text.bars import BAR_STAGES, Piece
from tracelens.text.terminal import shorten
from tracelens.tui.draw import SILENT, limit_labels, limit_lane, spark, stage_bar, stretched, time_axis
from tracelens.tui.ink import Ink
from tracelens.units import STAGE_LETTERS, count, percent

LANES: Final = 6
"""Lanes of batch-mates that are drawn; the table below has all of them."""
_LABEL: Final = 20
_EDGE: Final = " │"

Facts = Mapping[str, Any]


@dataclass(slots=True)
class Scene:
    """What is known of one request so far; the answers come one by one."""

    facts: Facts = field(default_factory=dict)
    stages: Sequence[Facts] = ()
    peers: Sequence[Facts] = ()
    mates: Sequence[Facts] | None = None
    company: Facts = field(default_factory=dict)
    engine: Sequence[Facts] | None = None
    chunks: Sequence[Facts] = ()

    def seconds(self, stage: str) -> float | None:
        """How long a stage took."""
        length: float | None = next((row["duration_s"] for row in self.stages if row["stage"] == stage), None)
        return length

    @property
    def likeness(self) -> str:
        """Whose medians `peers` are."""
        is_alike = bool(self.peers) and self.peers[0]["basis"].startswith("requests of")
        return "similar requests" if is_alike else "median of the run"

    @property
    def whole_s(self) -> float:
        """From its beginning to its end."""
        return self.facts.get("whole_e2e_s") or self.facts.get("whole_ttft_s") or 0.0


def lane_lines(scene: Scene, width: int, ink: Ink) -> Iterator[Text]:
    """All lanes, the axis last."""
    room = max(width - _LABEL - len(_EDGE), 10)
    whole = scene.whole_s
    if whole <= 0:
        yield Text("How long it was there is not known: no lane can be drawn.", style=ink.dim)
        return
    yield _labelled("this request", _own(scene, room, ink), ink.strong)
    if scene.peers:
        yield _labelled(scene.likeness, _peers(scene, room, ink), ink.dim)
    if scene.chunks:
        yield _labelled("chunks", _chunks(scene, room, ink), ink.plain)
    yield from _mate_lanes(scene, room, ink)
    yield from _engine(scene, room, ink)
    start = scene.facts["arrival_ts"] - timedelta(seconds=scene.seconds("network_in") or 0.0)
    axis = time_axis(start, start + timedelta(seconds=whole), room)
    _, below = limit_labels((row["bound_by"] for row in scene.engine or []), _LABEL - 1)
    yield _labelled(below, Text(axis, style=ink.dim), ink.plain)
    yield _labelled("", Text(shorten(_legend(scene), room), style=ink.dim), ink.dim)


def _legend(scene: Scene) -> str:
    """What the marks in the lanes mean, of those that may be there."""
    said = ["╵ chunk"] if scene.chunks else []
    said += ["━ stall"] if any(row["is_stall"] for row in scene.chunks) else []
    said += ["P prefill  d decode"] if scene.mates else []
    said += (
        ["! prefill of a preempted one"]
        if any(mate["preemption_count"] for mate in scene.mates or [])
        else []
    )
    return "  ".join([*said, f"{SILENT} no source says"])


def _labelled(label: str, lane: Text, style: str, value: str = "") -> Text:
    line = Text(
        f"{label[: _LABEL - len(value) - 1]:<{_LABEL - len(value)}}{value}", style=style, no_wrap=True
    )
    return line.append(_EDGE).append_text(lane)


def _own(scene: Scene, room: int, ink: Ink) -> Text:
    by_name = {row["stage"]: row for row in scene.stages}
    known = [
        by_name[stage]
        for stage in BAR_STAGES
        if stage in by_name and by_name[stage]["duration_s"] is not None
    ]
    pieces = [Piece(STAGE_LETTERS[row["stage"]], row["duration_s"], row["provenance"]) for row in known]
    return stage_bar(pieces, room, ink)


def _peers(scene: Scene, room: int, ink: Ink) -> Text:
    by_name = {row["stage"]: row["median_s"] for row in scene.peers}
    pieces = [
        Piece(STAGE_LETTERS[stage], by_name[stage], "observed") for stage in BAR_STAGES if by_name.get(stage)
    ]
    total = sum(piece.seconds or 0.0 for piece in pieces)
    cells = max(min(round(room * total / scene.whole_s), room), min(len(pieces), room))
    bar = stage_bar(pieces, cells, ink)
    bar.truncate(room)
    return bar


def _chunks(scene: Scene, room: int, ink: Ink) -> Text:
    """A stroke per chunk, a heavy line where the stream stalled."""
    cells = [" "] * room
    for row in scene.chunks:
        place = _place(row["offset_s"], scene.whole_s, room)
        if row["is_stall"]:
            begin = _place(row["offset_s"] - row["gap_s"], scene.whole_s, room)
            cells[begin : place + 1] = "━" * (place + 1 - begin)
        cells[place] = "╵"
    lane = Text("".join(cells), style=ink.stage("D"), no_wrap=True)
    lane.highlight_regex("━+", ink.bad)
    return lane


def _place(seconds: float, whole_s: float, room: int) -> int:
    return max(min(int(seconds / whole_s * room), room - 1), 0)


def _mate_lanes(scene: Scene, room: int, ink: Ink) -> Iterator[Text]:
    if scene.mates is None:
        yield _labelled("batch-mates", Text("reading …", style=ink.dim), ink.dim)
        return
    served = [mate for mate in scene.mates if _begin(mate) is not None and mate["to_s"] is not None]
    if not served:
        yield _labelled("batch-mates", Text("┊ none that stamps show", style=ink.dim), ink.dim)
        return
    lanes = _packed(served, scene.whole_s / room)
    shift = scene.seconds("network_in") or 0.0
    for place, lane in enumerate(lanes[:LANES], start=1):
        yield _labelled(f"served beside it {place}", _mates(lane, shift, scene.whole_s, room, ink), ink.dim)
    more = sum(map(len, lanes[LANES:]))
    if more:
        yield _labelled("", Text(f"{more:,} more batch-mates: b lists them", style=ink.dim), ink.dim)


def _begin(mate: Facts) -> float | None:
    begin: float | None = mate["scheduled_s"] if mate["scheduled_s"] is not None else mate["first_token_s"]
    return begin


def _packed(mates: Sequence[Facts], cell_s: float) -> list[list[Facts]]:
    """Mates in as few lanes as hold them without overlap (to be seen): with few seats, a lane is a seat."""
    lanes: list[list[Facts]] = []
    for mate in sorted(mates, key=lambda one: (_begin(one), one["request_id"])):
        free = next((lane for lane in lanes if lane[-1]["to_s"] <= (_begin(mate) or 0.0) + cell_s), None)
        if free is None:
            lanes.append([mate])
        else:
            free.append(mate)
    return lanes


def _mates(mates: Sequence[Facts], shift: float, whole_s: float, room: int, ink: Ink) -> Text:
    cells: list[tuple[str, str]] = [(" ", "")] * room
    for mate in mates:
        begin, first, end = _begin(mate) or 0.0, mate["first_token_s"], mate["to_s"]
        if end + shift < 0 or begin + shift > whole_s:
            continue
        start, stop = (_place(moment + shift, whole_s, room) for moment in (begin, end))
        token = _place((first if first is not None else begin) + shift, whole_s, room)
        letter = "!" if mate["preemption_count"] else "P"
        for cell in range(start, stop + 1):
            prefilling = mate["scheduled_s"] is not None and (cell == start or cell < token)
            cells[cell] = (letter, ink.stage("P")) if prefilling else ("d", ink.stage("D"))
    lane = Text(no_wrap=True)
    for mark, style in cells:
        lane.append(mark, style=style)
    return lane


def _engine(scene: Scene, room: int, ink: Ink) -> Iterator[Text]:
    rows = scene.engine or []
    shift = _place(scene.seconds("network_in") or 0.0, scene.whole_s, room)
    before, inner = " " * shift, max(room - shift, 1)

    def lane(label: str, key: str, said: str, top: float | None = None) -> Text:
        values = [row[key] for row in rows]
        if all(value is None for value in values):
            return _labelled(label, Text("┊ no source says it", style=ink.dim), ink.dim)
        text = before + stretched(spark(values, top), len(values), inner)
        return _labelled(label, Text(text, style=ink.link), ink.plain, said)

    if not rows:
        return
    of = rows[0]
    seats = of["seat_highest_count"]
    running = count(of["running_highest_count"]) + (f" of {count(seats)}" if seats else "")
    yield lane("waiting", "waiting_count", count(of["waiting_highest_count"]))
    yield lane("running", "running_count", running, seats)
    yield lane("KV cache", "kv_cache_usage_ratio", percent(of["kv_cache_usage_highest_ratio"]), 1.0)
    yield lane("GPU", "sm_ratio", percent(of["sm_highest_ratio"]), 1.0)
    limits = [row["bound_by"] for row in rows]
    label, _ = limit_labels(limits, _LABEL - 1)
    yield _labelled(label, Text(before).append_text(limit_lane(limits, inner, ink)), ink.plain)
