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

ANSI: Final = r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])"
"""Terminal control sequences: CSI, OSC and the two-byte ones."""

LEVELS: Final = "DEBUG|INFO|WARNING|ERROR|CRITICAL|TRACE"

PREFIX: Final = r"(?:\([^()]*? pid=\d+(?:, ip=[^)]*)?\) ?)*"
"""Any number of process prefixes, such as ``(EngineCore_DP0 pid=7) (RayWorkerWrapper pid=2, ip=10.0.0.9) ``."""

HEADER: Final = (
    rf"^(?P<header>(?P<processes>{PREFIX})(?P<level>{LEVELS}) "
    r"(?P<stamp>\d\d-\d\d \d\d:\d\d:\d\d) \[?(?P<origin>[^\]\s:]+:\d+)\] ?)"
)
"""The header of one line, colours and line end already off."""

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
    return lines.with_columns(text) if has_escape or has_return else lines


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
    return lines.with_columns(text) if has_escape or has_return else lines


def split_header(lines: pl.DataFrame) -> pl.DataFrame:
    """Add ``process, level, stamp, origin, message`` to ``line_no, text``; all NULL on lines without a header."""
    fields = pl.col("text").str.head(_HEADER_CHARS).str.extract_groups(HEADER)
    split = lines.with_columns(fields.struct.unnest())
    return split.with_columns(
        message=pl.col("text").str.slice(pl.col("header").str.len_chars()),
        stamp=stamp(pl.col("stamp")),
        process=pl.col("processes").str.extract(_LAST_PROCESS),
    ).drop("header", "processes")


def stamp(text: pl.Expr) -> pl.Expr:
    """``MM-DD HH:MM:SS`` as an instant in the placeholder year; NULL where there is no such day."""
    return (pl.lit(f"{PLACEHOLDER_YEAR}-") + text).str.to_datetime(
        "%Y-%m-%d %H:%M:%S", strict=False, time_unit="us"
    )
