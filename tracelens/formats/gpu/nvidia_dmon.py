"""``nvidia-smi dmon``: one row per tick and GPU, named by the heading above it.

Written from three generations of the tool: R367-R384 (``temp``), R390-R52x (``gtemp mtemp``) and R535-R610
(``jpg ofa``, ``ccpm``, GPM columns).  The order of the columns follows the letters given to ``-s``, so a cell's
meaning comes from the heading alone, never from its place.  ``-o T``, ``-o D`` and ``-o DT`` put local wall time
in whole seconds before the index; a row describes the interval that ends there.  A day without a time is no stamp.
Rows without a heading, or under one that does not fit them, are read where a layout of the tool does (`dmon_layout`).
"""

from __future__ import annotations

import re
from typing import Final

import polars as pl

from tracelens.formats.base import Chunk, Claim, Clock, Format, Head, Parsed, Side
from tracelens.formats.gpu.dmon_layout import (
    Guess,
    Layout,
    glued_heading,
    groups_of,
    guess_under,
    guess_without_heading,
    has_gpm,
    has_mig,
    layout_of,
)
from tracelens.formats.gpu.dmon_rows import all_rows, own_clock
from tracelens.formats.gpu.gpu_lines import (
    finish,
    is_error,
    is_noise,
    last_heading,
    period_options,
    placed,
    share,
    sort_out,
    split,
    whole_lines,
    with_heading,
)
from tracelens.formats.gpu.gpu_stamps import best_clock, split_prefix, without_prefix

_COMMENT: Final = r"^# .*[A-Za-z]{2} [a-z]+ [a-z]+ "
"""A line of prose that somebody put into the log."""

_UNIT_LINE: Final = r"^\s*#\s*(?:Idx|YYYYMMDD|HH:MM:SS)\b"
_ROW: Final = r"^[\s#]*\d"
_ROW_ALONE: Final = re.compile(r"^[\s#]*\d[\d\s.,:NA/\[\]+–—-]*$")
_MIN_SHARE: Final = 0.5
_MARKS: Final = ("gpu",)


def _prefix_kind(lines: list[str]) -> str | None:
    """Find the stamp that stands before the headings, or before the rows alone where the heading was written by hand."""
    for at, line in enumerate(lines):
        kind, rest = split_prefix(line)
        if layout_of(rest):
            below = next((split_prefix(row)[0] for row in lines[at + 1 :] if _ROW_ALONE.match(row)), None)
            return kind or ("epoch" if below == "epoch" else None)
    kinds = [
        split_prefix(row)[0] for row in lines if _ROW_ALONE.match(without_prefix(row, split_prefix(row)[0]))
    ]
    return max(set(kinds), key=kinds.count) if kinds else None


def _variant(layouts: list[Layout], kind: str | None, period: str, guesses: list[Guess]) -> str:
    names = layouts[0].names
    stamped = "".join(letter for name, letter in (("Date", "D"), ("Time", "T")) if name in names)
    notes = [
        f"dmon -o {stamped}" if stamped else "dmon, no time" if kind is None else "dmon",
        period,
        "" if guesses else groups_of(names),
        "gpm" if has_gpm(names) else "",
        "MIG instances in other" if has_mig(names) else "",
        "csv" if layouts[0].comma and not guesses else "",
        f"{kind} prefix" if kind else "",
        f"{len(set(layouts))} headings" if len(set(layouts)) > 1 else "",
        *(guess.said for guess in guesses),
    ]
    return ", ".join(note for note in notes if note)


def _errors_only(lines: list[str], complete: bool) -> Claim | None:
    """Claim a short file that holds nothing but the tool's error sentences: the reading was never taken."""
    errors_only = any(map(is_error, lines)) and all(is_error(line) or is_noise(line) for line in lines)
    return Claim("error sentences only", Clock.NONE) if complete and errors_only else None


def _is_own(rest: str) -> bool:
    written = _ROW_ALONE.match(rest) or re.match(_UNIT_LINE, rest) or layout_of(rest)
    return bool(written) or is_error(rest) or is_noise(rest)


