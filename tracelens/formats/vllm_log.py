"""vLLM server log, as versions 0.6 to 0.33 write it to a file or a terminal (V0 and V1 engine).

    (APIServer pid=7) INFO 11-29 12:46:54 [request_logger.py:65] Received request chatcmpl-1: params: SamplingParams(n=1, ...
    INFO:     10.0.0.7:47428 - "POST /v1/chat/completions HTTP/1.1" 200 OK

Stamps have one second and no year; a line is matched by how its message begins, never by file and line of the code
that wrote it, since those move with every release.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

import polars as pl

from tracelens.formats import framing, server_lines, vllm_facts, vllm_settings
from tracelens.formats.base import Chunk, Claim, Clock, Format, Head, Parsed, Side, issues_of
from tracelens.formats.vllm_lines import LINE_FORMS

_STATS: Final = re.compile(r"Avg (?:prompt|generation) (?:throughput|tput): |[Tt]hroughput: [\d.]+ tokens/s, Running: ")
_HEADER: Final = re.compile(rf"(?:^|[\s|\]])(?:{framing.LEVELS}) \d\d-\d\d \d\d:\d\d:\d\d \[?[\w./<>-]+:\d+\] ?")
_ANSI: Final = re.compile(framing.ANSI)
_MIN_SHARE: Final = 0.05
"""Share of the lines seen that must look like vLLM's: a report that quotes one line is not a log."""

_PARTS: Final[dict[str, tuple[str, Callable[[pl.DataFrame], pl.DataFrame], str]]] = {
    # kind of message: table, reader, column that is NULL where the line was not understood
    "received": ("request_event", vllm_facts.received, "logged_id"),
    "added": ("request_event", vllm_facts.added, "logged_id"),
    "finished": ("request_event", vllm_facts.finished, "logged_id"),
    "aborted": ("request_event", vllm_facts.aborted, "logged_id"),
    "generated": ("request_event", vllm_facts.generated, "logged_id"),
    "ended": ("request_event", vllm_facts.ended, "logged_id"),
    "preempted": ("request_event", vllm_facts.preempted, "logged_id"),
    "stats": ("engine_sample", vllm_facts.stats, "running_count"),
    "step": ("engine_step", vllm_facts.steps, "elapsed_s"),
    "companion": ("metric_sample", vllm_facts.companions, "name"),
}
_ALSO_EVENTS: Final = ("preempted",)
"""Kinds whose lines are an event of the server's life as well."""

_LOOSE: Final = ("companion",)
"""Kinds whose lines may hold any number of values, none included."""


def sniff(head: Head) -> Claim | None:
    """Claim a file in which enough lines have vLLM's header or are its stats lines."""
    lines = [_ANSI.sub("", line) for line in (*head.lines, *head.sampled) if line.strip()]
    headed = [line for line in lines if _HEADER.search(line)]
    bare = [line for line in lines if _STATS.search(line)]
    if max(len(headed), len(bare)) < max(1, _MIN_SHARE * len(lines)):
        return None
    return Claim(_variant(headed, bare), Clock.YEARLESS if headed else Clock.NONE)


def _variant(headed: list[str], bare: list[str]) -> str:
    if not headed:
        return "no headers"
    bracket = any(re.search(r"\d\d:\d\d:\d\d \[", line) for line in headed)
    prefix = any(line.startswith("(") for line in headed)
    engine = "V0" if any("Pending:" in line for line in bare) else "V1" if any("Waiting:" in line for line in bare) else ""
    shape = ("process prefix" if prefix else "no prefix") if bracket else "0.7 and older"
    return ", ".join(part for part in (engine, shape) if part)


def parse(chunk: Chunk) -> Parsed:
    """Columns of the fact tables from one chunk of log; see `tracelens.formats.base.Parsed`."""
    split = framing.split_header(framing.clean(chunk.lines))
    split = split.with_columns(after=pl.col("stamp").forward_fill(), message=pl.col("message").fill_null(pl.col("text")))
    kinds = split.with_columns(kind=_kind())
    tables, issues = _facts(kinds)
    plain = kinds.filter(pl.col("kind").is_null() | pl.col("kind").is_in(_ALSO_EVENTS))
    headed = plain.filter(pl.col("level").is_not_null())
    events, access, unread = _bare_lines(plain.filter(pl.col("level").is_null() & pl.col("kind").is_null()))
    events = pl.concat([server_lines.log_events(headed), events])
    tables |= {
        "log_event": _stamped(events, kinds),
        "access_line": access,
        "server_setting": vllm_settings.settings(_config_lines(headed)),
        "request_text": _texts(kinds) if chunk.keep_text else pl.DataFrame(),
    }
    issues = pl.concat([issues, unread]).sort("line_no")
    return Parsed(
        {name: frame for name, frame in tables.items() if frame.height},
        issues,
        split.height - issues.height,
        split.filter(pl.col("stamp").is_not_null()).select("line_no", "stamp"),
    )


