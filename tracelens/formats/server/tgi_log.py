"""Log of text-generation-inference's router and launcher (TGI 1 to 3), as text or as JSON lines.

    2025-04-15T09:30:00.123456Z  INFO generate{parameters=GenerateParameters { ... } total_time="173.9s"
    validation_time="5.6ms" queue_time="161.4s" inference_time="12.4s" time_per_token="24.3ms" seed="None"}:
    text_generation_router::server: router/src/server.rs:421: Success

Stamps are UTC with microseconds.  A ``Success`` line is written when the answer is complete; its span holds the
request's times (``router/src/server.rs``): total from the handler's start, validation (with tokenization), queue,
inference (prefill and decode), and inference divided by the generated tokens.
"""

from __future__ import annotations

import re
from typing import Any, Final

import orjson
import polars as pl

from tracelens.formats.base import Chunk, Claim, Clock, Format, Head, Parsed, Side, issues_of
from tracelens.formats.server import framing, server_lines
from tracelens.formats.server.python_text import shown
from tracelens.formats.server.vllm_settings import SETTING_SCHEMA

_HEADER: Final = (
    r"^.*?\b(?P<stamp>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?)Z +(?P<level>TRACE|DEBUG|INFO|WARN|ERROR) "
    r"(?P<rest>(?s:.*))$"
)
_SIGNS: Final = re.compile(
    r"^.{0,200}?\d\d:\d\d:\d\d(?:\.\d{1,9})?Z +(?:TRACE|DEBUG|INFO|WARN|ERROR) .*?\btext_generation_(?:router|launcher)\b"
)
_JSON_SIGNS: Final = re.compile(r'^\{(?=.*"timestamp")(?=.*"target":\s*"text_generation_(?:router|launcher))')
_ANSI: Final = re.compile(framing.ANSI)

_UNITS: Final = {"s": 1.0, "ms": 1e-3, "µs": 1e-6, "μs": 1e-6, "us": 1e-6, "ns": 1e-9}
_DURATION: Final = r"(\d{1,9}(?:\.\d{1,12})?)(ns|µs|μs|us|ms|s)"
# Name in the span: how the number is called here.  The span writes them in this order, after the parameters.
_TIMES: Final = {
    "total_time": "e2e_s",
    "validation_time": "validation_s",
    "queue_time": "queue_s",
    "inference_time": "inference_s",
    "time_per_token": "time_per_token_s",
}
# Greedy up to the last of these, so that a user's stop string or grammar cannot pass for a time.
_SPAN: Final = r"^(?s:.*)" + " ".join(
    rf'{name}="(?P<{column}>[^"]{{0,40}})"' for name, column in _TIMES.items()
)

_SUCCESS: Final = ": Success"
_EVENT_WORDS: Final = (
    ("Shard terminated", "dead"),
    ("crashed", "dead"),
    ("Shard process was signaled to shutdown", "dead"),
    ("OutOfMemoryError", "oom"),
    ("out of memory", "oom"),
    ("Webserver Crashed", "dead"),
    ("Shutting down shards", "stop"),
    ("Terminating webserver", "stop"),
    ("Cuda Graphs are enabled", "compile"),
    ("Starting Webserver", "start"),
    ("Connected", "ready"),
)
# The launcher prints its arguments one per line since 2.0, `Some(x)` on three; on one line before.
_ARGUMENT: Final = r"^ {4}([a-z_]{2,48}): (.{1,400}),$"
_ARGUMENT_REST: Final = r"^(?:\}| {4}(?:[a-z_]{2,48}: (?:Some\(|\[)|\),|\],)| {8}(?:\"[^\"]*\"|[\w.-]+),)$"
_ARGUMENT_IN_LINE: Final = re.compile(
    r"([a-z_]{2,48}): (Some\((?:\"[^\"]*\"|[^()]*)\)|\"[^\"]*\"|[^,{}()]+)[,} ]"
)
SAME_AS: Final = {
    "model_id": "model",
    "num_shard": "tensor_parallel_size",
    "max_total_tokens": "max_model_len",
    "max_batch_size": "max_num_seqs",
}


def sniff(head: Head) -> Claim | None:
    """Claim a file with lines of the router or the launcher."""
    lines = [_ANSI.sub("", line[:20_000]) for line in (*head.lines, *head.sampled)]
    if any(_SIGNS.search(line) for line in lines):
        return Claim("text", Clock.UTC)
    return Claim("JSON lines", Clock.UTC) if any(_JSON_SIGNS.search(line) for line in lines) else None


