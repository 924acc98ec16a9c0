"""From messages of a vLLM log, sorted by kind, to columns of the fact tables.

Every function takes ``line_no, stamp, error_s, process, level, message`` and gives frames in the shape of ``schemas/``.  A
number that a cut line may have shortened is not taken: each pattern ends behind the unit that follows the number.
"""

from __future__ import annotations

from typing import Final

import polars as pl

from tracelens.formats.server.distinct import behind, of_distinct, up_to
from tracelens.formats.server.quoting import STRING
from tracelens.formats.server.vllm_samples import exact

_PROMPT: Final = rf"^(?:{STRING}|None)"
_BEHIND_PROMPT: Final = (
    r"^, (?:prefix_pos: [^,]*,)?"
    r"(?:sampling params|sampling_params|params): ((?:(?:Sampling|Pooling|BeamSearch)Params\(|None)(?s:.*))$"
)
_GENERATED: Final = (
    rf"^\S+(?: \([^)]*\))?: output: (?:{STRING}|None), (?:output_token_ids: (?:\[(?P<listed>[^\]]*)\]|[^'\"]*), )?"
    r"finish_reason: (?P<reason>\w+)$"
)
_ENDED: Final = (
    r"^(?P<logged_id>\S+) (?P<how>aborted|failed)(?P<validation> validation)?(?: \((?P<why>[^)]*)\))?"
    r"(?: due to (?P<cause>(?s:.*?)))?(?:: (?P<text>(?s:.*?)))?\.?$"
)
_REASONS: Final = ("stop", "length", "abort", "error", "repetition", "None", "streaming_complete")
_CUT_REASONS: Final = sorted({reason[:end] for reason in _REASONS for end in range(1, len(reason))})


def _event(frame: pl.DataFrame, event: str, **columns: pl.Expr) -> pl.DataFrame:
    return frame.select(
        "line_no",
        "logged_id",
        request_id=pl.col("logged_id"),
        event=pl.lit(event),
        event_ts=pl.col("stamp"),
        error_s=pl.col("error_s"),
        process=pl.col("process"),
        **columns,
    )


def _rest(frame: pl.DataFrame, prefix: str) -> pl.DataFrame:
    return frame.with_columns(rest=pl.col("message").str.strip_prefix(prefix))


def received(frame: pl.DataFrame) -> pl.DataFrame:
    """``Received request ID: ...``: the request after chat template and tokenization, not its arrival."""
    cut = _rest(frame, "Received request ")
    end = pl.col("rest").str.find(": ", literal=True)
    cut = cut.with_columns(logged_id=up_to(pl.col("rest"), end), params=behind(pl.col("rest"), end))
    is_id = (pl.col("logged_id") != "") & ~pl.col("logged_id").str.contains(r"\s")
    cut = cut.with_columns(logged_id=pl.when(is_id).then("logged_id"))
    old = cut["rest"].str.contains(": prompt: ", literal=True)
    return pl.concat([_received(cut.filter(~old)), _received_with_prompt(cut.filter(old).drop("params"))])


def _received(frame: pl.DataFrame, **columns: pl.Expr) -> pl.DataFrame:
    """Rows of requests by their ``params``; most requests of a log ask for the same."""
    text = pl.col("text").str.replace_all(STRING, "''")
    asked = {
        "max_tokens": text.str.extract(r"\bmax_tokens=(\d+)[,)]").cast(pl.Int64, strict=False),
        "sequence_count": text.str.extract(r"Params\(n=(\d+)[,)]").cast(pl.Int64, strict=False),
    }
    said = pl.concat([frame, of_distinct(frame["params"], asked)], how="horizontal")
    none = pl.lit(None, pl.Int64)
    counts = {"input_tokens": none, "input_char_count": none} | columns
    return _event(said, "received", **{name: pl.col(name) for name in asked}, **counts)


def _received_with_prompt(frame: pl.DataFrame) -> pl.DataFrame:
    """Up to 0.11.0 the prompt is on the line and may hold anything: the parameters stand behind its closing quote.

    The prompt is cut off without a group to capture, in a fifth of the time: the regex engine then runs as an automaton.
    """
    parts = pl.col("rest").str.splitn(": prompt: ", 2).struct
    frame = frame.with_columns(id=parts.field("field_0"), tail=parts.field("field_1"))
    frame = frame.with_columns(behind=pl.col("tail").str.replace(_PROMPT, ""))
    is_whole = ~pl.col("id").str.contains(r"\s") & (pl.col("id") != "") & (pl.col("behind") != pl.col("tail"))
    frame = frame.with_columns(params=pl.when(is_whole).then(pl.col("behind").str.extract(_BEHIND_PROMPT)))
    prompt_chars = pl.col("tail").str.len_chars().cast(pl.Int64) - pl.col("behind").str.len_chars() - 2
    has_prompt = pl.col("params").is_not_null() & ~pl.col("tail").str.starts_with("None")
    bare = pl.col("params").str.replace_all(STRING, "''")
    listed = bare.str.extract(r"prompt[_ ]token[_ ]ids: \[([^\]]*)\]")
    tokens = pl.when(listed.str.contains(r"\d")).then(listed.str.count_matches(",", literal=True) + 1)
    return _received(
        frame,
        input_tokens=tokens.cast(pl.Int64),
        input_char_count=pl.when(has_prompt).then(prompt_chars),
    )


