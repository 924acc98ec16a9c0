"""A server's own log of one JSON object per request, in the form of ``schemas/inputs/request_log.schema.json``.

For gateways, plugins and servers that measure their requests themselves and want to say so.  Only the names of the
schema are understood; everything else that is a number or a short text is kept in ``other``.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from tracelens.formats.base import Chunk, Claim, Clock, Format, Head, Parsed, Side
from tracelens.formats.json_lines import (
    count,
    dump,
    hex_id,
    objects_in,
    read_objects,
    refusals,
    seconds,
    text_of,
    text_or_json,
)
from tracelens.formats.notes import is_note
from tracelens.formats.prompt_blocks import fingerprints
from tracelens.formats.stamps import instant, instant_on

if TYPE_CHECKING:
    from collections.abc import Mapping

NO_REQUEST: Final = "no request in it"

DURATIONS: Final = ("queue_s", "prefill_s", "decode_s", "inference_s", "ttft_s", "e2e_s")
COUNTS: Final = (
    "input_tokens", "cached_input_tokens", "output_tokens", "max_tokens", "sequence_count", "preemption_count",
)  # fmt: skip
NAMES: Final = ("request_id", "finish_reason", "service")
SERVER_KEYS: Final = frozenset(("arrival_ts", "queue_s", "prefill_s", "decode_s"))
"""Keys that only a server can write; one of them must be on the line."""

KEYS: Final = frozenset((*DURATIONS, *COUNTS, *NAMES, "arrival_ts", "trace_id"))

_SCHEMA: Final[Mapping[str, Any]] = {
    "line_no": pl.Int64,
    **dict.fromkeys((*NAMES, "trace_id", "measured_by", "other"), pl.String),
    "arrival_ts": pl.Int64,
    **dict.fromkeys(DURATIONS, pl.Float64),
    **dict.fromkeys(COUNTS, pl.Int64),
}


def is_request(values: Mapping[str, Any]) -> bool:
    """Whether an object has a request's id, a duration, and a key that only a server can write."""
    return (
        "request_id" in values
        and not SERVER_KEYS.isdisjoint(values)
        and any(name in values for name in DURATIONS)
    )


def sniff(head: Head) -> Claim | None:
    """Lines of JSON objects, at least half of them a request as a server sees it."""
    found = objects_in(head.lines)
    if found is None:
        return None
    requests = [each for each in found if is_request(each)]
    if len(requests) * 2 < len(found) or not requests:
        return None
    clocks = Counter(stamp[1] for each in requests if (stamp := instant(each.get("arrival_ts"))) is not None)
    del clocks[Clock.RELATIVE]
    return Claim("request log", clocks.most_common(1)[0][0] if clocks else Clock.NONE)


def parse(chunk: Chunk) -> Parsed:
    """One row of `server_request` per line."""
    objects = read_objects(chunk.lines)
    rows: list[dict[str, Any]] = []
    empty: dict[int, str] = {}
    for line_no, values in objects:
        if is_request(values):
            rows.append({"line_no": line_no, **_request(values, chunk.claim.clock)})
        else:
            empty[line_no] = NO_REQUEST
    issues = pl.concat([objects.issues, refusals(chunk.lines, empty)]).sort("line_no")
    columns = {name: [row.get(name) for row in rows] for name in _SCHEMA}
    requests = pl.DataFrame(columns, schema=_SCHEMA).with_columns(
        pl.col("arrival_ts").cast(pl.Datetime("us"))
    )
    stamps = requests.select("line_no", stamp="arrival_ts").drop_nulls("stamp")
    tables = {"server_request": requests}
    if chunk.prompt_key:
        tables["prompt_block"] = fingerprints(
            (_prompt(line_no, values) for line_no, values in objects if is_request(values)), chunk.prompt_key
        )
    return Parsed(tables, issues, chunk.lines.height - issues.height, stamps)


def _prompt(line_no: int, values: Mapping[str, Any]) -> tuple[int, str | None, str | None]:
    """Line, request and prompt, for fingerprints only."""
    asked = values.get("prompt") or values.get("messages")
    return line_no, text_of(values["request_id"]), text_or_json(asked)


def _request(values: Mapping[str, Any], clock: Clock) -> dict[str, Any]:
    return {
        "measured_by": "log",
        "arrival_ts": instant_on(clock, values.get("arrival_ts")),
        "trace_id": hex_id(values.get("trace_id")),
        **{name: text_of(values.get(name)) for name in NAMES},
        **{name: seconds(values.get(name)) for name in DURATIONS},
        **{name: count(values.get(name)) for name in COUNTS},
        "other": dump(
            {key: value for key, value in values.items() if key not in KEYS and is_note(key, value)}
        ),
    }


FORMAT: Final = Format(
    name="request_log",
    title="server's request log, one JSON object per request",
    side=Side.SERVER,
    fills=("server_request", "prompt_block"),
    sniff=sniff,
    parse=parse,
    versions="schemas/inputs/request_log.schema.json",
    complete="A form of our own, for servers and plugins that log each request themselves.",
    record="one JSON object per request: schemas/inputs/request_log.schema.json",
    sample="gateway.jsonl",
)
