"""Lines of a client log as rows of `client_request`, and what goes with them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from tracelens.formats.base import Clock
from tracelens.formats.client.client_outcomes import Ending, error_text, http_status_of, word_of
from tracelens.formats.client.client_streams import stream_columns
from tracelens.formats.client.client_tables import REQUEST_SCHEMA
from tracelens.formats.client.client_times import (
    TIME_SCHEMA,
    between,
    first_token,
    in_seconds,
    instant_of,
    sent_plus,
    spans_from_send,
)
from tracelens.formats.json_lines import count, dump, hex_id, number, text_of, text_or_json
from tracelens.formats.notes import is_note

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tracelens.formats.client.client_chunks import Chunks
    from tracelens.formats.client.client_lines import Line, Lines

_TRACEPARENT: Final = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}", re.IGNORECASE)
_SERVER_IDS: Final = ("chatcmpl-", "cmpl-", "resp_")
_BASES: Final = ("usage", "client", "requested", "chunks")
_FAILED: Final = 400
_STATED: Final = {"stated_stream": pl.Boolean, "stated_chunk_count": pl.Int64}


def request_rows(
    lines: Lines, times: Mapping[str, Sequence[Any]], streams: Sequence[Chunks | None], clock: Clock
) -> pl.DataFrame:
    """Rows of `client_request`, with the columns of their streams (`client_streams.stream_columns`) beside them."""
    columns = {"line_no": lines.line_nos, **_names(lines), **_tokens(lines), **_ending(lines, times)}
    schema = {name: REQUEST_SCHEMA[name] for name in columns} | _STATED | dict(TIME_SCHEMA)
    known = pl.DataFrame({**columns, **_stated(lines), **times}, schema=schema, strict=True)
    chunks = stream_columns(streams, times["at_sent"], clock, columns["output_tokens"])
    return (
        pl.concat([known, chunks], how="horizontal")
        .with_columns(streamed=_streamed(), chunk_count=_chunk_count(), **spans_from_send())
        .with_columns(first=first_token())
        .unnest("first")
        .with_columns(_timing(clock), other=pl.Series(list(map(_others, lines.lines)), dtype=pl.String))
    )


def _names(lines: Lines) -> dict[str, list[Any]]:
    client_ids = list(map(text_of, lines.raw("client_id")))
    stated = zip(map(text_of, lines.raw("response_id")), client_ids, strict=True)
    return {
        "client_id": client_ids,
        "response_id": [own if own is not None else _response_id(client) for own, client in stated],
        "trace_id": list(map(_trace_id, lines.raw("trace_id"))),
        "attempt": list(map(count, lines.raw("attempt"))),
        "label": list(map(text_of, lines.raw("label"))),
        "model": list(map(text_of, lines.raw("model"))),
    }


def _response_id(client_id: str | None) -> str | None:
    """The client's id, where it is one that servers give."""
    return client_id if client_id is not None and client_id.startswith(_SERVER_IDS) else None


def _trace_id(value: Any) -> str | None:
    parent = _TRACEPARENT.fullmatch(value) if isinstance(value, str) else None
    return hex_id(parent[1] if parent else value)


def _tokens(lines: Lines) -> dict[str, list[Any]]:
    """Token counts.  ``completion_tokens`` is the word of the server's usage; of other words nobody knows who counted."""
    used = list(map(count, lines.raw("completion_tokens")))
    counted = map(count, lines.raw("output_tokens"))
    bases = zip(lines.raw("output_tokens_basis"), used, strict=True)
    return {
        "input_tokens": list(map(count, lines.raw("prompt_tokens"))),
        "cached_input_tokens": list(map(count, lines.raw("cached_tokens"))),
        "output_tokens": [
            one if one is not None else other for one, other in zip(used, counted, strict=True)
        ],
        "output_tokens_basis": [
            stated if stated in _BASES else None if usage is None else "usage" for stated, usage in bases
        ],
        "max_tokens": list(map(count, lines.raw("max_tokens"))),
        "input_char_count": list(map(count, lines.raw("prompt_chars"))),
    }


def _ending(lines: Lines, times: Mapping[str, Sequence[Any]]) -> dict[str, list[Any]]:
    """How each request ended; an empty place for an error, in a line of an answer that arrived, says that it went well."""
    arrived = [
        has and (span is not None or end is not None)
        for has, span, end in zip(lines.has("error"), times["span_e2e"], times["at_end"], strict=True)
    ]
    facts = [lines.raw(thing) for thing in ("status", "success", "http_status", "error", "finish_reason")]
    endings = [_one_ending(*row) for row in zip(*facts, arrived, strict=True)]
    return {
        "http_status": [each.http_status for each in endings],
        "error": [each.error for each in endings],
        "finish_reason": [each.finish_reason for each in endings],
        "status": [each.status() for each in endings],
    }


def _one_ending(
    status: Any, success: Any, stated: Any, error: Any, finish_reason: Any, error_stated: bool
) -> Ending:
    http_status = http_status_of(status)
    if http_status is None:
        http_status = http_status_of(stated)
    word = word_of(status) or (word_of(success) if isinstance(success, bool) else None)
    return Ending(http_status, word, error_text(error), text_of(finish_reason), error_stated)


