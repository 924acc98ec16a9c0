"""Records of AIPerf (``profile_export.jsonl``) and its raw ones (``profile_export_raw.jsonl``), one line per request.

Read in AIPerf 0.13, with the fields of 0.2 on.  Lines are in the order of completion.  Instants are nanoseconds since 1970:
one wall-clock stamp at the send, everything else of the line a monotonic delta added to it.

What its numbers are
- ``time_to_first_token``: send to the first content, reasoning included; absent when nothing was streamed and after errors.
  ``http_req_waiting`` is the first byte of the body, which a keep-alive comment brings forward.
- ``credit_issued_ns``: when the load pattern released the request.  ``request_ack_ns``: status and headers.
- ``usage_*_tokens``: the server's usage; ``*_sequence_length``: the client's own tokenizer.
- An HTTP error has an end equal to its start: nothing was measured.  After any error the metrics are empty, TTFT too.
- An error event inside a stream counts as a success that lacks ``usage_*``.  In a file whose other lines have usage such a
  line gets the status ``unknown``.  The raw file has the event itself.
- The id that was sent as X-Request-ID is ``x_request_id``; vLLM answers with ``chatcmpl-`` or ``cmpl-`` and it.
"""

from __future__ import annotations

import re
from typing import Final

import polars as pl

from tracelens.formats.base import Chunk, Claim, Clock, Format, Head, Parsed, Side
from tracelens.formats.client.aiperf_rows import of_raw, of_record
from tracelens.formats.client.client_tables import stamps_of
from tracelens.formats.client.tool_tables import Seen, tables_of
from tracelens.formats.json_lines import read_objects, refusals

NO_RECORD: Final = "no AIPerf record"

_RECORD: Final = re.compile(r'\s*\{\s*"metadata"\s*:\s*\{[^{}]*"request_start_ns"\s*:\s*\d')
_BEGINNING: Final = 4000


def sniff(head: Head) -> Claim | None:
    """Claim lines that begin with the metadata of a request; raw ones say so with their monotonic start."""
    bare = [line for line in head.lines if line.strip()][:50]
    mine = [line for line in bare if _RECORD.match(line[:_BEGINNING])]
    if not mine or len(mine) * 2 < len(bare):
        return None
    is_raw = sum('"start_perf_ns"' in line[:_BEGINNING] for line in mine) * 2 > len(mine)
    usage = any('"usage_completion_tokens"' in line for line in mine)
    streamed = any('"time_to_first_token"' in line for line in mine)
    kind = "raw, every message" if is_raw else "streamed" if streamed else "not streamed"
    return Claim(f"records, {kind}", Clock.UTC, {"usage": usage, "streamed": streamed})


def parse(chunk: Chunk) -> Parsed:
    """Each line a request."""
    objects = read_objects(chunk.lines)
    seen: list[Seen] = []
    empty: dict[int, str] = {}
    for line_no, values in objects:
        found = of_raw(line_no, values) if "responses" in values else of_record(line_no, values, chunk.claim)
        if found is None:
            empty[line_no] = NO_RECORD
        else:
            seen.append(found)
    issues = pl.concat([objects.issues, refusals(chunk.lines, empty)]).sort("line_no")
    tables = tables_of(seen, chunk)
    return Parsed(tables, issues, chunk.lines.height - issues.height, stamps_of(tables["client_request"]))


FORMAT: Final = Format(
    name="aiperf",
    title="records of AIPerf, one line per request",
    side=Side.CLIENT,
    fills=("client_request", "client_stream", "server_request", "request_text"),
    sniff=sniff,
    parse=parse,
    versions="AIPerf 0.2 to 0.13",
    complete="Real files of 0.13: records and raw records. Errors inside a stream stand only in the raw file.",
    record="aiperf profile --streaming --export-level raw ... (profile_export.jsonl)",
    sample="v0.13.0_chat.jsonl",
)
