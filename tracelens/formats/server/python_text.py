"""Key and value pairs out of Python reprs: ``Namespace(k=v, ...)``, ``{'k': v, ...}``, ``k=v, k=v``.

Nothing is evaluated.  The text is scanned once, in linear time, whatever it holds; values stay as they were
written, except that a plain string loses its quotes.  Values of secrets become ``***``.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_CHARS: Final = 262_144
"""Characters of a line that are looked at (vLLM's longest configuration lines have about 20,000)."""
MAX_VALUE_CHARS: Final = 2_048
"""Characters kept of one value (a nested configuration)."""
MAX_PAIRS: Final = 1_000
"""Pairs taken from one line (vLLM's Namespace has about 200)."""

MASK: Final = "***"
_MAX_GLUED: Final = 8

# A string runs to its closing quote, or to the end of the text where it has none: possessive, so no retries.
_QUOTED = r"'(?:[^'\\]|\\.|\\$)*+(?:'|$)|\"(?:[^\"\\]|\\.|\\$)*+(?:\"|$)"
_TOKEN = re.compile(rf"{_QUOTED}|[\[({{]|[\])}}]|,", re.DOTALL)
_ARGUMENT = re.compile(r"\s*([A-Za-z_][\w.-]{0,63}+)\s*=\s*(.*)", re.DOTALL)
_ENTRY = re.compile(r"\s*['\"]([A-Za-z_][\w.-]{0,63}+)['\"]\s*:\s*(.*)", re.DOTALL)
_GLUED = re.compile(r"([^\s'\"\[({]+)\s+([A-Za-z_]\w*=.*)", re.DOTALL)
_UNCLOSED = re.compile(r"'(?:[^'\\]|\\.|\\$)*+|\"(?:[^\"\\]|\\.|\\$)*+", re.DOTALL)
_NESTED = re.compile(
    r"(?<![\w-])([\w-]++)(['\"]?\s?[:=]\s?)(" + _QUOTED + r"|\[[^\]]*+|[^\s,)}\]]++)", re.DOTALL
)
_USERINFO = re.compile(r"://[^/@\s'\"]{1,512}+@")
_ESCAPE = re.compile(r"\\([\\'\"])")
_DEPTH: Final = {"[": 1, "(": 1, "{": 1, "]": -1, ")": -1, "}": -1}
_SECRET_WORDS: Final = {"auth", "authorization", "passwd", "passphrase", "keyfile", "apikey"} | {
    word + end for word in ("key", "password", "secret", "credential") for end in ("", "s")
}
_NO_SECRET: Final = frozenset(("None", "True", "False", "", "[]", "{}", MASK))


def is_secret(key: str) -> bool:
    """Whether a setting's value must not be kept: api_key, hf_token, ssl_keyfile; not max_num_batched_tokens."""
    words = re.split(r"[_.\-]+", key.lower())
    return words[-1] == "token" or not _SECRET_WORDS.isdisjoint(words)


def arguments(text: str, *, closes: bool = False) -> Iterator[tuple[str, str]]:
    """Yield the pairs of ``k=v, k=v``, up to a closing bracket that was not opened; nested ones are one value.

    Where such a bracket `closes` the pairs and is missing, the text was cut, and so may be its last value: it is left out.

    vLLM 0.6 left out a comma (``chunked_prefill_enabled=True multi_step_stream_outputs=True``): an unquoted
    value ends at a space when a further pair follows it.
    """
    for part in _top_level(text[:MAX_CHARS], closes=closes):
        yield from _glued(part, _MAX_GLUED)


def entries(text: str) -> Iterator[tuple[str, str]]:
    """Yield the pairs of the inside of ``{'k': v, ...}``, but the last where it was cut; nested ones are one value."""
    for part in _top_level(text[:MAX_CHARS], closes=True):
        if found := _ENTRY.fullmatch(part):
            yield found[1], shown(found[1], found[2].strip())


def shown(key: str, value: str) -> str:
    """Give a value as it may be kept: without quotes and secrets, at most `MAX_VALUE_CHARS` long."""
    bare = _unquoted(value[:MAX_VALUE_CHARS])
    if is_secret(key):
        return bare if bare in _NO_SECRET else MASK
    return _USERINFO.sub(f"://{MASK}@", _NESTED.sub(_masked, bare))


def _glued(part: str, most: int) -> Iterator[tuple[str, str]]:
    found = _ARGUMENT.fullmatch(part)
    if found and most:
        key, rest = found[1], found[2].strip()
        further = _GLUED.fullmatch(rest)
        if rest and not _UNCLOSED.fullmatch(rest):
            yield key, shown(key, further[1] if further else rest)
        yield from _glued(further[2] if further else "", most - 1)


def _masked(pair: re.Match[str]) -> str:
    key, between, value = pair.groups()
    return f"{key}{between}{MASK}" if is_secret(key) and value not in _NO_SECRET else pair[0]


def _unquoted(value: str) -> str:
    if len(value) > 1 and value[0] in "'\"" and value[-1] == value[0]:
        return _ESCAPE.sub(r"\1", value[1:-1])
    return value


def _top_level(text: str, *, closes: bool) -> Iterator[str]:
    depth, start, count = 0, 0, 0
    for token in _TOKEN.finditer(text):
        mark = token[0]
        if mark == "," and depth == 0:
            yield text[start : token.start()]
            start, count = token.end(), count + 1
        depth += _DEPTH.get(mark, 0)
        if depth < 0 or count >= MAX_PAIRS:
            yield text[start : token.start()]
            return
    if not closes:
        yield text[start:]
