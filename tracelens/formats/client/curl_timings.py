"""Timings that ``curl -w`` wrote as one JSON object per request: ``-w '{"time_starttransfer":%{time_starttransfer},...}\\n'``.

Names are curl's variables (also all of them, from ``-w '%{json}'``), seconds from the start of the transfer.
``time_starttransfer`` is the first byte of the answer, which is of the headers: measured 1.6 ms where the first token came after
60 ms.  There is no time of day in them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import polars as pl

from tracelens.formats.base import Chunk, Claim, Clock, Format, Head, Parsed, Side, no_stamps
from tracelens.formats.client.client_outcomes import Ending, error_text, http_status_of
from tracelens.formats.client.client_tables import requests_frame
from tracelens.formats.client.gateway_values import path_of
from tracelens.formats.json_lines import count, dump, objects_in, read_objects, refusals, seconds

NO_TIMINGS: Final = "no timings of curl"
_OTHERS: Final = ("time_namelookup", "time_connect", "time_appconnect", "time_pretransfer", "time_redirect")


def sniff(head: Head) -> Claim | None:
    """Claim JSON lines of which at least half have curl's variables."""
    found = objects_in(head.lines)
    if found is None or sum(map(_is_line, found)) * 2 < len(found):
        return None
    return Claim("write-out as JSON", Clock.NONE)


def _is_line(values: Mapping[str, Any]) -> bool:
    return "time_total" in values and ("time_starttransfer" in values or "time_connect" in values)


def parse(chunk: Chunk) -> Parsed:
    """One row of `client_request` per object."""
    objects = read_objects(chunk.lines)
    rows: list[dict[str, Any]] = []
    refused: dict[int, str] = {}
    for line_no, values in objects:
        if _is_line(values):
            rows.append({"line_no": line_no, **_row(values)})
        else:
            refused[line_no] = NO_TIMINGS
    issues = pl.concat([objects.issues, refusals(chunk.lines, refused)]).sort("line_no")
    tables = {"client_request": requests_frame(rows)}
    return Parsed(tables, issues, chunk.lines.height - issues.height, no_stamps())


def _row(values: Mapping[str, Any]) -> dict[str, Any]:
    http_status = http_status_of(values.get("http_code", values.get("response_code")))
    error = error_text(values.get("errormsg"))
    # curl writes 0 for what it never reached.
    headers = seconds(values.get("time_starttransfer")) or None
    exit_code = count(values.get("exitcode"))
    others = {name: seconds(values.get(name)) for name in _OTHERS if name in values}
    return {
        "client_headers_s": headers,
        "client_ttft_kind": None if headers is None else "headers",
        "client_e2e_s": seconds(values.get("time_total")),
        "http_status": http_status,
        "error": error,
        "status": Ending(http_status, "error" if exit_code else None, error).status(),
        "label": path_of(values.get("url_effective", values.get("url"))),
        "other": dump({name: value for name, value in others.items() if value is not None}),
    }


FORMAT: Final = Format(
    name="curl_timings",
    title="timings of curl -w as JSON lines",
    side=Side.CLIENT,
    fills=("client_request",),
    sniff=sniff,
    parse=parse,
    versions="curl 7.88 and later",
    complete="Real lines. The earliest time is the headers, so there is no TTFT; no time of day.",
    record="curl -s -o /dev/null -w '%{json}\\n' ... >> timings.jsonl",
    sample="curl_w.jsonl",
)
