"""What a span says of one request, whatever file it came in.

vLLM emits one span ``llm_request`` per finished request (``--otlp-traces-endpoint``; V0 0.5.1 to 0.10.2, V1 from 0.10.2), and
from 0.16 spans of its start under other names.  Attributes are read in ``vllm/tracing`` and ``vllm/v1/engine/output_processor.py``
of 0.32 and ``vllm/engine/llm_engine.py`` of 0.9.1: seconds and tokens.

SGLang (``--enable-trace``) emits a root span per request, `` Req 1a2b3c4d`` with the attributes ``rid`` and ``module``, and below
it spans of stages (``python/sglang/srt/observability/req_time_stats.py``, 0.5).  Its ``time_in_model_prefill`` and
``time_in_model_inference`` begin when the API server has handed the request over, so they hold the queue: they are kept in
``other``, and queue and prefill are taken from the stages' spans where the same document has them.

Spans of gateways and client SDKs have none of these attributes: they are read over, and no request is made of them.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from tracelens.formats.json_lines import count, decode, dump, seconds, text_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

REQUEST_SPAN: Final = "llm_request"

DURATIONS: Final[Mapping[str, str]] = {
    "gen_ai.latency.time_in_queue": "queue_s",
    "gen_ai.latency.time_in_model_prefill": "prefill_s",
    "gen_ai.latency.time_in_model_decode": "decode_s",
    "gen_ai.latency.time_in_model_inference": "inference_s",
    "gen_ai.latency.time_to_first_token": "ttft_s",
    "gen_ai.latency.e2e": "e2e_s",
}
COUNTS: Final[Mapping[str, str]] = {
    "gen_ai.usage.prompt_tokens": "input_tokens",
    "gen_ai.usage.cached_tokens": "cached_input_tokens",
    "gen_ai.usage.completion_tokens": "output_tokens",
    "gen_ai.request.max_tokens": "max_tokens",
}
STAGES: Final[Mapping[str, str]] = {
    "prefill_waiting": "queue_s",
    "prefill_forward": "prefill_s",
    "vllm_queue": "queue_s",
    "vllm_prefill": "prefill_s",
    "vllm_decode": "decode_s",
}
"""Spans of single stages: SGLang's, and those of vLLM forks (vllm pull request 44402)."""

_FROM_DISPATCH: Final = ("gen_ai.latency.time_in_model_prefill", "gen_ai.latency.time_in_model_inference")
_REQUEST_ID: Final = "gen_ai.request.id"
_SEQUENCES: Final = ("gen_ai.request.n", "gen_ai.usage.num_sequences")
_FINISH_REASONS: Final = ("gen_ai.response.finish_reasons", "gen_ai.response.finish_reason")
_KEPT_APART: Final = frozenset((*DURATIONS, *COUNTS, _REQUEST_ID, *_SEQUENCES, *_FINISH_REASONS))
_ALSO_KEPT: Final = ("gen_ai.latency.", "gen_ai.request.", "gen_ai.usage.", "gen_ai.response.model")

_SCHEMA: Final[Mapping[str, Any]] = {
    "line_no": pl.Int64,
    **dict.fromkeys(
        ("request_id", "trace_id", "measured_by", "finish_reason", "service", "other"), pl.String
    ),
    "arrival_ts": pl.Int64,
    **dict.fromkeys(DURATIONS.values(), pl.Float64),
    **dict.fromkeys((*COUNTS.values(), "sequence_count"), pl.Int64),
}


@dataclass(frozen=True, slots=True)
class Span:
    """A span with plain attributes: start in microseconds since 1970, duration in seconds, trace id as 32 hex digits."""

    name: str | None
    trace_id: str | None
    start_us: int | None
    duration_s: float | None
    attributes: Mapping[str, Any]
    service: str | None = None

    @property
    def is_sglang(self) -> bool:
        """Whether it is SGLang's span of a whole request."""
        return "rid" in self.attributes and str(self.attributes.get("module", "")).startswith("sglang")

    @property
    def is_request(self) -> bool:
        """Whether an inference server measured a whole request with it."""
        if self.name == REQUEST_SPAN or self.is_sglang:
            return True
        return _REQUEST_ID in self.attributes and any(name in self.attributes for name in DURATIONS)


def requests_of(spans: Sequence[Span]) -> list[dict[str, Any]]:
    """Rows of `server_request` without ``line_no``, from the spans of one line or one document."""
    roots = [span for span in spans if span.is_request]
    stages = _stages(spans, roots) if any(span.name in STAGES for span in spans) else {}
    return [_request(root, stages.get(root.trace_id or "", {})) for root in roots]


def frame(rows: Iterable[Mapping[str, Any]]) -> pl.DataFrame:
    """Rows as a frame in the shape of `server_request`."""
    columns: dict[str, list[Any]] = {name: [] for name in _SCHEMA}
    for row in rows:
        for name, column in columns.items():
            column.append(row.get(name))
    return pl.DataFrame(columns, schema=dict(_SCHEMA)).with_columns(
        pl.col("arrival_ts").cast(pl.Datetime("us"))
    )


def _stages(spans: Sequence[Span], roots: Sequence[Span]) -> dict[str, dict[str, float]]:
    """Trace id to durations of its stages; only of traces with one request, and of stages that came once (no retraction)."""
    requests = Counter(root.trace_id for root in roots)
    named = [span for span in spans if span.name in STAGES]
    times = Counter((span.trace_id, STAGES[span.name or ""]) for span in named)
    found: dict[str, dict[str, float]] = {}
    for span in named:
        column = STAGES[span.name or ""]
        if span.trace_id is None or span.duration_s is None or requests[span.trace_id] != 1:
            continue
        if times[span.trace_id, column] == 1:
            found.setdefault(span.trace_id, {})[column] = span.duration_s
    return found


def _request(span: Span, stages: Mapping[str, float]) -> dict[str, Any]:
    found = span.attributes
    stated = {
        column: None if span.is_sglang and name in _FROM_DISPATCH else seconds(found.get(name))
        for name, column in DURATIONS.items()
    }
    if span.is_sglang and stated["e2e_s"] is None:
        stated["e2e_s"] = span.duration_s
    for column, duration_s in stages.items():
        stated[column] = duration_s if stated[column] is None else stated[column]
    return {
        "request_id": text_of(found.get(_REQUEST_ID)) or (text_of(found["rid"]) if span.is_sglang else None),
        "trace_id": span.trace_id,
        "measured_by": "span",
        "arrival_ts": span.start_us,
        **stated,
        **{column: count(found.get(name)) for name, column in COUNTS.items()},
        "sequence_count": next((count(found[name]) for name in _SEQUENCES if name in found), None),
        "finish_reason": next((_reason(found[name]) for name in _FINISH_REASONS if name in found), None),
        "service": span.service,
        "other": dump({name: value for name, value in found.items() if _is_other(name, span)}),
    }


def _is_other(name: str, span: Span) -> bool:
    if span.is_sglang and name in _FROM_DISPATCH:
        return True
    return name not in _KEPT_APART and name.startswith(_ALSO_KEPT)


def _reason(value: Any) -> str | None:
    """Return the first of the finish reasons: an array, a text, or (SGLang) a JSON array in a text."""
    if isinstance(value, str) and value.startswith("["):
        try:
            value = decode(value)
        except ValueError:
            return text_of(value)
    return text_of(value[0] if isinstance(value, list) and value else value)