def _guesses(rests: list[str]) -> dict[str, Guess]:
    """Find layouts for rows under headings that do not fit them, by heading; under "" for rows that have none at all."""
    rows: dict[str, list[str]] = {}
    heading = ""
    for rest in rests:
        heading = rest if layout_of(rest) else heading
        if rest is not heading and _ROW_ALONE.match(rest):
            rows.setdefault(heading, []).append(rest)
    found = {
        above: guess_under(above, below) if above else guess_without_heading(below)
        for above, below in rows.items()
        if above or len(rows) == 1
    }
    return {above: guess for above, guess in found.items() if guess}


def sniff(head: Head) -> Claim | None:
    """Claim a file that has a heading of dmon, or rows of one of its layouts, and little beside."""
    lines = [stripped for line in head.lines if (stripped := line.rstrip("\r")).strip()]
    kind = _prefix_kind(lines)
    rests = [without_prefix(line, kind) for line in lines]
    guesses = _guesses([without_prefix(line, kind) for line in whole_lines(head)])
    texts = [rest for rest in rests if layout_of(rest)] or [""] * bool(guesses)
    made = [guesses[text].heading if text in guesses else text for text in texts]
    layouts = [layout for text in made if (layout := layout_of(text))]
    if not layouts:
        return _errors_only(lines, head.complete)
    if share(map(_is_own, rests)) <= _MIN_SHARE:
        return None
    variant = _variant(layouts, kind, period_options(rests), list(guesses.values()))
    clock = best_clock(kind, *(own_clock(each.names) for each in layouts))
    instead = {above: guess.heading for above, guess in guesses.items()}
    return Claim(variant, clock, {"prefix": kind, "instead": instead})


def _heading(line: str) -> str | None:
    """Find the heading on a line, without a stamp before it; None for any other line."""
    bare = split_prefix(line)[1]
    return next((text for text in (line, bare) if layout_of(text)), None) or glued_heading(bare)


def context(text: str, previous: str | None) -> str | None:
    """Return the last heading of a chunk; no other line but a few sentences has ``gpu`` in it."""
    return last_heading(text, previous, _MARKS, _heading)


def parse(chunk: Chunk) -> Parsed:
    """Read rows by heading, whole columns at a time; error sentences between them become `log_event`."""
    kind = chunk.claim.settings.get("prefix")
    lines = with_heading(split(chunk, kind), chunk.context, _MARKS, _heading)
    unit_line = pl.col("rest").str.contains(_UNIT_LINE)
    comment = pl.col("rest").str.contains(_COMMENT)
    glued = pl.col("is_heading") & ~pl.col("rest").str.contains(r"^\s*#")
    lines = lines.with_columns(known=(pl.col("is_heading") | unit_line | comment) & ~glued, glued=glued)
    maybe = lines.filter(~pl.col("known") & ~glued & pl.col("rest").str.contains(_ROW))
    rows = all_rows(maybe, chunk.claim)
    lines = lines.join(
        rows.select("line_no", "bad", "sample_ts", "error_s", is_row=pl.lit(value=True)),
        on="line_no",
        how="left",
        maintain_order="left",
    )
    good = pl.col("is_row").fill_null(value=False) & pl.col("bad").is_null()
    cut = pl.when("glued").then(pl.lit("row cut, a heading behind it"))
    lines = sort_out(lines, pl.col("known") | good, pl.coalesce("bad", cut, pl.lit("not a line of dmon")))
    return finish(placed(lines, good, chunk.claim), rows.filter(pl.col("bad").is_null()).drop("bad"))


FORMAT: Final = Format(
    name="nvidia_dmon",
    title="nvidia-smi dmon, blank-separated or csv",
    side=Side.GPU,
    fills=("gpu_sample", "log_event"),
    sniff=sniff,
    parse=parse,
    context=context,
    carried={"log_event": "event_ts"},
    versions="R367 to R610",
    complete="Every layout of R367 to R610; values of the samples are invented in forms that were seen.",
    record="nvidia-smi dmon -s pucvmet -o DT -d 1 > gpu_dmon.log",
    sample="dmon_DT_pucvmet_2gpu.log",
)
