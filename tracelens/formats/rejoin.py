"""Stats lines that a terminal, a chat or a paste broke over several lines.

A stats line is complete once its KV-cache usage stands on it.  An incomplete one takes in the lines below it that have no
header of their own, joined by whatever makes a complete stats line: a comma, a blank or nothing.
"""

from __future__ import annotations

import re
from itertools import product
from typing import Final

import polars as pl

_COMPLETE: Final = r"KV cache (?:usage|used): [\d.]+%"
_WHOLE: Final = re.compile(
    r"(?:Avg prompt (?:throughput|tput): [\d.]+ tok(?:en)?s/s, )?(?:Avg generation (?:throughput|tput)|Throughput): [\d.]+ tok(?:en)?s/s, "
    r"(?:Reqs )?Running: \d+.*" + _COMPLETE
)
_MAX_LINES: Final = 4
_JOINTS: Final = (", ", " ", "")
_BEGINNING: Final = re.compile(
    rb"Avg (?:prompt|generation) (?:throughput|tput): |[Tt]hroughput: [\d.]+ tokens/s"
)
_END: Final = re.compile(rb"KV cache (?:usage|used): [\d.]+%")


def rejoin(kinds: pl.DataFrame) -> pl.DataFrame:
    """Mend broken stats lines among records (``line_no, last_line_no, text, level, kind, message``)."""
    broken = (pl.col("kind") == "stats") & ~pl.col("message").str.contains(_COMPLETE)
    found = kinds.with_row_index("row").filter(broken)
    if not found.height:
        return kinds
    mended = {row: whole for row in found["row"].to_list() if (whole := _mended(kinds, row)) is not None}
    return _replaced(kinds, mended)


def _mended(kinds: pl.DataFrame, row: int) -> tuple[str, int] | None:
    """The whole message of a broken line, and the row of its last part."""
    start = kinds.row(row, named=True)["message"]
    parts: list[str] = []
    for last in range(row + 1, min(row + _MAX_LINES, kinds.height)):
        below = kinds.row(last, named=True)
        if below["level"] is not None or below["kind"] is not None or not below["text"].strip():
            return None
        parts.append(below["text"])
        for joints in product(_JOINTS, repeat=len(parts)):
            whole = _joined(start, parts, joints)
            if _WHOLE.search(whole):
                return whole, last
    return None


def _joined(start: str, parts: list[str], joints: tuple[str, ...]) -> str:
    whole = start
    for joint, part in zip(joints, parts, strict=True):
        whole = whole + part if not joint else whole.rstrip().rstrip(",") + joint + part.lstrip()
    return whole


def _replaced(kinds: pl.DataFrame, mended: dict[int, tuple[str, int]]) -> pl.DataFrame:
    if not mended:
        return kinds
    swallowed = {row for first, (_, last) in mended.items() for row in range(first + 1, last + 1)}
    last_lines = kinds["last_line_no"].to_list()
    changes = pl.DataFrame(
        [(row, whole, last_lines[last]) for row, (whole, last) in mended.items()],
        schema={"row": pl.UInt32, "whole": pl.String, "whole_last": pl.Int64},
        orient="row",
    )
    numbered = kinds.with_row_index("row").filter(~pl.col("row").is_in(list(swallowed)))
    joined = numbered.join(changes, on="row", how="left", maintain_order="left")
    return joined.with_columns(
        message=pl.coalesce("whole", "message"), last_line_no=pl.coalesce("whole_last", "last_line_no")
    ).drop("row", "whole", "whole_last")


def is_open(tail: bytes) -> bool:
    """Whether a stats line begins in the last lines of some text and does not end there."""
    lines = tail.rstrip(b"\n").split(b"\n")[-(_MAX_LINES - 1) :]
    for back, line in enumerate(reversed(lines)):
        if _BEGINNING.search(line):
            return not _END.search(b"".join(lines[len(lines) - 1 - back :]))
    return False
