"""An invented day of one vLLM server: who asked, who waited for a seat, when each token came.

``moments(seed)`` gives, without end and in the order of time, what the writers of make_server_log.py and make_incident.py
put into files.  A request waits until one of ``SEATS`` is free, is prefilled at a fixed speed, and decodes one token a step.
Arrivals come in waves that pass what the seats can carry, so the queue fills and empties.  The same seed gives the same
moments; what is held in memory is the requests in flight.  For measuring only: nothing here was ever observed.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from heapq import heappop, heappush
from math import sin
from typing import Final, Literal

SEATS: Final = 256
TICK_S: Final = 1.0
"""Seconds between two looks at the server's state."""
PREFILL_TPS: Final = 20_000.0
STEP_S: Final = 0.022
WAVE_S: Final = 40.0
KV_TOKENS: Final = 458_752

Outcome = Literal["served", "aborted", "refused", "failed"]
Kind = Literal["arrived", "scheduled", "first token", "ended", "tick"]


@dataclass(frozen=True, slots=True)
class Request:
    """One request.  Times are seconds since the server's start; a refused or failed one ends as it comes."""

    request_id: str
    internal_suffix: str
    trace_id: str
    peer: str
    outcome: Outcome
    prompt_tokens: int
    output_tokens: int
    max_tokens: int
    temperature: float
    arrived_s: float
    scheduled_s: float
    first_token_s: float
    ended_s: float


@dataclass(frozen=True, slots=True)
class State:
    """What the server counts at a tick: gauges, then totals since its start."""

    running: int
    waiting: int
    kv_ratio: float
    prompt_tokens: int
    output_tokens: int
    served: int
    queue_s: float


@dataclass(frozen=True, slots=True)
class Moment:
    """Something that happens: to a request, or a tick with the state of the server."""

    at_s: float
    kind: Kind
    request: Request | None = None
    state: State | None = None


def moments(seed: int) -> Iterator[Moment]:
    """Everything that happens, in the order of time, without end."""
    pending: list[tuple[float, int, Kind, Request]] = []
    counts, number, tick = _Counts(), 0, 0.0
    for request in _requests(seed):
        while tick <= request.arrived_s:
            yield from _until(tick, pending, counts)
            yield Moment(tick, "tick", state=counts.state())
            tick += TICK_S
        yield from _until(request.arrived_s, pending, counts)
        for at_s, kind in _steps(request):
            heappush(pending, (at_s, number, kind, request))
            number += 1


def _until(
    end_s: float, pending: list[tuple[float, int, Kind, Request]], counts: _Counts
) -> Iterator[Moment]:
    while pending and pending[0][0] <= end_s:
        at_s, _, kind, request = heappop(pending)
        counts.take(kind, request)
        yield Moment(at_s, kind, request)


def _steps(request: Request) -> Iterator[tuple[float, Kind]]:
    yield request.arrived_s, "arrived"
    if request.outcome in ("served", "aborted"):
        yield request.scheduled_s, "scheduled"
        yield request.first_token_s, "first token"
        yield request.ended_s, "ended"


def _requests(seed: int) -> Iterator[Request]:
    draw, seats, now = random.Random(seed), [0.0] * SEATS, 0.0
    while True:
        now += draw.expovariate(max(1.0, 60 + 50 * sin(now / WAVE_S)))
        request = _request(draw, now, max(now, seats[0]))
        if request.outcome in ("served", "aborted"):
            heappop(seats)
            heappush(seats, request.ended_s)
        yield request


def _request(draw: random.Random, arrived_s: float, seat_s: float) -> Request:
    luck = draw.random()
    outcome: Outcome = (
        "refused" if luck < 0.002 else "failed" if luck < 0.0022 else "aborted" if luck > 0.99 else "served"
    )
    prompt, output = round(draw.lognormvariate(6.2, 0.8)) + 20, round(draw.lognormvariate(4.9, 0.6)) + 4
    if outcome == "aborted":
        output = max(1, output // 4)
    first = seat_s + 0.012 + prompt / PREFILL_TPS
    return Request(
        request_id=f"chatcmpl-{draw.getrandbits(128):032x}",
        internal_suffix=f"{draw.getrandbits(32):08x}",
        trace_id=f"{draw.getrandbits(128):032x}",
        peer=f"10.0.{draw.randrange(256)}.{draw.randrange(1, 255)}:{draw.randrange(20000, 60000)}",
        outcome=outcome,
        prompt_tokens=prompt,
        output_tokens=output,
        max_tokens=draw.choice((256, 512, 1024, 4096)),
        temperature=draw.choice((0.0, 0.2, 0.7, 1.0)),
        arrived_s=arrived_s,
        scheduled_s=seat_s,
        first_token_s=first,
        ended_s=first + (output - 1) * STEP_S * draw.uniform(0.9, 1.1),
    )


class _Counts:
    """Totals and gauges, moved by each moment."""

    def __init__(self) -> None:
        self._waiting = self._running = self._held = 0
        self._prompt = self._output = self._served = 0
        self._queue_s = 0.0

    def take(self, kind: Kind, request: Request) -> None:
        """Count one moment."""
        if request.outcome in ("refused", "failed"):
            return
        tokens = request.prompt_tokens + request.output_tokens
        if kind == "arrived":
            self._waiting += 1
        elif kind == "scheduled":
            self._waiting -= 1
            self._running += 1
            self._held += tokens
            self._queue_s += request.scheduled_s - request.arrived_s
        elif kind == "first token":
            self._prompt += request.prompt_tokens
        else:
            self._running -= 1
            self._held -= tokens
            self._output += request.output_tokens
            self._served += 1

    def state(self) -> State:
        """The counts now."""
        kv = min(1.0, self._held / KV_TOKENS)
        return State(
            self._running, self._waiting, kv, self._prompt, self._output, self._served, self._queue_s
        )
