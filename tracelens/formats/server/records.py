"""From physical lines to log records: wrappers off, parts joined, glued records apart, headers read.

A record has ``line_no, more_lines, text`` (without its wrapper), and ``process, level, origin, message`` where a header,
or a JSON formatter, says them.  Of its stamps, ``inner`` is the log's own (placeholder year), ``dated`` one with a year
and no zone, ``outer_ts`` a wrapper's, in UTC, and ``outer_local`` a wrapper's without a zone.  Several records may share
a line; a record may span several.

Text of users is in these lines too, quoted (Python repr, JSON): a log line inside a quotation is no record, and what
stands below a quotation that was cut or broken is none either (``is_quoted``).  ``is_access`` marks access lines without a
header that are nothing else: no stage needs to search them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import polars as pl

from tracelens.formats.server import access, framing, glued, hard_wraps, json_records, quoting, wrappers

_LEVELS: Final = framing.LEVELS
_SEP: Final = r"(?: - | \| |[ :|-]+)"
_ORIGIN: Final = r"[\w./-]*[\w-](?::[\w<>]*[A-Za-z_<][\w<>]*)?(?::\d+)?"
_DATE: Final = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?"
_DATED: Final = (
    rf"^(?P<processes>(?:\([^()]*? pid=\d+[^()]*\) ?)*)"
    rf"(?:\[?(?P<dated>{_DATE})(?: ?(?P<zone>Z|[+-]\d\d:?\d\d))?\]?{_SEP}"
    rf"(?:\[?(?P<level>{_LEVELS})\]?{_SEP}(?:\d{{1,7}} \[|\[?)(?P<origin>{_ORIGIN})\]?"
    rf"|\[?(?P<origin_first>{_ORIGIN})\]?{_SEP}\[?(?P<level_last>{_LEVELS})\]?)"
    rf"(?: - | \| |: | +)|\[?(?P<level_before>{_LEVELS})\]? +\[?(?P<dated_after>{_DATE})(?P<zone_after>Z|[+-]\d\d:?\d\d)?\]? \[?(?P<origin_after>[^\]\s]+:\d+)\] "
    rf"|(?P<level_basic>{_LEVELS}):(?P<origin_basic>[A-Za-z_][\w.]*):)"
    r"(?P<message>(?s:.*))$"
)  # fmt: skip
"""``2026-12-20 15:18:19,123 - vllm.engine.metrics - INFO - message`` and its like, a header with a year in its stamp, and
what logging.basicConfig writes."""
_BARE_HEADER: Final = (
    r"^(?P<stamp>\d\d-\d\d \d\d:\d\d:\d\d) \[?(?P<origin>[^\]\s:]+:\d+)\] (?P<message>(?s:.*))$"
)
_ODD: Final = rf"^(?:\([^()]*? pid=\d+[^()]*\) ?)*\[?(?:{_DATE}|(?:{_LEVELS})(?:\]? +\[?\d{{4}}-|:[A-Za-z_]))|\d\d-\d\d \d\d:\d\d:\d\d \[?\S+:\d+\] "
_REPEATED: Final = r" \[repeated (\d+)x across cluster\].*$"


def read(lines: pl.DataFrame, settings: Mapping[str, Any]) -> pl.DataFrame:
    """Records of some whole lines (``line_no, text``); `settings` is what the head of the file has shown."""
    records = _headers(_unwrapped(framing.without_colours(lines), settings))
    records = records.with_columns(is_access=_is_access(records))
    records = records.with_columns(is_quoted=quoting.below_open(records))
    odd = (pl.col("level").is_null() & ~pl.col("is_quoted")) | pl.col("text").str.contains("\r", literal=True)
    mask = records.select(odd & ~pl.col("is_access")).to_series()
    if mask.any():
        again = _looked_at_again(records.filter(mask).drop(_HEADER_COLUMNS))
        records = pl.concat([records.filter(~mask), again.select(records.columns)]).sort(
            "line_no", maintain_order=True
        )
    return _stripped(glued.apart(records, _headers))


def _is_access(records: pl.DataFrame) -> pl.Series:
    """Whole access lines: a third of a busy server's log, in which nothing else is to be found."""
    bare = records["level"].is_null().arg_true()
    whole = records[bare].select(access.is_whole_line(pl.col("text"))).to_series()
    return pl.repeat(value=False, n=records.height, dtype=pl.Boolean, eager=True).scatter(bare, whole)


