"""SGLang server log (sglang 0.3 to 0.5).

    [2025-02-27 04:46:39 TP0] Decode batch. #running-req: 8, #token: 62531, token usage: 0.12, gen throughput ...
    [2026-04-05 20:02:49] INFO:     127.0.0.1:40262 - "POST /v1/chat/completions HTTP/1.1" 200 OK

Stamps are local, one second (milliseconds with SGLANG_LOG_MS), here and there pasted without their day; lines have no level.  A decode line comes every 40
steps and says what they made; a prefill line comes with each prefill batch.  Source: ``scheduler_metrics_mixin.py``.
"""

from __future__ import annotations

import re
from typing import Final

import polars as pl

from tracelens.formats.base import (
    PLACEHOLDER_YEAR,
    Chunk,
    Claim,
    Clock,
    Format,
    Head,
    Parsed,
    Side,
    issues_of,
)
from tracelens.formats.server import framing, server_lines, sglang_times
from tracelens.formats.server.access import access_lines
from tracelens.formats.server.lone_traces import is_lone_trace
from tracelens.formats.server.python_text import arguments
from tracelens.formats.server.vllm_settings import SETTING_SCHEMA

# Progress bars and wrappers may stand before the header; the first one on the line counts.
_HEADER: Final = (
    r"^.*?\[(?P<stamp>(?:\d{4}-\d\d-\d\d )?\d\d:\d\d:\d\d)(?:[.,](?P<fraction>\d{1,6}))?"
    r"(?P<process>(?: [A-Z]+\d+)*)\] ?(?P<message>(?s:.*))$"
)
_BATCH: Final = r"^(?:Decode|Prefill) batch"
_STAMP: Final = r"^.{0,200}?\[(?P<day>\d{4}-\d\d-\d\d )?\d\d:\d\d:\d\d[.,\d]*(?: [A-Z]+\d+)*\] "
_OWN: Final = (
    r"(?:(?:Decode|Prefill) batch(?: \[\d+\])?[.,] #|KV cache pool is full\. Retract requests\. #|Decode out of memory happened\. #"
    r"|server_args=ServerArgs\(|The server is fired up and ready to roll)"
)
_BARE: Final = rf"^`{{0,3}}(?:\[(?P<rank>[A-Z]+\d+(?: [A-Z]+\d+)*)\] )?(?P<said>{_OWN}(?s:.*?))`{{0,3}}$"
"""A line that was pasted without its stamp, or in backticks."""
_SIGNS: Final = re.compile(f"{_STAMP}{_OWN}")
_TRACED: Final = re.compile(r'^ *File "[^"]*/sglang/(?:\w+/)*\w+\.py", line \d+')
_ANSI: Final = re.compile(framing.ANSI)

# Column: label in the line, later spellings after it; and what a printed 1 is worth.
_PARTS: Final[dict[str, tuple[tuple[str, ...], float]]] = {
    "running_count": (("#running-req",), 1),
    "waiting_count": (("#queue-req",), 1),
    "kv_cache_usage_ratio": (("token usage", "full token usage"), 1),
    "generation_tps": (("gen throughput (token/s)",), 1),
    "prompt_tps": (("input throughput (token/s)",), 1),
    "prefix_cache_hit_ratio": (("cache hit rate",), 0.01),
}
_COUNTS: Final = ["running_count", "waiting_count"]
_KNOWN: Final = tuple(label for labels, _ in _PARTS.values() for label in labels)

