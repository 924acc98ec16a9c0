"""Lines of gateways' access logs as rows of `client_request`.

A gateway stands between client and server, and what it sees of a request is what a client would: when it came and ended, when
the response headers came, and how it was answered.  It sees no token: **the time to the headers is no TTFT**.  vLLM sends
the headers of a stream right after tokenization, before the queue (measured: 2 ms in nginx's log, 60 ms to the first token), so
`client_ttft_s` stays NULL.  An error inside a stream, or a client that leaves in the middle of one, is a 200 here.

Sent is the arrival at the gateway.  Where a log has stamps of whole seconds at the end of a request (``$time_local``), the
arrival that follows from them is up to a second early, never late, and end and headers are kept as durations alone: their
instants would be early too, and bounds of clocks are made of them.
"""

from __future__ import annotations

import re
from typing import Any, Final

import polars as pl

from tracelens.formats.client.client_tables import REQUEST_SCHEMA, frame
from tracelens.formats.json_lines import TEXT_CHARS

GATEWAY_SCHEMA: Final[dict[str, Any]] = {**REQUEST_SCHEMA, "seen_by": pl.String, "gateway_id": pl.String}
"""Columns of `client_request` that gateways fill; instants are microseconds until the frame is made."""

PASSED_SCHEMA: Final[dict[str, Any]] = {
    "line_no": pl.Int64,
    "start_us": pl.Int64,
    "end_us": pl.Int64,
    "is_coarse": pl.Boolean,
    **dict.fromkeys(("e2e_s", "headers_s", "first_byte_s"), pl.Float64),
    "status": pl.Int32,
    **dict.fromkeys(
        ("flags", "client_id", "gateway_id", "trace_id", "method", "path", "upstream"), pl.String
    ),
    **dict.fromkeys(("attempt", "bytes_sent"), pl.Int64),
}
"""One line of an access log, whatever its form: instants in microseconds, `is_coarse` where they are whole seconds."""

INFERENCE: Final = (
    r"(?:^|/)(?:chat/completions|completions|responses|messages|embeddings|rerank|score|pooling|classify|generate"
    r"|generate_stream|invocations|audio/\w+|images/\w+)/?$"
)
"""Paths that reach the engine; health checks, metrics and lists of models are no requests."""

_INFERENCE: Final = re.compile(INFERENCE)
_ABORTED: Final = r"^(?:DC|DR|DPE|[Cc][A-Z-]{3})$"
"""Envoy: the downstream connection ended.  HAProxy: the session state begins with C or c."""
_FAULTS: Final = (
    r"(?:^|,)(?:UH|UF|UO|UT|UC|UR|URX|UPE|LR|LH|NR|NC|SI|OM|DF|DT|RL|RLSE|UAEX|DI|FI|IH|UMSDR)(?:,|$)"
    r"|^[SsPRIK][A-Z-]{3}$"
)
"""Envoy: the upstream or the route failed.  HAProxy: the server or the proxy ended the session."""
_CLIENT_CLOSED: Final = 499
_UNAVAILABLE: Final = 503
_US: Final = 1_000_000


def passed_frame(rows: list[dict[str, Any]]) -> pl.DataFrame:
    """Rows with the keys of `PASSED_SCHEMA` as a frame."""
    return frame(rows, PASSED_SCHEMA)


def is_inference(path: str | None) -> bool:
    """Whether a path (without its query) is one that reaches the engine."""
    return path is not None and _INFERENCE.search(path) is not None


