"""Which values of unknown keys a case may keep."""

from __future__ import annotations

import re
from typing import Any, Final

NOTE_CHARS: Final = 200
"""Longest text kept of a key that tracelens does not know."""
_PRIVATE: Final = re.compile(
    r"prompt|message|content|text|output|response|completion|query|question|answer|input|body|payload|reasoning"
    r"|auth|api_?key|secret|passw|cookie|bearer|credential|header|^token$|access_token"
)
"""Keys whose texts are never kept: prompts, answers, keys to the server."""


def is_note(key: str, value: Any) -> bool:
    """Whether a value of an unknown key may be kept: never a prompt, an answer or a secret."""
    if isinstance(value, bool | int | float):
        return True
    if value is None or _PRIVATE.search(key.lower()):
        return False
    if isinstance(value, str):
        return len(value) <= NOTE_CHARS
    numbers = value if isinstance(value, list) else value.values()
    return len(numbers) <= NOTE_CHARS and all(isinstance(each, bool | int | float) for each in numbers)
