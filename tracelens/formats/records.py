"""From physical lines to log records: wrappers off, parts joined, glued records apart, headers read.

A record has ``line_no, last_line_no, text`` (without its wrapper), and ``process, level, origin, message`` where a header,
or a JSON formatter, says them.  Of its stamps, ``inner`` is the log's own (placeholder year), ``dated`` one with a year
and no zone, ``outer_ts`` a wrapper's, in UTC.  Several records may share a line; a record may span several.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import polars as pl

from tracelens.formats import framing, json_records, wrappers

_SEPARATOR: Final = "\x1e"
_FREE_TEXT: Final = r"^(?:Received request|Generated response|Request \S+ (?:JSON body|details))"
"""Messages that hold user text: a log line quoted in a prompt is no record."""

_LEVELS: Final = framing.LEVELS
_GLUE: Final = (
    rf" *(\(?[\w. -]+ pid=\d+(?:, ip=[^)]*)?\) (?:{_LEVELS}) \d\d-\d\d \d\d:\d\d:\d\d \[?[^\]\s:]+:\d+\] |"
    rf"(?:{_LEVELS}) \d\d-\d\d \d\d:\d\d:\d\d \[?[^\]\s:]+:\d+\] )"
)
_DATED: Final = (
    r"^(?:\([^()]*? pid=\d+[^()]*\) ?)*\[?(?P<dated>\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,6})?)\]?(?: - | \| |[ :|-]+)"
    rf"(?:\[?(?P<level>{_LEVELS})\]?(?: - | \| |[ :|-]+)\[?(?P<origin>[\w./-]*[\w-](?::\d+)?)\]?"
    rf"|\[?(?P<origin_first>[\w./-]*[\w-](?::\d+)?)\]?(?: - | \| |[ :|-]+)\[?(?P<level_last>{_LEVELS})\]?)"
    r"(?: - | \| |: | )(?P<message>(?s:.*))$"
)
_DEEP: Final = rf"^(?s:.{{1,300}}?)((?:\([^()]*? pid=\d+[^()]*\) ?)*(?:{_LEVELS}) \d\d-\d\d \d\d:\d\d:\d\d \[?[^\]\s:]+:\d+\] (?s:.*))$"
_BARE_HEADER: Final = (
    r"^(?P<stamp>\d\d-\d\d \d\d:\d\d:\d\d) \[?(?P<origin>[^\]\s:]+:\d+)\] (?P<message>(?s:.*))$"
)
_REPEATED: Final = r" \[repeated (\d+)x across cluster\].*$"


def read(lines: pl.DataFrame, wrapper_names: Sequence[str]) -> pl.DataFrame:
    """Records of some whole lines (``line_no, text``)."""
    unwrapped = wrappers.unwrap_by_line(wrappers.unwrap(framing.clean(lines), wrapper_names))
    read_json = json_records.read(unwrapped)
    joined = wrappers.join_partials(read_json)
    if joined.height < read_json.height:
        joined = json_records.read(joined.drop("level", "process", "origin"))
    split = _headers(joined)
    split = _by_line(split)
    return _unglued(split).with_columns(message=pl.col("message").str.strip_chars_end(" "))


def _headers(records: pl.DataFrame) -> pl.DataFrame:
    """Read vLLM's header where a JSON formatter has not given its parts already."""
    from_json = records.filter(pl.col("level").is_not_null()).with_columns(
        inner=pl.lit(None, pl.Datetime("us")), dated=pl.col("outer_local"), message=pl.col("text")
    )
    plain = framing.split_header(records.filter(pl.col("level").is_null()).drop("level", "process", "origin"))
    plain = plain.rename({"stamp": "inner"}).with_columns(dated=_year_from_outside())
    return (
        pl.concat([plain, from_json], how="diagonal").sort("line_no", maintain_order=True)
        if from_json.height
        else plain
    )


def _year_from_outside() -> pl.Expr:
    """The log's own stamp in the year of a wrapper's stamp that has no zone."""
    outer, inner = pl.col("outer_local"), pl.col("inner")
    moved = inner.dt.replace(year=outer.dt.year())
    return pl.when(outer.is_not_null()).then(pl.coalesce(moved, outer))


def _by_line(records: pl.DataFrame) -> pl.DataFrame:
    """Look again at lines without a header: dated headers, headers without a level, wrappers of single lines."""
    rest = records.filter(pl.col("level").is_null())
    odd = rest.filter(_worth_a_look(pl.col("text")))
    if not odd.height:
        return records
    again = _deep(_bare(_dated(odd)))
    keep = records.join(odd.select("line_no"), on="line_no", how="anti", maintain_order="left")
    return pl.concat([keep, again.select(keep.columns)]).sort("line_no", maintain_order=True)


