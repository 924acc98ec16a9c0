"""What stands around whole log lines: container runtimes, journals, terminals and people put it there.

One table, one row per wrapper.  A file is looked at once, in its head: the wrappers that most of its lines have are taken
off every line, outermost first.  A line that has a wrapper of its own is recognised by what stands behind it.  A wrapper's
stamp, where it has one with a zone, is better than the log's own: it has a year, a zone and fractions of a second; it is
the time the line was read from a pipe, normally less than 10 ms after it was written.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import cache
from typing import Final

import polars as pl

from tracelens.formats.server.framing import LEVELS, PREFIX
from tracelens.formats.server.wrapper_forms import WRAPPERS, WrapperForm

_AFTER_QUOTE: Final = r'"(?:,[^"]*)?$'
_AFTER_ESCAPED: Final = r'"(?: \w+=\S*)*\s*$'
_MAX_DEPTH: Final = 3
_MIN_SHARE: Final = 0.3
_NEARLY_ALL: Final = 0.8
PIPE_ERROR_S: Final = 0.01
"""A wrapper's stamp is the time a line was read from the pipe, a few milliseconds after it was written."""


_LOG_HEAD: Final = rf"(?:{LEVELS}) \d\d-\d\d \d\d:\d\d:\d\d \[?[^\]\s:]+:\d+\] "
PLAIN: Final = (
    rf"{PREFIX}(?:(?:{LEVELS})(?: \d\d-\d\d \d\d:\d\d:\d\d | \d{{4}}-\d\d-\d\d[T ]\d\d:|:\s|:[\w.]+:)|\{{\s*\"|"
    r"\d\d-\d\d \d\d:\d\d:\d\d \[?\S+:\d+\] )"
)
"""How a log line itself begins: a header, an access line, a JSON record."""
INNER: Final = rf"(?:{PLAIN}|\[?\d{{4}}-\d\d-\d\d[T ]\d\d:\d\d:\d\d)"
"""What shows that a wrapper has been taken off rightly: a log line, or another stamp."""
_WITHIN: Final = (
    rf"(?:{LEVELS})(?: \d\d-\d\d \d\d:| \d{{4}}-\d\d-\d\d|:)|\{{\s*\"|\d\d-\d\d \d\d:\d\d:\d\d \[?\S+:\d+\]|"
    r"^\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d\S* std|^\[pod/|\d{4}-\d\d-\d\d \d\d:\d\d:\d\d"
)


def _anonymous(pattern: str) -> str:
    return re.sub(r"\?P<\w+>", "?:", pattern)


_SECOND: Final = "|".join(
    _anonymous(form.pattern).removeprefix("^") for form in WRAPPERS if not (form.alone or form.outermost)
)
_PROOF: Final = rf"(?:{_SECOND})?{INNER}"
"""What shows that a wrapper stands rightly in front of it; two may stand on a line."""
_PARTICULAR: Final = "|".join(_anonymous(form.pattern) for form in WRAPPERS if form.particular)
_PLAIN: Final = re.compile(PLAIN)
_COMPILED: Final = {form.name: re.compile(form.pattern) for form in WRAPPERS}
_BY_NAME: Final = {form.name: form for form in WRAPPERS}


# Patterns with every wrapper in them take milliseconds to compile: where they are asked for.
@cache
def _sure(form: WrapperForm) -> re.Pattern[str]:
    return re.compile(_anonymous(form.pattern) + _PROOF)


@cache
def _log_line() -> re.Pattern[str]:
    return re.compile(rf"(?:{_SECOND})?{PLAIN}")


def is_log_line(text: str) -> bool:
    """Whether a text begins as a log line does, perhaps in a wrapper."""
    return _log_line().match(text) is not None


def detect(lines: Sequence[str]) -> tuple[str, ...]:
    """Names of the wrappers that most of these lines have, outermost first."""
    found: list[str] = []
    left = [line for line in lines if line.strip()]
    while left and len(found) < _MAX_DEPTH:
        name = _commonest(left)
        if name is None:
            break
        found.append(name)
        left = [_COMPILED[name].sub("", line, count=1) for line in left]
    return tuple(found)


def _commonest(lines: list[str]) -> str | None:
    plain = sum(1 for line in lines if _PLAIN.match(line))
    for form in WRAPPERS:
        if form.alone:
            continue
        shaped = [line for line in lines if _COMPILED[form.name].match(line)]
        fits = [line for line in shaped if _sure(form).match(line)]
        sure, alike = len(fits), sum(1 for line in fits if _PLAIN.match(line))
        if sure > plain - alike and (
            sure >= _MIN_SHARE * len(lines) or len(shaped) >= _NEARLY_ALL * len(lines)
        ):
            return form.name
    return None