def _stated(lines: Lines) -> dict[str, list[Any]]:
    return {
        "stated_stream": [each if isinstance(each, bool) else None for each in lines.raw("stream")],
        "stated_chunk_count": list(map(count, lines.raw("chunk_count"))),
    }


def _streamed() -> pl.Expr:
    """Whether a stream was asked for and came.  Not known of a request that was refused: no answer came at all."""
    several = pl.when(pl.col("content_count") > 1).then(pl.lit(value=True))
    refused = (pl.col("http_status") >= _FAILED).fill_null(value=False)
    return pl.when(~refused).then(pl.coalesce("stated_stream", several))


def _chunk_count() -> pl.Expr:
    return pl.when("has_chunks").then("content_count").otherwise("stated_chunk_count")


def _timing(clock: Clock) -> list[pl.Expr]:
    """Columns of `client_request` with a time in them; reads what `client_times.first_token` reads and gives."""
    last = (
        pl.when(pl.col("base_s").is_not_null())
        .then("last_content_s")
        .otherwise(between("sent", "last_content"))
    )
    streamed_last = pl.when(pl.col("streamed").is_null() | pl.col("streamed")).then(last)
    moments = {
        "client_planned": pl.col("at_planned"),
        "client_sent": pl.col("at_sent"),
        "client_headers": instant_of("headers", pl.col("client_headers_s")),
        "client_first_byte": instant_of("first_byte", pl.col("client_first_byte_s")),
        "client_first_chunk": sent_plus(pl.col("ttft_s")),
        "client_last_chunk": sent_plus(streamed_last),
        "client_end": pl.coalesce(instant_of("end", pl.col("client_e2e_s")), "at_closed"),
    }
    spans = {
        "client_wait_s": pl.coalesce("span_wait", between("planned", "sent")),
        "client_ttft_s": pl.col("ttft_s"),
        "client_reported_ttft_s": pl.col("reported_s"),
        "client_ttft_kind": pl.col("kind"),
        "client_tpot_s": _tpot_s(streamed_last),
    }
    return [each.alias(name) for name, each in (_on_clock(moments, clock) | spans).items()]


def _on_clock(moments: Mapping[str, pl.Expr], clock: Clock) -> dict[str, pl.Expr]:
    """Instants as ``_ts`` where the zero is known, else the two that the tables keep as seconds."""
    if clock is Clock.RELATIVE:
        return {f"{name}_s": in_seconds(moments[name]) for name in ("client_planned", "client_sent")}
    return {f"{name}_ts": moment.cast(pl.Datetime("us")) for name, moment in moments.items()}


def tpot_s(first_s: float | None, last_s: float | None, output_tokens: int | None) -> float | None:
    """First to last content over ``output_tokens - 1``, seconds; None for fewer than two tokens or one chunk."""
    if first_s is None or last_s is None or output_tokens is None or output_tokens < 2 or last_s < first_s:  # noqa: PLR2004
        return None
    return (last_s - first_s) / (output_tokens - 1)


def _tpot_s(last: pl.Expr) -> pl.Expr:
    """As `tpot_s`, of columns."""
    first, gap_count = pl.col("ttft_s"), pl.col("output_tokens") - 1
    return pl.when((gap_count >= 1) & (last >= first)).then((last - first) / gap_count)


def _others(line: Line) -> str | None:
    """Keys without a meaning here: numbers, switches and short texts, never what may be a prompt, an answer or a secret."""
    keys = [
        *line.plan.others,
        *(line.places[thing].key for thing in ("prompt_text", "output_text") if thing in line.places),
    ]
    return dump({key: line.values[key] for key in keys if is_note(key, line.values[key])}) if keys else None


def measured_of(metrics: Any, request: Mapping[str, Any]) -> dict[str, Any] | None:
    """Read the metrics object of vLLM's answer (0.25 and later, ``--enable-per-request-metrics``) as a `server_request`.

    Its ``time_to_first_token_ms`` starts when the request is scheduled: it is the prefill, not the TTFT.
    """
    names = {
        "queue_time_ms": "queue_s",
        "time_to_first_token_ms": "prefill_s",
        "generation_time_ms": "decode_s",
    }
    if not isinstance(metrics, dict) or not any(name in metrics for name in names):
        return None
    durations = {column: _from_ms(metrics.get(name)) for name, column in names.items()}
    rest = {key: value for key, value in metrics.items() if key not in names and is_note(key, value)}
    names_of_it = {
        "request_id": request.get("response_id"),
        "trace_id": request.get("trace_id"),
        "measured_by": "response",
    }
    return names_of_it | durations | {"other": dump(rest)}


def _from_ms(value: Any) -> float | None:
    amount = number(value)
    return None if amount is None or amount < 0 else amount / 1000


def said_by(lines: Lines, streams: Sequence[Chunks | None]) -> dict[str, list[str | None]]:
    """Prompts and outputs as the lines have them, by kind; the caller keeps them only when asked to."""
    outputs = [
        stated if stated is not None or chunks is None else chunks.text
        for stated, chunks in zip(lines.raw("output_text"), streams, strict=True)
    ]
    return {
        "prompt": list(map(text_or_json, lines.raw("prompt_text"))),
        "output": list(map(text_or_json, outputs)),
    }