def _worth_a_look(text: pl.Expr) -> pl.Expr:
    dated = r"^(?:\([^()]*? pid=\d+[^()]*\) ?)*\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d"
    return text.str.contains(dated) | text.str.contains(r"\d\d-\d\d \d\d:\d\d:\d\d \[?\S+:\d+\] ")


def _dated(odd: pl.DataFrame) -> pl.DataFrame:
    """``2026-12-20 15:18:19,123 - vllm.engine.metrics - INFO - message`` and its like."""
    groups = odd.select("line_no", pl.col("text").str.extract_groups(_DATED).struct.unnest())
    level = pl.coalesce("level", "level_last")
    when = (
        pl.col("dated")
        .str.replace(",", ".", literal=True)
        .str.replace("T", " ")
        .str.to_datetime("%Y-%m-%d %H:%M:%S%.f", strict=False, time_unit="us")
    )
    found = groups.select(
        "line_no",
        d_level=level,
        d_origin=pl.coalesce("origin", "origin_first"),
        d_message=pl.col("message"),
        d_when=when,
    )
    return (
        odd.join(found, on="line_no", how="left", maintain_order="left")
        .with_columns(
            level=pl.coalesce("level", "d_level"),
            origin=pl.coalesce("origin", "d_origin"),
            message=pl.coalesce("message", "d_message"),
            dated=pl.coalesce("dated", pl.when(pl.col("d_level").is_not_null()).then(pl.col("d_when"))),
        )
        .drop("d_level", "d_origin", "d_message", "d_when")
    )


def _bare(odd: pl.DataFrame) -> pl.DataFrame:
    """A header that lost its level in a paste."""
    groups = pl.col("text").str.extract_groups(_BARE_HEADER)
    missing = pl.col("level").is_null() & groups.struct.field("message").is_not_null()
    return odd.with_columns(
        inner=pl.when(missing).then(framing.stamp(groups.struct.field("stamp"))).otherwise(pl.col("inner")),
        origin=pl.when(missing).then(groups.struct.field("origin")).otherwise(pl.col("origin")),
        message=pl.when(missing).then(groups.struct.field("message")).otherwise(pl.col("message")),
        level=pl.when(missing).then(pl.lit("INFO")).otherwise(pl.col("level")),
    )


def _deep(odd: pl.DataFrame) -> pl.DataFrame:
    """A header further inside: behind a progress bar, or a prefix of the user's own."""
    done = odd["level"].is_not_null()
    if done.all():
        return odd
    missing = odd.filter(~done)
    inside = missing.with_columns(text=pl.coalesce(pl.col("text").str.extract(_DEEP), "text"))
    again = framing.split_header(inside.drop("level", "process", "origin", "message", "inner"))
    again = again.rename({"stamp": "inner"}).with_columns(dated=pl.coalesce("dated", _year_from_outside()))
    return pl.concat([odd.filter(done), again.select(odd.columns)])


def _unglued(records: pl.DataFrame) -> pl.DataFrame:
    """Records that lost the line end between them: several rows with the same line number."""
    message = pl.col("message")
    suspect = message.str.contains(_GLUE) & ~message.str.contains(_FREE_TEXT)
    glued = records.filter(suspect.fill_null(value=False))
    if not glued.height:
        return records
    pieces = glued.with_columns(
        piece=message.str.replace_all(_GLUE, _SEPARATOR + "$1").str.split(_SEPARATOR), place=pl.lit(0)
    )
    first = pieces.with_columns(message=pl.col("piece").list.first().str.strip_chars_end(" ")).drop(
        "piece", "place"
    )
    later = (
        pieces.with_columns(text=pl.col("piece").list.slice(1))
        .drop("piece", "place")
        .explode("text", empty_as_null=True)
    )
    later = framing.split_header(later.drop("level", "process", "origin", "message", "inner"))
    later = later.rename({"stamp": "inner"}).with_columns(dated=_year_from_outside())
    keep = records.join(glued.select("line_no"), on="line_no", how="anti", maintain_order="left")
    return pl.concat([keep, first, later.select(keep.columns)]).sort("line_no", maintain_order=True)


def without_repeat(message: pl.Expr) -> tuple[pl.Expr, pl.Expr]:
    """A message without Ray's ``[repeated 5x across cluster]``, and how many lines it stands for."""
    return message.str.replace(_REPEATED, ""), message.str.extract(_REPEATED).cast(pl.Int64, strict=False)
