"""Lines that hold what users wrote - a prompt, an answer, a body - and whether that text ends on them.

vLLM writes such text as Python's repr or as JSON, never with a line end in it.  Read from the left, the text therefore ends
at its closing quote, whatever stands in it.  Where a line was cut or broken before that, all that follows is text: to the
end of the line, and on the lines below up to the next one that begins as a log line does.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import polars as pl

from tracelens.formats.server import framing, wrappers

STRING: Final = r"(?:'(?:[^'\\]|\\(?s:.))*'|\"(?:[^\"\\]|\\(?s:.))*\")"
"""A whole literal of Python or JSON."""
REST: Final = rf"(?:[^'\"]|{STRING})*"
"""Text in which every quotation is closed."""

_STARTS: Final = ("Received request ", "Generated response ", "Request ")
_HOLDS: Final = r"^(?:Received request |Generated response |Request .*?(?: details: | JSON body: ))"
_TEXT: Final = (
    rf"(?:Received request \S+: prompt: (?:{STRING}|None), |Request \S+ details: prompt: (?:{STRING}|None), "
    rf"|Generated response \S+(?: \([^)]*\))?: output: (?:{STRING}|None), |Request \S+ JSON body: \{{"
    r"|Received request \S+: params: )"
)
_WHOLE: Final = (
    rf"^(?:Received request \S+: (?:prompt: (?:{STRING}|None), |params: ){REST}\.|Request \S+ details: prompt: (?:{STRING}|None), {REST}\."
    rf"|Generated response \S+(?: \([^)]*\))?: output: (?:{STRING}|None), [^'\"]*finish_reason: \w+"
    rf"|Request \S+ JSON body: \{{(?:[^'\"]|\"(?:[^\"\\]|\\(?s:.))*\")*\}})\s*$"
)
_HOLDING: Final = re.compile(_HOLDS)
_ENDING: Final = re.compile(_WHOLE)
_TEXT_END: Final = re.compile(_TEXT)
_HEADER: Final = re.compile(framing.HEADER)
_ANSI: Final = re.compile(framing.ANSI)
_BEGINS: Final = rf"^(?:{wrappers.INNER}|Traceback \(most recent call last\))"
_BEGINNING: Final = re.compile(_BEGINS)
_MAX_BELOW: Final = 64
"""As many lines below an open text may belong to it."""


def holds_text(message: str) -> bool:
    """Whether a message is of a form that holds text of users."""
    return _HOLDING.match(message) is not None


def is_whole(message: str) -> bool:
    """Whether a message that holds text goes to its proper end."""
    return _ENDING.match(message) is not None


def text_end(message: str) -> int | None:
    """Where the text of users in a message that holds some has ended; None where it has not."""
    found = _TEXT_END.match(message)
    return found.end() if found else None


def below_open(records: pl.DataFrame) -> pl.Series:
    """Which records (``text, level, message, is_access``) have no header and stand below a text that has not ended."""
    nothing = pl.repeat(value=False, n=records.height, dtype=pl.Boolean, eager=True)
    headed = records["level"].is_not_null() | records["is_access"]
    bare = (~headed).arg_true()
    begins = headed.scatter(bare, records["text"].gather(bare).str.contains(_BEGINS))
    if begins.all():
        return nothing
    row = pl.int_range(pl.len(), dtype=pl.Int64)
    below = (
        records.select("text", row=row, above=pl.when(begins).then(row).forward_fill())
        .filter(~begins & pl.col("text").str.contains(r"\S"))
        .filter(pl.col("row") - pl.col("above") <= _MAX_BELOW)
    )
    above = below["above"].unique().sort()
    message = pl.col("message").fill_null("")
    starts = pl.any_horizontal([message.str.starts_with(start) for start in _STARTS])
    is_open = starts & message.str.contains(_HOLDS) & ~message.str.contains(_WHOLE)
    opened = records[above.to_list()].select(is_open=is_open)["is_open"]
    return nothing.scatter(below["row"].filter(below["above"].is_in(above.filter(opened).implode())), True)


def is_open(lines: Sequence[bytes], settings: Mapping[str, Any]) -> bool:
    """Whether the last of some physical lines stands in or below a text that has not ended."""
    for line in reversed(lines[-_MAX_BELOW:]):
        text = _ANSI.sub("", line.decode("utf-8", "replace")).rstrip("\r")
        text = wrappers.bare(text, settings.get("wrappers", ()), settings.get("prefix", ""))
        if _BEGINNING.match(text):
            header = _HEADER.match(text)
            message = text[header.end() :] if header else ""
            return holds_text(message) and not is_whole(message)
    return False
