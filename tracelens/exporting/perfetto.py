"""Chrome trace JSON, which ui.perfetto.dev and chrome://tracing open.

Form: "Trace Event Format" (complete events ``X``, counters ``C``, instants ``i``, metadata ``M``; microseconds).  Requests lie in lanes:
a lane holds one request at a time, so there are as many lanes as requests were in flight at once.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

import orjson

if TYPE_CHECKING:
    from tracelens.case import Case

    Row = Mapping[str, Any]

_REQUESTS, _STEPS, _LOG = 1, 2, 3
_FIRST_TRACK: Final = 10
"""Process of the first engine or GPU; every one has its own, so that its counters stand together."""
_TOLD: Final = (
    "warning",
    "error",
    "traceback",
    "start",
    "ready",
    "stop",
    "dead",
    "stall",
    "oom",
    "preemption",
    "gpu",
)
_MESSAGE_CHARS: Final = 300


def trace(case: Case, run: str) -> Iterator[bytes]:
    """Lines of one JSON document."""
    yield b'{"displayTimeUnit":"ms","traceEvents":[\n'
    first = True
    for event in _events(case, run):
        yield orjson.dumps(event) if first else b",\n" + orjson.dumps(event)
        first = False
    yield b"\n]}\n"


def _events(case: Case, run: str) -> Iterator[Mapping[str, Any]]:
    for process, name in ((_REQUESTS, "requests"), (_STEPS, "engine steps"), (_LOG, "server log")):
        yield {"ph": "M", "pid": process, "name": "process_name", "args": {"name": name}}
    yield from _requests(case.query("request_spans", run=run).dicts())
    yield from _steps(case.query("engine_steps", run=run).dicts())
    yield from _counters(case.query("counters", run=run).dicts())
    yield from _log(case.query("events", run=run).dicts())


def _requests(rows: Iterable[Row]) -> Iterator[Mapping[str, Any]]:
    for row, lane in in_lanes(rows):
        facts = {
            key: row[key]
            for key in (
                "run_id",
                "status",
                "end_status",
                "input_tokens",
                "cached_input_tokens",
                "output_tokens",
            )
        }
        yield _slice(_REQUESTS, lane, row["request_id"], row["start_us"], row["length_us"], facts)
        for stage in row["stages"]:
            told = {"provenance": stage["provenance"], "basis": stage["basis"]}
            yield _slice(
                _REQUESTS, lane, stage["stage"], row["start_us"] + stage["from_us"], stage["length_us"], told
            )


def in_lanes(rows: Iterable[Row]) -> Iterator[tuple[Row, int]]:
    """Requests in the order of their start, each with the lowest lane that is free then."""
    busy: list[tuple[int, int]] = []
    free: list[int] = []
    count = 0
    for row in sorted(rows, key=lambda one: one["start_us"]):
        while busy and busy[0][0] <= row["start_us"]:
            heapq.heappush(free, heapq.heappop(busy)[1])
        if free:
            lane = heapq.heappop(free)
        else:
            count += 1
            lane = count
        heapq.heappush(busy, (row["start_us"] + row["length_us"], lane))
        yield row, lane


def _steps(rows: Iterable[Row]) -> Iterator[Mapping[str, Any]]:
    told = ("step_index", "context_requests", "context_tokens", "generation_requests", "generation_tokens")
    for row in rows:
        name = (
            "prefill and decode"
            if row["context_tokens"] and row["generation_requests"]
            else "prefill"
            if row["context_tokens"]
            else "decode"
        )
        yield _slice(
            _STEPS,
            row["engine_index"],
            name,
            row["start_us"],
            row["length_us"],
            {key: row[key] for key in told},
        )


def _counters(rows: Iterable[Row]) -> Iterator[Mapping[str, Any]]:
    processes: dict[str, int] = {}
    for row in rows:
        if row["track"] not in processes:
            processes[row["track"]] = _FIRST_TRACK + len(processes)
            yield {
                "ph": "M",
                "pid": processes[row["track"]],
                "name": "process_name",
                "args": {"name": row["track"]},
            }
        yield {
            "ph": "C",
            "pid": processes[row["track"]],
            "name": row["counter"],
            "ts": row["sample_us"],
            "args": {"value": row["amount"]},
        }


def _log(rows: Iterable[Row]) -> Iterator[Mapping[str, Any]]:
    for row in rows:
        if row["event_ts"] is not None and row["kind"] in _TOLD:
            message = (row["message"] or "")[:_MESSAGE_CHARS]
            stamp = int(row["event_ts"].timestamp() * 1_000_000)
            yield {
                "ph": "i",
                "s": "g",
                "pid": _LOG,
                "tid": 1,
                "name": row["kind"],
                "ts": stamp,
                "args": {"message": message},
            }


def _slice(
    process: int, lane: int, name: str, start_us: int, length_us: int, facts: Row
) -> Mapping[str, Any]:
    return {
        "ph": "X",
        "pid": process,
        "tid": lane,
        "name": name,
        "ts": start_us,
        "dur": length_us,
        "args": facts,
    }
