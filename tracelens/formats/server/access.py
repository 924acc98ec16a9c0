"""HTTP access lines as uvicorn writes them, in the log of any server.

    (APIServer pid=7) INFO:     10.0.0.7:47428 - "POST /v1/chat/completions HTTP/1.1" 200 OK

They are a third of a busy server's log, and but for the client's address they repeat themselves.
"""

from __future__ import annotations

from typing import Final

import polars as pl

from tracelens.formats.server.distinct import behind, of_distinct, up_to
from tracelens.formats.server.framing import LEVELS, PREFIX

_ASKED: Final = r"(?P<method>[A-Z]+) (?P<path>\S+) HTTP/[\d.]+\" (?P<status>\d{3})(?: [A-Za-z' -]*)?$"
UVICORN: Final = rf"^(?P<processes>{PREFIX})(?:(?:{LEVELS}):\s+)?(?P<client_addr>\S*) - \"{_ASKED}"
_WITH_LEVEL: Final = rf"^{PREFIX}(?:{LEVELS}):\s+\S* - \"[A-Z]+ \S+ HTTP/[\d.]+\" \d{{3}}(?: [A-Za-z' -]*)?$"
_LEAD: Final = rf"^(?P<processes>{PREFIX})(?:(?:{LEVELS}):\s+)?$"
_BETWEEN: Final = ' - "'
_ADDRESS_CHARS: Final = "0123456789abcdefABCDEF.:[]%"
_PROCESS: Final = r"\(([^()]*?) pid=\d+[^()]*\) ?$"


def is_whole_line(text: pl.Expr) -> pl.Expr:
    """Whether a text is an access line with its level and nothing else: no more is to be found in it."""
    odd = text.str.contains("\r", literal=True) | text.str.contains('{"', literal=True)
    return text.str.contains(_WITH_LEVEL) & ~odd


def access_lines(frame: pl.DataFrame) -> pl.DataFrame:
    """``line_no, text, after`` of lines with " HTTP/" as rows of `access_line`; NULL ``status`` where it is none."""
    split = _by_parts(frame)
    left = split["status"].is_null()
    if left.any():
        again = frame.filter(left).with_columns(pl.col("text").str.extract_groups(UVICORN).struct.unnest())
        split = pl.concat([split.filter(~left), again.select(split.columns)]).sort(
            "line_no", maintain_order=True
        )
    return split.select(
        "line_no",
        "method",
        client_addr=pl.when(pl.col("client_addr") != "").then("client_addr"),
        logged_after_ts=pl.col("after"),
        process=pl.col("processes").str.extract(_PROCESS),
        path=pl.col("path").str.replace(r"\?.*$", ""),
        status=pl.col("status").cast(pl.Int32, strict=False),
    )


def _by_parts(frame: pl.DataFrame) -> pl.DataFrame:
    """The lines' parts around the address, each distinct one matched once; no ``status`` where they do not fit."""
    text = pl.col("text")
    cut = text.str.find(_BETWEEN, literal=True)
    parts = frame.select(before=up_to(text, cut), asked=behind(text, cut + len(_BETWEEN)))
    lead = parts["before"].str.strip_chars_end(_ADDRESS_CHARS)
    asked = of_distinct(
        parts["asked"],
        {
            name: text.str.extract_groups(rf"^{_ASKED}").struct.field(name)
            for name in ("method", "path", "status")
        },
    )
    begun = of_distinct(lead, {"processes": text.str.extract(_LEAD), "fits": text.str.contains(_LEAD)})
    address = parts.select(client_addr=behind(pl.col("before"), pl.lit(lead).str.len_bytes()))
    whole = pl.concat([frame.select("line_no", "after"), address, begun, asked], how="horizontal")
    return whole.with_columns(status=pl.when("fits").then("status")).drop("fits")
