"""Lines of an SGLang log that have the times of one request, as rows of `server_request`.

    ReqTimeStats(rid=..., input_len=6, cached_input_len=0, output_len=16, type=unified): queue_duration=12.34ms, ...
    Finish: obj=GenerateReqInput(rid='...', ...), out={'text': ..., 'meta_info': {'e2e_latency': 6.5, ...}}

The first is ``--enable-request-time-stats-logging`` (``schedule_batch.py``, ``req_time_stats.py``; ``Req Time Stats`` before 0.5.6): the
scheduler's queue, and from there to the last token.  The second is ``--log-requests``; prompt and answer in it are never read.
The log's stamps are of the end of a request and of local time, so neither gives an arrival.
"""

from __future__ import annotations

from typing import Final

import polars as pl

_STATS: Final = (
    r"^Req ?Time ?Stats\(rid=(?P<rid>[^,)]{1,200})(?:, bootstrap_room=[^,)]*)?, input[_ ]len=(?P<input>\d{1,12})"
    r"(?:, cached_input_len=(?P<cached>\d{1,12}))?, output[_ ]len=(?P<output>\d{1,12})(?:, attempts=\d+)?,"
    r" type=(?P<type>\w+)\): (?P<meta>.*)$"
)
_FINISH: Final = (
    r"^Finish: obj=\w+\((?:.*?[(, ])?rid='(?P<rid>[^']{1,200})'.*'meta_info': \{(?P<meta>.*)\}\}?\s*$"
)
_HEALTH: Final = "HEALTH_CHECK"
_LONGEST_S: Final = 1e6
"""Longer durations are differences to a stamp that was never taken."""
_MS: Final = 1_000


def requests_of(lines: pl.DataFrame) -> pl.DataFrame:
    """Rows of `server_request` from the lines (``line_no, message``) that have times of a request."""
    message = pl.col("message")
    stats = lines.filter(message.str.contains(r"^Req ?Time ?Stats\(rid="))
    finished = lines.filter(message.str.starts_with("Finish: obj="))
    return pl.concat([_stats(stats), _finished(finished)], how="diagonal").sort("line_no")


def _stats(lines: pl.DataFrame) -> pl.DataFrame:
    """The scheduler's line.  A decode worker's queue is not the request's: of its line only the tokens are kept."""
    rows = _groups(lines, _STATS)
    is_prefill = pl.col("type") != "decode"
    forward = _milliseconds("forward_duration")
    return rows.select(
        "line_no",
        *_named(),
        queue_s=pl.when(is_prefill).then(_milliseconds("queue_duration")),
        prefill_s=pl.when(pl.col("type") == "prefill").then(forward),
        inference_s=pl.when(~pl.col("type").is_in(["prefill", "decode"])).then(forward),
        input_tokens=pl.col("input").cast(pl.Int64, strict=False),
        cached_input_tokens=pl.col("cached").cast(pl.Int64, strict=False),
        output_tokens=pl.col("output").cast(pl.Int64, strict=False),
    )


def _finished(lines: pl.DataFrame) -> pl.DataFrame:
    """The request logger's line: durations as stated, or between two of its instants."""
    rows = _groups(lines, _FINISH)
    scheduled, received = _amount("forward_entry_time"), _amount("request_received_ts")
    first_token = pl.coalesce(_amount("prefill_finished_time"), _amount("prefill_finished_ts"))
    return rows.select(
        "line_no",
        *_named(),
        # Without the scheduler's times queue_time is a number without meaning.
        queue_s=pl.when(scheduled.is_not_null()).then(_sane(_amount("queue_time"))),
        prefill_s=_sane((first_token - scheduled).round(6)),
        ttft_s=_sane((first_token - received).round(6)),
        e2e_s=_sane(_amount("e2e_latency")),
        input_tokens=_amount("prompt_tokens").cast(pl.Int64, strict=False),
        cached_input_tokens=_amount("cached_tokens").cast(pl.Int64, strict=False),
        output_tokens=_amount("completion_tokens").cast(pl.Int64, strict=False),
        finish_reason=pl.col("meta").str.extract(r"'finish_reason': \{'type': '(\w{1,40})'"),
    )


def _groups(lines: pl.DataFrame, pattern: str) -> pl.DataFrame:
    rows = lines.select("line_no", pl.col("message").str.extract_groups(pattern).struct.unnest())
    return rows.filter(pl.col("rid").is_not_null() & ~pl.col("rid").str.starts_with(_HEALTH))


def _named() -> list[pl.Expr]:
    return [
        pl.col("rid").alias("request_id"),
        pl.lit("log").alias("measured_by"),
        pl.lit("sglang").alias("service"),
    ]


def _amount(name: str) -> pl.Expr:
    """The value of a name in the printed dictionary."""
    return pl.col("meta").str.extract(rf"'{name}': (\d+(?:\.\d+)?)(?:,|$)").cast(pl.Float64, strict=False)


def _milliseconds(name: str) -> pl.Expr:
    """A duration of the scheduler's line in seconds; one that the line's end cuts off has no unit and does not count.

    SGLang prints 0.00 where one of the two stamps is missing.
    """
    amount = pl.col("meta").str.extract(rf"(?:^|, ){name}=(\d+(?:\.\d+)?)ms").cast(pl.Float64, strict=False)
    return _sane(pl.when(amount > 0).then((amount / _MS).round(8)))


def _sane(duration: pl.Expr) -> pl.Expr:
    return pl.when(duration.is_between(0, _LONGEST_S)).then(duration)
