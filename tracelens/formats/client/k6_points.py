"""Every sample that k6 took, as JSON lines (``k6 run --out json=FILE``): one request for each point of ``http_req_duration``.

    {"metric":"http_req_duration","type":"Point","data":{"time":"2025-11-25T03:12:41.62+01:00","value":2612.4,"tags":{"status":"200",...}}}

Milliseconds, without the connection; ``time`` is the end (``lib/netext/httpext/tracer.go``).  k6 reads an answer to its end, so that
is the whole answer; it sees no token.  Other metrics of the same request are lines of their own, with nothing that joins them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import polars as pl

from tracelens.formats.base import Chunk, Claim, Clock, Format, Head, Parsed, Side
from tracelens.formats.client.client_outcomes import Ending, error_text, http_status_of
from tracelens.formats.client.client_tables import requests_frame, stamps_of
from tracelens.formats.client.gateway_values import path_of
from tracelens.formats.json_lines import objects_in, read_objects, refusals, seconds
from tracelens.formats.stamps import instant_on

NO_SAMPLE: Final = "no sample of k6"
NO_TIME: Final = "a request without its end or its duration"
_DURATION: Final = "http_req_duration"
_LONGEST_S: Final = 1e6
_KINDS: Final = ("Metric", "Point")


def sniff(head: Head) -> Claim | None:
    """Claim JSON lines of which at least half are declarations and points of metrics."""
    found = objects_in(head.lines)
    if found is None or sum(map(_is_line, found)) * 2 < len(found):
        return None
    return Claim("k6 --out json", Clock.UTC)


def _is_line(values: Mapping[str, Any]) -> bool:
    return values.get("type") in _KINDS and isinstance(values.get("data"), dict) and "metric" in values


def parse(chunk: Chunk) -> Parsed:
    """One row of `client_request` per duration; other points are passed over."""
    objects = read_objects(chunk.lines)
    rows: list[dict[str, Any]] = []
    refused: dict[int, str] = {}
    for line_no, values in objects:
        if not _is_line(values):
            refused[line_no] = NO_SAMPLE
        elif values["metric"] == _DURATION and values["type"] == "Point":
            row = _row(values["data"])
            if row is None:
                refused[line_no] = NO_TIME
            else:
                rows.append({"line_no": line_no, **row})
    issues = pl.concat([objects.issues, refusals(chunk.lines, refused)]).sort("line_no")
    requests = requests_frame(rows)
    return Parsed(
        {"client_request": requests}, issues, chunk.lines.height - issues.height, stamps_of(requests)
    )


def _row(point: Mapping[str, Any]) -> dict[str, Any] | None:
    end, taken_s = instant_on(Clock.UTC, point.get("time")), seconds(point.get("value"), 1e-3)
    if end is None or taken_s is None or taken_s > _LONGEST_S:
        return None
    tags = point.get("tags")
    tags = tags if isinstance(tags, dict) else {}
    status, error = http_status_of(tags.get("status")), error_text(tags.get("error"))
    return {
        "client_sent_ts": end - round(taken_s * 1e6),
        "client_end_ts": end,
        "client_e2e_s": taken_s,
        "http_status": status,
        "error": error,
        "status": Ending(status, None, error).status(),
        "label": path_of(tags.get("url", tags.get("name"))),
    }


FORMAT: Final = Format(
    name="k6_points",
    title="requests of k6 as JSON lines",
    side=Side.CLIENT,
    fills=("client_request",),
    sniff=sniff,
    parse=parse,
    versions="k6 0.30 to 1.3",
    complete="Made-up numbers in the form of the manual. Whole answers: there is no TTFT, and no token is counted.",
    record="k6 run --out json=k6.json script.js",
    sample="points.json",
)
