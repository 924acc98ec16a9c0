"""What stands around the rows of GPU tools: headings above, error sentences and shell transcripts between.

The tools' error sentences and the shell's prompts are between the rows where a terminal was copied or stderr went to
the same file.  Stamps before the lines are read by `gpu_stamps`.
"""

from __future__ import annotations

import re
import zlib
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from tracelens.formats.base import Chunk, Claim, Head, Parsed, issues_of
from tracelens.formats.gpu.gpu_stamps import PREFIX_CLOCKS, PREFIXES, outside_stamp, resolution

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

ERRORS: Final = (
    "Unable to determine the device handle",
    "GPU is lost",
    "fallen off the bus",
    "GPU requires reset",
    "No devices were found",
    "infoROM is corrupted",
    "Not supported on the device",
    "Failed to process command line",
    "NVIDIA-SMI has failed",
    "Failed to initialize NVML",
    "Driver/library version mismatch",
    "Unable to load the NVML library",
    "NVRM: Xid",
    "Error setting watches",
    "Error: Unable to connect to host engine",
    "unable to establish a connection to the specified host",
    "Host engine is not running",
    "is not currently loaded",
)
"""Sentences of nvidia-smi, dcgmi and the driver that say why there is no reading, or that a GPU went away."""

COMMANDS: Final = (
    "nvidia-smi dmon",
    "nvidia-smi --query",
    "nvidia-smi -q",
    "dcgmi dmon",
    "nvidia-smi -i",
    "nvidia-smi -l",
)
"""Command lines, in a transcript with or without a prompt."""

PROMPT: Final = (
    r"^(?:\^[A-Z])?\s*(?:\([\w.-]+\)\s*)?"
    r"(?:\[?[\w.-]+@[\w.-]+[^$#>%]{0,200}[$#>%](?:\s|$)|[$>%](?:\s|$)|(?:ba|z)?sh-[\d.]+[$#](?:\s|$))|^\^[A-Z]\s*$"
)
"""A shell's prompt, or a key that a terminal echoed (``^C``)."""

_PERIOD: Final = re.compile(r"\s(-d|-lms|-l|--loop(?:-ms)?|--delay)[ =]?(\d{1,7})\b")

_COUNTED_BY: Final[dict[str, Any]] = {
    "sample_ts": pl.Datetime("us"), "error_s": pl.Float64, "gpu_index": pl.Int32, "gpu_uuid": pl.String,
    "segment": pl.Int32, "other": pl.String,
}  # fmt: skip
"""Columns that the load counts ticks and runs by (loading/gpu_sample.sql): each part must have them."""

_ERROR_PATTERN: Final = re.compile("|".join(map(re.escape, ERRORS)))
_NOISE_PATTERN: Final = re.compile("|".join([PROMPT, *map(re.escape, COMMANDS)]))


def last_heading(
    text: str, previous: str | None, marks: tuple[str, ...], read: Callable[[str], str | None]
) -> str | None:
    """Find the heading that a chunk leaves in force, from its end.

    A heading holds one of `marks`; `read` returns it without what stands around it, or None for another line.
    """
    end = len(text)
    while (at := max(text.rfind(mark, 0, end) for mark in marks)) >= 0:
        start = text.rfind("\n", 0, at) + 1
        stop = text.find("\n", at)
        found = read(text[start : stop if stop >= 0 else len(text)].rstrip("\r"))
        if found:
            return found
        end = start
    return previous


def with_heading(
    lines: pl.DataFrame, carried: str | None, marks: tuple[str, ...], read: Callable[[str], str | None]
) -> pl.DataFrame:
    """Add ``heading``, the one in force (NULL where there is none yet), and ``is_heading``."""
    text = pl.col("text").str.strip_chars_end("\r\n")
    some = lines.filter(text.str.contains_any(list(marks))).select("line_no", text)
    own = pl.Series("own", [read(each) for each in some["text"]], pl.String)
    found = lines.join(some.select("line_no", own), on="line_no", how="left", maintain_order="left")
    in_force = pl.col("own").forward_fill().fill_null(pl.lit(carried, pl.String))
    return found.with_columns(heading=in_force, is_heading=pl.col("own").is_not_null()).drop("own")


def whole_lines(head: Head) -> list[str]:
    """Take the lines of a head that are not blank, without the last where the file stops inside it: guesses need whole cells."""
    lines = head.lines[:-1] if head.complete else head.lines
    return [stripped for line in lines if (stripped := line.rstrip("\r")).strip()]


def is_error(line: str) -> bool:
    """Say whether a line holds one of the tools' error sentences."""
    return bool(_ERROR_PATTERN.search(line))


def is_noise(line: str) -> bool:
    """Say whether a line is a shell's prompt, a command line or an echoed key."""
    return bool(_NOISE_PATTERN.search(line))


def period_options(lines: Iterable[str]) -> str:
    """Name the sampling period as the command lines among some lines give it (``-d 5``); empty where none does."""
    commands = (line for line in lines if any(command in line for command in COMMANDS))
    found = (_PERIOD.search(command) for command in commands)
    return " and ".join(dict.fromkeys(f"{each.group(1)} {each.group(2)}" for each in found if each))


