"""Result files of ``vllm bench serve`` and its ancestor ``benchmark_serving.py``: parallel arrays, one entry per request.

Read in vLLM 0.4 to 0.32.  One JSON object on one line; with ``--append-result`` several of them; a sweep writes them
pretty-printed, or as an array.  The arrays are in the order of sending, and row i was sent with an id that ends in i:
`client_request.position`.

What their numbers stop at
- ``ttfts``: the first message with a choice.  On chat endpoints of 0.7 and later that is the role-only message, and
  ``itls[0]`` is the gap from it to the first content, often 0.01 ms; 1.3 s were seen (vllm issue 15106); a keep-alive comment makes the tool lose the message.  Up to 0.6 and on
  completions it is the first text.  0.0 means that nothing came.
- ``itls``: gaps between messages, which may hold several tokens each.  Where their sums contradict the file's own
  ``mean_tpot_ms`` somebody has shortened them, and no end is taken from them.
- ``latencies`` (0.30 and later): send to the last message.  0.0 means that it failed.
- ``start_times`` (0.15 and later): seconds of a monotonic clock.  ``queue_times`` (0.30): the wait for the client's own limit.
- ``output_lens``: the server's usage since ``vllm bench serve`` (an answer without usage is tokenized again, which the
  file does not say), the client's count before.  Failed rows have 0.
"""

from __future__ import annotations

import re
from typing import Final

import polars as pl

from tracelens.formats.base import Chunk, Claim, Clock, Format, Head, Parsed, Side, no_stamps
from tracelens.formats.client.bench_documents import documents_in
from tracelens.formats.client.bench_rows import Run, streams_of, texts_of
from tracelens.formats.client.tool_summaries import summary_frame, totals
from tracelens.formats.json_lines import text_of

_DATE: Final = re.compile(r'"date"\s*:\s*"\d{8}-\d{6}"')
_HEAD_CHARS: Final = 20_000


def sniff(head: Head) -> Claim | None:
    """Claim a JSON object (or an array of them) with a date, a backend and a number of prompts near its beginning."""
    if not head.first.lstrip("\ufeff \t").startswith(("{", "[")):
        return None
    text = "\n".join(head.lines)
    begin = text[:_HEAD_CHARS]
    if (
        not _DATE.search(begin)
        or '"num_prompts"' not in begin
        or not ('"backend"' in begin or '"endpoint_type"' in begin)
    ):
        return None
    return Claim(
        _variant(text), Clock.NONE if head.complete and '"start_times"' not in text else Clock.RELATIVE
    )


def _variant(text: str) -> str:
    kind = re.search(r'"(?:endpoint_type|backend)"\s*:\s*"([\w-]{1,40})"', text)
    name = kind[1] if kind else "endpoint not said"
    if '"ttfts"' in text or '"input_lens"' in text:
        return name
    kept = "latencies" if '"latencies"' in text else "totals"
    return f"{name}, not detailed: {kept} only"


def parse(chunk: Chunk) -> Parsed:
    """Read the requests of every run in the file; rows are numbered through, from 1."""
    documents, issues = documents_in(chunk.lines, lambda document: "num_prompts" in document)
    requests, streams, texts, figures = [], [], [], []
    row_count = 0
    for place, document in enumerate(documents, 1):
        figures += [
            (place, each) for each in totals(document, {"duration": "s"}, text_of(document.get("label")))
        ]
        run = Run.of(document, row_count)
        requests.append(run.requests())
        streams.append(streams_of(run))
        texts.append(texts_of(run))
        row_count += run.row_count
    tables = {"client_request": requests, "client_stream": streams} | (
        {"request_text": texts} if chunk.keep_text else {}
    )
    frames = {name: pl.concat(parts) for name, parts in tables.items() if parts}
    frames["client_summary"] = summary_frame("vllm bench", figures)
    return Parsed(frames, issues, chunk.lines.height - issues.height, no_stamps())


FORMAT: Final = Format(
    name="vllm_bench",
    title="result of vllm bench serve",
    side=Side.CLIENT,
    fills=("client_request", "client_stream", "client_summary", "request_text"),
    sniff=sniff,
    parse=parse,
    whole=True,
    versions="vLLM 0.4 to 0.32",
    complete="Real files of 0.32, forms of 0.4 on. Without --save-detailed there are no single requests in it.",
    record="vllm bench serve ... --save-result --save-detailed",
    sample="v0.32.0_chat_append_multitoken_detailed.json",
)
