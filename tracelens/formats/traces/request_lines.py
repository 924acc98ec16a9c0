"""What the request logs of this family share: JSON lines of which some are one request as its server saw it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import polars as pl

from tracelens.formats.base import Chunk, Parsed
from tracelens.formats.json_lines import read_objects, refusals

DURATIONS: Final = ("queue_s", "prefill_s", "decode_s", "inference_s", "ttft_s", "e2e_s")
COUNTS: Final = (
    "input_tokens", "cached_input_tokens", "output_tokens", "max_tokens", "sequence_count", "preemption_count",
)  # fmt: skip
SCHEMA: Final[Mapping[str, Any]] = {
    "line_no": pl.Int64,
    **dict.fromkeys(
        ("request_id", "finish_reason", "service", "trace_id", "measured_by", "other"), pl.String
    ),
    "arrival_ts": pl.Int64,
    **dict.fromkeys(DURATIONS, pl.Float64),
    **dict.fromkeys(COUNTS, pl.Int64),
}
"""Columns of `server_request`; the arrival is microseconds until the frame is made."""

Read = Callable[[Mapping[str, Any]], dict[str, Any] | str | None]
"""One object as a row, None where it is understood and no request, or the reason why it is not understood."""


def parse_lines(chunk: Chunk, read: Read) -> Parsed:
    """One row of `server_request` per line that `read` makes one of."""
    objects = read_objects(chunk.lines)
    rows: list[dict[str, Any]] = []
    refused: dict[int, str] = {}
    for line_no, values in objects:
        found = read(values)
        if isinstance(found, str):
            refused[line_no] = found
        elif found is not None:
            rows.append({"line_no": line_no, **found})
    issues = pl.concat([objects.issues, refusals(chunk.lines, refused)]).sort("line_no")
    columns = {name: [row.get(name) for row in rows] for name in SCHEMA}
    requests = pl.DataFrame(columns, schema=dict(SCHEMA)).with_columns(
        pl.col("arrival_ts").cast(pl.Datetime("us"))
    )
    stamps = requests.select("line_no", stamp="arrival_ts").drop_nulls("stamp")
    return Parsed({"server_request": requests}, issues, chunk.lines.height - issues.height, stamps)
