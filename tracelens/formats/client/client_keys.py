"""The keys by which people write down one request in their own client logs, and what each means.

A key is compared in snake_case (``ttftMs`` is ``ttft_ms``).  Times may end in a unit: ``_s``, ``_ms``, ``_us``, ``_ns``
(or a longer word for it).  Without one, an instant is an epoch in the unit that its size gives away, else seconds of
the file's own clock; a duration is in seconds.

``INSTANTS``   a point on the file's clock.  An ISO 8601 text will do.
``SPANS``      a duration, measured from the send.  A word that is in both tables (``first_byte``) is a span with a unit
               and an instant without; a number of epoch size is always an instant.
``LISTS``      one entry per chunk of the stream.
``FACTS``      everything else.

Of several keys for one thing the first in its tuple counts; the others are kept in ``other``.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

# fmt: off
INSTANTS: Final[Mapping[str, tuple[str, ...]]] = {
    # when the load pattern wanted it sent
    "planned": ("planned_at", "scheduled_at", "intended_at", "due_at", "planned_ts", "scheduled_ts", "scheduled_time",
                "planned_time", "targeted_start", "t_planned", "t_scheduled", "planned", "scheduled"),
    # when it was handed to the HTTP client
    "sent": ("sent_at", "send_at", "request_sent_at", "t_send", "t_sent", "sent_ts", "send_ts", "sent_time", "send_time",
             "request_start", "request_start_time", "start_time", "started_at", "start_at", "start_ts", "t_start", "t0",
             "sent", "send", "start"),
    # status and headers arrived
    "headers": ("headers_at", "header_at", "t_headers", "headers_ts", "headers_time", "headers"),
    # first byte of the body
    "first_byte": ("first_byte_at", "t_first_byte", "first_byte_ts", "first_byte_time", "first_byte"),
    # first chunk that is not the role-only one
    "first_content": ("first_content_at", "first_text_at", "t_first_content", "first_content_ts", "first_content_time",
                      "first_content"),
    # what the script takes for the first token; it may be the role-only chunk
    "first_token": ("first_token_at", "t_first_token", "first_token_ts", "first_token_time", "first_chunk_at",
                    "t_first_chunk", "first_chunk_ts", "first_chunk_time", "t_first", "first_token", "first_chunk"),
    "last_content": ("last_content_at", "last_token_at", "last_chunk_at", "t_last_token", "t_last_chunk",
                     "last_token_ts", "last_token_time", "last_chunk_time", "t_last"),
    # the answer was complete
    "end": ("finished_at", "ended_at", "end_at", "completed_at", "done_at", "t_end", "t_done", "t_finish", "end_time",
            "finish_time", "completed_time", "finished_ts", "end_ts", "request_end", "finished", "end"),
    # the client let go, complete or not
    "closed": ("closed_at", "aborted_at", "cancelled_at", "canceled_at", "gave_up_at"),
}

SPANS: Final[Mapping[str, tuple[str, ...]]] = {
    # planned to sent: the client's own queue
    "wait": ("client_wait", "client_wait_time", "pool_wait", "send_delay", "dispatch_delay"),
    "headers_after": ("time_to_headers", "headers_latency", "headers"),
    "first_byte_after": ("time_to_first_byte", "ttfb", "first_byte_latency", "first_byte"),
    "content_after": ("time_to_first_content", "first_content"),
    # what the script calls TTFT; it may stop at the role-only chunk, or at the end of an answer that was not streamed
    "ttft": ("ttft", "time_to_first_token", "first_token_latency", "first_token", "time_to_first_chunk", "first_chunk"),
    # sent to the end of the answer
    "e2e": ("e2e", "e2e_latency", "e2el", "end_to_end", "end_to_end_latency", "total_latency", "request_latency",
            "latency", "total_time", "response_time", "elapsed", "elapsed_time", "duration", "wall_time"),
}

LISTS: Final[Mapping[str, tuple[str, ...]]] = {
    # instants of arrival
    "chunk_instants": ("chunk_at", "chunks_at", "chunk_ts", "chunk_times", "chunk_time", "chunks_t", "chunk_timestamps",
                       "token_at", "tokens_at", "token_times", "token_timestamps", "t_chunks"),
    # send to arrival
    "chunk_offsets": ("chunk_offset", "chunk_offsets", "chunk_after", "token_offsets"),
    # arrival to arrival, the first one from the TTFT
    "chunk_gaps": ("itl", "itls", "inter_token_latencies", "inter_token_latency", "inter_chunk_latencies", "chunk_gaps"),
    # [t, kind], [t, kind, text] or [t, text] each; or objects with the same; or bare instants
    "chunks": ("chunks", "stream_chunks", "events", "stream_events"),
    # one letter or one word per chunk
    "chunk_kinds": ("chunk_kind", "chunk_kinds", "chunk_types", "event_kinds"),
}

FACTS: Final[Mapping[str, tuple[str, ...]]] = {
    "client_id": ("client_id", "client_request_id", "request_id", "req_id", "x_request_id", "rid", "id", "uuid",
                  "request", "index", "idx", "seq"),
    "response_id": ("response_id", "server_request_id", "vllm_request_id", "completion_id"),
    "trace_id": ("trace_id", "traceparent"),
    "attempt": ("attempt",),
    "label": ("label", "class", "tag", "group", "workload", "scenario", "path"),
    "stream": ("stream", "streamed", "streaming", "is_stream"),
    "status": ("status", "outcome", "state", "result"),
    "http_status": ("http_status", "status_code", "http_code", "http_status_code"),
    "success": ("ok", "success", "succeeded"),
    "error": ("error", "error_message", "error_msg", "exception", "err"),
    "finish_reason": ("finish_reason", "stop_reason"),
    # as the server counted them
    "prompt_tokens": ("prompt_tokens", "input_tokens", "num_prompt_tokens", "num_input_tokens", "prompt_len", "input_len",
                      "n_prompt_tokens", "tokens_in"),
    "completion_tokens": ("completion_tokens",),
    "cached_tokens": ("cached_tokens", "cached_input_tokens", "cached_prompt_tokens", "num_cached_tokens"),
    # as somebody counted them
    "output_tokens": ("output_tokens", "num_output_tokens", "generated_tokens", "num_generated_tokens", "output_len",
                      "n_output_tokens", "n_tokens", "num_tokens", "tokens_out", "tokens"),
    "output_tokens_basis": ("output_tokens_basis", "output_tokens_source"),
    "max_tokens": ("max_tokens", "max_completion_tokens", "max_new_tokens", "max_output_tokens"),
    "prompt_chars": ("prompt_chars", "prompt_char_count", "input_chars", "input_char_count"),
    "chunk_count": ("n_chunks", "chunk_count", "num_chunks"),
    "model": ("model", "model_id", "model_name"),
    # the metrics object of vLLM's --enable-per-request-metrics
    "response_metrics": ("response_metrics", "metrics"),
    # texts: never stored unless asked for
    "prompt_text": ("prompt", "messages", "prompt_text", "input", "input_text", "question"),
    "output_text": ("output", "output_text", "completion", "generated_text", "text", "content", "response", "answer"),
}

NESTED: Final = ("usage", "timing", "timings", "times", "timestamps")
"""Objects whose keys count as keys of the line."""

FOREIGN: Final = frozenset((
    "resourceSpans", "resourceMetrics", "resourceLogs", "benchmarks", "experiments",  # OTLP, GuideLLM, AIPerf
    "ttfts", "input_lens", "request_throughput", "mean_ttft_ms", "total_input_tokens",  # vllm bench, SGLang bench
    "litellm_call_id", "call_type", "completionStartTime", "traceId", "slp",  # LiteLLM, Langfuse
    "upstream_response_time", "remote_addr", "response_flags", "response_code", "upstream_host",  # nginx, Envoy
    "upstream_cluster", "upstream_service_time",
    "arrival_ts", "queue_s", "prefill_s", "decode_s",  # a server's own request log
    "endpoint_url", "queued_time", "prefill_time", "decode_time", "inference_time", "iteration_wall",  # stat logger plugins
    "request_parameters", "meta_info", "trace_block_size", "time_starttransfer",  # SGLang, Dynamo, curl -w
    "levelname", "asctime", "hash_ids", "gpu_uuid", "telemetry_data", "cpu_jiffies",  # logs, traces to replay, telemetry
))
"""Keys that no client log of one request has: files with one of them belong to another format, or to none."""

TELLING: Final = frozenset((
    "planned_at", "scheduled_at", "intended_at", "sent_at", "send_at", "request_sent_at", "t_send", "t_sent", "sent_ts",
    "headers_at", "first_byte_at", "first_byte", "first_byte_ts", "first_content_at", "first_content", "first_token_at",
    "first_token", "first_token_ts", "first_token_time", "first_chunk_at", "last_token_at", "ttft", "ttfb",
    "time_to_first_token", "time_to_first_byte", "e2e", "e2e_latency", "first_token_latency", "chunk_at", "chunk_times",
    "chunks_t", "chunk_offset", "chunk_offsets", "token_times", "itl", "itls", "inter_token_latencies",
    "completion_tokens", "cached_tokens", "usage",
))
"""Names that only a client of an LLM writes; one of them is enough to claim a line."""

SUPPORTING: Final = frozenset((
    "stream", "prompt_tokens", "output_tokens", "max_tokens", "finish_reason", "response_id", "response_metrics", "chunks",
))
"""Things that make a line with any other time (``start``, ``latency``) a request to an LLM."""

_UNITS: Final = {
    "s": "s", "sec": "s", "secs": "s", "second": "s", "seconds": "s",
    "ms": "ms", "msec": "ms", "millis": "ms", "milliseconds": "ms",
    "us": "us", "usec": "us", "micros": "us", "microseconds": "us",
    "ns": "ns", "nsec": "ns", "nanos": "ns", "nanoseconds": "ns",
}
# fmt: on
_HUMP: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


@dataclass(frozen=True, slots=True)
class Place:
    """Where a thing stands on a line: its key, the unit that the key ends in, its rank among the names for it."""

    key: str
    unit: str | None
    rank: int


@dataclass(frozen=True, slots=True)
class Plan:
    """What the keys of a line mean: a place per thing, the keys with no meaning here, and how telling they are."""

    places: Mapping[str, Place]
    others: tuple[str, ...]
    is_telling: bool


def _by_name(*tables: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, int]]:
    """Name to (thing, rank); the first table wins."""
    found: dict[str, tuple[str, int]] = {}
    for table in tables:
        for thing, names in table.items():
            for rank, name in enumerate(names):
                found.setdefault(name, (thing, rank))
    return found


_WITHOUT_UNIT: Final = _by_name(FACTS, LISTS, INSTANTS, SPANS)
_WITH_UNIT: Final = _by_name(SPANS, LISTS, INSTANTS)


def snake(key: str) -> str:
    """Write a key in snake_case."""
    return _HUMP.sub("_", key).replace("-", "_").replace(" ", "_").lower()


def split_unit(name: str) -> tuple[str, str | None]:
    """``ttft_ms`` as (``ttft``, ``ms``)."""
    stem, _, tail = name.rpartition("_")
    return (stem, _UNITS[tail]) if stem and tail in _UNITS else (name, None)


def meaning(key: str) -> tuple[str, Place] | None:
    """Say what a key means: the thing and its place."""
    name = snake(key)
    stem, unit = split_unit(name)
    known, unit = (_WITHOUT_UNIT[name], None) if name in _WITHOUT_UNIT else (_WITH_UNIT.get(stem), unit)
    if known is None or (unit is None and name not in _WITHOUT_UNIT):
        return None
    thing, rank = known
    return thing, Place(key, unit, rank)


@functools.lru_cache(maxsize=1024)
def plan(keys: tuple[str, ...]) -> Plan:
    """Say what a set of keys means.  Most lines of a file have the same keys."""
    places: dict[str, Place] = {}
    others: list[str] = []
    for key in keys:
        found = meaning(key)
        if found is None:
            others.append(key)
            continue
        thing, place = found
        kept = places.setdefault(thing, place)
        if kept is not place:
            first, second = sorted((kept, place), key=lambda each: each.rank)
            places[thing] = first
            others.append(second.key)
    return Plan(places, tuple(others), _is_telling(keys, places))


def _is_telling(keys: tuple[str, ...], places: Mapping[str, Place]) -> bool:
    if any(name in TELLING or split_unit(name)[0] in TELLING for name in map(snake, keys)):
        return True
    has_time = any(thing in places for thing in (*INSTANTS, *SPANS))
    return has_time and any(thing in places for thing in SUPPORTING)
