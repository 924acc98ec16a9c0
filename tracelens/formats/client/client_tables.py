"""The tables that client formats fill: their columns, and rows of them as frames."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import polars as pl

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

_INSTANTS: Final = (
    "client_planned_ts", "client_sent_ts", "client_headers_ts", "client_first_byte_ts", "client_first_chunk_ts",
    "client_last_chunk_ts", "client_end_ts",
)  # fmt: skip

REQUEST_SCHEMA: Final[Mapping[str, Any]] = {
    "line_no": pl.Int64,
    **dict.fromkeys(
        ("client_id", "response_id", "trace_id", "label", "model", "error", "finish_reason", "status"),
        pl.String,
    ),
    **dict.fromkeys(("client_ttft_kind", "output_tokens_basis", "other"), pl.String),
    **dict.fromkeys(_INSTANTS, pl.Int64),
    **dict.fromkeys(("client_planned_s", "client_sent_s", "client_wait_s", "client_headers_s"), pl.Float64),
    **dict.fromkeys(
        ("client_first_byte_s", "client_ttft_s", "client_reported_ttft_s", "client_e2e_s"), pl.Float64
    ),
    "client_tpot_s": pl.Float64,
    "streamed": pl.Boolean,
    "http_status": pl.Int32,
    **dict.fromkeys(
        ("attempt", "input_tokens", "cached_input_tokens", "output_tokens", "max_tokens"), pl.Int64
    ),
    **dict.fromkeys(("input_char_count", "chunk_count"), pl.Int64),
}
"""Columns of `client_request`; instants are microseconds until the frame is made."""

MEASURED_SCHEMA: Final[Mapping[str, Any]] = {
    "line_no": pl.Int64,
    **dict.fromkeys(("request_id", "trace_id", "measured_by"), pl.String),
    **dict.fromkeys(("queue_s", "prefill_s", "decode_s"), pl.Float64),
    "other": pl.String,
}
"""Columns of `server_request` that a metrics object inside an answer fills."""

STREAM_SCHEMA: Final[Mapping[str, Any]] = {
    "line_no": pl.Int64,
    "client_id": pl.String,
    "chunk_offset_s": pl.List(pl.Float32),
    "chunk_kind": pl.String,
}
"""Columns of `client_stream`."""

TEXT_SCHEMA: Final[Mapping[str, Any]] = {
    "line_no": pl.Int64,
    "request_id": pl.String,
    "kind": pl.String,
    "content": pl.String,
}
"""Columns of `request_text`."""


def frame(rows: Sequence[Mapping[str, Any]], schema: Mapping[str, Any]) -> pl.DataFrame:
    """Rows as a frame of these columns; what a row lacks is NULL."""
    columns = {name: [row.get(name) for row in rows] for name in schema}
    try:
        return pl.DataFrame(columns, schema=schema, strict=True)
    except (TypeError, OverflowError):  # an instant of some hundred thousand years
        whole = {
            name: list(map(_fitting, columns[name])) for name, kind in schema.items() if kind == pl.Int64
        }
        return pl.DataFrame(columns | whole, schema=schema, strict=True)


def _fitting(value: int | None) -> int | None:
    """A whole number that 64 bits hold, else nothing."""
    return value if value is None or -(2**63) <= value < 2**63 else None


def requests_frame(rows: Sequence[Mapping[str, Any]]) -> pl.DataFrame:
    """Rows of `client_request`; their instants are microseconds."""
    return frame(rows, REQUEST_SCHEMA).with_columns(pl.col(*_INSTANTS).cast(pl.Datetime("us")))


def stamps_of(requests: pl.DataFrame) -> pl.DataFrame:
    """One stamp a request: the send, else the end."""
    stamp = pl.coalesce("client_sent_ts", "client_end_ts")
    return requests.select("line_no", stamp=stamp).drop_nulls("stamp")


def present(rows: Iterable[Mapping[str, Any] | None]) -> list[Mapping[str, Any]]:
    """The rows that there are."""
    return [row for row in rows if row is not None]
