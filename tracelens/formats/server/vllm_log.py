"""vLLM server log, as every version since 0.1 writes it (V0 and V1 engine, Rust front end), however it was collected.

    (APIServer pid=7) INFO 11-29 12:46:54 [request_logger.py:65] Received request chatcmpl-1: params: SamplingParams(n=1, ...
    INFO:     10.0.0.7:47428 - "POST /v1/chat/completions HTTP/1.1" 200 OK

The log's own stamps have one second and no year; a wrapper's or a JSON formatter's are better and are used where they are
there.  A line is matched by how its message begins, never by file and line of the code that wrote it, since those move
with every release.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import polars as pl

from tracelens.formats.base import Chunk, Claim, Clock, Format, Parsed, Side, issues_of, no_issues
from tracelens.formats.prompt_blocks import prompt_blocks
from tracelens.formats.server import (
    framing,
    hard_wraps,
    json_records,
    quoting,
    records,
    server_lines,
    vllm_clocks,
    vllm_facts,
    vllm_samples,
    vllm_settings,
    wrappers,
)
from tracelens.formats.server.access import access_lines
from tracelens.formats.server.rejoin import is_open
from tracelens.formats.server.vllm_kinds import kinds_of
from tracelens.formats.server.vllm_sniff import sniff

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
    "grpc": ("server_request", vllm_facts.grpc_completed, "e2e_s"),
    "stats": ("engine_sample", vllm_samples.stats, "running_count"),
    "step": ("engine_step", vllm_samples.steps, "elapsed_s"),
    "companion": ("metric_sample", vllm_samples.companions, "name"),
}
_ALSO_EVENTS: Final = ("WARNING", "ERROR", "CRITICAL")
"""Levels whose lines are an event of the server's life as well, whatever else they say."""

_LOOSE: Final = ("companion",)
"""Kinds whose lines may hold any number of values, none included."""

_QUOTED: Final = "text of a request whose line was cut or broken"
_PROMPT_TEXT: Final = r"^(?:Received request|Request) \S+(?:: | details: )prompt: (?s:(.*)), (?:params|prompt_token_ids|sampling_params|sampling params|prefix_pos): ?"

_ID_WITHIN: Final = 300
"""Characters in which the id of a request ends."""
_BEHIND_PROMPT: Final = (
    ", params: ",
    ", prompt_token_ids: ",
    ", sampling params: ",
    ", sampling_params: ",
    ", prefix_pos: ",
)

_USER_TEXT: Final = r"\b(prompt: |output: |JSON body: )(?s:.*)$"
"""Where the text of a prompt or an answer begins in a line that was cut: it is not kept unless --keep-text says so."""


def may_cut(tail: bytes, claim: Claim) -> bool:
    """Whether a chunk may end after these lines: not inside a record that goes on below."""
    lines = tail.removesuffix(b"\n").split(b"\n")
    columns = claim.settings.get("columns")
    if (columns and hard_wraps.is_open(lines[-1], columns)) or is_open(lines):
        return False
    if quoting.is_open(lines, claim.settings):
        return False
    return not wrappers.goes_on(lines) and not json_records.goes_on(lines)


def parse(chunk: Chunk) -> Parsed:
    """Columns of the fact tables from one chunk of log; see `tracelens.formats.base.Parsed`."""
    settings, clock = chunk.claim.settings, chunk.claim.clock
    lines = framing.without_cut_end(chunk.lines) if chunk.is_open else chunk.lines
    kinds = kinds_of(records.read(lines, settings), bare=settings.get("bare", True))
    kinds = vllm_clocks.stamped(kinds, clock, settings)
    tables, bad = _facts(kinds)
    is_preemption = pl.col("kind").eq_missing(pl.lit("preempted"))
    plain = kinds.filter(pl.col("kind").is_null() | pl.col("level").is_in(_ALSO_EVENTS) | is_preemption)
    headed = plain.filter(pl.col("level").is_not_null() | is_preemption)
    events, access, unread = _bare_lines(
        plain.filter(pl.col("level").is_null() & pl.col("kind").is_null() & ~pl.col("is_quoted"))
    )
    quoted = kinds.filter("is_quoted").select("line_no", reason=pl.lit(_QUOTED))
    if clock is not Clock.YEARLESS:
        events = events.with_columns(
            event_ts=pl.lit(None, pl.Datetime("us")), error_s=pl.lit(None, pl.Float64)
        )
    tables |= {
        "log_event": _placed(pl.concat([server_lines.log_events(headed), events], how="diagonal"), kinds),
        "access_line": access,
        "server_setting": vllm_settings.settings(_config_lines(headed)),
        "request_text": _texts(kinds) if chunk.keep_text else pl.DataFrame(),
        "prompt_block": prompt_blocks(_prompts(kinds), chunk.prompt_key)
        if chunk.prompt_key
        else pl.DataFrame(),
    }
    issues = _issues(chunk.lines, kinds, pl.concat([bad, unread, quoted]))
    if not chunk.keep_text:
        shown = pl.col("excerpt").str.replace(_USER_TEXT, "${1}...")
        issues = issues.with_columns(
            excerpt=pl.when(pl.col("reason") == _QUOTED).then(pl.lit("...")).otherwise(shown)
        )
    return Parsed(
        {name: frame for name, frame in tables.items() if frame.height},
        issues,
        chunk.lines.height - issues.height,
        kinds.filter(pl.col("stamp").is_not_null()).select("line_no", "stamp"),
        vllm_clocks.steps_between(kinds),
    )