# What a message begins with, and the kind of event that it is; the first row that fits wins.
EVENT_STARTS: Final = (
    ("server_args=", "start"),
    ("The server is fired up and ready to roll", "ready"),
    ("KV cache pool is full. Retract requests", "preemption"),
    ("Decode out of memory happened", "preemption"),
    ("Watchdog timeout", "stall"),
    ("Scheduler watchdog timeout", "stall"),
    ("Scheduler hit an exception", "dead"),
    ("DetokenizerManager hit an exception", "dead"),
    ("Received sigquit from a child process", "dead"),
    ("SIGTERM received", "stop"),
    ("Gracefully exiting", "stop"),
    ("Capture cuda graph", "compile"),
    ("Capture CUDA graph", "compile"),
)
# SGLang writes no levels: what is left is judged by its words.
_WORDS: Final = ((r"(?i)\bwarning\b|\bdeprecated\b", "warning"), (r"(?i)(?:error|exception)\b", "error"))
# Lines that quote requests: their words are the users'.
_QUOTING: Final = ("Receive: ", "Finish: ", "Decode batch", "Prefill batch")

# SGLang's names for settings that mean the same as vLLM's.
SAME_AS: Final = {
    "model_path": "model",
    "tp_size": "tensor_parallel_size",
    "pp_size": "pipeline_parallel_size",
    "dp_size": "data_parallel_size",
    "context_length": "max_model_len",
    "context_len": "max_model_len",
    "max_running_requests": "max_num_seqs",
    "max_total_num_tokens": "kv_cache_tokens",
}


def sniff(head: Head) -> Claim | None:
    """Claim a file with a batch, arguments or ready line of SGLang, or that is a traceback through its code."""
    lines = [_ANSI.sub("", line[:1000]) for line in (*head.lines, *head.sampled)]
    found = next((found for line in lines if (found := _SIGNS.search(line))), None)
    if found is None and is_lone_trace(lines, _TRACED):
        return Claim("a traceback alone", Clock.NONE)
    if found is None and not any(re.match(_BARE, line) for line in lines):
        return None
    comma = any("Decode batch, #" in line or "Prefill batch, #" in line for line in lines)
    version = "0.5 and later" if comma else "0.4 and older"
    found = found or next((found for line in lines if (found := re.match(_STAMP, line))), None)
    if found is None:
        return Claim(f"{version}, no headers", Clock.NONE)
    return Claim(version, Clock.LOCAL if found["day"] else Clock.DAYLESS)


def parse(chunk: Chunk) -> Parsed:
    """Columns of the fact tables from one chunk of log; see `tracelens.formats.base.Parsed`."""
    split = _split(framing.clean(framing.without_cut_end(chunk.lines) if chunk.is_open else chunk.lines))
    headed = pl.col("is_headed")
    is_access = pl.col("message").str.contains(" HTTP/", literal=True)
    is_batch = headed & pl.col("message").str.contains(_BATCH)
    access = access_lines(split.filter(is_access & ~is_batch).with_columns(text="message"))
    access = access.drop_nulls("status").with_columns(process=None)
    requests = sglang_times.requests_of(split.filter(~is_batch))
    taken = pl.concat([access["line_no"], requests["line_no"]]).implode()
    rest = split.filter(~is_batch & ~pl.col("line_no").is_in(taken))
    samples = _samples(split.filter(is_batch))
    judged = server_lines.headless(rest.filter(~headed))
    issues = [
        issues_of(
            split.filter(is_batch).join(samples, on="line_no", how="anti"), "batch line cut or changed"
        ),
        issues_of(judged.filter(pl.col("verdict").is_null()), "no SGLang header"),
    ]
    events = pl.concat([_events(rest.filter(headed)), _bare_events(judged, split)]).sort("line_no")
    tables = {
        "engine_sample": samples,
        "access_line": access,
        "server_request": requests,
        "server_setting": _settings(rest.filter(headed)),
        "log_event": events,
    }
    return Parsed(
        {name: frame for name, frame in tables.items() if frame.height},
        (unread := pl.concat(issues).sort("line_no")),
        split.height - unread.height,
        split.drop_nulls("stamp").select("line_no", "stamp"),
    )


