"""vLLM server log, as every version since 0.1 writes it (V0 and V1 engine, Rust front end), however it was collected.

    (APIServer pid=7) INFO 11-29 12:46:54 [request_logger.py:65] Received request chatcmpl-1: params: SamplingParams(n=1, ...
    INFO:     10.0.0.7:47428 - "POST /v1/chat/completions HTTP/1.1" 200 OK

The log's own stamps have one second and no year; a wrapper's or a JSON formatter's are better and are used where they are
there.  A line is matched by how its message begins, never by file and line of the code that wrote it, since those move
with every release.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

import polars as pl

from tracelens.formats import framing, records, server_lines, vllm_facts, vllm_settings, wrappers
from tracelens.formats.base import Chunk, Claim, Clock, Format, Head, Parsed, Side, issues_of, no_issues
from tracelens.formats.rejoin import is_open, rejoin
from tracelens.formats.vllm_lines import LINE_FORMS

_PERHAPS: Final = re.compile(rf"\b(?:{framing.LEVELS})\b|throughput: |tput: |\d\d-\d\d \d\d:\d\d:\d\d ")
_STATS: Final = re.compile(
    r"Avg (?:prompt|generation) (?:throughput|tput): |[Tt]hroughput: [\d.]+ tokens/s, Running: "
)
_ANSI: Final = re.compile(framing.ANSI)
_MIN_SHARE: Final = 0.05
"""Share of the lines seen that must be vLLM's: a report that quotes one line is not a log."""

_PARTS: Final[dict[str, tuple[str, Callable[[pl.DataFrame], pl.DataFrame], str]]] = {
    # kind of message: table, reader, column that is NULL where the line was not understood
    "received": ("request_event", vllm_facts.received, "logged_id"),
    "added": ("request_event", vllm_facts.added, "logged_id"),
    "finished": ("request_event", vllm_facts.finished, "logged_id"),
    "rust_finished": ("request_event", vllm_facts.rust_finished, "logged_id"),
    "aborted": ("request_event", vllm_facts.aborted, "logged_id"),
    "generated": ("request_event", vllm_facts.generated, "logged_id"),
    "ended": ("request_event", vllm_facts.ended, "logged_id"),
    "preempted": ("request_event", vllm_facts.preempted, "logged_id"),
    "stats": ("engine_sample", vllm_facts.stats, "running_count"),
    "step": ("engine_step", vllm_facts.steps, "elapsed_s"),
    "companion": ("metric_sample", vllm_facts.companions, "name"),
}
_ALSO_EVENTS: Final = ("WARNING", "ERROR", "CRITICAL")
"""Levels whose lines are an event of the server's life as well, whatever else they say."""

_LOOSE: Final = ("companion",)
"""Kinds whose lines may hold any number of values, none included."""

_USER_TEXT: Final = r"\b(prompt: |output: |JSON body: )(?s:.*)$"
"""Where the text of a prompt or an answer begins in a line that was cut: it is not kept unless --keep-text says so."""

_STAMP_OF: Final = {Clock.UTC: "outer_ts", Clock.LOCAL: "dated", Clock.YEARLESS: "inner"}
_PIPE_ERROR_S: Final = 0.01
"""A wrapper's stamp is the time a line was read from the pipe, a few milliseconds after it was written."""


def sniff(head: Head) -> Claim | None:
    """Claim a file in which enough lines are vLLM's own."""
    lines = [_ANSI.sub("", line) for line in (*head.lines, *head.sampled) if line.strip()]
    if not any(_PERHAPS.search(line) for line in lines):
        return None
    names = wrappers.detect(lines)
    frame = pl.DataFrame(
        {"line_no": range(1, len(lines) + 1), "text": lines}, schema={"line_no": pl.Int64, "text": pl.String}
    )
    seen = _kinds(records.read(frame, names))
    own = (
        pl.col("inner").is_not_null()
        | pl.col("kind").is_not_null()
        | pl.col("origin").str.contains("vllm", literal=True)
    )
    mine = seen.filter(own.fill_null(value=False))
    if mine.height < max(1, _MIN_SHARE * len(lines)):
        return None
    clock = _clock(mine)
    return Claim(
        _variant(lines, mine, names, clock), clock, {"wrappers": names, "implies": _implied(lines, mine)}
    )


def _clock(mine: pl.DataFrame) -> Clock:
    headed = mine.filter(pl.col("level").is_not_null())
    for clock in (Clock.UTC, Clock.LOCAL, Clock.YEARLESS):
        known = headed[_STAMP_OF[clock]].count()
        if known and known >= headed.height / 2:
            return clock
    return Clock.NONE