def parse(chunk: Chunk) -> Parsed:
    """Columns of the fact tables from one chunk of log; see `tracelens.formats.base.Parsed`."""
    split = _split(
        _as_text(framing.clean(framing.without_cut_end(chunk.lines) if chunk.is_open else chunk.lines))
    )
    headed = pl.col("stamp").is_not_null()
    is_success = headed & pl.col("rest").str.ends_with(_SUCCESS)
    requests = _requests(split.filter(is_success))
    bare = split.filter(~headed)
    is_argument = pl.col("text").str.contains(_ARGUMENT) | pl.col("text").str.contains(_ARGUMENT_REST)
    judged = server_lines.headless(bare.filter(~is_argument))
    issues = pl.concat(
        [
            issues_of(
                split.filter(is_success).join(requests, on="line_no", how="anti"), "times not readable"
            ),
            issues_of(judged.filter(pl.col("verdict").is_null()), "no TGI header"),
        ]
    ).sort("line_no")
    events = [_events(split.filter(headed & ~is_success)), _bare_events(judged, split)]
    tables = {
        "server_request": requests,
        "server_setting": _settings(split.filter(headed), bare.filter(is_argument)),
        "log_event": pl.concat(events).sort("line_no"),
    }
    stamps = split.filter(headed).select("line_no", "stamp")
    full = {name: frame for name, frame in tables.items() if frame.height}
    return Parsed(full, issues, split.height - issues.height, stamps)


def _as_text(lines: pl.DataFrame) -> pl.DataFrame:
    """JSON lines in the layout of text lines, so that one reader serves both."""
    is_json = lines["text"].str.starts_with("{")
    if not is_json.any():
        return lines
    text = [_line_of(line) if line.startswith("{") else line for line in lines["text"]]
    return lines.with_columns(text=pl.Series(text, dtype=pl.String))


def _line_of(line: str) -> str:
    try:
        entry = orjson.loads(line)
    except orjson.JSONDecodeError:
        return line
    if not isinstance(entry, dict) or not {"timestamp", "level", "target"} <= entry.keys():
        return line
    span = entry.get("span")
    spelled = _span_of(span) if isinstance(span, dict) else ""
    place = f"{entry['filename']}:{entry.get('line_number')}: " if "filename" in entry else ""
    return f"{entry['timestamp']} {entry['level']} {spelled}{entry['target']}: {place}{entry.get('message')}"


def _span_of(span: dict[str, Any]) -> str:
    times = " ".join(f'{name}="{span[name]}"' for name in _TIMES if name in span)
    return f"{span.get('name')}{{parameters={span.get('parameters')} {times}}}: "


def _split(lines: pl.DataFrame) -> pl.DataFrame:
    """Add ``stamp, level, rest`` and ``after``, the last stamp up to the line."""
    split = lines.with_columns(pl.col("text").str.extract_groups(_HEADER).struct.unnest())
    stamp = (
        pl.col("stamp").str.slice(0, 26).str.to_datetime("%Y-%m-%dT%H:%M:%S%.f", strict=False, time_unit="us")
    )
    return split.with_columns(stamp=stamp, level=pl.col("level").replace("WARN", "WARNING")).with_columns(
        after=pl.col("stamp").forward_fill()
    )


def _requests(lines: pl.DataFrame) -> pl.DataFrame:
    """Success lines as rows of `server_request`; those whose total time cannot be read drop out."""
    rest = pl.col("rest")
    times = lines.with_columns(rest.str.extract_groups(_SPAN).struct.unnest())
    times = times.with_columns(_seconds(column) for column in _TIMES.values()).drop_nulls("e2e_s")
    total_us = (pl.col("e2e_s") * 1e6).round().cast(pl.Int64, strict=False)
    number = rest.str.extract(r"\bmax_new_tokens: (?:Some\()?(\d{1,18})")
    other = pl.struct(
        "validation_s",
        "time_per_token_s",
        grammar=rest.str.extract(r"\bgrammar: Some\((\w+)\(").str.to_lowercase(),
    )
    return times.select(
        "line_no",
        "queue_s",
        "inference_s",
        "e2e_s",
        request_id=pl.lit(None, pl.String),
        measured_by=pl.lit("log"),
        arrival_ts=pl.col("stamp") - pl.duration(microseconds=total_us),
        max_tokens=number.cast(pl.Int64, strict=False),
        other=other.struct.json_encode(),
    )


