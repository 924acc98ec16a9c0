"""Result files of ``sglang.bench_serving`` (``sglang.benchmark.serving``), also when it was run against vLLM.

Read in SGLang 0.5.23; a Rust client writes the same keys.  One JSON object per run and line; with ``--output-details`` it has
parallel arrays, one entry per request, in the order of sending.  There are no times of day and no ids in it.

What its numbers are
- ``ttfts``: the first message with content (the role-only one does not count).  Each request has a TCP connection of its own, and
  TTFT includes making it.  With ``--disable-stream`` it is the whole latency: then nobody saw a first token.
- ``itls``: gaps between messages with content.
- ``output_lens``: the length that was asked for, unless the stream carried usage, for which the client does not ask.
- An error event inside a stream is a success here, of the length that was asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import polars as pl

from tracelens.formats.base import Chunk, Claim, Clock, Format, Head, Parsed, Side, no_stamps
from tracelens.formats.client.bench_documents import documents_in
from tracelens.formats.client.bench_rows import Run, streams_of, texts_of
from tracelens.formats.client.tool_summaries import summary_frame, totals
from tracelens.formats.json_lines import text_of

if TYPE_CHECKING:
    from collections.abc import Mapping

TOOL: Final = "sglang bench"
_HEAD_CHARS: Final = 6_000
_UNITS: Final = {"duration": "s"}


def sniff(head: Head) -> Claim | None:
    """Claim an object with a backend and a mean end-to-end latency near its beginning, and no date as vLLM's has."""
    begin = head.first.lstrip("\ufeff \t")[:_HEAD_CHARS]
    if not begin.startswith("{") or '"mean_e2e_latency_ms"' not in begin or '"backend"' not in begin:
        return None
    if '"date"' in begin:
        return None
    return Claim("every request" if '"ttfts"' in "\n".join(head.lines) else "totals only", Clock.NONE)


def parse(chunk: Chunk) -> Parsed:
    """Read the requests of every run in the file, numbered through from 1, and each run's totals."""
    documents, issues = documents_in(chunk.lines, _is_run)
    runs, figures, row_count = [], [], 0
    for place, document in enumerate(documents, 1):
        runs.append(Run.of_sglang(document, row_count))
        row_count += runs[-1].row_count
        figures += [(place, each) for each in totals(document, _UNITS, text_of(document.get("tag")))]
    tables = {"client_summary": summary_frame(TOOL, figures)}
    if runs:
        tables["client_request"] = pl.concat([run.requests() for run in runs])
        tables["client_stream"] = pl.concat([streams_of(run) for run in runs])
    if runs and chunk.keep_text:
        tables["request_text"] = pl.concat([texts_of(run) for run in runs])
    return Parsed(tables, issues, chunk.lines.height - issues.height, no_stamps())


def _is_run(document: Mapping[str, Any]) -> bool:
    return "mean_e2e_latency_ms" in document or "ttfts" in document


FORMAT: Final = Format(
    name="sglang_bench",
    title="result of sglang.bench_serving",
    side=Side.CLIENT,
    fills=("client_request", "client_stream", "client_summary", "request_text"),
    sniff=sniff,
    parse=parse,
    whole=True,
    versions="SGLang 0.5.23",
    complete="Real files of 0.5.23. They hold no time of sending, so requests are in order but not placed.",
    record="python -m sglang.bench_serving --output-details --output-file bench.jsonl",
    sample="v0.5.23_chat_details.jsonl",
)
