"""Files in which a terminal or an editor broke every long line at one width: 80 columns, 120, what the window had.

All lines but the last of a record are then of exactly that width, and the next begins in the middle of a word.  The width
is found once, in the head of the file.  A line of full width takes in the line below, unless that begins a record itself.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Final

import polars as pl

from tracelens.formats.server import quoting
from tracelens.formats.server.framing import ANSI
from tracelens.formats.server.vllm_samples import STATS_WHOLE
from tracelens.formats.server.wrapper_forms import WRAPPERS
from tracelens.formats.server.wrappers import INNER

_MIN_WIDTH: Final = 40
_MAX_WIDTH: Final = 400
_MIN_BREAKS: Final = 3
_MIN_SHARE: Final = 0.7
_HEADS: Final = "|".join(
    [
        INNER,
        r"Engine \d+: Avg prompt",
        *(form.pattern.removeprefix("^") + INNER for form in WRAPPERS if not (form.alone or form.outermost)),
    ]
)
_HEAD: Final = re.sub(r"\?P<\w+>", "?:", f"^(?:{_HEADS})")
_FREE_TEXT: Final = r"\] (?:Received request|Generated response|Request .*?(?:JSON body|details):)"
_STATS: Final = re.compile(STATS_WHOLE.removeprefix("^"))
_ANSI_BYTES: Final = re.compile(ANSI.encode())


@cache
def _beginning() -> re.Pattern[str]:
    return re.compile(_HEAD)  # takes 15 ms, and few files ask for it


def _begins(text: str) -> bool:
    return _beginning().match(text) is not None


def width(lines: Sequence[str]) -> int | None:
    """The width at which these lines (in order, colours off) were broken, or None."""
    widest = max(map(len, lines), default=0)
    if not _MIN_WIDTH <= widest <= _MAX_WIDTH:
        return None
    full = [
        number for number, line in enumerate(lines[:-1]) if len(line) == widest and not line.endswith("  ")
    ]
    if len(full) < _MIN_BREAKS or any(_STATS.search(lines[number]) for number in full):
        return None
    inside = sum(1 for number in full if lines[number + 1].strip() and not _begins(lines[number + 1]))
    if inside < _MIN_SHARE * len(full):
        return None
    frame = pl.DataFrame(
        {"line_no": range(len(lines)), "text": lines}, schema={"line_no": pl.Int64, "text": pl.String}
    )
    return widest if _makes_sense(joined(frame, widest)) else None


def _makes_sense(records: pl.DataFrame) -> bool:
    """Whether records come out of the joining: whole stats lines where there are any, else lines with a header."""
    mended = records.filter(pl.col("more_lines").list.len() > 0)["text"]
    stats = [text for text in mended if "Avg prompt " in text]
    if stats:
        whole = sum(1 for text in stats if text.count("Avg prompt ") == 1 and _STATS.search(text))
        return whole >= _MIN_SHARE * len(stats)
    return sum(1 for text in mended if _begins(text)) >= _MIN_SHARE * len(mended)


def joined(lines: pl.DataFrame, columns: int) -> pl.DataFrame:
    """Join the parts of broken records (``line_no, text``); adds ``more_lines``, the further lines of a record."""
    text = pl.col("text")
    full = (text.str.len_chars() == columns) & ~text.str.ends_with("  ")
    stripped = (text.str.len_chars() == columns - 1) & ~text.str.ends_with(" ")
    marked = lines.with_columns(
        is_full=full, lost_blank=stripped, begins=text.str.contains(_HEAD), is_blank=~text.str.contains(r"\S")
    )
    above_full = pl.col("is_full").shift(1, fill_value=False)
    above_short = pl.col("lost_blank").shift(1, fill_value=False) & ~pl.col("begins") & ~pl.col("is_blank")
    marked = marked.with_columns(below=above_full | above_short, above_short=above_short)
    piece = pl.when("above_short").then(pl.lit(" ") + text).otherwise(text)
    marked = marked.with_columns(piece=piece, run=(~pl.col("below")).cum_sum())
    takes_in = pl.col("below") & (~pl.col("begins") | _is_text(marked))
    marked = marked.with_columns(record=(~takes_in).cum_sum())
    whole = marked.group_by("record", maintain_order=True).agg(
        pl.col("line_no").first(),
        text=text.first() + pl.col("piece").slice(1).str.join(""),
        more_lines=pl.col("line_no").slice(1),
    )
    return whole.drop("record")


def _is_text(marked: pl.DataFrame) -> pl.Series:
    """Which lines that begin as a record does stand in the text of a user, which has not ended above them."""
    inside = pl.repeat(value=False, n=marked.height, dtype=pl.Boolean, eager=True)
    wanted = marked.select(
        (pl.col("text").str.contains(_FREE_TEXT).any() & (pl.col("below") & pl.col("begins")).any()).over(
            "run"
        )
    ).to_series()
    if not wanted.any():
        return inside
    found: list[bool] = []
    above = ""
    for is_below, begins, piece in marked.filter(wanted).select("below", "begins", "piece").iter_rows():
        takes_in = is_below and (not begins or _is_open_text(above))
        found.append(takes_in and begins)
        above = above + piece if takes_in else piece
    return inside.scatter(wanted.arg_true(), pl.Series(found, dtype=pl.Boolean))


def _is_open_text(record: str) -> bool:
    header = re.search(_FREE_TEXT, record)
    message = record[header.start() + 2 :].rstrip() if header else ""
    return quoting.holds_text(message) and not quoting.is_whole(message)


def is_open(last_line: bytes, columns: int) -> bool:
    """Whether a line may go on in the next one."""
    text = _ANSI_BYTES.sub(b"", last_line).rstrip(b"\r").decode("utf-8", "replace")
    return len(text) in (columns, columns - 1)