def _seconds(column: str) -> pl.Expr:
    """Read a Rust duration (``173.9s``, ``5.669107ms``, ``5.113µs``) in seconds."""
    whole = rf"^{_DURATION}$"
    unit = pl.col(column).str.extract(whole, 2).replace_strict(_UNITS, default=None, return_dtype=pl.Float64)
    return (pl.col(column).str.extract(whole, 1).cast(pl.Float64, strict=False) * unit).alias(column)


def _events(lines: pl.DataFrame) -> pl.DataFrame:
    rest = pl.col("rest")
    origin = rest.str.extract(r"\b([\w./-]+\.rs:\d+): ")
    by_place = rest.str.extract(r"\.rs:\d+: ((?s:.*))$")
    by_target = rest.str.extract(r"^(?:[\w-]+: )?text_generation_\w+(?:::\w+)*: ((?s:.*))$")
    frame = lines.with_columns(origin=origin, message=pl.coalesce(by_place, by_target, rest))
    # DEBUG lines quote prompts and answers: their words are the users'.
    kinds = frame.with_columns(kind=pl.when(~pl.col("level").is_in(["DEBUG", "TRACE"])).then(_kind()))
    return kinds.drop_nulls("kind").select(
        "line_no",
        "level",
        "kind",
        "origin",
        process=pl.lit(None, pl.String),
        last_line_no="line_no",
        event_ts="stamp",
        error_s=pl.lit(1e-6),
        message=pl.col("message").str.slice(0, 2048),
    )


def _kind() -> pl.Expr:
    message, level = pl.col("message"), pl.col("level")
    kind = (
        pl.when(level == "ERROR")
        .then(pl.lit("error"))
        .when(level == "WARNING")
        .then(pl.lit("warning"))
        .otherwise(None)
    )
    for words, name in reversed(_EVENT_WORDS):
        kind = pl.when(message.str.contains(words, literal=True)).then(pl.lit(name)).otherwise(kind)
    return kind


def _bare_events(judged: pl.DataFrame, split: pl.DataFrame) -> pl.DataFrame:
    """Tracebacks, which have no stamp: that of the line before."""
    events = server_lines.headless_events(judged)
    filled = events.join(split.select("line_no", "after"), on="line_no", how="left")
    return filled.select(
        "line_no",
        "level",
        "kind",
        "origin",
        "process",
        "last_line_no",
        pl.col("event_ts").fill_null(pl.col("after")),
        "error_s",
        "message",
    )


def _settings(headed: pl.DataFrame, arguments: pl.DataFrame) -> pl.DataFrame:
    key, value = (pl.col("text").str.extract(_ARGUMENT, group) for group in (1, 2))
    by_line = arguments.select("line_no", key=key, value=value).drop_nulls("key")
    inside = pl.col("rest").str.extract(r"launcher: Args \{((?s:.*))$")
    in_line = headed.select("line_no", inside=inside).drop_nulls("inside")
    pairs = (
        (no, *pair) for no, text in in_line.iter_rows() for pair in _ARGUMENT_IN_LINE.findall(text[:65_536])
    )
    rows = [row for triple in (*by_line.iter_rows(), *pairs) for row in _setting_rows(*triple)]
    return pl.DataFrame(rows, schema=SETTING_SCHEMA, orient="row")


def _setting_rows(line_no: int, key: str, value: str) -> list[tuple[int, str, str, str]]:
    inner = re.fullmatch(r"Some\((.*)\)", value.strip())
    bare = shown(key, (inner[1] if inner else value).strip())
    rows = [(line_no, key, bare, "stated")]
    if key in SAME_AS and bare != "None":
        rows.append((line_no, SAME_AS[key], bare, f"stated as {key}"))
    return rows


FORMAT: Final = Format(
    name="tgi_log",
    title="text-generation-inference router log",
    side=Side.SERVER,
    fills=("server_request", "server_setting", "log_event"),
    sniff=sniff,
    parse=parse,
    carried={"log_event": "event_ts"},
    versions="TGI 1 to 3",
    complete="Per-request times of the router. It states no token counts, so they stay unknown.",
    record="text-generation-launcher ... 2>&1 | tee router.log",
    sample="grammar_3.1.1.log",
)
