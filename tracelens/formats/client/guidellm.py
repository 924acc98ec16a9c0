"""Results of GuideLLM: ``benchmarks.json`` with every request, ``benchmarks.csv`` with totals only.

Read in GuideLLM 0.3.1 and 0.8.1, with the fields of 0.2 on.  Instants are seconds since 1970.  A file holds one benchmark per
rate or number of streams; what was sampled away (``--output-sampling`` up to 0.3) is not in it.

What its numbers are
- ``time_to_first_token_ms``: send to the first message with content, reasoning included.  ``first_request_iteration`` is the
  first line of the body, the role-only one included.
- ``targeted_start`` (``targeted_start_time`` up to 0.3): when the load pattern wanted it sent.
- ``time_per_output_token_ms`` is the whole latency over all tokens; ``inter_token_latency_ms`` leaves the TTFT out.
- ``request_id`` was never sent; ``response_id`` (0.5 and later) is the server's own.
- Tokens are the server's usage where it answered; of an answer that broke off they are counted messages.
- An error event inside a stream is an error here.  ``incomplete`` requests were cut by the end of the run.
"""

from __future__ import annotations

import re
from typing import Final

from tracelens.formats.base import Chunk, Claim, Clock, Format, Head, Parsed, Side, no_stamps
from tracelens.formats.client.client_tables import stamps_of
from tracelens.formats.client.guidellm_figures import csv_figures, figures_of, heading_of
from tracelens.formats.client.guidellm_rows import seen_in
from tracelens.formats.client.json_lists import peeled
from tracelens.formats.client.tool_summaries import summary_frame
from tracelens.formats.client.tool_tables import tables_of

TOOL: Final = "guidellm"
_HEAD_CHARS: Final = 60_000
_LIST: Final = re.compile(r'"(?:successful|errored|incomplete)"\s*:\s*\[(?=\s*\{)')
"""Where a list of requests begins; the metrics of the same names are objects."""
_MARKS: Final = (
    '"guidellm_version"',
    '"type_": "generative_',
    '"type_":"generative_',
    '"generative_benchmark',
)


def sniff(head: Head) -> Claim | None:
    """Claim an object of generative benchmarks, or the table of three heading rows."""
    if heading_of(head.first) is not None:
        return Claim("totals, one row per benchmark", Clock.NONE)
    if not head.first.lstrip("\ufeff \t").startswith("{"):
        return None
    begin = "\n".join(head.lines)[:_HEAD_CHARS]
    if '"benchmarks"' not in begin or not any(mark in begin for mark in _MARKS):
        return None
    return Claim("every request", Clock.UTC)


def parse(chunk: Chunk) -> Parsed:
    """Read the requests of every benchmark, numbered through from 1, and each benchmark's totals."""
    first = next((text for text in chunk.lines["text"].to_list() if text and text.strip()), "")
    if heading_of(first) is not None:
        figures, issues = csv_figures(chunk.lines)
        tables = {"client_summary": summary_frame(TOOL, figures)}
        return Parsed(tables, issues, chunk.lines.height - issues.height, no_stamps())
    found, issues = peeled(chunk.lines, _LIST, lambda document: isinstance(document.get("benchmarks"), list))
    totals = [pair for document in found.documents for pair in figures_of(document)]
    tables = tables_of(seen_in(found, chunk.keep_text), chunk)
    tables["client_summary"] = summary_frame(TOOL, totals)
    return Parsed(tables, issues, chunk.lines.height - issues.height, stamps_of(tables["client_request"]))


FORMAT: Final = Format(
    name="guidellm",
    title="result of GuideLLM",
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
    versions="GuideLLM 0.2 to 0.8",
    complete="Real files of 0.3.1 and 0.8.1; 0.4 to 0.6 by their field names; no YAML.",
    record="guidellm benchmark run --output-path guidellm.json",
    sample="v0.8.1_chat.json",
)
