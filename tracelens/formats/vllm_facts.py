"""From messages of a vLLM log, sorted by kind, to columns of the fact tables.

Every function takes ``line_no, stamp, process, level, message`` and gives frames in the shape of ``schemas/``.  A
number that a cut line may have shortened is not taken: each pattern ends behind the unit that follows the number.
"""

from __future__ import annotations

from typing import Final

import polars as pl

STAMP_ERROR_S: Final = 1.0
"""vLLM logs whole seconds, rounded down: what happened lies in [stamp, stamp + 1 s)."""

_ID_END: Final = r"^(\S+?): "
_PARAMS: Final = r"^(?s:.*)(?:sampling params|sampling_params|params): ((?:Sampling|Pooling|BeamSearch)Params\((?s:.*))$"
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
_PART: Final = r"[A-Za-z][A-Za-z /()-]*?[:=] ?-?[\d.]+"


def _event(frame: pl.DataFrame, event: str, **columns: pl.Expr) -> pl.DataFrame:
    return frame.select(
        "line_no",
        "logged_id",
        request_id=pl.col("logged_id"),
        event=pl.lit(event),
        event_ts=pl.col("stamp"),
        error_s=pl.when(pl.col("stamp").is_not_null()).then(STAMP_ERROR_S),
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
    frame = frame.with_columns(params=pl.col("rest").str.extract(_PARAMS), prompt=pl.col("rest").str.extract(_PROMPT))
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
    why = pl.concat_str([pl.col(name) for name in ("why", "cause", "text")], separator=": ", ignore_nulls=True)
    failed = cut.filter(pl.col("how").ne_missing("aborted"))
    detail = pl.when(why != "").then(why.str.slice(0, 400))
    gone = _event(cut.filter(pl.col("how") == "aborted"), "aborted", detail=pl.lit(None, pl.String))
    return pl.concat([gone, _event(failed, "failed", detail=detail)])


def generated(frame: pl.DataFrame) -> pl.DataFrame:
    """``Generated response ID ...`` (--enable-log-outputs): the end, or with "streaming delta" one piece of it.

    Each delta gives a `first_token` row; loading keeps the first of a request.
    """
    cut = _rest(frame, "Generated response ").with_columns(logged_id=pl.col("rest").str.extract(r"^(\S+?)(?: \(|: )"))
    delta = pl.col("rest").str.contains(r"^\S+ \(streaming delta\)")
    reason = pl.col("rest").str.extract(r"finish_reason: (\w+)$")
    reason = pl.when(~reason.is_in(["None", "streaming_complete"])).then(reason)
    listed = pl.col("rest").str.extract(r"output_token_ids: \[([^\]]*)\], finish_reason: \w+$")
    tokens = pl.when(listed.str.contains(r"\d")).then(listed.str.count_matches(",", literal=True) + 1).cast(pl.Int64)
    end = _event(cut.filter(~delta), "finished", finish_reason=reason, output_tokens=tokens)
    first = _event(
        cut.filter(delta), "first_token", finish_reason=pl.lit(None, pl.String), output_tokens=pl.lit(None, pl.Int64)
    )
    return pl.concat([end, first])


def preempted(frame: pl.DataFrame) -> pl.DataFrame:
    """V0's warning, written for the first and then every 50th preemption only."""
    detail = pl.col("message").str.extract(r"(total_num_cumulative_preemption=\d+)")
    named = frame.with_columns(logged_id=pl.col("message").str.extract(r"^Sequence group (\S+) is preempted by "))
    return _event(named, "preempted", detail=detail)


def _number(pattern: str) -> pl.Expr:
    return pl.col("message").str.extract(pattern).cast(pl.Float64, strict=False)


def _count(pattern: str) -> pl.Expr:
    return pl.col("message").str.extract(pattern).cast(pl.Int64, strict=False)


_SAMPLE_PARTS: Final[dict[str, pl.Expr]] = {
    "prompt_tps": _number(r"Avg prompt (?:throughput|tput): ([\d.]+) tok(?:en)?s/s"),
    "generation_tps": _number(r"(?:Avg generation (?:throughput|tput)|^Throughput): ([\d.]+) tok(?:en)?s/s"),
    "running_count": _count(r"Running: (\d+)(?: reqs|,)"),
    "waiting_count": _count(r"(?:Waiting|Pending): (\d+)(?: reqs|,)"),
    "deferred_count": _count(r"Deferred: (\d+) reqs"),
    "swapped_count": _count(r"Swapped: (\d+) reqs"),
    "preemption_count": _count(r"Preemptions: (\d+)(?: reqs)?(?:,|\.?$)"),
    "kv_cache_usage_ratio": _number(r"[\w+ ]+ KV cache (?:usage|used): ([\d.]+)%") / 100,
    "cpu_kv_cache_usage_ratio": _number(r"KV cache usage: [\d.]+%, CPU KV cache usage: ([\d.]+)%") / 100,
    "prefix_cache_hit_ratio": _number(r"\bPrefix cache hit rate: ([\d.]+)%") / 100,
    "external_prefix_cache_hit_ratio": _number(r"External prefix cache hit rate: ([\d.]+)%") / 100,
    "mm_cache_hit_ratio": _number(r"MM cache hit rate: ([\d.]+)%") / 100,
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
        error_s=pl.when(pl.col("stamp").is_not_null()).then(STAMP_ERROR_S),
        engine_index=pl.when(engines.is_null()).then(index.fill_null(0)),
        engine_count=engines.fill_null(1),
        other=_as_json(pl.col("message").str.replace_all(_KNOWN_PARTS, "")),
        **_SAMPLE_PARTS,
    )


def _as_json(rest: pl.Expr) -> pl.Expr:
    """``Corrupted: 3 reqs, New thing: 1.5`` as ``{"Corrupted":3,"New thing":1.5}``; NULL where nothing is left."""
    quoted = pl.element().str.replace(r'^([A-Za-z][A-Za-z /()-]*?)[:=] ?(-?\d+(?:\.\d+)?).*$', '"$1":$2')
    pairs = rest.str.extract_all(_PART).list.eval(quoted.filter(quoted.str.starts_with('"')))
    return pl.when(pairs.list.len() > 0).then(pl.concat_str([pl.lit("{"), pairs.list.join(","), pl.lit("}")]))


def steps(frame: pl.DataFrame) -> pl.DataFrame:
    """One engine iteration (--enable-logging-iteration-details)."""
    split = frame.with_columns(pl.col("message").str.extract_groups(_STEP).struct.unnest())
    counts = ("step_index", "context_requests", "context_tokens", "generation_requests", "generation_tokens")
    return split.select(
        "line_no",
        *[pl.col(name).cast(pl.Int64, strict=False) for name in counts],
        step_ts=pl.col("stamp"),
        error_s=pl.when(pl.col("stamp").is_not_null()).then(STAMP_ERROR_S),
        engine_index=pl.col("engine_index").cast(pl.Int32, strict=False).fill_null(0),
        elapsed_s=pl.col("elapsed_ms").cast(pl.Float64, strict=False) / 1000,
        kv_cache_usage_ratio=pl.col("kv").cast(pl.Float64, strict=False) / 100,
        dummy=pl.col("dummy").is_not_null(),
    )


def companions(frame: pl.DataFrame) -> pl.DataFrame:
    """Lines beside the stats line (speculative decoding, KV transfer): each number a row of `metric_sample`."""
    title = pl.col("message").str.extract(r"^([A-Za-z ]+?): ")
    parts = pl.col("message").str.replace(r"^(?:SpecDecoding|Speculative|KV Transfer|EC Transfer|DiffusionDecoding) metrics: ", "")
    one = frame.select("line_no", "stamp", title=title, part=parts.str.extract_all(_PART)).explode("part", empty_as_null=False)
    return one.select(
        "line_no",
        sample_ts=pl.col("stamp"),
        name=pl.col("title") + ": " + pl.col("part").str.extract(r"^(.*?)[:=]"),
        measured=pl.col("part").str.extract(r"([\d.]+)$").cast(pl.Float64, strict=False),
    ).drop_nulls("measured")
