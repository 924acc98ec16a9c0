"""The lanes of the timeline, each as a line for a width."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from rich.text import Text

from tracelens.text.terminal import clean, shorten
from tracelens.tui.draw import (
    LIMITS,
    limit_labels,
    limit_lane,
    seen_of,
    sentence,
    spark,
    stretched,
    time_axis,
)
from tracelens.tui.ink import Ink
from tracelens.tui.words import clock
from tracelens.units import count, number, percent

if TYPE_CHECKING:
    from tracelens.check import Outcome

_LABEL: Final = 14
_VALUE: Final = 11
_EVENTS: Final = {"error": ("E", "error"), "start": ("*", "start"), "warning": ("w", "warning")}
_MARKS: Final = {"critical": "●", "warning": "▲", "info": "○"}


def _watts(value: float | None) -> str:
    return number(value) if value is None else f"{value:.0f} W"


@dataclass(frozen=True, slots=True)
class Lane:
    """A column of the query: its name, how a value is said, where its scale ends, and in what the curve is drawn."""

    label: str
    key: str
    said: Callable[[Any], str]
    top: float | None = None
    times: float = 1.0
    unit: str = ""

    @property
    def highest(self) -> str:
        """The column that has the highest value of all pieces: ``waiting_highest_count``."""
        stem, _, unit = self.key.rpartition("_")
        return f"{stem}_highest_{unit}"


LANES: Final = (
    Lane("arrivals", "arrival_count", count),
    Lane("completions", "completion_count", count),
    Lane("waiting", "waiting_count", count),
    Lane("running", "running_count", count),
    Lane("KV cache", "kv_cache_usage_ratio", percent, 1.0, 100.0, ", %"),
    Lane("prompt tok/s", "prompt_tps", number),
    Lane("gen. tok/s", "generation_tps", number),
    Lane("GPU sm", "sm_ratio", percent, 1.0, 100.0, ", %"),
    Lane("GPU DRAM", "dram_active_ratio", percent, 1.0, 100.0, ", %"),
    Lane("GPU power", "power_w", _watts, None, 1.0, ", W"),
)
"""From top to bottom; the first two count per piece."""


@dataclass(slots=True)
class Scene:
    """What is in view."""

    rows: Sequence[Mapping[str, Any]] = ()
    events: Mapping[int, Mapping[str, Any]] | None = None
    findings: Sequence[Outcome] | None = None
    place: int | None = None
    chosen: int = 2
    begun: datetime | None = None
    window: tuple[datetime, datetime] | None = None

    @property
    def cursor(self) -> int:
        """The piece that is looked at."""
        return self.place or 0

    @property
    def lane(self) -> Lane:
        """The lane that is drawn as a curve."""
        return LANES[self.chosen]


def telling_lane(rows: Sequence[Mapping[str, Any]]) -> int:
    """The lane to begin with: one that moves, waiting before the others."""
    for key in ("waiting_count", "running_count", "arrival_count", "sm_ratio"):
        if any(row[key] for row in rows):
            return next(place for place, lane in enumerate(LANES) if lane.key == key)
    return 0


def telling_place(rows: Sequence[Mapping[str, Any]]) -> int:
    """The piece to begin with: the first in which a limit bound the engine, else in which requests came."""
    bound = next((place for place, row in enumerate(rows) if row["bound_by"] not in (None, "none")), None)
    return (
        bound
        if bound is not None
        else next((place for place, row in enumerate(rows) if row["arrival_count"]), 0)
    )


def curves(scene: Scene) -> list[list[tuple[float, float]]]:
    """The chosen lane as points in the middle of their pieces; a piece in which no source says anything ends a curve."""
    found: list[list[tuple[float, float]]] = [[]]
    for place, row in enumerate(scene.rows):
        value = row[scene.lane.key]
        if value is not None:
            found[-1].append((place + 0.5, value * scene.lane.times))
        elif found[-1]:
            found.append([])
    return [curve for curve in found if curve]


def lane_lines(scene: Scene, width: int, ink: Ink) -> Iterator[Text]:
    """What the cursor stands on, the lanes, events, limits, the axis, the window."""
    room = max(width - _LABEL - _VALUE - 4, 10)
    yield from _at_cursor(scene, width, ink)
    yield Text(f"{'':<{_LABEL}}{'highest':>{_VALUE}}", style=ink.head, no_wrap=True)
    for place, lane in enumerate(LANES):
        yield _lane(scene, lane, room, ink, chosen=place == scene.chosen)
    limits = [row["bound_by"] for row in scene.rows]
    bound, below = limit_labels(limits, _LABEL + _VALUE - 2)
    yield _labelled(f"  {bound}", "", _marked(scene, limit_lane(limits, room, ink), room, ink), ink.plain)
    if below:
        yield _labelled(f"  {below}", "", Text(), ink.plain)
    yield _log(scene, room, ink)
    yield _labelled("", "", _pointer(scene, room, ink), ink.dim)
    axis = time_axis(scene.rows[0]["from_ts"], scene.rows[-1]["to_ts"], room)
    yield Text(" " * (_LABEL + _VALUE + 2) + axis, style=ink.dim, no_wrap=True)
    yield _window(scene, room, ink)


def _at_cursor(scene: Scene, width: int, ink: Ink) -> Iterator[Text]:
    row = scene.rows[scene.cursor]
    said = [f"{lane.label} {lane.said(row[lane.key])}" for lane in LANES if row[lane.key] is not None]
    bound = row["bound_by"]
    said += [f"bound by {LIMITS[bound][1]}"] if bound in LIMITS and bound != "none" else []
    yield Text(
        f"{clock(row['from_ts'], finely=True)} to {clock(row['to_ts'], finely=True)} UTC",
        style=ink.strong,
        no_wrap=True,
    )
    yield from sentence(" · ".join(said) or "no source says anything of it", width)
    event = (scene.events or {}).get(scene.cursor)
    if event is not None:
        lines = "1 line" if event["event_count"] == 1 else f"{count(event['event_count'])} lines, the first"
        yield Text(
            shorten(f"log, {lines}: {clean(event['first_message'])}", width), style=ink.warn, no_wrap=True
        )


def _labelled(label: str, value: str, lane: Text, style: str) -> Text:
    head = f"{label:<{_LABEL + _VALUE - len(value)}}{value}"
    return Text(f"{head} ┤", style=style, no_wrap=True).append_text(lane)


def _lane(scene: Scene, lane: Lane, room: int, ink: Ink, *, chosen: bool) -> Text:
    values = [row[lane.key] for row in scene.rows]
    label = ("▸ " if chosen else "  ") + lane.label
    if all(value is None for value in values):
        return _labelled(label, "", Text("┊ no source says it", style=ink.dim), ink.dim)
    drawn = Text(
        stretched(spark(values, lane.top), len(values), room), style=ink.warn if chosen else ink.link
    )
    return _labelled(
        label,
        lane.said(scene.rows[0][lane.highest]),
        _marked(scene, drawn, room, ink),
        ink.strong if chosen else ink.plain,
    )


def _log(scene: Scene, room: int, ink: Ink) -> Text:
    """Errors, warnings and starts of the server, each by its letter, the gravest of a cell."""
    if scene.events is None:
        return _labelled("  log", "", Text("reading …", style=ink.dim), ink.dim)
    if not scene.events:
        return _labelled("  log", "", Text("┊ no error, warning or start in view", style=ink.dim), ink.dim)
    cells = [" "] * room
    for place, event in sorted(
        scene.events.items(), key=lambda pair: -list(_EVENTS).index(pair[1]["gravest"])
    ):
        cells[min(place * room // len(scene.rows), room - 1)] = _EVENTS[event["gravest"]][0]
    lane = Text("".join(cells), style=ink.warn, no_wrap=True)
    lane.highlight_regex("E", ink.bad)
    seen = seen_of(_EVENTS, (event["gravest"] for event in scene.events.values()))
    return _labelled(
        shorten(f"  log {seen}", _LABEL + _VALUE), "", _marked(scene, lane, room, ink), ink.plain
    )


def _marked(scene: Scene, lane: Text, room: int, ink: Ink) -> Text:
    """The lane with the cursor's column, and the window's, on another ground."""
    lane = lane.copy()
    pieces = len(scene.rows)
    if scene.window is not None:
        start, end = _cells(scene, *scene.window, room)
        if start < end:
            lane.stylize(ink.faint_cursor, start, end)
    first = -(-scene.cursor * room // pieces)
    lane.stylize(ink.cursor, first, max(-(-(scene.cursor + 1) * room // pieces), first + 1))
    return lane


def _pointer(scene: Scene, room: int, ink: Ink) -> Text:
    """Where the cursor stands, and the ends of the window."""
    cells = [" "] * room
    if scene.window is not None:
        start, end = _cells(scene, *scene.window, room)
        if start < room and end > 0:
            cells[start:end] = "─" * (end - start)
            cells[start], cells[end - 1] = "[", "]"
    if scene.begun is not None:
        cells[min(max(_cells(scene, scene.begun, scene.begun, room)[0], 0), room - 1)] = "["
    cells[min(-(-scene.cursor * room // len(scene.rows)), room - 1)] = "▲"
    return Text("".join(cells), style=ink.strong, no_wrap=True)


def _cells(scene: Scene, start: datetime, end: datetime, room: int) -> tuple[int, int]:
    begin, whole = scene.rows[0]["from_ts"], scene.rows[-1]["to_ts"] - scene.rows[0]["from_ts"]
    first, last = ((stamp - begin) / whole * room for stamp in (start, end))
    return max(int(first), 0), min(max(round(last), int(first) + 1), room)


def _window(scene: Scene, room: int, ink: Ink) -> Text:
    if scene.begun is not None:
        said = f"window from {clock(scene.begun)} … (space ends it at the cursor)"
    elif scene.window is not None:
        said = f"window {clock(scene.window[0])} to {clock(scene.window[1])} (enter: its requests, backspace: none)"
    else:
        said = "no window (space begins one; enter: the requests of this moment)"
    return Text(shorten(said, room + _LABEL + _VALUE), style=ink.dim, no_wrap=True)


def found_lines(scene: Scene, width: int, ink: Ink) -> Iterator[Text]:
    """Findings on the same axis; with a window, those that touch it."""
    room = max(width - _LABEL - _VALUE - 4, 10)
    found = [one for one in scene.findings or [] if _touches(scene, one)]
    if not found:
        yield Text(
            "no finding touches this window" if scene.window else "no findings in this run", style=ink.dim
        )
    for one in found:
        label = shorten(f"{_MARKS[one.severity]} {clean(one.rule)}", _LABEL + _VALUE)
        line = Text(f"{label:<{_LABEL + _VALUE}} │", style=ink.severity(one.severity), no_wrap=True)
        if one.from_ts is None or one.to_ts is None:
            yield line.append(" no time of its own", style=ink.dim)
            continue
        start, end = _cells(scene, one.from_ts, one.to_ts, room)
        if end <= start or start >= room:
            yield line.append(" not in view", style=ink.dim)
            continue
        yield line.append(" " * start).append("━" * (end - start))


def _touches(scene: Scene, one: Outcome) -> bool:
    if scene.window is None or one.from_ts is None or one.to_ts is None:
        return True
    return one.from_ts < scene.window[1] and one.to_ts >= scene.window[0]