_OWN_PREFIX: Final = re.compile(rf"^{PREFIX}([^'\"{{}}]{{1,100}}?)(?:{PREFIX}{_LOG_HEAD})")


def own_prefix(lines: Sequence[str], names: Sequence[str]) -> str:
    """The text that VLLM_LOGGING_PREFIX puts in front of every record, or nothing."""
    for name in names:
        lines = [_COMPILED[name].sub("", line, count=1) for line in lines]
    plain = sum(1 for line in lines if _PLAIN.match(line))
    found = Counter(
        match[1] for line in lines if not _PLAIN.match(line) and (match := _OWN_PREFIX.match(line))
    )
    prefix, count = found.most_common(1)[0] if found else ("", 0)
    return prefix if count > 1 and count >= max(plain, found.total() / 2) else ""


def unwrap(lines: pl.DataFrame, names: Sequence[str], prefix: str = "") -> pl.DataFrame:
    """Take wrappers off ``text``.

    Adds ``outer_ts`` (UTC) with ``outer_error_s``, ``outer_local`` (no zone), ``stream`` and ``is_partial``.
    """
    nothing = pl.lit(None, pl.Datetime("us"))
    lines = lines.with_columns(
        outer_ts=nothing, outer_error_s=pl.lit(None, pl.Float64), outer_local=nothing, stream=pl.lit(None, pl.String),
        is_partial=pl.lit(value=False),
    )  # fmt: skip
    for name in names:
        lines = _peel(lines, _BY_NAME[name])
    if prefix:
        lines = lines.with_columns(pl.col("text").str.replace(rf"^({PREFIX}){re.escape(prefix)}", "${1}"))
    return lines


def bare(line: str, names: Sequence[str], prefix: str = "") -> str:
    """One line without the wrappers of its file."""
    for name in names:
        line = _COMPILED[name].sub("", line, count=1)
        if _BY_NAME[name].quoted:
            line = re.sub(_AFTER_QUOTE, "", line).replace('""', '"')
        if _BY_NAME[name].escaped:
            line = re.sub(_AFTER_ESCAPED, "", line).replace('\\"', '"')
    return re.sub(rf"^({PREFIX}){re.escape(prefix)}", r"\1", line) if prefix else line


def unwrap_by_line(lines: pl.DataFrame) -> pl.DataFrame:
    """Take wrappers off single lines that are no log lines as they stand, where a log line stands behind."""
    text = pl.col("text")
    candidate = (~text.str.contains("^" + PLAIN) | text.str.contains(_PARTICULAR)) & text.str.contains(
        _WITHIN
    )
    mask = lines.select(candidate).to_series()
    if not mask.any():
        return lines
    rest = lines.filter(mask)
    peeled = rest
    for _ in range(_MAX_DEPTH):
        before = peeled["text"]
        for form in WRAPPERS:
            peeled = _peel(peeled, form, "" if form.particular else _PROOF)
        if (peeled["text"] == before).all():
            break
    return pl.concat([lines.filter(~mask), peeled]).sort("line_no") if peeled is not rest else lines


def _peel(lines: pl.DataFrame, form: WrapperForm, proof: str = "") -> pl.DataFrame:
    """Take one wrapper off the lines that have it, with ``proof`` behind it."""
    fits = lines["text"].str.contains(form.pattern)
    # The pattern with its proof takes ten times as long to compile as most chunks take to be searched.
    if proof and fits.any():
        fits = lines["text"].str.contains(_anonymous(form.pattern) + proof)
    if not fits.any():
        return lines
    has_groups = "?P<" in form.pattern
    taken = lines.with_columns(fits=fits)
    if has_groups:
        taken = taken.with_columns(groups=pl.col("text").str.extract_groups(form.pattern))
    here = pl.col("fits")
    inner = pl.col("text").str.replace(form.pattern, "")
    if form.quoted:
        inner = inner.str.replace(_AFTER_QUOTE, "").str.replace_all('""', '"', literal=True)
    if form.escaped:
        inner = inner.str.replace(_AFTER_ESCAPED, "").str.replace_all('\\"', '"', literal=True)
    changes = {"text": pl.when(here).then(inner).otherwise(pl.col("text"))}
    for name, value in _said(form.pattern).items():
        changes[name] = pl.when(here).then(pl.coalesce(name, value)).otherwise(pl.col(name))
    if "?P<partial>" in form.pattern:
        changes["is_partial"] = pl.when(here).then(_group("partial") == "P").otherwise(pl.col("is_partial"))
    return taken.with_columns(**changes).select(lines.columns)