def _placed(events: pl.DataFrame, kinds: pl.DataFrame) -> pl.DataFrame:
    """Give events without a stamp their line's, or the last one before them with no claim on its precision."""
    after = kinds.select("line_no", "after", own_s="error_s").unique("line_no", keep="last")
    joined = events.join(after, on="line_no", how="left")
    is_new = pl.col("event_ts").is_null()
    return (
        joined.with_columns(
            event_ts=pl.col("event_ts").fill_null(pl.col("after")),
            error_s=pl.when(is_new).then("own_s").otherwise("error_s"),
        )
        .drop("after", "own_s")
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
    access = access_lines(bare.filter(is_access))
    broken = access.filter(pl.col("status").is_null())["line_no"]
    judged = server_lines.headless(bare.filter(~is_access | pl.col("line_no").is_in(broken.implode())))
    unread = judged.filter(pl.col("verdict").is_null()).select("line_no", reason=pl.lit("no vLLM header"))
    return server_lines.headless_events(judged), access.drop_nulls("status"), unread


def _issues(lines: pl.DataFrame, kinds: pl.DataFrame, bad: pl.DataFrame) -> pl.DataFrame:
    """Physical lines of records that were not understood, less those that another record shares and was understood."""
    if not bad.height:
        return no_issues()
    reasons = bad.unique("line_no", keep="first", maintain_order=True)
    shared = kinds.group_by("line_no").agg(pl.len().alias("records"), pl.col("more_lines").explode())
    counted = reasons.join(bad.group_by("line_no").agg(pl.len().alias("bad")), on="line_no").join(
        shared, on="line_no"
    )
    wholly = counted.filter(pl.col("bad") >= pl.col("records"))
    spread = wholly.with_columns(
        line_no=pl.concat_list("line_no", pl.col("more_lines").list.drop_nulls())
    ).explode("line_no", empty_as_null=True)
    texts = lines.join(spread.select("line_no", "reason"), on="line_no", how="inner", maintain_order="left")
    return issues_of(texts, pl.col("reason"))


def _config_lines(headed: pl.DataFrame) -> pl.DataFrame:
    if headed["message"].str.contains("\n", literal=True).any():
        headed = headed.with_columns(pl.col("message").str.split("\n")).explode(
            "message", empty_as_null=False
        )
    return headed.filter(vllm_settings.states_settings(pl.col("message"))).select("line_no", "message")


def _texts(kinds: pl.DataFrame) -> pl.DataFrame:
    """Prompts and outputs as logged, for --keep-text only."""
    message = pl.col("message")
    prompt = message.str.extract(_PROMPT_TEXT)
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


def _prompts(kinds: pl.DataFrame) -> pl.DataFrame:
    """Prompts as logged (Python repr without its first quote), and their token ids; for fingerprints only."""
    message = pl.col("message")
    wanted = kinds.filter(
        pl.col("kind").is_in(["received", "details"]) & message.str.contains("prompt: ", literal=True)
    )
    # The first thing that may stand behind a prompt ends it: one that quotes it is cut short, and no regex runs over megabytes.
    begin = message.str.find("prompt: ", literal=True) + len("prompt: ")
    end = pl.min_horizontal(message.str.find(behind, literal=True) for behind in _BEHIND_PROMPT)
    cut = wanted.with_columns(text=message.cast(pl.Binary).bin.slice(begin, end - begin).cast(pl.String))
    return cut.select(
        "line_no",
        request_id=message.str.head(_ID_WITHIN).str.extract(r"^(?:Received request|Request) (\S+?):? "),
        text=pl.when(pl.col("text") != "None").then(pl.col("text").str.slice(1)),
        ids=message.str.extract(r"prompt_token_ids: \[([^\]]*)\]"),
    )


FORMAT: Final = Format(
    name="vllm_log",
    title="vLLM server log",
    side=Side.SERVER,
    fills=(
        "request_event",
        "server_request",
        "engine_sample",
        "engine_step",
        "metric_sample",
        "access_line",
        "log_event",
        "server_setting",
        "request_text",
        "prompt_block",
    ),
    sniff=sniff,
    parse=parse,
    may_cut=may_cut,
    carried={"access_line": "logged_after_ts", "log_event": "event_ts"},
    defaults=vllm_settings.defaults,
    versions="0.1 to 0.33, V0 and V1 engine, Rust front end",
    complete="Real logs of 0.2 to 0.32, every line form of 0.1 to 0.33. Prompts and outputs leave lengths only.",
    record="vllm serve ... 2>&1 | tee server.log; kubectl logs --timestamps POD > server.log",
    sample="v0.17-0.30_v1.log",
)