def _unwrapped(lines: pl.DataFrame, settings: Mapping[str, Any]) -> pl.DataFrame:
    """Whole inner lines: broken ones joined, the file's wrappers off."""
    nothing = pl.lit(None, pl.String)
    columns = settings.get("columns")
    if columns:
        lines = hard_wraps.joined(lines, columns)
    else:
        lines = lines.with_columns(more_lines=pl.lit(None, pl.List(pl.Int64)))
    lines = lines.with_columns(
        level=nothing, process=nothing, origin=nothing, json_local=pl.lit(None, pl.Datetime("us")),
        json_local_error_s=pl.lit(None, pl.Float64),
    )  # fmt: skip
    return _joined(wrappers.unwrap(lines, settings.get("wrappers", ()), settings.get("prefix", "")))


def _joined(lines: pl.DataFrame) -> pl.DataFrame:
    """Parts of records joined; a cut may have gone through a colour."""
    joined = wrappers.join_partials(lines)
    return joined if joined is lines else framing.without_colours(joined)


def _looked_at_again(lines: pl.DataFrame) -> pl.DataFrame:
    """Lines that do not begin with a header: wrappers of single lines, JSON, carriage returns, odd headers."""
    nothing = pl.lit(None, pl.String)
    lines = _joined(
        wrappers.unwrap_by_line(lines.with_columns(level=nothing, process=nothing, origin=nothing))
    )
    for _ in range(2):
        lines, found = json_records.read(lines)
        if not found:
            break
        lines = _joined(wrappers.unwrap_by_line(framing.without_colours(lines)))
    return _by_line(_headers(_last_segments(lines)))


def _stripped(records: pl.DataFrame) -> pl.DataFrame:
    """Padding off: a terminal copies its lines with blanks up to its width."""
    last = records.select(pl.col("text", "message").str.tail(1).str.contains(r"\s").any())
    names = [name for name, value in last.row(0, named=True).items() if value]
    return records.with_columns(pl.col(name).str.strip_chars_end() for name in names)


def _last_segments(records: pl.DataFrame) -> pl.DataFrame:
    """Of several segments between lone carriage returns the last stays, as on a terminal, and each that is a record."""
    is_split = pl.col("text").str.contains("\r", literal=True) & pl.col("level").is_null()
    mask = records.select(is_split).to_series()
    if not mask.any():
        return records
    pieces = records.filter(mask).with_columns(pl.col("text").str.split("\r"))
    pieces = pieces.with_columns(
        place=pl.int_ranges(1, pl.col("text").list.len() + 1), last=pl.col("text").list.len()
    )
    pieces = pieces.explode("text", "place", empty_as_null=False)
    kept = (pl.col("place") == pl.col("last")) | pl.col("text").str.contains("^" + wrappers.PLAIN)
    return pl.concat([records.filter(~mask), pieces.filter(kept).select(records.columns)]).sort(
        "line_no", maintain_order=True
    )


_HEADER_COLUMNS: Final = ("inner", "message", "dated", "dated_error_s")


