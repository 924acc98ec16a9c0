"""Token counts of a server's ``usage`` object, as chat, completions and responses of the OpenAI API write it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tracelens.formats.json_lines import count


def usage_tokens(usage: Mapping[str, Any]) -> dict[str, Any]:
    """Columns of `client_request`: prompt tokens, cached ones among them, generated tokens and who counted them."""
    details = usage.get("prompt_tokens_details")
    output_tokens = count(usage.get("completion_tokens", usage.get("output_tokens")))
    return {
        "input_tokens": count(usage.get("prompt_tokens", usage.get("input_tokens"))),
        "cached_input_tokens": count(details.get("cached_tokens")) if isinstance(details, dict) else None,
        "output_tokens": output_tokens,
        "output_tokens_basis": None if output_tokens is None else "usage",
    }
