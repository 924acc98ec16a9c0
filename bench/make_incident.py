"""Writes an invented incident of any size: ``make_incident.py REQUESTS FOLDER [--dialect D] [--gpus N] [--seed N]``.

One server's day (serving.py), as each of its watchers would have written it:

    server.log     vLLM's log (make_server_log.py), in the asked dialect
    spans.jsonl    one llm_request span per request, as the OpenTelemetry collector's file exporter writes them
    metrics.prom   scrapes of /metrics every 15 seconds, behind each other
    dmon.log       nvidia-smi dmon -s pumct -o DT, a row a second for each GPU
    client.jsonl   one line per request with the time of every chunk

All tell the same story, so what tracelens says of one must fit the others.  The same seed gives the same bytes.  What is held in
memory is the requests in flight.  For measuring only.
"""

from __future__ import annotations

import argparse
import datetime
import json
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from itertools import takewhile
from math import sin
from pathlib import Path
from typing import Final

from make_server_log import DIALECTS, START, log_lines
from serving import SEATS, WAVE_S, Moment, Request, State, moments

BEGIN_S: Final = START.replace(tzinfo=datetime.UTC).timestamp()
SCRAPE_S: Final = 15
NETWORK_S: Final = 0.004
"""One way between client and server."""

Lines = Callable[[Moment], Iterator[str]]


def write_incident(
    folder: Path, requests: int, seed: int, dialect: str = "v1", gpus: int = 8
) -> Counter[str]:
    """Write the files of so many requests; returns what is in them, by kind."""
    log = DIALECTS[dialect][0](seed)
    watchers: dict[str, Lines] = {
        "spans.jsonl": _spans,
        "metrics.prom": _scrapes,
        "dmon.log": _Dmon(gpus, seed).lines,
        "client.jsonl": _Clients(seed).lines,
    }
    with ExitStack() as stack:
        streams = {
            name: stack.enter_context((folder / name).open("w", encoding="utf-8", newline="\n"))
            for name in (*watchers, "server.log")
        }

        def watched() -> Iterator[Moment]:
            for moment in _first(requests, moments(seed)):
                for name, lines in watchers.items():
                    for line in lines(moment):
                        streams[name].write(line)
                        log.written[name] += 1
                yield moment

        streams["server.log"].writelines(log_lines(log, dialect, watched()))
    return log.written


def _first(requests: int, happening: Iterable[Moment]) -> Iterator[Moment]:
    """Moments until so many requests have arrived."""
    left = requests

    def counted(moment: Moment) -> bool:
        nonlocal left
        left -= moment.kind == "arrived"
        return left >= 0

    return takewhile(counted, happening)


def _ended(moment: Moment, outcome: tuple[str, ...]) -> Request | None:
    request = moment.request
    return request if request and moment.kind == "ended" and request.outcome in outcome else None


def _spans(moment: Moment) -> Iterator[str]:
    """The span of a request that was served to its end; an aborted one leaves none."""
    request = _ended(moment, ("served",))
    if request is None:
        return
    prefill, decode = request.first_token_s - request.scheduled_s, request.ended_s - request.first_token_s
    numbers: dict[str, float] = {
        "gen_ai.latency.time_to_first_token": request.first_token_s - request.arrived_s,
        "gen_ai.latency.e2e": request.ended_s - request.arrived_s,
        "gen_ai.latency.time_in_queue": request.scheduled_s - request.arrived_s,
        "gen_ai.usage.prompt_tokens": request.prompt_tokens,
        "gen_ai.usage.completion_tokens": request.output_tokens,
        "gen_ai.latency.time_in_model_prefill": prefill,
        "gen_ai.latency.time_in_model_decode": decode,
        "gen_ai.latency.time_in_model_inference": prefill + decode,
        "gen_ai.request.max_tokens": request.max_tokens,
        "gen_ai.request.temperature": request.temperature,
    }
    attributes = [{"key": "gen_ai.request.id", "value": {"stringValue": request.request_id}}]
    attributes += [
        {"key": key, "value": {"intValue": str(value)} if isinstance(value, int) else {"doubleValue": value}}
        for key, value in numbers.items()
    ]
    span = {
        "traceId": request.trace_id, "spanId": request.internal_suffix * 2, "parentSpanId": request.trace_id[:16],
        "name": "llm_request", "kind": 2, "startTimeUnixNano": _nano(request.arrived_s),
        "endTimeUnixNano": _nano(request.ended_s), "attributes": attributes, "status": {},
    }  # fmt: skip
    resource = {"attributes": [{"key": "service.name", "value": {"stringValue": "vllm-server"}}]}
    scope = {"scope": {"name": "vllm.tracing.otel"}, "spans": [span]}
    yield json.dumps({"resourceSpans": [{"resource": resource, "scopeSpans": [scope]}]}) + "\n"


def _nano(at_s: float) -> str:
    return str(round((BEGIN_S + at_s) * 1e9))