def layout_code(names: Iterable[str]) -> pl.Expr:
    """Make a number of the columns in force, the same under the same columns: the load counts changes of it as runs."""
    return pl.lit(zlib.crc32(" ".join(names).encode()) & 0x7FFFFFFF, pl.Int32)


def split(chunk: Chunk, kind: str | None) -> pl.DataFrame:
    """Add to ``line_no, text`` the line without its stamp (``rest``), that stamp as text (``outside``), and ``is_open``.

    ``is_open`` says that the file stops inside the line.
    """
    text = pl.col("text").str.strip_chars_end("\r\n")
    last = pl.lit(chunk.is_open) & (pl.int_range(pl.len()) == pl.len() - 1)
    lines = chunk.lines.with_columns(is_open=last)
    if kind is None or kind not in PREFIXES:
        return lines.with_columns(rest=text, outside=pl.lit(None, pl.String))
    pattern = PREFIXES[kind]
    return lines.with_columns(rest=text.str.replace(pattern, ""), outside=text.str.extract(pattern, 1))


def events(lines: pl.DataFrame) -> pl.DataFrame:
    """Turn error sentences (``line_no, rest, event_ts, error_s``) into rows of `log_event`."""
    warning = pl.col("rest").str.strip_chars_start().str.starts_with("WARNING")
    return lines.select(
        "line_no",
        last_line_no=pl.col("line_no"),
        event_ts=pl.col("event_ts"),
        error_s=pl.col("error_s"),
        level=pl.when(warning).then(pl.lit("WARNING")).otherwise(pl.lit("ERROR")),
        kind=pl.lit("gpu"),
        process=pl.lit(None, pl.String),
        origin=pl.lit(None, pl.String),
        message=pl.col("rest").str.strip_chars().str.slice(0, 8192),
    )


def finish(lines: pl.DataFrame, samples: pl.DataFrame, **more: pl.DataFrame) -> Parsed:
    """Put a chunk's result together; `more` are tables beside `gpu_sample`.

    `lines` has ``line_no, text, rest, reason, is_event, event_ts, error_s, stamp``: an issue where ``reason``
    is set.  ``event_ts`` is the stamp of the line or of the last one before it.
    """
    issues = issues_of(lines.filter(pl.col("reason").is_not_null()), pl.col("reason"))
    stamps = lines.filter(pl.col("stamp").is_not_null()).select("line_no", "stamp")
    tables = {"gpu_sample": with_counted(samples), "log_event": events(lines.filter("is_event")), **more}
    return Parsed(tables, issues, lines.height - issues.height, stamps)


def with_counted(samples: pl.DataFrame) -> pl.DataFrame:
    """Add the columns that ticks and runs are counted by to rows of `gpu_sample` that lack them."""
    missing = [
        pl.lit(None, kind).alias(name) for name, kind in _COUNTED_BY.items() if name not in samples.columns
    ]
    return samples.with_columns(missing)


def sort_out(lines: pl.DataFrame, understood: pl.Expr, reason: pl.Expr) -> pl.DataFrame:
    """Add ``is_event`` and ``reason`` to ``line_no, rest``.

    Rows of the tool are `understood` already.  Of the rest, error sentences are events, prompts, commands and
    blank lines are passed over, and all else is an issue with `reason`.
    """
    rest = pl.col("rest")
    is_event = rest.str.contains_any(list(ERRORS))
    passed = (
        is_event
        | rest.str.contains_any(list(COMMANDS))
        | rest.str.contains(PROMPT)
        | (rest.str.strip_chars() == "")
    )
    left = lines.filter(~understood).select(
        "line_no", is_event=is_event, reason=pl.when(~passed).then(reason)
    )
    return lines.join(left, on="line_no", how="left", maintain_order="left").with_columns(
        pl.col("is_event").fill_null(value=False)
    )


def placed(lines: pl.DataFrame, good: pl.Expr, claim: Claim) -> pl.DataFrame:
    """Add ``stamp`` (``sample_ts`` of good rows; of error sentences the one before them), ``event_ts`` and ``error_s``."""
    kind = claim.settings.get("prefix")
    fits = PREFIX_CLOCKS.get(kind or "") is claim.clock
    outside = outside_stamp(kind) if fits else pl.lit(None, pl.Datetime("us"))
    stamp = pl.when(good).then("sample_ts").otherwise(pl.when("is_event").then(outside))
    stamped = lines.with_columns(stamp=stamp)
    error = pl.when(pl.col("stamp").is_not_null() & pl.col("is_event")).then(resolution(pl.col("outside")))
    return stamped.with_columns(event_ts=pl.col("stamp").forward_fill(), error_s=error)


def share(lines: Iterable[bool]) -> float:
    """Find the share of lines for which something holds; 0 for no line."""
    found = list(lines)
    return sum(found) / len(found) if found else 0.0
