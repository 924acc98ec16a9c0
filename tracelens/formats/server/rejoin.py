"""Stats lines that a terminal, a chat or a paste broke over several lines.

A broken one takes in the lines below it that have no header of their own, as long as each, joined by nothing, a blank or
a comma, goes on with a part that stats lines have.  Only a whole stats line comes of it; what is none stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

import polars as pl

from tracelens.formats.server.framing import ANSI
from tracelens.formats.server.vllm_samples import STATS_WHOLE
from tracelens.formats.server.wrappers import PLAIN

_MAX_LINES: Final = 6
_NAMES: Final = (
    "Avg prompt throughput", "Avg generation throughput", "Avg prompt tput", "Avg generation tput", "Throughput", "Running",
    "Reqs Running", "Swapped", "Pending", "Waiting", "Deferred", "Preemptions", "Corrupted", "GPU KV cache usage",
    "CPU KV cache usage", "TPU KV cache usage", "XPU KV cache usage", "GPU KV cache used", "Prefix cache hit rate",
    "External prefix cache hit rate", "MM cache hit rate",
)  # fmt: skip
_UNITS: Final = (" tokens/s", " toks/s", " reqs", "%")
_BEGIN: Final = re.compile(r"^(?:Engine \d+: |\d+ Engines Aggregated: )")
_VALUE: Final = re.compile(r":(?: (\d[\d.]*)?(.*))?")
_FETCH: Final = re.compile(r"(?:KV fetch: )?\d* ?(?:waiting to start|in progress|completed waiting)?")
_KV_USAGE: Final = re.compile(r"KV cache (?:usage|used): [\d.]+%")
_TAIL: Final = (
    r"^\s*(?:,|(?:External prefix|Prefix|MM) cache hit rate: \d|CPU KV cache usage: |Preemptions: )"
)
_AT_END: Final = r"(?:hit rate|CPU KV cache usage): [\d.]+%\.?\s*$"
"""Where a stats line ends for good; one that ends with its KV-cache usage may have lost a part to the next line."""
_ENDS: Final = re.compile(_AT_END)
_WHOLE: Final = re.compile(STATS_WHOLE)
_ANSI: Final = re.compile(ANSI)
_STARTS: Final = re.compile(
    r"(?:Engine \d+: |\d+ Engines Aggregated: )?(?:Avg prompt (?:throughput|tput): |Throughput: [\d.]+ tok)"
)
_HEADED: Final = re.compile(PLAIN)


def rejoin(kinds: pl.DataFrame) -> pl.DataFrame:
    """Mend broken stats lines among records (``line_no, more_lines, text, level, kind, message``)."""
    message = pl.col("message")
    stats = (kinds["kind"] == "stats").arg_true()
    if not stats.len():
        return kinds
    below = kinds[(stats + 1).filter(stats + 1 < kinds.height)].select(
        has_tail=pl.col("text").str.contains(_TAIL) & pl.col("level").is_null()
    )
    has_tail = below["has_tail"].extend_constant(value=False, n=stats.len() - below.height)
    has_more = pl.lit(has_tail) & ~message.str.contains(_AT_END)
    broken = kinds[stats].select(~message.str.contains(STATS_WHOLE) | has_more).to_series()
    rows = stats.filter(broken.fill_null(value=False)).to_list()
    columns = {name: kinds[name] for name in ("message", "text", "level", "kind")} if rows else {}
    mended = {row: whole for row in rows if (whole := _mended(columns, row)) is not None}
    return _replaced(kinds, mended)


def _mended(columns: dict[str, pl.Series], row: int) -> tuple[str, int] | None:
    """The whole message of a broken line, and the row of its last part."""
    whole: str = columns["message"][row]
    best: tuple[str, int] | None = None
    for last in range(row + 1, min(row + _MAX_LINES, len(columns["text"]))):
        part = columns["text"][last]
        is_own = columns["level"][last] is not None or columns["kind"][last] is not None
        joined = None if is_own or not part.strip() else _joined(whole, part)
        if joined is None:
            break
        whole = joined
        if _KV_USAGE.search(whole) and _WHOLE.search(whole):
            best = (whole, last)
        if _ENDS.search(whole):
            break
    return best


def _joined(whole: str, part: str) -> str | None:
    """Two parts of a stats line in one, by the joint that makes the beginning of a stats line; None where none does."""
    bare, tail = whole.rstrip(), part.strip()
    for joined in (whole + part.rstrip(), f"{bare} {tail}", f"{bare.rstrip(',')}, {tail.lstrip(', ')}"):
        if _begins_stats(joined):
            return joined
    return None


def _begins_stats(text: str) -> bool:
    parts = _BEGIN.sub("", text).rstrip().rstrip(".").split(", ")
    return all(_is_part(part) for part in parts[:-1]) and (_is_part(parts[-1]) or _begins_part(parts[-1]))


def _is_part(part: str) -> bool:
    name, colon, _ = part.partition(":")
    value = _VALUE.fullmatch(part[len(name) :])
    return bool(colon and name in _NAMES and value and value[1] and value[2] in ("", *_UNITS)) or (
        bool(part) and part[-1].isalpha() and _FETCH.fullmatch(part) is not None
    )


def _begins_part(part: str) -> bool:
    part = part.rstrip(",")
    name, colon, _ = part.partition(":")
    if not colon:
        return (
            any(known.startswith(part) for known in _NAMES)
            or _FETCH.fullmatch(part) is not None
            or "KV fetch".startswith(part)
        )
    value = _VALUE.fullmatch(part[len(name) :])
    known_unit = value is not None and any(unit.startswith(value[2] or "") for unit in _UNITS)
    return (name in _NAMES and known_unit) or _FETCH.fullmatch(part) is not None


def _replaced(kinds: pl.DataFrame, mended: dict[int, tuple[str, int]]) -> pl.DataFrame:
    if not mended:
        return kinds
    further = {row: list(range(row + 1, last + 1)) for row, (_, last) in mended.items()}
    swallowed = [row for rows in further.values() for row in rows]
    numbers = kinds["line_no"]
    changes = pl.DataFrame(
        [
            (row, whole, [*_more(kinds, row), *(numbers[one] for one in further[row])])
            for row, (whole, _) in mended.items()
        ],
        schema={"row": pl.UInt32, "whole": pl.String, "whole_lines": pl.List(pl.Int64)},
        orient="row",
    )
    numbered = kinds.with_row_index("row").filter(~pl.col("row").is_in(swallowed))
    joined = numbered.join(changes, on="row", how="left", maintain_order="left")
    return joined.with_columns(
        message=pl.coalesce("whole", "message"), more_lines=pl.coalesce("whole_lines", "more_lines")
    ).drop("row", "whole", "whole_lines")


def _more(kinds: pl.DataFrame, row: int) -> Sequence[Any]:
    more = kinds["more_lines"][row]
    return more if more is not None else ()


def is_open(lines: Sequence[bytes]) -> bool:
    """Whether a stats line begins in the last ones of some lines and may go on below them."""
    last = [
        _ANSI.sub("", line.decode("utf-8", "replace")).rstrip("\r") for line in lines[-(_MAX_LINES - 1) :]
    ]
    for back in range(len(last) - 1, -1, -1):
        found = list(_STARTS.finditer(last[back]))
        if found:
            whole = last[back][found[-1].start() :]
            below = last[back + 1 :]
            return not _ENDS.search(" ".join([whole, *below])) and not any(
                _HEADED.search(line) for line in below
            )
    return False
