"""What stands around a vLLM message on a line: colours, carriage returns, process prefixes, the log header.

Read in ``vllm/logger.py`` and ``vllm/logging_utils/formatter.py`` of 0.6 to 0.33:

    up to 0.7.3   LEVEL MM-DD HH:MM:SS file.py:LINE] message
    0.8 to 0.30   (NAME pid=N) LEVEL MM-DD HH:MM:SS [file.py:LINE] message     prefix optional
    from 0.31     (NAME pid=N) LEVEL MM-DD HH:MM:SS [file.py:LINE] message     prefix always

Up to 0.11.2 the prefix is coloured even in files; from 0.12 the whole header is on a terminal.
"""

from __future__ import annotations

from typing import Final

import polars as pl

from tracelens.formats.base import PLACEHOLDER_YEAR
from tracelens.formats.server.distinct import behind, of_distinct, up_to

ANSI: Final = r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])"
"""Terminal control sequences: CSI, OSC and the two-byte ones."""

LEVELS: Final = "DEBUG|INFO|WARNING|ERROR|CRITICAL|TRACE"

PREFIX: Final = r"(?:\([^()]*? pid=\d+(?:, ip=[^)]*)?\) ?)*"
"""Any number of process prefixes, such as ``(EngineCore_DP0 pid=7) (RayWorkerWrapper pid=2, ip=10.0.0.9) ``."""

_PARTS: Final = rf"(?P<processes>{PREFIX})(?P<level>{LEVELS}) (?P<stamp>\d\d-\d\d \d\d:\d\d:\d\d) \[?(?P<origin>[^\]\s:]+:\d+)\]"
HEADER: Final = rf"^(?P<header>{_PARTS} ?)"
"""The header of one line, colours and line end already off."""

_BOX: Final = r"^[│┃║] ?(.*?)\s*[│┃║]?$"
_IN_BOX: Final = r"^(?:\x1b\S*?m)?[│┃║]"
"""A line in the frame that a terminal program (k9s, lazydocker, rich) draws around its window."""

_CUT_NUMBER: Final = r"[+-]?\d[\d.,]*(?:[eE][+-]?\d*)?$"
_CUT_WORD: Final = r"[\w.,:/+-]+$"
_WORDS_COUNT: Final = (
    r"\] (?:vLLM |# \w|.* metrics: |(?:Engine \d+: )?MFU: |.*[cC]onfig|.*args: |.*=\S*$|Using |Resolved )"
)
"""Lines that end with a word which is a value; others end with a unit or a number."""
_STATUS: Final = r" HTTP/[\d.]+\"? \d{3}$"

_HEADER_CHARS: Final = 400
"""A header is looked for in this many characters: prompts can make a line very long."""

_LAST_PROCESS: Final = r"\(([^()]*?) pid=\d+[^()]*\) ?$"


def without_colours(lines: pl.DataFrame) -> pl.DataFrame:
    """Take terminal sequences and the carriage returns at the end off ``text``."""
    text = pl.col("text")
    has_escape = lines["text"].str.contains("\x1b", literal=True).any()
    has_return = lines["text"].str.contains("\r", literal=True).any()
    if has_escape:
        text = text.str.replace_all(ANSI, "")
    if has_return:
        text = text.str.strip_chars_end("\r")
    has_box = lines["text"].str.contains(_IN_BOX).any()
    if has_box:
        text = text.str.replace(_BOX, "${1}")
    return lines.with_columns(text) if has_escape or has_return or has_box else lines


def without_cut_end(lines: pl.DataFrame) -> pl.DataFrame:
    """Take off what may be half a number, or half a word that is a value, where the file stops inside its last line."""
    if not lines.height:
        return lines
    text = pl.col("text")
    whole = pl.when(text.str.contains(_WORDS_COUNT)).then(text.str.replace(_CUT_WORD, ""))
    cut = whole.otherwise(text.str.replace(_CUT_NUMBER, ""))
    is_last = pl.int_range(pl.len()) == pl.len() - 1
    return lines.with_columns(text=pl.when(is_last & ~text.str.contains(_STATUS)).then(cut).otherwise(text))


def clean(lines: pl.DataFrame) -> pl.DataFrame:
    """Take colours and carriage returns off ``text``; of several segments between lone CRs the last stays.

    A progress bar redraws itself with CR, so what a terminal would show is the last segment.
    """
    text = pl.col("text")
    has_escape = lines["text"].str.contains("\x1b", literal=True).any()
    has_return = lines["text"].str.contains("\r", literal=True).any()
    if has_escape:
        text = text.str.replace_all(ANSI, "")
    if has_return:
        text = text.str.strip_chars_end("\r").str.replace(r"^(?s:.*)\r", "")
    has_box = lines["text"].str.contains(_IN_BOX).any()
    if has_box:
        text = text.str.replace(_BOX, "${1}")
    return lines.with_columns(text) if has_escape or has_return or has_box else lines


def split_header(lines: pl.DataFrame) -> pl.DataFrame:
    """Add ``level, stamp, origin, message, process`` to ``line_no, text``; all NULL on lines without a header.

    Lines of one second and one origin have one header: up to the first ``]`` each distinct one is read once.
    """
    text = pl.col("text")
    end = text.str.find("]", literal=True) + 1
    begun = lines.select(header=up_to(text, pl.when(end < _HEADER_CHARS).then(end))).to_series()
    said = of_distinct(begun, _said(rf"^{_PARTS}$", text))
    header = pl.when(pl.col("level").is_not_null()).then(begun.str.len_bytes())
    message = behind(text, header).str.strip_prefix(" ")
    split = pl.concat([lines, said], how="horizontal").with_columns(message=message)
    left = split.select(pl.col("level").is_null() & text.str.contains("]", literal=True)).to_series()
    if not left.any():
        return split.select(*lines.columns, *_SPLIT)
    again = _split_each(lines.filter(left))
    return pl.concat([split.filter(~left).select(again.columns), again]).sort("line_no", maintain_order=True)


_SPLIT: Final = ("level", "stamp", "origin", "message", "process")


def _said(pattern: str, header: pl.Expr) -> dict[str, pl.Expr]:
    groups = header.str.extract_groups(pattern).struct
    return {
        "level": groups.field("level"),
        "stamp": stamp(groups.field("stamp")),
        "origin": groups.field("origin"),
        "process": groups.field("processes").str.extract(_LAST_PROCESS),
    }


def _split_each(lines: pl.DataFrame) -> pl.DataFrame:
    """The same, each line by itself: a process may have a bracket in its name."""
    header = pl.col("text").str.head(_HEADER_CHARS)
    length = header.str.extract_groups(HEADER).struct.field("header").str.len_bytes()
    split = lines.with_columns(**_said(HEADER, header), message=behind(pl.col("text"), length))
    return split.select(*lines.columns, *_SPLIT)


def stamp(text: pl.Expr) -> pl.Expr:
    """``MM-DD HH:MM:SS`` as an instant in the placeholder year; NULL where there is no such day."""
    return (pl.lit(f"{PLACEHOLDER_YEAR}-") + text).str.to_datetime(
        "%Y-%m-%d %H:%M:%S", strict=False, time_unit="us"
    )
