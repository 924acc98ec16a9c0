"""From messages of a vLLM log, sorted by kind, to columns of the fact tables.

Every function takes ``line_no, stamp, error_s, process, level, message`` and gives frames in the shape of ``schemas/``.  A
number that a cut line may have shortened is not taken: each pattern ends behind the unit that follows the number.
"""

from __future__ import annotations

from typing import Final

import polars as pl

_ID_END: Final = r"^(\S+?): "
_PARAMS: Final = (
    r"^(?s:.*)(?:sampling params|sampling_params|params): ((?:Sampling|Pooling|BeamSearch)Params\((?s:.*))$"
)
_PROMPT: Final = r"^\S+?: prompt: ((?s:.*)), (?:prefix_pos: [^,]*,)?(?:sampling params|sampling_params|params): (?:Sampling|Pooling|BeamSearch|None)"
_ENDED: Final = (
    r"^(?P<logged_id>\S+) (?P<how>aborted|failed)(?P<validation> validation)?(?: \((?P<why>[^)]*)\))?"
    r"(?: due to (?P<cause>(?s:.*?)))?(?:: (?P<text>(?s:.*?)))?\.?$"
)
_STEP: Final = (
    r"^(?:Engine (?P<engine_index>\d+): )?Iteration\((?P<step_index>\d+)\): (?P<context_requests>\d+) context requests, "
    r"(?P<context_tokens>\d+) context tokens, (?P<generation_requests>\d+) generation requests, "
    r"(?P<generation_tokens>\d+) generation tokens, iteration elapsed time: (?P<elapsed_ms>[\d.]+) ms"
    r"(?P<dummy> \(dummy\))?(?:, \w+ KV cache usage: (?P<kv>[\d.]+)%)?"
)
_RATE: Final = r"[\d.]+ [TG][FB]/s/\w+"
_NUMBER: Final = r"-?\d[\d.]*(?:[eE][+-]?\d+)?"
_NAME: Final = r"[A-Za-z][A-Za-z0-9 /()_-]*?"
_PART: Final = rf"{_NAME}[:=] ?{_NUMBER}\b"
_UNIT_TO_COME: Final = r"(?:Corrupted|KV fetch): \d+$"
"""Parts that a unit ends: without it the line was cut, perhaps inside the number."""

_TOKENS: Final = r"tok(?:en)?s/s"
_STATS_BEGIN: Final = rf"^(?:Engine \d+: |\d+ Engines Aggregated: )?(?:Avg prompt (?:throughput|tput)|Throughput): [\d.]+ {_TOKENS}, "
STATS_WHOLE: Final = rf"{_STATS_BEGIN}(?:(?:{_NAME}[:=] ?{_NUMBER}(?:%| {_TOKENS}| [a-z]+(?: [a-z]+)*)?|\d+ in progress|\d+ completed waiting)(?:, |[.,]? *$))+$"
"""A whole stats line and nothing else: what a line without a header, or one inside another text, must be."""

