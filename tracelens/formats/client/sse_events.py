"""What one event of a streamed answer is: OpenAI's chat and text completions, its Responses API, Anthropic's messages.

Kinds are the letters of `client_chunks`.  The role-only chunk is no content; reasoning and tool calls are; a comment line
(``: keep-alive``) is neither first byte nor first token; an error can come in the middle of a stream that began with a 200.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from tracelens.formats.client.client_outcomes import error_text
from tracelens.formats.json_lines import decode, text_of

_REASONING: Final = ("reasoning_content", "reasoning")
_TYPES: Final[Mapping[str, str]] = {
    "response.created": "r",
    "response.output_text.delta": "c",
    "response.function_call_arguments.delta": "c",
    "response.reasoning_text.delta": "t",
    "response.reasoning_summary_text.delta": "t",
    "response.completed": "u",
    "response.incomplete": "u",
    "response.failed": "E",
    "message_start": "r",
    "message_delta": "f",
    "message_stop": "D",
    "ping": "k",
    "error": "E",
}
_DELTAS: Final[Mapping[str, str]] = {"text_delta": "c", "input_json_delta": "c", "thinking_delta": "t"}


@dataclass(frozen=True, slots=True)
class Event:
    """One event: its kind, and what it says of the whole answer."""

    kind: str
    response_id: str | None = None
    model: str | None = None
    finish_reason: str | None = None
    usage: Mapping[str, Any] | None = None
    metrics: Mapping[str, Any] | None = None
    error: str | None = None
    text: str | None = None


def event_of(payload: str) -> Event | None:
    """Read what stands behind ``data:``; None where that is no event of these APIs."""
    bare = payload.strip()
    if bare == "[DONE]":
        return Event("D")
    try:
        value = decode(bare)
    except ValueError:
        return None
    if not isinstance(value, dict):
        return None
    if value.get("error") or value.get("object") == "error":
        return Event("E", error=error_text(value.get("error") or value.get("message")) or "error")
    return _typed(value) if isinstance(value.get("type"), str) else _completion(value)


def _completion(value: Mapping[str, Any]) -> Event | None:
    choices = value.get("choices")
    if not isinstance(choices, list):
        return None
    said = [_choice(each) for each in choices if isinstance(each, dict)]
    kinds = [kind for kind, _, _ in said]
    usage = value.get("usage")
    return Event(
        next((letter for letter in "ctfre" if letter in kinds), "u" if usage else "e"),
        text_of(value.get("id")),
        text_of(value.get("model")),
        next((reason for _, reason, _ in said if reason), None),
        usage if isinstance(usage, dict) else None,
        value["metrics"] if isinstance(value.get("metrics"), dict) else None,
        text="".join(text for _, _, text in said if text) or None,
    )


def _choice(choice: Mapping[str, Any]) -> tuple[str, str | None, str | None]:
    """Kind, finish reason and text of one choice."""
    delta = choice.get("delta")
    told: Mapping[str, Any] = delta if isinstance(delta, dict) else {}
    reason = text_of(choice.get("finish_reason"))
    text = told.get("content") or choice.get("text")
    if text or told.get("tool_calls"):
        return "c", reason, text if isinstance(text, str) else None
    if any(told.get(name) for name in _REASONING):
        return "t", reason, None
    if reason:
        return "f", reason, None
    return ("r" if "role" in told else "e"), None, None


def _typed(value: Mapping[str, Any]) -> Event:
    """Events that name their type."""
    kind = str(value["type"])
    held = (value.get(key) for key in ("response", "message"))
    inner: Mapping[str, Any] = next((each for each in held if isinstance(each, dict)), {})
    delta = value.get("delta")
    letter = _TYPES.get(kind, "e")
    if isinstance(delta, dict):
        letter = _DELTAS.get(str(delta.get("type")), letter)
    usage = inner.get("usage") or value.get("usage")
    stop = delta.get("stop_reason") if isinstance(delta, dict) else None
    return Event(
        letter,
        text_of(inner.get("id")),
        text_of(inner.get("model")),
        text_of(stop),
        usage if isinstance(usage, dict) else None,
        error=(error_text(inner.get("error")) or kind) if letter == "E" else None,
        text=_text(delta) if letter == "c" else None,
    )


def _text(delta: Any) -> str | None:
    return (
        delta if isinstance(delta, str) else text_of(delta.get("text")) if isinstance(delta, dict) else None
    )
