"""Whole answers of an OpenAI-compatible server, saved as JSON documents: ``curl ... | jq . > answer.json``, one or several.

They hold no times of the client: ids, usage, and with ``--enable-per-request-metrics`` what vLLM (0.25 and later) measured.  Answers of
one line each are read by `client_stream`.  Texts are kept only where they are asked for.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from tracelens.formats.base import Chunk, Claim, Clock, Format, Head, Parsed, Side, no_stamps
from tracelens.formats.client.client_outcomes import Ending, error_text
from tracelens.formats.client.client_rows import measured_of
from tracelens.formats.client.client_tables import MEASURED_SCHEMA, frame, requests_frame
from tracelens.formats.client.usage import usage_tokens
from tracelens.formats.json_documents import read_documents
from tracelens.formats.json_lines import refusals, text_of

NO_ANSWER: Final = "no answer of a language model"

_OBJECTS: Final = ("chat.completion", "text_completion", "response")
_SIGNS: Final = (
    re.compile(r'"object"\s*:\s*"(?:chat\.completion|text_completion|response)"'),
    re.compile(r'"usage"\s*:'),
)
_HEAD_CHARS: Final = 100_000


def sniff(head: Head) -> Claim | None:
    """Claim a pretty-printed answer: an object that begins on a line of its own."""
    if head.first.strip("\ufeff \t\r") != "{":
        return None
    begin = "\n".join(head.lines)[:_HEAD_CHARS]
    return Claim("answers", Clock.NONE) if all(sign.search(begin) for sign in _SIGNS) else None


def parse(chunk: Chunk) -> Parsed:
    """One row of `client_request` per answer, with the number of the line on which it begins."""
    read = read_documents(chunk.lines)
    line_nos = chunk.lines["line_no"].to_list()
    refused = {line_nos[place]: reason for place, reason in read.refused.items()}
    rows: list[dict[str, Any]] = []
    measured: list[dict[str, Any]] = []
    for document in read.found:
        line_no, value = line_nos[document.first], document.value
        if not isinstance(value, dict) or not _is_answer(value):
            refused |= dict.fromkeys(line_nos[document.first : document.last + 1], NO_ANSWER)
            continue
        rows.append({"line_no": line_no, **_row(value)})
        found = measured_of(value.get("metrics"), {"response_id": text_of(value.get("id"))})
        measured += [] if found is None else [{"line_no": line_no, **found}]
    issues = refusals(chunk.lines, refused).sort("line_no")
    tables = {
        "client_request": requests_frame(rows),
        "server_request": frame(measured, MEASURED_SCHEMA),
    }
    return Parsed(tables, issues, chunk.lines.height - issues.height, no_stamps())


def _is_answer(value: Mapping[str, Any]) -> bool:
    return value.get("object") in _OBJECTS or bool(value.get("error"))


def _row(value: Mapping[str, Any]) -> dict[str, Any]:
    held, choices = value.get("usage"), value.get("choices")
    usage: Mapping[str, Any] = held if isinstance(held, dict) else {}
    first = choices[0] if isinstance(choices, list) and choices else None
    finish_reason = text_of(first.get("finish_reason")) if isinstance(first, dict) else None
    error = error_text(value.get("error"))
    return {
        "response_id": text_of(value.get("id")),
        "model": text_of(value.get("model")),
        **usage_tokens(usage),
        "finish_reason": finish_reason,
        "error": error,
        "status": Ending(error=error, finish_reason=finish_reason).status(),
        "streamed": False if error is None else None,
    }


FORMAT: Final = Format(
    name="curl_responses",
    title="saved answers of an OpenAI-compatible server (JSON documents)",
    side=Side.CLIENT,
    fills=("client_request", "server_request"),
    sniff=sniff,
    parse=parse,
    whole=True,
    versions="vLLM 0.6 to 0.33",
    complete="Forms of vLLM's source. No times of the client.",
    record="curl ... | jq . > answer.json, with vllm serve --enable-per-request-metrics",
    sample="vllm_0.28_metrics.json",
)