_KV_FETCH: Final = r"KV fetch: (\d+) waiting to start, (\d+) in progress, (\d+) completed waiting"
_KV_FETCH_NAMED: Final = (
    "KV fetch waiting to start: ${1}, KV fetch in progress: ${2}, KV fetch completed waiting: ${3}"
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
    cut = _rest(frame, "Received request ").with_columns(logged_id=pl.col("rest").str.extract(_ID_END))
    old = cut["rest"].str.contains(": prompt: ", literal=True)
    return pl.concat([_received(cut.filter(~old), pl.col("rest")), _received_with_prompt(cut.filter(old))])


def _received(frame: pl.DataFrame, params: pl.Expr, **columns: pl.Expr) -> pl.DataFrame:
    taken = {
        "max_tokens": params.str.extract(r"\bmax_tokens=(\d+)[,)]").cast(pl.Int64, strict=False),
        "sequence_count": params.str.extract(r"Params\(n=(\d+)[,)]").cast(pl.Int64, strict=False),
        "input_tokens": pl.lit(None, pl.Int64),
        "input_char_count": pl.lit(None, pl.Int64),
    }
    return _event(frame, "received", **(taken | columns))


def _received_with_prompt(frame: pl.DataFrame) -> pl.DataFrame:
    """Up to 0.11.0 the prompt is on the line and may hold anything: the parameters are found from the right."""
    frame = frame.with_columns(
        params=pl.col("rest").str.extract(_PARAMS), prompt=pl.col("rest").str.extract(_PROMPT)
    )
    listed = pl.col("params").str.extract(r"prompt[_ ]token[_ ]ids: \[([^\]]*)\]")
    tokens = pl.when(listed.str.contains(r"\d")).then(listed.str.count_matches(",", literal=True) + 1)
    return _received(
        frame,
        pl.col("params"),
        input_tokens=tokens.cast(pl.Int64),
        input_char_count=(pl.col("prompt").str.len_chars().cast(pl.Int64) - 2).clip(lower_bound=0),
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
    reason = pl.col("rest").str.extract(r"finish_reason: (\w+)$")
    reason = pl.when(~reason.is_in(["None", "streaming_complete", *_CUT_REASONS])).then(reason)
    listed = pl.col("rest").str.extract(r"output_token_ids: \[([^\]]*)\], finish_reason: \w+$")
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
        detail="engine id " + pl.col("engine_id"),
        input_tokens=pl.col("prompt").cast(pl.Int64, strict=False),
        output_tokens=pl.col("output").cast(pl.Int64, strict=False),
    )


def _number(pattern: str) -> pl.Expr:
    return pl.col("message").str.extract(pattern).cast(pl.Float64, strict=False)


def _ratio(pattern: str) -> pl.Expr:
    return _exact(_number(pattern) / 100)


def _exact(quotient: pl.Expr) -> pl.Expr:
    """The double nearest to the decimal number: Polars multiplies with 1/100 where a column is longer than one row."""
    return quotient.round(9)


def _count(pattern: str) -> pl.Expr:
    return pl.col("message").str.extract(pattern).cast(pl.Int64, strict=False)


_SAMPLE_PARTS: Final[dict[str, pl.Expr]] = {
    "prompt_tps": _number(r"Avg prompt (?:throughput|tput): ([\d.]+) tok(?:en)?s/s"),
    "generation_tps": _number(r"(?:Avg generation (?:throughput|tput)|^Throughput): ([\d.]+) tok(?:en)?s/s"),
    "running_count": _count(r"Running: (\d+)(?: reqs|,)"),
    "waiting_count": _count(r"(?:Waiting|Pending): (\d+)(?: reqs|,)"),
    "deferred_count": _count(r"Deferred: (\d+) reqs"),
    "swapped_count": _count(r"Swapped: (\d+) reqs"),
    "preemption_count": _count(r"Preemptions: (\d+)(?: reqs)?,"),
    "kv_cache_usage_ratio": _ratio(r"[\w+ ]+ KV cache (?:usage|used): ([\d.]+)%"),
    "cpu_kv_cache_usage_ratio": _ratio(r"KV cache usage: [\d.]+%, CPU KV cache usage: ([\d.]+)%"),
    "prefix_cache_hit_ratio": _ratio(r"\bPrefix cache hit rate: ([\d.]+)%"),
    "external_prefix_cache_hit_ratio": _ratio(r"External prefix cache hit rate: ([\d.]+)%"),
    "mm_cache_hit_ratio": _ratio(r"MM cache hit rate: ([\d.]+)%"),
}

_KNOWN_PARTS: Final = (
    r"(?:^Engine \d+: |^\d+ Engines Aggregated: |Avg (?:prompt|generation) (?:throughput|tput): [\d.]+ tok(?:en)?s/s|"
    r"^Throughput: [\d.]+ tokens/s|(?:Reqs )?Running: \d+(?: reqs)?|(?:Waiting|Pending|Deferred|Swapped|Preemptions): \d+(?: reqs)?|"
    r"[\w+]+ KV cache (?:usage|used): [\d.]+%|(?:External prefix|Prefix|MM) cache hit rate: [\d.]+%)(?:, |\.?$)?"
)


def stats(frame: pl.DataFrame) -> pl.DataFrame:
    """The engine's stats line; parts that no column holds are kept as JSON in ``other``."""
    index = pl.col("message").str.extract(r"^Engine (\d+): ").cast(pl.Int32, strict=False)
    engines = pl.col("message").str.extract(r"^(\d+) Engines Aggregated: ").cast(pl.Int32, strict=False)
    return frame.select(
        "line_no",
        "process",
        "level",
        sample_ts=pl.col("stamp"),
        error_s=pl.col("error_s"),
        engine_index=pl.when(engines.is_null()).then(index.fill_null(0)),
        engine_count=engines.fill_null(1),
        other=_as_json(
            pl.col("message").str.replace(_KV_FETCH, _KV_FETCH_NAMED).str.replace_all(_KNOWN_PARTS, "")
        ),
        **_SAMPLE_PARTS,
    )


def _as_json(rest: pl.Expr) -> pl.Expr:
    """``Corrupted: 3 reqs, New thing: 1.5`` as ``{"Corrupted":3,"New thing":1.5}``; NULL where nothing is left."""
    number = r"(-?)0*(\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)"
    quoted = pl.element().str.replace(rf"^({_NAME})[:=] ?{number}$", '"${1}":${2}${3}')
    parts = rest.str.replace(_UNIT_TO_COME, "").str.extract_all(_PART)
    pairs = parts.list.eval(quoted.filter(quoted.str.starts_with('"')))
    return pl.when(pairs.list.len() > 0).then(pl.concat_str([pl.lit("{"), pairs.list.join(","), pl.lit("}")]))


def steps(frame: pl.DataFrame) -> pl.DataFrame:
    """One engine iteration (--enable-logging-iteration-details)."""
    split = frame.with_columns(pl.col("message").str.extract_groups(_STEP).struct.unnest())
    counts = ("step_index", "context_requests", "context_tokens", "generation_requests", "generation_tokens")
    return split.select(
        "line_no",
        *[pl.col(name).cast(pl.Int64, strict=False) for name in counts],
        step_ts=pl.col("stamp"),
        error_s=pl.col("error_s"),
        engine_index=pl.col("engine_index").cast(pl.Int32, strict=False).fill_null(0),
        elapsed_s=_exact(pl.col("elapsed_ms").cast(pl.Float64, strict=False) / 1000),
        kv_cache_usage_ratio=_exact(pl.col("kv").cast(pl.Float64, strict=False) / 100),
        dummy=pl.col("dummy").is_not_null(),
    )


def companions(frame: pl.DataFrame) -> pl.DataFrame:
    """Lines beside the stats line (speculative decoding, KV transfer): each number a row of `metric_sample`.

    Numbers of a list (``Per-position acceptance rate: 0.8, 0.5``) have their position, from 0, as label.
    """
    title = pl.col("message").str.extract(r"^(?:Engine \d+: )?([A-Za-z ]+?): ")
    parts = pl.col("message").str.replace(r"^(?:Engine \d+: )?(?:[A-Za-z ]+ metrics|MFU): ", "")
    found = pl.concat_list(
        parts.str.extract_all(rf"{_PART}(?:, {_NUMBER}\b)*"), pl.col("message").str.extract_all(_RATE)
    )
    one = frame.select("line_no", "stamp", title=title, part=found).explode("part", empty_as_null=False)
    part = pl.col("part")
    listed = pl.coalesce(
        part.str.extract(rf"[:=] ?((?:(?:, )?{_NUMBER})+)$"), part.str.extract(r"^([\d.]+) ")
    ).str.split(", ")
    one = one.with_columns(measured=listed, position=pl.int_ranges(0, listed.list.len()))
    one = one.with_columns(many=pl.col("measured").list.len() > 1).explode(
        "measured", "position", empty_as_null=False
    )
    return one.select(
        "line_no",
        sample_ts=pl.col("stamp"),
        name=pl.col("title")
        + ": "
        + pl.coalesce(part.str.extract(r"^(.*?)[:=]"), part.str.extract(r"^[\d.]+ (\S+)$")),
        labels=pl.when("many").then(
            pl.lit('{"position":"') + pl.col("position").cast(pl.String) + pl.lit('"}')
        ),
        measured=pl.col("measured").cast(pl.Float64, strict=False),
    ).drop_nulls("measured")