def _headers(records: pl.DataFrame) -> pl.DataFrame:
    """Read vLLM's header where a JSON formatter has not given its parts already."""
    is_json = records["level"].is_not_null()
    local, local_error_s = pl.col("json_local"), pl.col("json_local_error_s")
    plain = framing.split_header(records.filter(~is_json).drop("level", "process", "origin")).rename(
        {"stamp": "inner"}
    )
    outside = pl.coalesce("outer_local", local)
    if plain.select(outside.is_not_null().any()).item():
        has_both = pl.col("inner").is_not_null() & outside.is_not_null()
        own = pl.when(has_both).then(in_year_of(pl.col("inner"), outside)).otherwise(local)
        plain = plain.with_columns(
            dated=own, dated_error_s=pl.when(has_both).then(1.0).otherwise(local_error_s)
        )
    else:
        plain = plain.with_columns(dated=local, dated_error_s=local_error_s)
    if not is_json.any():
        return plain
    from_json = records.filter(is_json).with_columns(
        inner=pl.lit(None, pl.Datetime("us")),
        dated=local,
        dated_error_s=local_error_s,
        message=pl.col("text"),
    )
    return pl.concat([plain, from_json.select(plain.columns)]).sort("line_no", maintain_order=True)


def in_year_of(inner: pl.Expr, outside: pl.Expr) -> pl.Expr:
    """A stamp of the placeholder year in the year that brings it nearest to another one: two clocks at New Year."""
    years = (inner.dt.replace(year=outside.dt.year() + step) for step in (0, -1, 1))
    half_year = pl.duration(days=183)
    near = [pl.when((moved - outside).abs() < half_year).then(moved) for moved in years]
    return pl.coalesce(near)


def _by_line(records: pl.DataFrame) -> pl.DataFrame:
    """Look again at lines without a header: dated headers, headers without a level, a header further inside."""
    mask = records.select(pl.col("level").is_null() & pl.col("text").str.contains(_ODD)).to_series()
    if not mask.any():
        return records
    again = glued.inside(_bare(_dated(records.filter(mask))), _headers)
    return pl.concat([records.filter(~mask), again.select(records.columns)]).sort(
        "line_no", maintain_order=True
    )


def _dated(odd: pl.DataFrame) -> pl.DataFrame:
    groups = odd.select(pl.col("text").str.extract_groups(_DATED).struct.unnest())
    stamp, zone = pl.coalesce("dated", "dated_after"), pl.coalesce("zone", "zone_after")
    found = groups.select(
        d_level=pl.coalesce("level", "level_last", "level_before", "level_basic"),
        d_origin=pl.coalesce("origin", "origin_first", "origin_after", "origin_basic"),
        d_process=pl.col("processes").str.extract(r"\(([^()]*?) pid=\d+[^()]*\) ?$"),
        d_message=pl.col("message"),
        d_local=pl.when(zone.is_null()).then(wrappers.wall_clock(stamp)),
        d_utc=pl.when(zone.is_not_null()).then(wrappers.instant(stamp, zone)),
        d_error_s=pl.when(stamp.str.contains(r"[.,]")).then(0.001).when(stamp.is_not_null()).then(1.0),
    )
    both = pl.concat([odd, found], how="horizontal")
    new = pl.col("level").is_null() & pl.col("d_level").is_not_null()
    taken = {
        "level": "d_level", "origin": "d_origin", "process": "d_process", "message": "d_message", "dated": "d_local",
    }  # fmt: skip
    return both.with_columns(
        **{
            name: pl.when(new).then(pl.coalesce(source, name)).otherwise(name)
            for name, source in taken.items()
        },
        dated_error_s=pl.when(new & pl.col("d_local").is_not_null())
        .then("d_error_s")
        .otherwise("dated_error_s"),
        outer_error_s=pl.when(new & pl.col("outer_ts").is_null())
        .then("d_error_s")
        .otherwise("outer_error_s"),
        outer_ts=pl.when(new).then(pl.coalesce("outer_ts", "d_utc")).otherwise("outer_ts"),
    ).select(odd.columns)


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


def without_repeat(records: pl.DataFrame) -> pl.DataFrame:
    """Take Ray's ``[repeated 5x across cluster]`` off messages; ``repeat_count`` says how many lines such a one stands for."""
    message = pl.col("message")
    if not records["message"].str.contains("x across cluster]", literal=True).any():
        return records.with_columns(repeat_count=pl.lit(None, pl.Int64))
    count = message.str.extract(_REPEATED).cast(pl.Int64, strict=False)
    return records.with_columns(message=message.str.replace(_REPEATED, ""), repeat_count=count)
