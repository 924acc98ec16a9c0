"""Profiles of perf_analyzer and GenAI-Perf (``profile_export.json``): every read of every answer with its stamp.

Read in the layout of perf_analyzer 2.59 (documentation and source).  Instants are nanoseconds since 1970.  A read holds one
message of the stream, several joined, or a part of one.  GenAI-Perf's own TTFT is the first read with content: role-only
messages, usage and the end mark do not count, and its parser fails at an error event, which stands in the text here.
Ids and usage stand in the messages only.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from tracelens.formats.base import Chunk, Claim, Clock, Format, Head, Parsed, Side
from tracelens.formats.client.bench_documents import documents_in
from tracelens.formats.client.client_outcomes import Ending
from tracelens.formats.client.client_tables import stamps_of
from tracelens.formats.client.stream_messages import Message, answer_of, messages_in
from tracelens.formats.client.tool_requests import (
    Moments,
    between,
    content_count,
    content_ends,
    from_nanos,
    measured_row,
    stream_row,
)
from tracelens.formats.client.tool_tables import Seen, tables_of
from tracelens.formats.json_lines import dump

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_HEAD_CHARS: Final = 20_000
_EXPERIMENTS: Final = re.compile(r'"experiments"\s*:\s*\[')


def sniff(head: Head) -> Claim | None:
    """Claim an object of experiments whose requests have payloads and stamps of their responses."""
    if not head.first.lstrip("\ufeff \t").startswith("{"):
        return None
    begin = "\n".join(head.lines)[:_HEAD_CHARS]
    if not _EXPERIMENTS.search(begin) or '"request' not in begin or '"timestamp"' not in begin:
        return None
    return Claim("every read of every answer", Clock.UTC)


def parse(chunk: Chunk) -> Parsed:
    """Read the requests of every experiment; they are numbered through, from 1."""
    documents, issues = documents_in(
        chunk.lines, lambda document: isinstance(document.get("experiments"), list)
    )
    requests = (each for document in documents for each in _requests(document))
    seen = [_seen(place, label, each) for place, (label, each) in enumerate(requests, 1)]
    tables = tables_of(seen, chunk)
    return Parsed(tables, issues, chunk.lines.height - issues.height, stamps_of(tables["client_request"]))


def _requests(document: Mapping[str, Any]) -> Iterator[tuple[str | None, Mapping[str, Any]]]:
    for experiment in document["experiments"]:
        if not isinstance(experiment, dict) or not isinstance(experiment.get("requests"), list):
            continue
        load = experiment.get("experiment")
        label = f"{load.get('mode')} {load.get('value')}" if isinstance(load, dict) else None
        yield from ((label, each) for each in experiment["requests"] if isinstance(each, dict))


def _seen(place: int, label: str | None, request: Mapping[str, Any]) -> Seen:
    sent = from_nanos(request.get("timestamp"))
    arrivals = _arrivals(request)
    stamps, messages = [stamp for stamp, _ in arrivals], [message for _, message in arrivals]
    kinds = "".join(message.letter for message in messages)
    answer = answer_of(messages)
    streamed = _streamed(request, kinds)
    first, last = (None if at is None or not streamed else stamps[at] for at in content_ends(kinds))
    at = Moments(
        sent=sent,
        first_byte=stamps[0] if stamps else None,
        first=first,
        last=last,
        end=stamps[-1] if stamps else None,
    )
    ttft_s, tokens = between(sent, first), answer.tokens()
    row = at.row(Clock.UTC) | tokens | {
        "line_no": place,
        "label": label,
        "response_id": answer.response_id,
        "model": answer.model,
        "finish_reason": answer.finish_reason,
        "error": answer.error,
        "status": _status(answer.error, kinds),
        "client_reported_ttft_s": ttft_s,
        "client_ttft_kind": None if ttft_s is None else "content",
        "client_tpot_s": at.tpot_s(tokens["output_tokens"]),
        "streamed": streamed,
        "chunk_count": content_count(kinds) if streamed else None,
        "other": dump({"messages_in_parts": kinds.count("?")} if "?" in kinds else {}),
    }  # fmt: skip
    offsets = [between(sent, stamp) for stamp in stamps]
    stream = stream_row(place, None, offsets, kinds) if streamed else None
    return Seen(row, stream, measured_row(place, row, answer.metrics), (("output", answer.text),))


def _arrivals(request: Mapping[str, Any]) -> list[tuple[int | None, Message]]:
    """Messages with the stamp of the read that brought them."""
    stamps, outputs = request.get("response_timestamps"), request.get("response_outputs")
    if not isinstance(stamps, list) or not isinstance(outputs, list):
        return []
    found: list[tuple[int | None, Message]] = []
    for stamp, output in zip(stamps, outputs, strict=False):
        text = output.get("response") if isinstance(output, dict) else None
        if isinstance(text, str):
            found += [(from_nanos(stamp), message) for message in messages_in(text)]
    return found


def _streamed(request: Mapping[str, Any], kinds: str) -> bool | None:
    """Whether a stream was asked for and came; the payload is JSON text."""
    if not kinds:
        return None
    inputs = request.get("request_inputs")
    payload = inputs.get("payload") if isinstance(inputs, dict) else None
    asked = re.search(r'"stream"\s*:\s*(true|false)', payload) if isinstance(payload, str) else None
    return asked[1] == "true" if asked else len(kinds) > 1


def _status(error: str | None, kinds: str) -> str:
    complete = "c" in kinds or "t" in kinds or "f" in kinds
    return Ending(word="ok" if complete else None, error=error).status()


FORMAT: Final = Format(
    name="genai_perf",
    title="profile of perf_analyzer or GenAI-Perf",
    side=Side.CLIENT,
    fills=("client_request", "client_stream", "server_request", "request_text"),
    sniff=sniff,
    parse=parse,
    whole=True,
    versions="perf_analyzer 2.59, GenAI-Perf 0.0.16",
    complete="The layout of perf_analyzer, hand-made against its sources.",
    record="genai-perf profile ... (profile_export.json)",
    sample="handmade_profile_export.json",
)