def _scrapes(moment: Moment) -> Iterator[str]:
    """A scrape where one is due."""
    state = moment.state
    if state is None or moment.at_s % SCRAPE_S:
        return
    labels = 'engine="0",model_name="some/model-8b"'
    yield f"# scraped_at {BEGIN_S + moment.at_s:.3f}\n"
    for name, kind, value in _metrics(state):
        yield f"# TYPE vllm:{name} {kind}\n"
        yield f"vllm:{name}{{{labels}}} {value}\n"
    yield "# TYPE vllm:request_queue_time_seconds histogram\n"
    yield f"vllm:request_queue_time_seconds_sum{{{labels}}} {state.queue_s}\n"
    yield f"vllm:request_queue_time_seconds_count{{{labels}}} {state.served}.0\n"


def _metrics(state: State) -> Iterator[tuple[str, str, float]]:
    yield "num_requests_running", "gauge", float(state.running)
    yield "num_requests_waiting", "gauge", float(state.waiting)
    yield "kv_cache_usage_perc", "gauge", state.kv_ratio
    yield "num_preemptions_total", "counter", 0.0
    yield "prompt_tokens_total", "counter", float(state.prompt_tokens)
    yield "generation_tokens_total", "counter", float(state.output_tokens)


class _Dmon:
    """Rows of nvidia-smi dmon; it prints its headings again every thirty seconds."""

    heads = (
        "#Date       Time        gpu    pwr  gtemp  mtemp     sm    mem    enc    dec    jpg    ofa   mclk   pclk     fb   bar1   ccpm  rxpci  txpci\n"
        "#YYYYMMDD   HH:MM:SS    Idx      W      C      C      %      %      %      %      %      %    MHz    MHz     MB     MB     MB   MB/s   MB/s\n"
    )

    def __init__(self, gpus: int, seed: int) -> None:
        self._gpus, self._random = gpus, random.Random(seed)

    def lines(self, moment: Moment) -> Iterator[str]:
        """The rows of a tick."""
        if moment.state is None:
            return
        if moment.at_s % 30 == 0:
            yield self.heads
        at, load = START + datetime.timedelta(seconds=moment.at_s), moment.state.running / SEATS
        for gpu in range(self._gpus):
            busy = round(min(100.0, 100 * load + self._random.uniform(0, 8)))
            yield (
                f" {at:%Y%m%d}   {at:%H:%M:%S} {gpu:6d} {round(120 + 5.4 * busy):6d} {round(38 + busy / 4):6d} {round(44 + busy / 4):6d} "
                f"{busy:6d} {round(busy * 0.7):6d}      0      0      0      0   2619   1755  71342      2      0 "
                f"{self._random.randrange(900):6d} {self._random.randrange(300):6d}\n"
            )


def write_dmon(path: Path, rows: int, gpus: int, seed: int) -> None:
    """A file of so many rows of GPUs whose load goes up and down."""
    dmon = _Dmon(gpus, seed)
    with path.open("w", encoding="utf-8", newline="\n") as stream:
        for second in range(rows // gpus):
            state = State(round(SEATS * (0.5 + 0.5 * sin(second / WAVE_S))), 0, 0.0, 0, 0, 0, 0.0)
            stream.writelines(dmon.lines(Moment(float(second), "tick", state=state)))


class _Clients:
    """One line per request, with the time of each chunk: the role, the tokens, the end, the usage."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def lines(self, moment: Moment) -> Iterator[str]:
        """The line of a request that has ended."""
        request = _ended(moment, ("served", "aborted"))
        if request is None:
            return
        sent, first = BEGIN_S + request.arrived_s - NETWORK_S, BEGIN_S + request.first_token_s + NETWORK_S
        whole = request.outcome == "served"
        step = (request.ended_s - request.first_token_s) / max(1, request.output_tokens - 1)
        chunks = [first] + [
            round(first + step * place + self._random.uniform(0, 0.003), 6)
            for place in range(request.output_tokens)
        ]
        line = {
            "request_id": request.request_id.removeprefix("chatcmpl-"), "response_id": request.request_id,
            "trace_id": request.trace_id, "model": "some/model-8b", "stream": True, "max_tokens": request.max_tokens,
            "sent_at": round(sent, 6), "headers_at": round(sent + 3 * NETWORK_S, 6), "first_byte_at": round(first, 6),
            "first_content_at": chunks[1], "finished_at": chunks[-1] if whole else None, "status": 200,
            "prompt_tokens": request.prompt_tokens if whole else None,
            "completion_tokens": request.output_tokens if whole else None, "finish_reason": "stop" if whole else None,
            "error": None if whole else "client went away", "chunk_kind": "r" + "c" * request.output_tokens,
            "chunk_at": chunks,
        }  # fmt: skip
        yield json.dumps(line) + "\n"


def main() -> None:
    """Write the files and print the counts."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("requests", type=int)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--dialect", choices=DIALECTS, default="v1")
    parser.add_argument("--gpus", type=int, default=8)
    parser.add_argument("--seed", type=int, default=7)
    asked = parser.parse_args()
    asked.folder.mkdir(parents=True, exist_ok=True)
    print(json.dumps(write_incident(asked.folder, asked.requests, asked.seed, asked.dialect, asked.gpus)))


if __name__ == "__main__":
    main()
