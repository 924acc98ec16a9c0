"""The database of ``evalscope perf`` (``benchmark_data.db``): every request of one run.

Read in EvalScope 1.14; older files lack the last columns.  Instants are seconds of a monotonic clock (``perf_counter``).

What its numbers are
- ``first_chunk_latency``: the first message with content.  Without a stream (``is_stream`` 0) it is the whole latency.
- ``inter_token_latencies``: gaps between messages with content.  Failed requests keep those they had, without the first time.
- Tokens are the server's usage where the request asked for it, else a tokenizer's.
- An error event inside a stream is an error here; why a request failed is not kept.
- ``response_messages`` is a pickle, which can run anything when it is loaded: it is never loaded.  The id of the answer is
  taken from its first bytes, where it stands as plain text with its length before it.
"""

from __future__ import annotations

import base64
import binascii
import re
from typing import TYPE_CHECKING, Any, Final

from tracelens.formats.base import Chunk, Claim, Clock, Format, Head, Parsed, Side, no_issues, no_stamps
from tracelens.formats.client.sqlite_rows import rows_of
from tracelens.formats.client.tool_requests import Moments, between, from_seconds, plus, stream_row
from tracelens.formats.client.tool_tables import Seen, tables_of
from tracelens.formats.json_lines import count, decode, number, refusals, seconds, text_of

if TYPE_CHECKING:
    from collections.abc import Mapping

_COLUMNS: Final = (
    "request", "start_time", "inter_token_latencies", "success", "response_messages", "completed_time", "latency",
    "first_chunk_latency", "prompt_tokens", "completion_tokens", "request_id", "is_stream",
)  # fmt: skip
_MAGIC: Final = "SQLite format 3\x00"
_ID: Final = re.compile(rb"\x8c\x02id\x94\x8c(.)((?:chatcmpl|cmpl)-[\x21-\x7e]{1,120})", re.DOTALL)
_ID_CHARS: Final = 400
"""Characters of the pickle's text in which the id of the first message stands."""


def sniff(head: Head) -> Claim | None:
    """Claim an SQLite database with the table of requests in its schema."""
    if not head.lines or not head.lines[0].startswith(_MAGIC):
        return None
    text = "\n".join(head.lines)
    if "result" not in text or "first_chunk_latency" not in text:
        return None
    return Claim("every request", Clock.RELATIVE)


def parse(chunk: Chunk) -> Parsed:
    """Read the table of requests, in the order in which it was filled."""
    found = rows_of(chunk.raw, "result", _COLUMNS)
    seen = [_seen(place, row) for place, row in enumerate(found.rows, 1)]
    numbers = chunk.lines["line_no"].to_list()
    issues = refusals(chunk.lines, dict.fromkeys(numbers, found.reason)) if found.reason else no_issues()
    tables = tables_of(seen, chunk)
    return Parsed(tables, issues, chunk.lines.height - issues.height, no_stamps())


def _seen(place: int, row: Mapping[str, Any]) -> Seen:
    asked = _asked(row.get("request"))
    sent = from_seconds(row.get("start_time"))
    told_s, gaps_s = seconds(row.get("first_chunk_latency")), _gaps(row.get("inter_token_latencies"))
    streamed = _streamed(row, told_s, gaps_s)
    offsets = _offsets(told_s, gaps_s) if streamed else []
    at = Moments(
        sent=sent,
        first=plus(sent, offsets[0]) if offsets else None,
        last=plus(sent, offsets[-1]) if offsets else None,
        end=from_seconds(row.get("completed_time")),
    )
    tokens = _tokens(row, asked)
    kind = "whole_response" if streamed is False else "content"
    request = at.row(Clock.RELATIVE) | tokens | {
        "line_no": place,
        "client_id": text_of(row.get("request_id")),
        "response_id": response_id(row.get("response_messages")),
        "model": text_of(asked.get("model")),
        "status": {1: "ok", 0: "error"}.get(count(row.get("success")) or 0, "unknown")
        if row.get("success") is not None
        else "unknown",
        "client_reported_ttft_s": told_s,
        "client_ttft_kind": None if told_s is None else kind,
        "client_tpot_s": at.tpot_s(tokens["output_tokens"]),
        "streamed": streamed,
        "max_tokens": count(asked.get("max_tokens")),
        "chunk_count": _chunk_count(streamed, told_s, gaps_s),
    }  # fmt: skip
    stream = stream_row(
        place, request["client_id"], [between(sent, plus(sent, at_s)) for at_s in offsets], "c" * len(offsets)
    )
    return Seen(
        request,
        stream,
        None,
        (("prompt", row.get("request") if isinstance(row.get("request"), str) else None),),
    )


def response_id(messages: Any) -> str | None:
    """The server's id from the beginning of a pickle in base64, read as bytes."""
    if not isinstance(messages, str):
        return None
    try:
        begin = base64.b64decode(messages[:_ID_CHARS], validate=True)
    except (binascii.Error, ValueError):
        return None
    found = _ID.search(begin)
    if found is None or len(found[2]) < found[1][0]:
        return None
    return found[2][: found[1][0]].decode("ascii")


def _asked(body: Any) -> Mapping[str, Any]:
    """The body that was sent."""
    try:
        asked = decode(body) if isinstance(body, str) else None
    except ValueError:
        return {}
    return asked if isinstance(asked, dict) else {}


def _gaps(text: Any) -> list[float] | None:
    """Gaps in seconds, all or none; the column is JSON."""
    try:
        stated = decode(text) if isinstance(text, str) else None
    except ValueError:
        return None
    known = [number(each) for each in stated] if isinstance(stated, list) else []
    gaps = [float(each) for each in known if each is not None and each >= 0]
    return gaps if isinstance(stated, list) and len(gaps) == len(known) else None


def _offsets(told_s: float | None, gaps_s: list[float] | None) -> list[float]:
    if told_s is None or gaps_s is None:
        return []
    offsets = [told_s]
    for gap in gaps_s:
        offsets.append(offsets[-1] + gap)
    return offsets


def _streamed(row: Mapping[str, Any], told_s: float | None, gaps_s: list[float] | None) -> bool | None:
    """Whether a stream was asked for and came.  Older files do not say; gaps do."""
    asked = row.get("is_stream")
    if asked == 0:
        return False if told_s is not None or row.get("success") == 1 else None
    if asked is None:
        return True if gaps_s else None
    return True if told_s is not None or gaps_s else None


def _chunk_count(streamed: bool | None, told_s: float | None, gaps_s: list[float] | None) -> int | None:
    if not streamed or gaps_s is None:
        return None
    return len(gaps_s) + 1 if gaps_s or told_s is not None else None


def _tokens(row: Mapping[str, Any], asked: Mapping[str, Any]) -> dict[str, Any]:
    options = asked.get("stream_options")
    has_usage = asked.get("stream") is False or (
        isinstance(options, dict) and options.get("include_usage") is True
    )
    output_tokens = count(row.get("completion_tokens"))
    return {
        "input_tokens": count(row.get("prompt_tokens")),
        "output_tokens": output_tokens,
        "output_tokens_basis": None if output_tokens is None else "usage" if has_usage else "client",
    }


FORMAT: Final = Format(
    name="evalscope",
    title="database of evalscope perf",
    side=Side.CLIENT,
    fills=("client_request", "client_stream", "server_request", "request_text", "prompt_block"),
    sniff=sniff,
    parse=parse,
    whole=True,
    binary=True,
    versions="EvalScope 1.14",
    complete="Real databases of 1.14. The pickled column is never loaded.",
    record="evalscope perf --stream ... (benchmark_data.db)",
    sample="v1.14.1_chat.db",
)
