"""Messages of an OpenAI stream, as load generators keep them: ``data: {...}``, comments and the end mark.

What a message is decides whether it is a first token: the role-only one is not, nor a usage message, nor a keep-alive
comment.  Field names of vLLM 0.4 to 0.32 and of SGLang: ``delta.content``, ``delta.reasoning_content`` or
``delta.reasoning``, ``delta.tool_calls``, and ``text`` of completions.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from tracelens.formats.client.client_outcomes import error_text
from tracelens.formats.client.usage import usage_tokens
from tracelens.formats.json_lines import decode, text_of

if TYPE_CHECKING:
    from collections.abc import Mapping

END_MARK: Final = "[DONE]"
_PREFIX: Final = "data:"


@dataclass(frozen=True, slots=True)
class Message:
    """One message: its letter in `client_stream.chunk_kind`, and what it says."""

    letter: str
    values: Mapping[str, Any] = field(default_factory=dict)
    text: str = ""
    finish_reason: str | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """What all messages of one answer say together."""

    response_id: str | None = None
    model: str | None = None
    usage: Mapping[str, Any] = field(default_factory=dict)
    metrics: Any = None
    finish_reason: str | None = None
    error: str | None = None
    text: str = ""

    def tokens(self) -> dict[str, Any]:
        """Token counts of the server's usage, as columns of `client_request`."""
        return usage_tokens(self.usage)


def messages_in(text: str) -> list[Message]:
    """Messages of what one read of a stream gave: one, several joined, or a part of one (letter ``?``)."""
    parts = [part.strip() for part in text.split("\n") if part.strip() and not part.startswith("event:")]
    return [message_of(part) for part in parts]


def message_of(text: str) -> Message:
    """One message, with or without ``data:`` before it."""
    if text.startswith(":"):
        return Message("k")
    bare = text.removeprefix(_PREFIX).strip()
    if bare == END_MARK:
        return Message("D")
    try:
        values = decode(bare)
    except ValueError:
        return Message("?")
    return _message(values) if isinstance(values, dict) else Message("?")


def _message(values: dict[str, Any]) -> Message:
    error = error_text(values.get("error"))
    if error is not None:
        return Message("E", values, error=error)
    choices = values.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else None
    if choice is None:
        return Message("u" if values.get("usage") else "?", values)
    letter, text = _content(choice)
    finish_reason = text_of(choice.get("finish_reason"))
    return Message(
        "f" if letter == "e" and finish_reason else letter, values, text, finish_reason=finish_reason
    )


def _content(choice: Mapping[str, Any]) -> tuple[str, str]:
    """Letter and text of a choice; a whole message (not streamed) reads like a delta."""
    delta = choice.get("delta", choice.get("message"))
    if not isinstance(delta, dict):
        text = choice.get("text")
        return ("c", text) if isinstance(text, str) and text else ("e", "")
    text = delta.get("content")
    if isinstance(text, str) and text:
        return "c", text
    if delta.get("reasoning_content") or delta.get("reasoning"):
        return "t", ""
    if delta.get("tool_calls"):
        return "c", ""
    return ("r" if delta.get("role") else "e"), ""


def answer_of(messages: list[Message]) -> Answer:
    """Put the messages of one answer together.  The last usage counts: with continuous usage each message has one."""
    said = [message.values for message in messages if message.values]
    return Answer(
        response_id=_first(said, "id"),
        model=_first(said, "model"),
        usage=next((v["usage"] for v in reversed(said) if isinstance(v.get("usage"), dict)), {}),
        metrics=next((v["metrics"] for v in reversed(said) if isinstance(v.get("metrics"), dict)), None),
        finish_reason=next((m.finish_reason for m in reversed(messages) if m.finish_reason), None),
        error=next((m.error for m in messages if m.error), None),
        text="".join(m.text for m in messages),
    )


def _first(said: list[Mapping[str, Any]], key: str) -> str | None:
    return next((name for values in said if (name := text_of(values.get(key)))), None)
