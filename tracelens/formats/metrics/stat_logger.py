"""Lines of a stat-logger plugin of vLLM: one JSON object per finished request, schema ``tracelens.vllm.finished/1``.

vLLM has the entry point (``vllm.stat_logger_plugins``, 0.11.1 and later; the request's id in it since 0.20) and no form
of its own: the plugin writes `FinishedRequestStats` under vLLM's names.  `iteration_wall` is when the last output was
seen, so the arrival lies `e2e_latency` before it, both on the API server's wall clock.  Queue, prefill, decode and
inference times are the engine's monotonic ones and stay as they are: no TTFT is made of two clocks.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import polars as pl

from tracelens.formats.base import Chunk, Claim, Clock, Format, Head, Parsed, Side
from tracelens.formats.json_lines import count, dump, objects_in, read_objects, refusals, seconds, text_of
from tracelens.formats.notes import is_note
from tracelens.formats.stamps import instant_on

SCHEMA: Final = "tracelens.vllm.finished/"
_LONGEST_S: Final = 1e9
NO_REQUEST: Final = "no finished request in it"

_SECONDS: Final = {
    "queue_s": "queued_time",
    "prefill_s": "prefill_time",
    "decode_s": "decode_time",
    "inference_s": "inference_time",
    "e2e_s": "e2e_latency",
}
_COUNTS: Final = {
    "input_tokens": "num_prompt_tokens",
    "cached_input_tokens": "num_cached_tokens",
    "output_tokens": "num_generation_tokens",
    "max_tokens": "max_tokens_param",
    "preemption_count": "num_preemptions",
}
_KNOWN: Final = frozenset(
    (*_SECONDS.values(), *_COUNTS.values(), "schema", "vllm_version", "request_id", "finish_reason", "iteration_wall")
)  # fmt: skip
_ROW: Final[Mapping[str, Any]] = {
    "line_no": pl.Int64,
    **dict.fromkeys(("request_id", "measured_by", "finish_reason", "other"), pl.String),
    "arrival_ts": pl.Int64,
    **dict.fromkeys(_SECONDS, pl.Float64),
    **dict.fromkeys(_COUNTS, pl.Int64),
}


def is_finished(values: Mapping[str, Any]) -> bool:
    """Whether an object is a finished request in vLLM's own names."""
    schema = values.get("schema")
    return isinstance(schema, str) and schema.startswith(SCHEMA) and "e2e_latency" in values


def sniff(head: Head) -> Claim | None:
    """Claim lines of JSON objects most of which name the schema."""
    found = objects_in(head.lines)
    if found is None or sum(map(is_finished, found)) * 2 <= len(found):
        return None
    version = text_of(next(each for each in found if is_finished(each)).get("vllm_version"))
    return Claim("vLLM stat logger" + (f", vLLM {version}" if version else ""), Clock.UTC)


def parse(chunk: Chunk) -> Parsed:
    """Read one row of `server_request` per line."""
    objects = read_objects(chunk.lines)
    rows: list[dict[str, Any]] = []
    settings: list[dict[str, Any]] = []
    empty: dict[int, str] = {}
    for line_no, values in objects:
        if not is_finished(values):
            empty[line_no] = NO_REQUEST
            continue
        rows.append({"line_no": line_no, **_request(values)})
        # The version is the same in every line; the file's first one tells it, wherever the file is cut.
        if line_no == 1 and (version := text_of(values.get("vllm_version"))):
            settings.append({"line_no": 1, "key": "vllm_version", "value": version, "basis": "stated"})
    issues = pl.concat([objects.issues, refusals(chunk.lines, empty)]).sort("line_no")
    requests = pl.DataFrame(
        {name: [row.get(name) for row in rows] for name in _ROW}, schema=dict(_ROW)
    ).with_columns(pl.col("arrival_ts").cast(pl.Datetime("us")))
    tables = {"server_request": requests, "server_setting": _settings(settings)}
    stamps = requests.select("line_no", stamp="arrival_ts").drop_nulls("stamp")
    return Parsed(tables, issues, chunk.lines.height - issues.height, stamps)


def _settings(rows: list[dict[str, Any]]) -> pl.DataFrame:
    return pl.DataFrame(
        rows, schema={"line_no": pl.Int64, "key": pl.String, "value": pl.String, "basis": pl.String}
    )


def _request(values: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "measured_by": "log",
        "request_id": text_of(values.get("request_id")),
        "finish_reason": text_of(values.get("finish_reason")),
        "arrival_ts": _arrival(values),
        **{column: seconds(values.get(key)) for column, key in _SECONDS.items()},
        **{column: count(values.get(key)) for column, key in _COUNTS.items()},
        "other": dump(
            {key: value for key, value in values.items() if key not in _KNOWN and is_note(key, value)}
        ),
    }


def _arrival(values: Mapping[str, Any]) -> int | None:
    """Microseconds since 1970; None where one of the two is missing."""
    ended_us = instant_on(Clock.UTC, values.get("iteration_wall"))
    e2e_s = seconds(values.get("e2e_latency"))
    if ended_us is None or e2e_s is None or e2e_s > _LONGEST_S:
        return None
    return ended_us - round(e2e_s * 1e6)


FORMAT: Final = Format(
    name="stat_logger",
    title="vLLM stat-logger plugin, one JSON object per finished request",
    side=Side.SERVER,
    fills=("server_request", "server_setting"),
    sniff=sniff,
    parse=parse,
    versions="tracelens.vllm.finished/1; vLLM 0.11.1 and later",
    complete="A form of our own under vLLM's names; no TTFT, which would take two clocks.",
    record="a plugin of the entry point vllm.stat_logger_plugins that writes FinishedRequestStats as JSON lines",
    sample="finished.jsonl",
)
