"""How a request ended for its client: one word from an HTTP status, a word, an error text and a finish reason."""

from __future__ import annotations

import re
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

import orjson

from tracelens.formats.json_lines import TEXT_CHARS, number

if TYPE_CHECKING:
    from collections.abc import Mapping

REASON_PHRASES: Final[Mapping[str, int]] = {
    status.phrase: int(status) for status in HTTPStatus if status >= HTTPStatus.BAD_REQUEST
}
"""Reason phrase to HTTP status, for tools that keep only the phrase (``vllm bench serve``)."""

_WORDS: Final[Mapping[str, str]] = {
    **dict.fromkeys(
        ("ok", "success", "succeeded", "successful", "completed", "complete", "finished", "done"), "ok"
    ),
    **dict.fromkeys(("error", "errored", "failed", "failure", "exception"), "error"),
    **dict.fromkeys(
        (
            "aborted",
            "abort",
            "cancelled",
            "canceled",
            "timeout",
            "timed_out",
            "disconnected",
            "client_timeout",
        ),
        "aborted",
    ),
    **dict.fromkeys(("rejected", "refused", "rate_limited", "throttled"), "rejected"),
}
_GAVE_UP: Final = re.compile(
    r"time[d]?[ _-]?out|timeout|cancel|abort|disconnect|gave up|client closed|hung up", re.IGNORECASE
)
_COMPLETE: Final = frozenset(("stop", "length", "tool_calls", "function_call", "content_filter", "eos_token"))

_CLIENT_CLOSED: Final = 499
_UNAVAILABLE: Final = 503


@dataclass(frozen=True, slots=True)
class Ending:
    """What a line says about the end of its request."""

    http_status: int | None = None
    word: str | None = None
    error: str | None = None
    finish_reason: str | None = None
    error_stated: bool = False
    """Whether the line has a place for an error at all: an empty one then says that there was none."""

    def status(self) -> str:
        """Return the value of ``request_status``: what the server refused comes first, then what failed, then what went well."""
        return self._refused() or self._failed() or self._fine() or "unknown"

    def _refused(self) -> str | None:
        """4xx and 503 are refusals before the engine; 499 is nginx's word for a client that left."""
        if self.http_status is None or self.http_status < HTTPStatus.BAD_REQUEST:
            return None
        if self.http_status == _CLIENT_CLOSED:
            return "aborted"
        return (
            "rejected"
            if self.http_status < HTTPStatus.INTERNAL_SERVER_ERROR or self.http_status == _UNAVAILABLE
            else "error"
        )

    def _failed(self) -> str | None:
        told = _WORDS.get(self.word or "")
        if told in ("aborted", "rejected"):
            return told
        if self.error is not None or told == "error":
            return "aborted" if self.error is not None and _GAVE_UP.search(self.error) else "error"
        return {"abort": "aborted", "error": "error"}.get(self.finish_reason or "")

    def _fine(self) -> str | None:
        told = _WORDS.get(self.word or "")
        is_2xx = self.http_status is not None and self.http_status // 100 == 2  # noqa: PLR2004
        complete = self.finish_reason in _COMPLETE or self.error_stated
        return "ok" if told == "ok" or is_2xx or complete else None


def http_status_of(value: Any) -> int | None:
    """Return an HTTP status, None when the value is none."""
    amount = number(value)
    return int(amount) if amount is not None and amount == int(amount) and 100 <= amount <= 599 else None  # noqa: PLR2004


def word_of(value: Any) -> str | None:
    """Write a status word in snake_case; true and false are ``ok`` and ``error``."""
    if isinstance(value, bool):
        return "ok" if value else "error"
    return value.strip().lower().replace(" ", "_").replace("-", "_") if isinstance(value, str) else None


def error_text(value: Any) -> str | None:
    """Write an error as text; objects as JSON; nothing for what says "no error" (null, "", false, {})."""
    if not value or value is True:
        return None if not value else "true"
    text = value if isinstance(value, str) else orjson.dumps(value).decode()
    return text[:TEXT_CHARS]
