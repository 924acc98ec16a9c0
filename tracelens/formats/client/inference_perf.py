"""Reports of inference-perf: every request (``per_request_lifecycle_metrics.json``), and the totals of a stage.

Read in inference-perf 0.7.  Instants of requests are seconds of a monotonic clock; the stage's report in YAML has the epoch.

What its numbers are
- ``chunk_times``: arrivals of messages with content; the first one is its TTFT.  ``output_token_times`` is made up from them where a
  message holds several tokens, and is not read.
- ``server_usage`` is the server's; ``output_tokens`` and ``input_tokens`` beside it are the client's tokenizer.  Of a failed request
  ``input_tokens`` is 0 and nothing is known.
- Failed requests lose their chunk times.  An error event inside a stream is a success here; the text of the response has it.
- When a request was meant to be sent is not kept per request; ``schedule_delay`` of the stage is the difference.
- After a retry ``start_time`` is still that of the first attempt.
"""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from tracelens.formats.base import Chunk, Claim, Clock, Format, Head, Parsed, Side, no_stamps
from tracelens.formats.client.bench_documents import documents_in
from tracelens.formats.client.inference_perf_rows import seen_of
from tracelens.formats.client.json_arrays import elements_in
from tracelens.formats.client.stage_reports import report_of
from tracelens.formats.client.tool_requests import doubted
from tracelens.formats.client.tool_summaries import Figure, nested, summary_frame
from tracelens.formats.client.tool_tables import tables_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

TOOL: Final = "inference-perf"
_REQUEST: Final = re.compile(
    r'\s*\[\s*\{\s*"start_time"\s*:\s*[\d.eE+]+\s*,\s*"end_time"\s*:\s*[\d.eE+]+\s*,\s*"(?:request|info)"\s*:'
)
_UNITS: Final = dict.fromkeys(
    ("request_latency", "time_to_first_token", "time_per_output_token", "inter_token_latency",
     "normalized_time_per_output_token", "schedule_delay", "send_duration", "benchmark_time_seconds"), "s",
)  # fmt: skip
_MEDIA: Final = ("image", "video", "audio")


def sniff(head: Head) -> Claim | None:
    """Claim an array of requests with two monotonic times, the totals of a stage, or its report in YAML."""
    begin = "\n".join(head.lines).lstrip("\ufeff")
    if _REQUEST.match(begin[:2000]):
        return Claim("every request", Clock.RELATIVE)
    if begin.lstrip().startswith("{") and '"load_summary"' in begin and '"successes"' in begin:
        return Claim("totals of a stage", Clock.NONE)
    if any(line.strip() == "request_performance:" for line in head.lines) and "run:" in head.lines:
        return Claim("report of a stage", Clock.NONE)
    return None


def parse(chunk: Chunk) -> Parsed:
    """Read requests, or totals: the file has one or the other."""
    first = next((text for text in chunk.lines["text"].to_list() if text and text.strip()), "")
    bare = first.lstrip("\ufeff \t")
    if bare.startswith("["):
        return _requests(chunk)
    if bare.startswith("{"):
        documents, issues = documents_in(chunk.lines, lambda document: "successes" in document)
        figures = [(place, each) for place, document in enumerate(documents, 1) for each in _stage(document)]
    else:
        figures, issues = report_of(chunk.lines)
    tables = {"client_summary": summary_frame(TOOL, figures)}
    return Parsed(tables, issues, chunk.lines.height - issues.height, no_stamps())


def _requests(chunk: Chunk) -> Parsed:
    seen, issues = elements_in(chunk.lines, partial(seen_of, keep_text=chunk.keep_text))
    tables = tables_of(doubted(seen), chunk)
    return Parsed(tables, issues, chunk.lines.height - issues.height, no_stamps())


def _stage(document: Mapping[str, Any]) -> Iterator[Figure]:
    """Numbers of a stage; media that no request had are left out."""
    for each in nested(document, _UNITS):
        if each.measured or not any(f".{word}." in f"{each.name}." for word in _MEDIA):
            yield each


FORMAT: Final = Format(
    name="inference_perf",
    title="report of inference-perf",
    side=Side.CLIENT,
    fills=(
        "client_request",
        "client_stream",
        "server_request",
        "client_summary",
        "request_text",
        "prompt_block",
    ),
    sniff=sniff,
    parse=parse,
    whole=True,
    versions="inference-perf 0.7",
    complete="Real files of 0.7. Its clock has no zero: only durations until it is matched.",
    record="inference-perf with report.request_lifecycle.per_request: true",
    sample="v0.7.0_completion_per_request.json",
)