def requests_of(passed: pl.DataFrame, seen_by: str = "http_gateway") -> pl.DataFrame:
    """Rows of `client_request` from lines in the shape of `PASSED_SCHEMA`; lines that are no inference are left out."""
    kept = passed.filter(
        pl.col("path").str.contains(INFERENCE).fill_null(value=True)
        & pl.col("method").is_in(["POST", "PUT"]).fill_null(value=True)
    ).with_columns(_moments())
    found = kept.select(
        "line_no",
        "client_id",
        "gateway_id",
        "trace_id",
        "attempt",
        pl.col("path").str.slice(0, TEXT_CHARS).alias("label"),
        *(pl.col(name).cast(pl.Datetime("us")) for name in _INSTANTS),
        pl.col("headers_s").alias("client_headers_s"),
        pl.col("first_byte_s").alias("client_first_byte_s"),
        pl.col("e2e_s").alias("client_e2e_s"),
        _stops_at().alias("client_ttft_kind"),
        pl.lit(None, pl.Boolean).alias("streamed"),
        pl.when(pl.col("status") > 0).then(pl.col("status")).alias("http_status"),
        _status().alias("status"),
        pl.format("response flags {}", pl.when(_flag(_FAULTS)).then("flags")).alias("error"),
        pl.lit(seen_by).alias("seen_by"),
        _other().alias("other"),
    )
    missing = [
        pl.lit(None, dtype).alias(name) for name, dtype in GATEWAY_SCHEMA.items() if name not in found.columns
    ]
    return found.with_columns(missing)


_INSTANTS: Final = ("client_sent_ts", "client_headers_ts", "client_first_byte_ts", "client_end_ts")


def _moments() -> list[pl.Expr]:
    """Instants of the line: the stated one, and what its durations make of it."""

    def later(duration: str) -> pl.Expr:
        return (pl.col(duration) * _US).round(0).cast(pl.Int64, strict=False)

    sent = pl.coalesce("start_us", pl.col("end_us") - later("e2e_s"))
    is_fine = ~pl.col("is_coarse").fill_null(value=True)
    end = pl.coalesce("end_us", pl.col("start_us") + later("e2e_s"))
    return [
        sent.alias("client_sent_ts"),
        pl.when(is_fine).then(sent + later("headers_s")).alias("client_headers_ts"),
        pl.when(is_fine).then(sent + later("first_byte_s")).alias("client_first_byte_ts"),
        # Without a duration the end is all there is, whole seconds or not.
        pl.when(is_fine | sent.is_null()).then(end).alias("client_end_ts"),
    ]


def _flag(pattern: str) -> pl.Expr:
    return pl.col("flags").str.contains(pattern).fill_null(value=False)


def _status() -> pl.Expr:
    """The value of ``request_status``: 4xx and 503 are refusals before the engine, 499 is a client that left."""
    status = pl.col("status")
    return (
        pl.when((status == _CLIENT_CLOSED) | _flag(_ABORTED))
        .then(pl.lit("aborted"))
        .when(status.is_between(400, 499) | (status == _UNAVAILABLE))
        .then(pl.lit("rejected"))
        .when((status >= 500) | _flag(_FAULTS))  # noqa: PLR2004
        .then(pl.lit("error"))
        .when(status.is_between(200, 299))
        .then(pl.lit("ok"))
        .otherwise(pl.lit("unknown"))
    )


def _stops_at() -> pl.Expr:
    """What the earliest time of the line stops at; never a token."""
    return (
        pl.when(pl.col("first_byte_s").is_not_null())
        .then(pl.lit("first_byte"))
        .when(pl.col("headers_s").is_not_null())
        .then(pl.lit("headers"))
    )


def _other() -> pl.Expr:
    """Bytes sent and the upstream as a JSON object; nothing of the request itself."""
    plain = pl.when(pl.col("upstream").str.contains(r"^[\w.:, /\[\]-]{1,200}$")).then("upstream")
    parts = [pl.format('"bytes_sent":{}', "bytes_sent"), pl.format('"upstream":"{}"', plain)]
    joined = pl.concat_str(parts, separator=",", ignore_nulls=True)
    return pl.when(joined != "").then(pl.concat_str([pl.lit("{"), joined, pl.lit("}")]))


def stamps_of(passed: pl.DataFrame) -> pl.DataFrame:
    """One stamp a line: the start, else the end."""
    stamp = pl.coalesce("start_us", "end_us").cast(pl.Datetime("us"))
    return passed.select("line_no", stamp=stamp).drop_nulls("stamp")


def gateway_frame(rows: list[dict[str, Any]]) -> pl.DataFrame:
    """Rows with the keys of `GATEWAY_SCHEMA` as a frame; instants are microseconds in the rows."""
    instants = [name for name in GATEWAY_SCHEMA if name.endswith("_ts")]
    return frame(rows, GATEWAY_SCHEMA).with_columns(pl.col(instants).cast(pl.Datetime("us")))
