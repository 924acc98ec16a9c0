"""Results of llmperf: ``..._individual_responses.json`` with every request, ``..._summary.json`` with totals.

Read in ray-project/llmperf as it was left in 2024 (its source and the results in its repository).  Requests stand in the order of
completion; there are no times of day and no ids.

What its numbers are
- ``ttft_s``: send to the first message with content, connecting included; 0 when nothing came.
- ``end_to_end_latency_s``: 0 when the request failed.
- ``inter_token_latency_s`` is no gap between tokens: it is the whole latency, TTFT included, over the tokens.
- Tokens are the client's count, always with a Llama tokenizer; whatever model answered.
- An error event inside a stream is an error here, with the event's code.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tracelens.formats.base import Chunk, Claim, Clock, Format, Head, Parsed, Side, no_stamps
from tracelens.formats.client.bench_documents import documents_in
from tracelens.formats.client.client_outcomes import Ending, error_text, http_status_of
from tracelens.formats.client.json_arrays import elements_in
from tracelens.formats.client.tool_summaries import Figure, figure, statistic_of, summary_frame, unit_of
from tracelens.formats.client.tool_tables import Seen, tables_of
from tracelens.formats.json_lines import count, dump, number, seconds

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

TOOL: Final = "llmperf"
_HEAD_CHARS: Final = 20_000
_RESULTS: Final = "results_"
_LOAD: Final = (
    "mean_input_tokens", "stddev_input_tokens", "mean_output_tokens", "stddev_output_tokens", "num_concurrent_requests",
)  # fmt: skip


def sniff(head: Head) -> Claim | None:
    """Claim an array of responses by its latencies, or a summary by its flattened results."""
    begin = "\n".join(head.lines)[:_HEAD_CHARS].lstrip("\ufeff \t\n")
    if begin.startswith("[") and '"ttft_s"' in begin and '"end_to_end_latency_s"' in begin:
        return Claim("every request", Clock.NONE)
    if begin.startswith("{") and '"results_ttft_s_' in begin and '"num_concurrent_requests"' in begin:
        return Claim("totals", Clock.NONE)
    return None


def parse(chunk: Chunk) -> Parsed:
    """Read requests, or totals: the file has one or the other."""
    first = next((text for text in chunk.lines["text"].to_list() if text and text.strip()), "")
    if first.lstrip("\ufeff \t").startswith("["):
        seen, issues = elements_in(chunk.lines, _seen)
        tables = tables_of(seen, chunk)
    else:
        documents, issues = documents_in(
            chunk.lines, lambda document: f"{_RESULTS}num_requests_started" in document
        )
        figures = [(place, each) for place, document in enumerate(documents, 1) for each in _totals(document)]
        tables = {"client_summary": summary_frame(TOOL, figures)}
    return Parsed(tables, issues, chunk.lines.height - issues.height, no_stamps())


def _seen(place: int, entry: Mapping[str, Any]) -> Seen | None:
    if "ttft_s" not in entry or "end_to_end_latency_s" not in entry:
        return None
    ttft_s, whole_s = (seconds(entry[key]) or None for key in ("ttft_s", "end_to_end_latency_s"))
    http_status, error = http_status_of(entry.get("error_code")), error_text(entry.get("error_msg"))
    failed = entry.get("error_code") is not None or error is not None
    output_tokens = count(entry.get("number_output_tokens")) if not failed else None
    row = {
        "line_no": place,
        "client_ttft_s": ttft_s,
        "client_reported_ttft_s": ttft_s,
        "client_ttft_kind": None if ttft_s is None else "content",
        "client_e2e_s": whole_s,
        "streamed": True if ttft_s is not None else None,
        "status": Ending(http_status, "error" if failed else "ok" if whole_s else None, error).status(),
        "http_status": http_status,
        "error": error,
        "input_tokens": count(entry.get("number_input_tokens")) or None,
        "output_tokens": output_tokens,
        "output_tokens_basis": None if output_tokens is None else "client",
        "other": dump(
            {key: entry[key] for key in ("request_start_time",) if number(entry.get(key)) is not None}
        ),
    }
    return Seen(row)


def _totals(document: Mapping[str, Any]) -> Iterator[Figure]:
    """Results, whose keys were flattened: ``results_ttft_s_quantiles_p50``; and the load that was asked for."""
    for key, value in document.items():
        if number(value) is None or isinstance(value, bool):
            continue
        if key in _LOAD:
            yield figure(key, value, None, None, None)
        elif key.startswith(_RESULTS):
            name, _, word = key.removeprefix(_RESULTS).rpartition("_")
            statistic = statistic_of(word) if name else None
            told = name.removesuffix("_quantiles") if statistic else key.removeprefix(_RESULTS)
            yield figure(told, value, statistic, unit_of(told), None)


FORMAT: Final = Format(
    name="llmperf",
    title="result of llmperf",
    side=Side.CLIENT,
    fills=("client_request", "client_stream", "server_request", "client_summary", "request_text"),
    sniff=sniff,
    parse=parse,
    whole=True,
    versions="llmperf 2.0 (2024)",
    complete="From its sources; the samples are hand-made.",
    record="token_benchmark_ray.py --results-dir results",
    sample="handmade_individual_responses.json",
)