def _group(name: str) -> pl.Expr:
    return pl.col("groups").struct.field(name)


def _said(pattern: str) -> dict[str, pl.Expr]:
    """What a wrapper says of its line, by column."""
    said: dict[str, pl.Expr] = {}
    if "?P<outer>" in pattern:
        said["outer_ts"] = instant(_group("outer"), _group("zone"))
        said["outer_error_s"] = (
            pl.when(_group("outer").str.contains(r"[.,]")).then(PIPE_ERROR_S).otherwise(1.0)
        )
    for name, micros in (("epoch", 1e6), ("epoch_ms", 1e3)):
        if f"?P<{name}>" in pattern:
            since_1970 = (_group(name).cast(pl.Float64, strict=False) * micros).round()
            said["outer_ts"] = since_1970.cast(pl.Int64, strict=False).cast(pl.Datetime("us"))
            said["outer_error_s"] = pl.lit(PIPE_ERROR_S)
    if "?P<local>" in pattern:
        said["outer_local"] = wall_clock(_group("local"))
    if "?P<named>" in pattern:
        said["outer_local"] = _group("named").str.to_datetime(
            "%b %d, %Y @ %H:%M:%S%.f", strict=False, time_unit="us"
        )
    if "?P<stream>" in pattern:
        said["stream"] = _group("stream")
    return said


def wall_clock(text: pl.Expr) -> pl.Expr:
    """``YYYY-MM-DD HH:MM:SS`` with or without a fraction, as an instant; nanoseconds are cut to microseconds."""
    whole = text.str.slice(0, 19).str.replace("T", " ", literal=True)
    fraction = (
        text.str.extract(r"[.,](\d{1,6})").str.pad_end(6, "0").cast(pl.Int64, strict=False).fill_null(0)
    )
    at = whole.str.to_datetime("%Y-%m-%d %H:%M:%S", strict=False, time_unit="us")
    return at + pl.duration(microseconds=fraction)


def instant(stamp: pl.Expr, zone: pl.Expr) -> pl.Expr:
    """UTC instant of a wrapper's stamp."""
    digits = zone.str.replace_all(r"Z|UTC", "+0000").str.replace(":", "", literal=True)
    minutes = digits.str.slice(1, 2).cast(pl.Int64, strict=False) * 60 + digits.str.slice(3, 2).cast(
        pl.Int64, strict=False
    )
    offset = pl.when(digits.str.starts_with("-")).then(-minutes).otherwise(minutes)
    return wall_clock(stamp) - pl.duration(minutes=offset)


def join_partials(lines: pl.DataFrame) -> pl.DataFrame:
    """Join records that a runtime cut into parts, stream by stream.

    Fills ``more_lines``, the further lines of a record, which keeps its first line's number; its stamp is the last part's.
    """
    if not lines["is_partial"].any():
        return lines
    partial = pl.col("is_partial")
    goes_on = partial.shift(1, fill_value=False).over(pl.col("stream").fill_null(""))
    marked = lines.with_columns(goes_on=goes_on)
    marked = marked.with_columns(record=(~pl.col("goes_on")).cum_sum().over(pl.col("stream").fill_null("")))
    whole = marked.filter(~partial & ~pl.col("goes_on")).drop("goes_on", "record")
    parts = marked.filter(partial | pl.col("goes_on")).group_by("stream", "record", maintain_order=True)
    first = [
        name
        for name in lines.columns
        if name not in ("text", "outer_ts", "is_partial", "more_lines", "stream")
    ]
    joined = parts.agg(
        *[pl.col(name).first() for name in first],
        text=pl.col("text").str.join(""),
        outer_ts=pl.col("outer_ts").last(),
        is_partial=partial.last(),
        more_lines=pl.col("line_no").slice(1),
    )
    return pl.concat([whole, joined.select(whole.columns)]).sort("line_no")


_PARTIAL: Final = re.compile(rb"(?:^|[^\d])\d{4}-\d\d-\d\dT\S+ (stdout|stderr) ([FP])(?: |$)")
_MAX_BEGIN: Final = 200


def goes_on(lines: Sequence[bytes]) -> bool:
    """Whether a part among these physical lines (whole ones, in order) has its next part below them."""
    open_streams: set[bytes] = set()
    for line in lines:
        begin = line[:_MAX_BEGIN]
        if match := _PARTIAL.search(begin):
            (open_streams.add if match[2] == b"P" else open_streams.discard)(match[1])
    return bool(open_streams)