def _variant(lines: list[str], mine: pl.DataFrame, names: tuple[str, ...], clock: Clock) -> str:
    text = "\n".join(lines[:400])
    engine = (
        "V0"
        if "Pending: " in text
        else "V1"
        if re.search(r"Waiting: \d+ reqs", text)
        else "Rust"
        if "RustFrontend" in text
        else ""
    )
    if mine["inner"].null_count() == mine.height:
        shape = (
            "JSON records"
            if any(line.lstrip().startswith("{") for line in lines)
            else "no headers"
            if clock is Clock.NONE
            else "reformatted"
        )
    elif not re.search(r"\d\d:\d\d:\d\d \[", text):
        shape = "0.7 and older"
    else:
        shape = "process prefix" if mine["process"].count() else "no prefix"
    return ", ".join(part for part in (engine, shape, *names) if part)


def _implied(lines: list[str], mine: pl.DataFrame) -> dict[str, str]:
    """What the dialect says of the version, for the defaults where no line states it."""
    implied: dict[str, str] = {}
    if any("Pending: " in line for line in lines):
        implied["engine_version"] = "V0"
    if mine["inner"].count() and not any(re.search(r"\d\d:\d\d:\d\d \[", line) for line in lines):
        implied["vllm_version_below"] = "0.8.0"
    return implied


def may_cut(tail: bytes) -> bool:
    """Whether a chunk may end after these lines: not inside a record that goes on below."""
    return not wrappers.goes_on(tail.rstrip(b"\n").rpartition(b"\n")[2]) and not is_open(tail)


def _kinds(read: pl.DataFrame) -> pl.DataFrame:
    """Add ``kind`` by the table of forms, the first row that fits wins; mend stats lines that were broken."""
    whole = read.with_columns(message=pl.col("message").fill_null(pl.col("text")))
    kind = pl.lit(None, pl.String)
    for form in reversed(LINE_FORMS):
        fits = pl.col("message").str.starts_with(form.starts) if form.starts else pl.lit(True)
        if form.contains:
            fits = fits & pl.col("message").str.contains(form.contains, literal=True)
        kind = pl.when(fits).then(pl.lit(form.kind)).otherwise(kind)
    return rejoin(whole.with_columns(kind=kind))


def parse(chunk: Chunk) -> Parsed:
    """Columns of the fact tables from one chunk of log; see `tracelens.formats.base.Parsed`."""
    kinds = _stamped(
        _kinds(records.read(chunk.lines, chunk.claim.settings.get("wrappers", ()))), chunk.claim.clock
    )
    tables, bad = _facts(kinds)
    plain = kinds.filter(pl.col("kind").is_null() | pl.col("level").is_in(_ALSO_EVENTS))
    headed = plain.filter(pl.col("level").is_not_null())
    events, access, unread = _bare_lines(plain.filter(pl.col("level").is_null() & pl.col("kind").is_null()))
    tables |= {
        "log_event": _placed(pl.concat([server_lines.log_events(headed), events], how="diagonal"), kinds),
        "access_line": access,
        "server_setting": vllm_settings.settings(_config_lines(headed)),
        "request_text": _texts(kinds) if chunk.keep_text else pl.DataFrame(),
    }
    issues = _issues(chunk.lines, kinds, pl.concat([bad, unread]))
    if not chunk.keep_text:
        issues = issues.with_columns(pl.col("excerpt").str.replace(_USER_TEXT, "${1}..."))
    return Parsed(
        {name: frame for name, frame in tables.items() if frame.height},
        issues,
        chunk.lines.height - issues.height,
        kinds.filter(pl.col("stamp").is_not_null()).select("line_no", "stamp"),
    )


def _stamped(kinds: pl.DataFrame, clock: Clock) -> pl.DataFrame:
    """Choose each record's stamp by what the file as a whole has, and the last one before a record without."""
    name = _STAMP_OF.get(clock)
    stamp = pl.col(name) if name else pl.lit(None, pl.Datetime("us"))
    whole_second = pl.col("inner").is_not_null() if clock is Clock.LOCAL else pl.lit(clock is Clock.YEARLESS)
    finest = _PIPE_ERROR_S if clock is Clock.UTC else 0.001
    error = pl.when(whole_second).then(1.0).otherwise(finest)
    return kinds.with_columns(
        stamp=stamp, error_s=pl.when(stamp.is_not_null()).then(error), after=stamp.forward_fill()
    )