def _split(lines: pl.DataFrame) -> pl.DataFrame:
    """Add ``stamp, error_s, process, message``, ``is_headed`` (or SGLang's own without) and ``after``, the last stamp up to the line."""
    split = lines.with_columns(
        pl.col("text").str.extract_groups(_HEADER).struct.unnest(),
        pl.col("text").str.extract_groups(_BARE).struct.unnest(),
    )
    has_day = pl.col("stamp").str.len_chars() > len("HH:MM:SS")
    day = pl.when(has_day).then(pl.lit("")).otherwise(pl.lit(f"{PLACEHOLDER_YEAR}-01-01 "))
    whole = pl.concat_str(day, "stamp", pl.lit("."), pl.col("fraction").fill_null("0").str.pad_end(6, "0"))
    split = split.with_columns(
        stamp=whole.str.to_datetime("%Y-%m-%d %H:%M:%S%.6f", strict=False, time_unit="us"),
        error_s=pl.when(pl.col("fraction").is_null()).then(1.0).otherwise(0.001),
        process=pl.coalesce("process", "rank").str.strip_chars().replace("", None),
    )
    headed = pl.col("stamp").is_not_null()
    return split.with_columns(
        after=pl.col("stamp").forward_fill(),
        error_s=pl.when(headed).then("error_s"),
        is_headed=headed | pl.col("said").is_not_null(),
        message=pl.when(headed).then(pl.col("message")).otherwise(pl.coalesce("said", "text")),
    ).drop("fraction")


def _samples(batches: pl.DataFrame) -> pl.DataFrame:
    """Batch lines as rows of `engine_sample`; cut ones, without what runs and either what waits or the tokens, drop out."""
    columns = {
        column: pl.coalesce(_part(label) for label in labels) * worth
        for column, (labels, worth) in _PARTS.items()
    }
    whole = {column: columns[column].cast(pl.Int64, strict=False) for column in _COUNTS}
    rows = batches.select(
        "line_no",
        "error_s",
        "process",
        **(columns | whole),
        sample_ts="stamp",
        engine_index=pl.col("process").str.extract(r"\bDP(\d{1,6})\b").cast(pl.Int32).fill_null(0),
        engine_count=pl.lit(1, pl.Int32),
    )
    is_told = pl.any_horizontal(pl.col("waiting_count", "generation_tps").is_not_null())
    return (
        rows.drop_nulls("running_count")
        .filter(is_told)
        .join(_other(batches), on="line_no", how="left", maintain_order="left")
    )


def _part(label: str) -> pl.Expr:
    number = pl.col("message").str.extract(rf"[,.] {re.escape(label)}: (\d+(?:\.\d+)?)")
    return number.cast(pl.Float64, strict=False)


def _other(batches: pl.DataFrame) -> pl.DataFrame:
    """Put the parts of batch lines that no column holds into one JSON object per line."""
    body = pl.col("message").str.replace(r"^(?:Decode|Prefill) batch(?: \[\d+\])?[.,] ?", "")
    kind = (
        pl.when(pl.col("message").str.starts_with("D"))
        .then(pl.lit("batch: decode"))
        .otherwise(pl.lit("batch: prefill"))
    )
    parts = batches.select("line_no", part=pl.concat_list(kind, body.str.split(", "))).explode("part")
    named = parts.select(
        "line_no",
        pl.col("part").str.split_exact(": ", 1).struct.rename_fields(["key", "value"]).struct.unnest(),
    )
    left = named.filter(~pl.col("key").is_in(_KNOWN) & pl.col("key").str.contains(r"^[\w#() /.-]+$"))
    pair = pl.concat_str(pl.lit('"'), "key", pl.lit('":'), _json(pl.col("value").str.strip_chars(", ")))
    joined = left.group_by("line_no", maintain_order=True).agg(pair.drop_nulls().alias("pair").str.join(","))
    return joined.select("line_no", other=pl.concat_str(pl.lit("{"), "pair", pl.lit("}")))