def added(frame: pl.DataFrame) -> pl.DataFrame:
    """``Added request ID.``: sent to the engine; from 0.14 with the internal id."""
    return _bare_id(frame, "Added request ", "added")


def finished(frame: pl.DataFrame) -> pl.DataFrame:
    """``Finished request ID.`` of the V0 engine, also written when it failed."""
    return _bare_id(frame, "Finished request ", "finished")


def _bare_id(frame: pl.DataFrame, prefix: str, event: str) -> pl.DataFrame:
    rest = pl.col("rest")
    whole = rest.str.ends_with(".") & ~rest.str.contains(" ", literal=True) & (rest.str.len_bytes() > 1)
    cut = _rest(frame, prefix).with_columns(logged_id=pl.when(whole).then(rest.str.strip_suffix(".")))
    return _event(cut, event)


def aborted(frame: pl.DataFrame) -> pl.DataFrame:
    """``Aborted request ID.`` and, from 0.10.1, ``Aborted request(s) ID,ID.``: one row per id."""
    ids = pl.col("message").str.extract(r"^Aborted request(?:\(s\))? (\S+)\.$").str.split(",")
    return _event(frame.with_columns(logged_id=ids).explode("logged_id", empty_as_null=True), "aborted")


def ended(frame: pl.DataFrame) -> pl.DataFrame:
    """``Request ID aborted.`` and ``Request ID failed (why): text.``, V1."""
    cut = _rest(frame, "Request ").with_columns(pl.col("rest").str.extract_groups(_ENDED).struct.unnest())
    why = pl.concat_str(
        [pl.col(name) for name in ("why", "cause", "text")], separator=": ", ignore_nulls=True
    )
    failed = cut.filter(pl.col("how").ne_missing("aborted"))
    detail = pl.when(why != "").then(why.str.slice(0, 400))
    gone = _event(cut.filter(pl.col("how") == "aborted"), "aborted", detail=pl.lit(None, pl.String))
    return pl.concat([gone, _event(failed, "failed", detail=detail)])


def generated(frame: pl.DataFrame) -> pl.DataFrame:
    """``Generated response ID ...`` (--enable-log-outputs): the end, or with "streaming delta" one piece of it.

    Each delta gives a `first_token` row; loading keeps the first of a request.
    """
    cut = _rest(frame, "Generated response ").with_columns(
        logged_id=pl.col("rest").str.extract(r"^(\S+?)(?: \([^)]*\))?: ")
    )
    delta = pl.col("rest").str.contains(r"^\S+ \(streaming delta\)")
    groups = pl.col("rest").str.extract_groups(_GENERATED)
    reason, listed = groups.struct.field("reason"), groups.struct.field("listed")
    reason = pl.when(~reason.is_in(["None", "streaming_complete", *_CUT_REASONS])).then(reason)
    tokens = (
        pl.when(listed.str.contains(r"\d"))
        .then(listed.str.count_matches(",", literal=True) + 1)
        .cast(pl.Int64)
    )
    end = _event(cut.filter(~delta), "finished", finish_reason=reason, output_tokens=tokens)
    first = _event(
        cut.filter(delta),
        "first_token",
        finish_reason=pl.lit(None, pl.String),
        output_tokens=pl.lit(None, pl.Int64),
    )
    return pl.concat([end, first])


def preempted(frame: pl.DataFrame) -> pl.DataFrame:
    """V0's warning, written for the first and then every 50th preemption only."""
    detail = pl.col("message").str.extract(r"(total_num_cumulative_preemption=\d+)")
    named = frame.with_columns(
        logged_id=pl.col("message").str.extract(r"^Sequence group (\S+) is preempted by ")
    )
    return _event(named, "preempted", detail=detail)


_RUST: Final = (
    r"^\w+\{request_id=(?P<logged_id>[^\s}]+)(?: engine_request_id=(?P<engine_id>[^\s}]+))?[^}]*\}: .*\bprompt_tokens=(?P<prompt>\d+)"
    r" output_tokens=(?:(?P<output>\d+) )?(?:finish_reason=\"(?P<reason>\w+)\")?"
)


def rust_finished(frame: pl.DataFrame) -> pl.DataFrame:
    """The Rust front end's only request line, at the end (vLLM 0.22 and later)."""
    split = frame.with_columns(pl.col("message").str.extract_groups(_RUST).struct.unnest())
    return _event(
        split,
        "finished",
        finish_reason=pl.col("reason"),
        engine_id=pl.col("engine_id"),
        input_tokens=pl.col("prompt").cast(pl.Int64, strict=False),
        output_tokens=pl.col("output").cast(pl.Int64, strict=False),
    )


def grpc_completed(frame: pl.DataFrame) -> pl.DataFrame:
    """The Rust front end's line at the end of a gRPC request, with its duration (vLLM 0.22 and later)."""
    elapsed_ms = pl.col("message").str.extract(r" completed elapsed_ms=(\d+)$").cast(pl.Float64, strict=False)
    return frame.select(
        "line_no",
        request_id=pl.col("message").str.extract(r"^grpc_inference\{request_id=([^\s}]+)"),
        measured_by=pl.lit("log"),
        e2e_s=exact(elapsed_ms / 1000),
    )