def _placed(events: pl.DataFrame, kinds: pl.DataFrame) -> pl.DataFrame:
    """Give events without a stamp the last one before them, with no claim on its precision."""
    after = kinds.select("line_no", "after").unique("line_no", keep="last")
    joined = events.join(after, on="line_no", how="left")
    return (
        joined.with_columns(pl.col("event_ts").fill_null(pl.col("after")))
        .drop("after")
        .sort("line_no", maintain_order=True)
    )


def _facts(kinds: pl.DataFrame) -> tuple[dict[str, pl.DataFrame], pl.DataFrame]:
    """Fact tables, and the records (``line_no, reason``) whose kind is known and whose text is not understood."""
    frames: dict[str, list[pl.DataFrame]] = {}
    bad = [no_issues().select("line_no", "reason")]
    groups = {
        str(key[0]): group
        for key, group in kinds.filter(pl.col("kind").is_in(list(_PARTS))).group_by(
            "kind", maintain_order=True
        )
    }
    for kind, (table, read, needed) in _PARTS.items():
        if kind not in groups:
            continue
        rows = read(groups[kind])
        frames.setdefault(table, []).append(rows.drop_nulls(needed))
        if kind not in _LOOSE:
            bad.append(
                rows.filter(pl.col(needed).is_null()).select(
                    "line_no", reason=pl.lit(f"{kind} line cut or changed")
                )
            )
    joined = {
        table: pl.concat(parts, how="diagonal").sort("line_no", maintain_order=True)
        for table, parts in frames.items()
    }
    return joined, pl.concat(bad)


def _bare_lines(bare: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """Records without a header: events, access lines, and (``line_no, reason``) those nobody understands."""
    is_access = bare["text"].str.contains(" HTTP/", literal=True)
    access = server_lines.access_lines(bare.filter(is_access))
    broken = access.filter(pl.col("status").is_null())["line_no"]
    judged = server_lines.headless(bare.filter(~is_access | pl.col("line_no").is_in(broken.implode())))
    unread = judged.filter(pl.col("verdict").is_null()).select("line_no", reason=pl.lit("no vLLM header"))
    return server_lines.headless_events(judged), access.drop_nulls("status"), unread


def _issues(lines: pl.DataFrame, kinds: pl.DataFrame, bad: pl.DataFrame) -> pl.DataFrame:
    """Physical lines of records that were not understood, less those that another record shares and was understood."""
    if not bad.height:
        return no_issues()
    reasons = bad.unique("line_no", keep="first", maintain_order=True)
    shared = kinds.group_by("line_no").agg(pl.len().alias("records"), pl.col("last_line_no").max())
    counted = reasons.join(bad.group_by("line_no").agg(pl.len().alias("bad")), on="line_no").join(
        shared, on="line_no"
    )
    wholly = counted.filter(pl.col("bad") >= pl.col("records"))
    spread = wholly.with_columns(line_no=pl.int_ranges("line_no", pl.col("last_line_no") + 1)).explode(
        "line_no", empty_as_null=True
    )
    texts = lines.join(spread.select("line_no", "reason"), on="line_no", how="inner", maintain_order="left")
    return issues_of(texts, pl.col("reason"))


def _config_lines(headed: pl.DataFrame) -> pl.DataFrame:
    return headed.filter(vllm_settings.states_settings(pl.col("message"))).select("line_no", "message")


def _texts(kinds: pl.DataFrame) -> pl.DataFrame:
    """Prompts and outputs as logged, for --keep-text only."""
    message = pl.col("message")
    prompt = message.str.extract(
        r"^(?:Received request|Request) \S+(?:: | details: )prompt: (?s:(.*)), (?:params|prompt_token_ids|sampling_params|sampling params|prefix_pos): ?"
    )
    output = message.str.extract(
        r"^Generated response \S+(?: \([^)]*\))?: output: (?s:(.*?))(?:, output_token_ids: (?:None|\[[\d, ]*\]))?, finish_reason: \w+$"
    )
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
    fills=(
        "request_event",
        "engine_sample",
        "engine_step",
        "metric_sample",
        "access_line",
        "log_event",
        "server_setting",
        "request_text",
    ),
    sniff=sniff,
    parse=parse,
    may_cut=may_cut,
    carried={"access_line": "logged_after_ts", "log_event": "event_ts"},
    defaults=vllm_settings.defaults,
    versions="0.1 to 0.33, V0 and V1 engine, Rust front end",
)