def _json(value: pl.Expr) -> pl.Expr:
    """Write a printed number, truth value or word as JSON."""
    word = pl.concat_str(pl.lit('"'), value.str.replace_all(r'[\\"\x00-\x1f]', ""), pl.lit('"'))
    number = pl.when(value.str.contains(r"^-?(?:0|[1-9]\d*)(?:\.\d+)?$")).then(value)
    return number.when(value.is_in(["True", "False"])).then(value.str.to_lowercase()).otherwise(word)


def _events(headed: pl.DataFrame) -> pl.DataFrame:
    message = pl.col("message")
    quoting = pl.any_horizontal(message.str.starts_with(start) for start in _QUOTING)
    note = message.str.extract(rf"^(?:{framing.LEVELS}):\s+(\S(?s:.*))$")
    frame = headed.with_columns(
        level=message.str.extract(rf"^({framing.LEVELS}):\s"),
        message=pl.coalesce(note, message),
        quoting=quoting,
    )
    kinds = frame.with_columns(kind=pl.when(~pl.col("quoting")).then(_kind())).drop_nulls("kind")
    return kinds.select(
        "line_no", "level", "kind", "process",
        origin=pl.lit(None, pl.String), last_line_no="line_no", event_ts="after", error_s="error_s",
        # The arguments hold secrets: they are settings, masked.
        message=pl.col("message").str.replace(r"^server_args=(?s:.*)$", "server_args=").str.slice(0, 2048),
    )  # fmt: skip


def _kind() -> pl.Expr:
    message = pl.col("message")
    kind = server_lines.kind_of_event(message, pl.col("level"))
    for words, name in _WORDS:
        kind = pl.when(kind.is_null() & message.str.contains(words)).then(pl.lit(name)).otherwise(kind)
    for start, name in reversed(EVENT_STARTS):
        kind = pl.when(message.str.starts_with(start)).then(pl.lit(name)).otherwise(kind)
    return kind


def _bare_events(judged: pl.DataFrame, split: pl.DataFrame) -> pl.DataFrame:
    """Tracebacks and uvicorn's notes, which have no stamp: that of the line before."""
    events = server_lines.headless_events(judged)
    filled = events.join(split.select("line_no", "after"), on="line_no", how="left")
    stamped = filled.with_columns(pl.col("event_ts").fill_null(pl.col("after"))).drop("after")
    return stamped.select(
        "line_no", "level", "kind", "process", "origin", "last_line_no", "event_ts", "error_s", "message"
    )


def _settings(headed: pl.DataFrame) -> pl.DataFrame:
    message = pl.col("message")
    stating = message.str.starts_with("server_args=ServerArgs(") | message.str.starts_with(
        "max_total_num_tokens="
    )
    rows = [
        row
        for line_no, text in headed.filter(stating).select("line_no", "message").iter_rows()
        for key, value in arguments(text.removeprefix("server_args=ServerArgs("))
        for row in _setting_rows(line_no, key, value)
    ]
    return pl.DataFrame(rows, schema=SETTING_SCHEMA, orient="row")


def _setting_rows(line_no: int, key: str, value: str) -> list[tuple[int, str, str, str]]:
    rows = [(line_no, key, value, "stated")]
    if key in SAME_AS and value != "None":
        rows.append((line_no, SAME_AS[key], value, f"stated as {key}"))
    if key == "disable_radix_cache" and value in ("True", "False"):
        rows.append((line_no, "enable_prefix_caching", str(value == "False"), f"stated as {key}={value}"))
    return rows


FORMAT: Final = Format(
    name="sglang_log",
    title="SGLang server log",
    side=Side.SERVER,
    fills=("engine_sample", "access_line", "server_request", "server_setting", "log_event"),
    sniff=sniff,
    parse=parse,
    carried={"access_line": "logged_after_ts", "log_event": "event_ts"},
    versions="sglang 0.3 to 0.5",
    complete="Batch lines, settings, access lines; times of requests from --enable-request-time-stats-logging and --log-requests. Those lines give no arrival.",
    record="python -m sglang.launch_server ... 2>&1 | tee server.log",
    sample="decode_batches_0.4.log",
)