def _kind() -> pl.Expr:
    """Kind of each message, by the table of forms; the first row that fits wins."""
    kind = pl.lit(None, pl.String)
    for form in reversed(LINE_FORMS):
        fits = pl.col("message").str.starts_with(form.starts) if form.starts else pl.lit(True)
        if form.contains:
            fits = fits & pl.col("message").str.contains(form.contains, literal=True)
        kind = pl.when(fits).then(pl.lit(form.kind)).otherwise(kind)
    return kind


def _facts(kinds: pl.DataFrame) -> tuple[dict[str, pl.DataFrame], pl.DataFrame]:
    frames: dict[str, list[pl.DataFrame]] = {}
    issues = [issues_of(kinds.head(0), "")]
    groups = {str(key[0]): group for key, group in kinds.filter(pl.col("kind").is_in(list(_PARTS))).group_by("kind")}
    for kind, (table, read, needed) in _PARTS.items():
        if kind not in groups:
            continue
        read_rows = read(groups[kind])
        frames.setdefault(table, []).append(read_rows.drop_nulls(needed))
        if kind not in _LOOSE:
            bad = read_rows.filter(pl.col(needed).is_null())["line_no"]
            issues.append(issues_of(groups[kind].filter(pl.col("line_no").is_in(bad.implode())), f"{kind} line cut or changed"))
    joined = {table: pl.concat(parts, how="diagonal").sort("line_no") for table, parts in frames.items()}
    return joined, pl.concat(issues)


def _bare_lines(bare: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """Lines without a header: events, access lines, and those nobody understands."""
    is_access = bare["text"].str.contains(' HTTP/', literal=True)
    access = server_lines.access_lines(bare.filter(is_access))
    broken = access.filter(pl.col("status").is_null())["line_no"]
    judged = server_lines.headless(bare.filter(~is_access | pl.col("line_no").is_in(broken.implode())))
    unread = issues_of(judged.filter(pl.col("verdict").is_null()), "no vLLM header")
    return server_lines.headless_events(judged), access.drop_nulls("status"), unread


def _stamped(events: pl.DataFrame, kinds: pl.DataFrame) -> pl.DataFrame:
    """Give events without a stamp the last one before them, with no claim on its precision."""
    after = kinds.select("line_no", "after")
    return events.join(after, on="line_no", how="left").with_columns(pl.col("event_ts").fill_null(pl.col("after"))).drop("after").sort("line_no")


def _config_lines(headed: pl.DataFrame) -> pl.DataFrame:
    return headed.filter(vllm_settings.states_settings(pl.col("message"))).select("line_no", "message")


def _texts(kinds: pl.DataFrame) -> pl.DataFrame:
    """Prompts and outputs as logged, for --keep-text only."""
    message = pl.col("message")
    prompt = message.str.extract(r"^(?:Received request|Request) \S+(?:: | details: )prompt: (?s:(.*)), (?:params|prompt_token_ids|sampling_params|sampling params|prefix_pos): ?")
    output = message.str.extract(r"^Generated response \S+(?: \([^)]*\))?: output: (?s:(.*?))(?:, output_token_ids: (?:None|\[[\d, ]*\]))?, finish_reason: \w+$")
    wanted = kinds.filter(pl.col("kind").is_in(["received", "details", "generated"]))
    rows = wanted.select(
        "line_no",
        request_id=message.str.extract(r"^(?:Received request|Request|Generated response) (\S+?):? "),
        kind=pl.when(pl.col("kind") == "generated").then(pl.lit("output")).otherwise(pl.lit("prompt")),
        content=pl.coalesce(prompt, output),
    )
    return rows.drop_nulls("content")


FORMAT: Final = Format(
    name="vllm_log",
    title="vLLM server log",
    side=Side.SERVER,
    fills=("request_event", "engine_sample", "engine_step", "metric_sample", "access_line", "log_event", "server_setting", "request_text"),
    sniff=sniff,
    parse=parse,
    carried={"access_line": "logged_after_ts", "log_event": "event_ts"},
    defaults=vllm_settings.defaults,
    versions="0.6 to 0.33, V0 and V1 engine",
)
