"""Requests of HTTP load tools that know nothing of tokens: hey's CSV and ApacheBench's gnuplot file.

hey ``-o csv``    seconds: ``offset`` from the start of the run, ``response-time`` the whole, ``Response-delay`` from the request
                  written to the first byte of the answer, which is of the headers.  Read in hey 0.1.4.
ab ``-g FILE``    milliseconds; ``seconds`` is the start as whole epoch seconds, ``ttime`` the whole, ``ctime`` the connection, ``wait``
                  from the request to the first byte.  Sorted by ``ttime``; of status codes nothing.  Read in ab 2.4.

Neither sees a token: the time to the headers of a stream is no TTFT.
"""

from __future__ import annotations

from typing import Any, Final

import polars as pl

from tracelens.formats.base import Chunk, Claim, Clock, Format, Head, Parsed, Side, issues_of, no_stamps
from tracelens.formats.client.client_tables import REQUEST_SCHEMA

NO_ROW: Final = "no row of this tool"
CUT: Final = "row cut off by the file's end"

HEY: Final = "response-time,DNS+dialup,DNS,Request-write,Response-delay,Response-read,status-code,offset"
AB: Final = "starttime\tseconds\tctime\tdtime\tttime\twait"

_HEY_ROW: Final = (
    r"^(?P<whole>\d+\.\d+),(?P<dial>\d+\.\d+),\d+\.\d+,(?P<write>\d+\.\d+),(?P<delay>\d+\.\d+),\d+\.\d+,(?P<status>\d{3})"
    r",(?P<offset>\d+\.\d+)$"
)
_AB_ROW: Final = (
    r"^[^\t]{10,40}\t(?P<seconds>\d{9,10})\t(?P<connect>\d+)\t\d+\t(?P<whole>\d+)\t(?P<wait>\d+)$"
)
_MS: Final = 1_000
_US: Final = 1_000_000


def sniff(head: Head) -> Claim | None:
    """Claim a file that begins with the heading of one of the tools."""
    first = head.first.lstrip("\ufeff")
    if first.startswith(HEY):
        return Claim("hey", Clock.RELATIVE, {"tool": "hey"})
    return Claim("ab", Clock.UTC, {"tool": "ab"}) if first.startswith(AB) else None


def parse(chunk: Chunk) -> Parsed:
    """One row of `client_request` per row of the file."""
    is_hey = chunk.claim.settings.get("tool") != "ab"
    pattern, heading = (_HEY_ROW, HEY) if is_hey else (_AB_ROW, AB)
    lines = chunk.lines.with_columns(text=pl.col("text").fill_null("").str.strip_chars(" \r\ufeff"))
    last = lines["line_no"][-1] if chunk.is_open and lines.height else -1
    # A row's last number may go on behind the file's end.
    is_cut = (pl.col("line_no") == last) & (pl.col("text") != "")
    is_row = pl.col("text").str.contains(pattern)
    is_known = is_row | pl.col("text").is_in(["", heading])
    found = lines.filter(is_row & ~is_cut).with_columns(
        pl.col("text").str.extract_groups(pattern).struct.unnest()
    )
    requests = _hey(found) if is_hey else _ab(found)
    wrong = lines.filter(~is_known | is_cut)
    issues = issues_of(wrong, pl.when(is_cut).then(pl.lit(CUT)).otherwise(pl.lit(NO_ROW)))
    stamps = requests.select("line_no", stamp="client_sent_ts").drop_nulls("stamp")
    return Parsed(
        {"client_request": requests},
        issues,
        chunk.lines.height - issues.height,
        no_stamps() if is_hey else stamps,
    )


def _number(name: str) -> pl.Expr:
    return pl.col(name).cast(pl.Float64, strict=False)


def _seconds(milliseconds: pl.Expr) -> pl.Expr:
    """Seconds to the microsecond: rounded, since Polars divides columns of one row in another way than longer ones."""
    return (milliseconds / _MS).round(6)


def _hey(rows: pl.DataFrame) -> pl.DataFrame:
    status = pl.col("status").cast(pl.Int32, strict=False)
    return _finished(
        rows.select(
            "line_no",
            client_sent_s=_number("offset"),
            client_headers_s=(_number("dial") + _number("write") + _number("delay")).round(6),
            client_e2e_s=_number("whole"),
            http_status=status,
            status=pl.when(status.is_between(200, 299))
            .then(pl.lit("ok"))
            .when(status.is_between(400, 499) | (status == 503))  # noqa: PLR2004
            .then(pl.lit("rejected"))
            .when(status >= 500)  # noqa: PLR2004
            .then(pl.lit("error"))
            .otherwise(pl.lit("unknown")),
        )
    )


def _ab(rows: pl.DataFrame) -> pl.DataFrame:
    return _finished(
        rows.select(
            "line_no",
            client_sent_ts=(pl.col("seconds").cast(pl.Int64, strict=False) * _US).cast(pl.Datetime("us")),
            client_headers_s=_seconds(_number("connect") + _number("wait")),
            client_e2e_s=_seconds(_number("whole")),
            status=pl.lit("unknown"),
        )
    )


def _finished(rows: pl.DataFrame) -> pl.DataFrame:
    kinds: dict[str, Any] = {
        name: pl.Datetime("us") if name.endswith("_ts") else kind for name, kind in REQUEST_SCHEMA.items()
    }
    missing = [pl.lit(None, kind).alias(name) for name, kind in kinds.items() if name not in rows.columns]
    return rows.with_columns(client_ttft_kind=pl.lit("headers")).with_columns(
        each for each in missing if each.meta.output_name() != "client_ttft_kind"
    )


FORMAT: Final = Format(
    name="load_tools",
    title="requests of hey (CSV) or ApacheBench (gnuplot file)",
    side=Side.CLIENT,
    fills=("client_request",),
    sniff=sniff,
    parse=parse,
    versions="hey 0.1.4, ab 2.4",
    complete="Real files of both. They see no token; ab writes no status.",
    record="hey -o csv ... > hey.csv, or ab -g ab.tsv ...",
    sample="hey_v0.1.4.csv",
)
