"""The requests of a GuideLLM result; what the fields mean stands in `guidellm`."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from tracelens.formats.base import Clock
from tracelens.formats.client.client_outcomes import Ending, error_text
from tracelens.formats.client.json_lists import Peeled
from tracelens.formats.client.tool_requests import Moments, from_seconds, measured_row
from tracelens.formats.client.tool_tables import Seen
from tracelens.formats.json_lines import count, dump, seconds, text_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_WORDS: Final = {"successful": "ok", "errored": "error", "incomplete": "aborted"}
_HTTP_STATUS: Final = re.compile(r"error '(\d{3}) ")
_STREAM: Final = re.compile(r'"stream"\s*:\s*(true|false)')


@dataclass(frozen=True, slots=True)
class Benchmark:
    """What the requests of one benchmark have in common."""

    label: str | None
    model: str | None
    streamed: bool | None


def seen_in(found: Peeled, keep_text: bool) -> list[Seen]:
    """Every request of every benchmark, in the order of the file: what succeeded comes first; answers if they are to be kept."""
    seen = (_seen(place, *each) for place, each in enumerate(_requests(found), 1))
    return list(seen) if keep_text else [replace(each, texts=each.texts[:1]) for each in seen]


def _requests(found: Peeled) -> Iterator[tuple[Benchmark, str, Mapping[str, Any]]]:
    for document in found.documents:
        for benchmark in document["benchmarks"]:
            groups = benchmark.get("requests") if isinstance(benchmark, dict) else None
            if not isinstance(groups, dict):
                continue
            common = _common(document, benchmark)
            for word, status in _WORDS.items():
                entries = groups.get(word)
                yield from ((common, status, entry) for entry in found.elements(entries))


def label_of(benchmark: Mapping[str, Any]) -> str | None:
    """The load of a benchmark in GuideLLM's words: ``concurrent@4``, ``constant@2.5``, ``sweep``."""
    strategy = inner(benchmark, "config", "strategy") or inner(benchmark, "args", "strategy")
    kind = text_of(strategy.get("type_"))
    amount = strategy.get("streams") or strategy.get("rate")
    return f"{kind}@{amount}" if kind and isinstance(amount, int | float) else kind


def inner(values: Mapping[str, Any], *path: str) -> Mapping[str, Any]:
    """An object inside objects, an empty one where there is none."""
    found: Any = values
    for key in path:
        found = found.get(key) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else {}


def _common(document: Mapping[str, Any], benchmark: Mapping[str, Any]) -> Benchmark:
    backend = inner(document, "config", "spec", "backend")
    streamed = backend.get("stream")
    is_old = "worker" in benchmark  # up to 0.3, which always streams
    model = backend.get("model") or inner(benchmark, "worker").get("backend_model")
    return Benchmark(
        label_of(benchmark), text_of(model), streamed if isinstance(streamed, bool) else is_old or None
    )


def _seen(place: int, common: Benchmark, word: str, entry: Mapping[str, Any]) -> Seen:
    timings = inner(entry, "info", "timings")
    at = _moments(timings) if timings else _old_moments(entry)
    asked = _STREAM.search(str(entry.get("request_args") or ""))
    streamed = _streamed(asked[1] == "true" if asked else common.streamed, at, word)
    reported = seconds(entry.get("time_to_first_token_ms"), 0.001) if at.first is not None else None
    whole = Moments(at.planned, at.sent, end=at.end)
    at = at if streamed is not False else whole
    tokens = _tokens(entry, word)
    row = at.row(Clock.UTC) | tokens | _ending(entry, word) | {
        "line_no": place,
        "client_id": text_of(entry.get("request_id")),
        "response_id": text_of(entry.get("response_id")),
        "label": common.label,
        "model": common.model,
        "client_reported_ttft_s": reported,
        "client_ttft_kind": None if reported is None else "whole_response" if streamed is False else "content",
        "client_tpot_s": at.tpot_s(tokens["output_tokens"]),
        "streamed": streamed,
        "chunk_count": count(timings.get("token_iterations")) or None if streamed else None,
        "other": _other(entry, timings),
    }  # fmt: skip
    texts = (("prompt", _text(entry, "prompt", "request_args")), ("output", _text(entry, "output")))
    return Seen(row, None, measured_row(place, row, entry.get("response_metrics")), texts)


def _moments(timings: Mapping[str, Any]) -> Moments:
    """Of 0.4 and later."""
    end = from_seconds(timings.get("request_end"))
    return Moments(
        planned=from_seconds(timings.get("targeted_start")),
        sent=from_seconds(timings.get("request_start")),
        first_byte=from_seconds(timings.get("first_request_iteration")),
        first=from_seconds(timings.get("first_token_iteration", timings.get("first_iteration"))),
        last=from_seconds(timings.get("last_token_iteration", timings.get("last_iteration"))),
        end=end if end is not None else from_seconds(timings.get("resolve_end")),
    )


def _old_moments(entry: Mapping[str, Any]) -> Moments:
    """Of 0.2 and 0.3; -1 is "never"."""
    return Moments(
        planned=from_seconds(inner(entry, "scheduler_info").get("targeted_start_time")),
        sent=from_seconds(entry.get("start_time")),
        first=from_seconds(entry.get("first_token_time")),
        last=from_seconds(entry.get("last_token_time")),
        end=from_seconds(entry.get("end_time")),
    )


def _streamed(asked: bool | None, at: Moments, word: str) -> bool | None:
    """Whether a stream was asked for and came: of a request that failed before its first token nobody knows."""
    return asked if word == "ok" or at.first is not None else None


def _ending(entry: Mapping[str, Any], word: str) -> dict[str, Any]:
    error = error_text(inner(entry, "info").get("error")) or error_text(entry.get("error"))
    refused = _HTTP_STATUS.search(error or "")
    http_status = int(refused[1]) if refused else None
    status = Ending(http_status=http_status, word=word, error=error).status()
    return {"status": status, "error": error, "http_status": http_status}


def _tokens(entry: Mapping[str, Any], word: str) -> dict[str, Any]:
    """Usage where the answer was complete; what broke off has its messages counted."""
    output_tokens = count(entry.get("output_tokens"))
    stated = (
        inner(entry, "output_metrics").get("total_tokens")
        if "output_metrics" in entry
        else word == "ok" or None
    )
    basis = None if output_tokens is None else "usage" if stated is not None else "chunks"
    return {
        "input_tokens": count(entry.get("prompt_tokens")),
        "cached_input_tokens": count(entry.get("cached_tokens")),
        "output_tokens": output_tokens,
        "output_tokens_basis": basis,
        "input_char_count": count(inner(entry, "input_metrics").get("text_characters")),
    }


def _other(entry: Mapping[str, Any], timings: Mapping[str, Any]) -> str | None:
    """Where reasoning came first, when the first token of the answer itself came."""
    after_ms = entry.get("time_to_first_output_token_ms")
    differs = timings.get("first_output_token_iteration") != timings.get("first_token_iteration")
    return dump(
        {"time_to_first_output_token_ms": after_ms} if differs and isinstance(after_ms, float) else {}
    )


def _text(entry: Mapping[str, Any], *keys: str) -> str | None:
    return next((value for key in keys if isinstance(value := entry.get(key), str) and value), None)
