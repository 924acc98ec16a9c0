"""What a format is: how it claims a file, and how it turns one chunk of it into columns.

A format is data about a reader, never a class to inherit from.  Two functions do the work:

``sniff(head)``
    Looks at the beginning of a file and returns a `Claim`, or None.  Every sample is claimed by exactly
    one format, so the order in `tracelens.formats.FORMATS` cannot matter.
``parse(chunk)``
    A pure function of one chunk.  It writes columns in the shape of the tables in ``schemas/`` and gives
    every line of the chunk to exactly one side: understood, or an issue with its reason.  It never raises
    on content, and the place where a chunk is cut never changes the sum of the results.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any, Final

import polars as pl

EXCERPT_CHARS: Final = 400
"""Characters of a line kept in `ingest_issue.excerpt`."""

HEAD_LINES: Final = 400
"""Lines by which a format is recognised."""

PLACEHOLDER_YEAR: Final = 2000
"""The year of stamps that carry none, until ingest has found it (a leap year: 02-29 must parse)."""


class Clock(enum.Enum):
    """What the stamps of a source are worth before anything else is known."""

    UTC = "utc"
    """Instants: epoch numbers or stamps with a zone."""
    LOCAL = "local"
    """Date and time of some wall clock, no zone."""
    YEARLESS = "yearless"
    """Month, day and time of some wall clock; no year, no zone.  Written in `PLACEHOLDER_YEAR`."""
    DAYLESS = "dayless"
    """Time of day only.  Written on the first of January of `PLACEHOLDER_YEAR`."""
    RELATIVE = "relative"
    """Seconds from an unknown zero (monotonic clocks, offsets from the first send)."""
    NONE = "none"
    """No time at all; the order of lines is what there is."""


class Side(enum.Enum):
    """Whose clock wrote the stamps; ``--tz``, ``--gpu-tz`` and ``--client-tz`` go by it."""

    SERVER = "server"
    GPU = "gpu"
    CLIENT = "client"


@dataclass(frozen=True, slots=True)
class Head:
    """The part of a file that a format sees when it is asked whether the file is its own.

    `lines` are the first lines (at most `HEAD_LINES`) without line ends; `sampled` are lines from the middle and the
    end, for logs that begin with something else; `complete` says that `lines` is the whole file.
    """

    lines: tuple[str, ...]
    sampled: tuple[str, ...] = ()
    complete: bool = False

    @property
    def first(self) -> str:
        """The first line that is not blank, or an empty string."""
        return next((line for line in self.lines if line.strip()), "")


@dataclass(frozen=True, slots=True)
class Claim:
    """A format's word that a file is its own, and what it saw: `variant` is for people (dialect, version)."""

    variant: str
    clock: Clock
    settings: Mapping[str, Any] = field(default_factory=dict)
    """What the whole file has in common, for `parse` (found once, in the head)."""
    stamps: str = ""
    """What wrote the stamps, in words for `source.time_basis`, where it is not the log itself."""
    refusal: str = ""
    """Why the file cannot be read as it is, and what to do; else nothing."""
    day: date | None = None
    """The day of the first stamp, where stamps are times of day and the file states their day beside them."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """Consecutive whole lines of one file.

    `lines` has the columns ``line_no`` (Int64, from 1) and ``text`` (String, no line end, valid UTF-8).
    `context` is what `Format.context` carried over from the lines before: None at the start of the file.
    `is_open` says that the last line has no line end: the file stops inside it, so its last word may be cut.
    `raw` are the file's own bytes, for `Format.binary` alone; its `lines` are then one line without text.
    `prompt_key` is the number that keys the fingerprints of prompts; with 0 there are none.
    """

    lines: pl.DataFrame
    claim: Claim
    context: str | None = None
    keep_text: bool = False
    is_open: bool = False
    raw: bytes = b""
    prompt_key: int = 0


@dataclass(frozen=True, slots=True)
class Parsed:
    """What one chunk says.

    `tables` maps a table's name to a frame with ``line_no`` and any of that table's columns; missing columns
    are NULL.  `issues` has ``line_no, reason, excerpt``.  `understood` + rows of `issues` = lines of the chunk.
    `stamps` (``line_no, stamp``) are all stamps of the chunk in file order; they tell where a year or a day
    begins, and what the first lines of the next chunk come after.  `clock_steps` counts the lines that hold two clocks, by
    how many quarter hours the log's own is ahead of the one outside.
    """

    tables: Mapping[str, pl.DataFrame]
    issues: pl.DataFrame
    understood: int
    stamps: pl.DataFrame
    clock_steps: Mapping[int, int] = field(default_factory=dict)


def _anywhere(tail: bytes, claim: Claim) -> bool:
    return True


def _no_context(text: str, previous: str | None) -> str | None:
    return previous


@dataclass(frozen=True, slots=True)
class Format:
    """One kind of file.

    `fills` names the tables it writes.  `whole` formats get the whole file as one chunk (a JSON document).
    `context(text, previous)` returns what the lines of a chunk leave in force for the next one (a heading);
    it runs on every chunk in order, so it must be cheap.  `carried` names the columns that hold the last stamp
    before a line that has none itself, per table: at the start of a chunk ingest fills them from the chunk before.
    """

    name: str
    title: str
    side: Side
    fills: tuple[str, ...]
    sniff: Callable[[Head], Claim | None]
    parse: Callable[[Chunk], Parsed]
    whole: bool = False
    binary: bool = False
    """The file is no text (a database): it comes whole, as bytes in `Chunk.raw`."""
    may_cut: Callable[[bytes, Claim], bool] = _anywhere
    """Whether a chunk may end after these last lines (bytes): False inside a record that goes on in the next line."""
    context: Callable[[str, str | None], str | None] = _no_context
    carried: Mapping[str, str] = field(default_factory=dict)
    defaults: Callable[[Mapping[str, str]], Sequence[tuple[str, str, str]]] | None = None
    """From the settings that a whole file states to ``(key, value, basis)`` of those it leaves to the version."""
    versions: str = ""
    """Versions of the writing program that this reader was made from."""
    complete: str = ""
    """What it rests on (real files, made-up lines in a form that was seen, source code alone), and what it leaves out."""
    record: str = ""
    """The command that writes such a file, or where it is found."""
    sample: str = ""
    """A file of ``sample_logs/NAME/`` that shows it."""


ISSUE_SCHEMA: Final[dict[str, Any]] = {"line_no": pl.Int64, "reason": pl.String, "excerpt": pl.String}
STAMP_SCHEMA: Final[dict[str, Any]] = {"line_no": pl.Int64, "stamp": pl.Datetime("us")}


def issues_of(lines: pl.DataFrame, reason: str | pl.Expr) -> pl.DataFrame:
    """Lines (``line_no, text``) as rows of `ingest_issue`."""
    return lines.select(
        "line_no",
        reason=pl.lit(reason) if isinstance(reason, str) else reason,
        excerpt=pl.col("text").str.slice(0, EXCERPT_CHARS),
    )


def no_issues() -> pl.DataFrame:
    """An empty frame of the shape of `ingest_issue`."""
    return pl.DataFrame(schema=ISSUE_SCHEMA)


def no_stamps() -> pl.DataFrame:
    """An empty frame of the shape of `Parsed.stamps`."""
    return pl.DataFrame(schema=STAMP_SCHEMA)
