"""Records that share a line: a paste lost the line ends between them, or a progress bar had none.

What users wrote stands in log lines too, always quoted (Python repr or JSON).  A header inside an open quotation is text,
so a line is cut before a header only where all quotations before it are closed.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

import polars as pl

from tracelens.formats.server import quoting
from tracelens.formats.server.framing import LEVELS, PREFIX
from tracelens.formats.server.vllm_samples import STATS_WHOLE

_HEADER: Final = (
    rf"(?:\([^()]*? pid=\d+(?:, ip=[^)]*)?\) ?)*(?:{LEVELS}) \d\d-\d\d \d\d:\d\d:\d\d \[?[^\]\s:]+:\d+\] "
)
_HEADERS: Final = re.compile(_HEADER)
_INSIDE: Final = re.compile(rf"(?s)^(.{{1,300}}?)({_HEADER}.*)$")
_STRING: Final = re.compile(r"(?<!\w)(?:'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")(?!\w)")
_QUOTE: Final = re.compile(r"['\"`]")
_PROGRESS: Final = re.compile(r"\d%\||(?:it/s|s/it)")
_PROCESS: Final = re.compile(rf"^{PREFIX}\(?([\w. -]+) pid=\d+(?:, ip=[^)]*)?\) $")
_REQUEST: Final = re.compile(r"(?:Received|Added|Finished|Aborted|Generated|Request)\b")
_REQUEST_ENDS: Final = re.compile(r"\.$|, finish_reason: \w+$|\}$")
_STATS_WHOLE: Final = re.compile(STATS_WHOLE)
_MAX_QUOTED: Final = 50
"""Headers that may stand in quotations before the search for a record's end is given up."""

Headers = Callable[[pl.DataFrame], pl.DataFrame]


def apart(records: pl.DataFrame, headers: Headers) -> pl.DataFrame:
    """Cut records that are several: rows with the same line number, in order."""
    message = pl.col("message")
    written_by = message.str.contains(".py:", literal=True) | message.str.contains(".rs:", literal=True)
    mask = records.select(written_by.fill_null(value=False)).to_series()
    if not mask.any() or not (has_header := records["message"].filter(mask).str.contains(_HEADER)).any():
        return records
    mask = mask.scatter(mask.arg_true(), has_header)
    suspect = records.filter(mask)
    pieces = [_cut(message) for message in suspect["message"]]
    first = suspect.with_columns(message=pl.Series([piece[0] for piece in pieces], dtype=pl.String))
    rest = pl.Series([piece[1:] for piece in pieces], dtype=pl.List(pl.String))
    later = (
        suspect.with_columns(text=rest)
        .filter(pl.col("text").list.len() > 0)
        .explode("text", empty_as_null=False)
    )
    found = headers(_bare(later))
    parts = [records.filter(~mask), first, found.select(records.columns)]
    return pl.concat(parts).sort("line_no", maintain_order=True)


def _bare(records: pl.DataFrame) -> pl.DataFrame:
    """Records whose header is still to be read."""
    nothing = pl.lit(None, pl.String)
    bare = records.drop("message", "inner", "dated", "dated_error_s")
    return bare.with_columns(level=nothing, process=nothing, origin=nothing)


def _cut(message: str) -> list[str]:
    pieces: list[str] = []
    start, quoted = 0, 0
    place = _behind_text(message, 0)
    while place is not None and quoted < _MAX_QUOTED and (match := _HEADERS.search(message, place)):
        if _is_open(message[start : match.start()].rstrip(" ")):
            place, quoted = match.end(), quoted + 1
        else:
            pieces.append(message[start : match.start()].rstrip(" "))
            start, quoted = match.start(), 0
            place = _behind_text(message, match.end())
    return [*pieces, message[start:]]


def _behind_text(message: str, start: int) -> int | None:
    """Where another record may begin, behind the text of users; None where that has not ended."""
    own = message[start:]
    if not quoting.holds_text(own):
        return start
    end = quoting.text_end(own)
    return None if end is None else start + end


def _is_open(text: str) -> bool:
    """Whether a quotation has begun in a text and not ended, or a request's line (a client chooses its id) has not."""
    header = _HEADERS.match(text)
    message = text[header.end() :] if header else text
    if quoting.holds_text(message):
        return not quoting.is_whole(message)
    if _REQUEST.match(message) and not _REQUEST_ENDS.search(message):
        return True
    return _is_quoting(text)


def _is_quoting(text: str) -> bool:
    return _QUOTE.search(_STRING.sub("", text)) is not None


def inside(odd: pl.DataFrame, headers: Headers) -> pl.DataFrame:
    """Find the header of lines that have one further inside: behind a progress bar, or a prefix of the user's own."""
    is_missing = odd["level"].is_null()
    found = [_inner(text) if missing else None for text, missing in zip(odd["text"], is_missing, strict=True)]
    mask = pl.Series([one is not None for one in found], dtype=pl.Boolean)
    if not mask.any():
        return odd
    texts = [one for one in found if one is not None]
    inner = headers(
        _bare(odd.filter(mask).with_columns(text=pl.Series([text for text, _ in texts], dtype=pl.String)))
    )
    process = pl.coalesce("process", pl.Series([process for _, process in texts], dtype=pl.String))
    return pl.concat([odd.filter(~mask), inner.with_columns(process=process).select(odd.columns)])


def _inner(text: str) -> tuple[str, str | None] | None:
    """The record inside a line, and the process that a prefix without its first parenthesis names."""
    match = _INSIDE.match(text)
    if match is None or _is_quoting(match[1]) or _is_quoting(match[2]):
        return None
    message = _cut(_HEADERS.sub("", match[2], count=1))[0]
    if "Avg prompt " in message and not _PROGRESS.search(match[1]) and not _STATS_WHOLE.search(message):
        return None
    process = _PROCESS.match(match[1])
    return match[2], process[1] if process else None
