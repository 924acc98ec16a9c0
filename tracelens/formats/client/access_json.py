"""Access logs of gateways as JSON lines: nginx with a JSON ``log_format``, Envoy, Istio and AI gateways built on them.

The keys are the operator's own; `NAMES` has the usual ones, compared in snake_case.  Which family a line is of decides its
units: nginx writes seconds and its ``$msec`` and ``$time_iso8601`` are the end of the request, Envoy writes milliseconds and
``%START_TIME%`` is its start.

nginx    ``$upstream_header_time``: connecting to the upstream to its headers; several tries give lists (``"-, 0.002"``): the
         tries before are added to the last one.  Measured with 1.22.1.
         Without ``escape=json`` nginx writes ``\\x22`` for a quote and a bare dash for no value, which JSON has not: both are mended.
Envoy    ``%RESPONSE_DURATION%``: start to the upstream's first byte, which is of the headers.  Without it
         ``X-Envoy-Upstream-Service-Time`` (request sent on to headers) is taken.  Documented, Envoy 1.37.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

import polars as pl

from tracelens.formats.base import Chunk, Claim, Clock, Format, Head, Parsed, Side
from tracelens.formats.client.client_keys import snake
from tracelens.formats.client.gateway_rows import is_inference, passed_frame, requests_of, stamps_of
from tracelens.formats.client.gateway_values import (
    instant_of,
    last_of,
    path_of,
    request_line,
    trace_of,
    tries,
)
from tracelens.formats.json_lines import count, objects_in, read_objects, refusals, seconds, text_of

NO_REQUEST: Final = "no line of an access log"

# fmt: off
NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    "start": ("start_time", "system_time", "request_start", "request_start_time"),
    "end": ("msec", "time_msec", "end_time"),
    "coarse": ("time_iso8601", "time_local", "time", "timestamp", "@timestamp", "ts", "date"),
    "duration": ("request_time", "duration", "duration_ms", "total_time", "request_duration_total"),
    "headers": ("upstream_header_time", "response_duration", "time_to_first_byte", "target_duration"),
    "first_byte": ("time_to_first_body_byte", "first_body_byte", "us_rx_body_beg", "upstream_first_body_byte"),
    "service": ("upstream_service_time", "x_envoy_upstream_service_time"),
    "response": ("upstream_response_time",),
    "status": ("status", "response_code", "status_code", "code", "http_status"),
    "flags": ("response_flags", "upstream_response_flags", "flags"),
    "sent_id": ("http_x_request_id",),
    "own_id": ("request_id", "x_request_id", "req_id", "rid"),
    "trace": ("traceparent", "trace_id", "http_traceparent"),
    "method": ("method", "request_method", "http_method"),
    "path": ("uri", "path", "request_uri", "request_path", "x_envoy_original_path", "url"),
    "request": ("request",),
    "upstream": ("upstream_addr", "upstream_host", "upstream_address", "upstream_cluster"),
    "upstream_status": ("upstream_status",),
    "bytes_sent": ("bytes_sent", "body_bytes_sent"),
}
"""What a thing is called; of several names the first counts."""
# fmt: on

_NGINX: Final = frozenset(("request_time", "upstream_header_time", "upstream_response_time"))
_ENVOY: Final = frozenset(
    ("response_flags", "upstream_service_time", "upstream_cluster", "response_duration", "target_duration")
)
_STATUS: Final = frozenset(NAMES["status"])
_PER_MS: Final = 1e-3
_ESCAPED: Final = (r"\\x([0-9A-Fa-f]{2})", r"\u00$1")
_NO_VALUE: Final = (r"\":\s*-?\s*([,}])", r'":null$1')
_MILLISECONDS: Final = re.compile(r"\.\d")


def sniff(head: Head) -> Claim | None:
    """Claim JSON lines of which at least half are access lines, one of them for a path that reaches the engine."""
    mended = _mended(pl.DataFrame({"text": head.lines}, schema={"text": pl.String}))
    found = objects_in(tuple(mended["text"].to_list()))
    if found is None:
        return None
    plain = [plain_keys(each) for each in found]
    families = Counter(family for each in plain if (family := _family(each)) is not None)
    if families.total() * 2 < len(found) or not any(map(_reaches_engine, plain)):
        return None
    return Claim(f"{families.most_common(1)[0][0]}, JSON", Clock.UTC)


def _mended(lines: pl.DataFrame) -> pl.DataFrame:
    text = pl.col("text")
    return lines.with_columns(text=text.str.replace_all(*_ESCAPED).str.replace_all(*_NO_VALUE))


def plain_keys(values: Mapping[str, Any]) -> dict[str, Any]:
    """Write the keys of a line in snake_case, without what an operator left of the variable's sign."""
    return {snake(key).lstrip("$"): value for key, value in values.items()}


def _family(plain: Mapping[str, Any]) -> str | None:
    """Say by its keys whose line it is."""
    if _STATUS.isdisjoint(plain):
        return None
    if not _ENVOY.isdisjoint(plain):
        return "Envoy"
    return "nginx" if not _NGINX.isdisjoint(plain) else None


def _reaches_engine(plain: Mapping[str, Any]) -> bool:
    """Whether the path is the engine's; a log without paths is a gateway's if it names an upstream."""
    path = _path(plain)
    return any("upstream" in name for name in plain) if path is None else is_inference(path)


def parse(chunk: Chunk) -> Parsed:
    """One row of `client_request` per request to the engine; other access lines are understood and left out."""
    objects = read_objects(_mended(chunk.lines))
    rows: list[dict[str, Any]] = []
    refused: dict[int, str] = {}
    for line_no, values in objects:
        plain = plain_keys(values)
        family = _family(plain)
        if family is None:
            refused[line_no] = NO_REQUEST
        else:
            rows.append({"line_no": line_no, **_line(plain, family)})
    passed = passed_frame(rows)
    issues = pl.concat([objects.issues, refusals(chunk.lines, refused)]).sort("line_no")
    tables = {"client_request": requests_of(passed)}
    return Parsed(tables, issues, chunk.lines.height - issues.height, stamps_of(passed))


def _get(plain: Mapping[str, Any], thing: str) -> Any:
    return next((plain[name] for name in NAMES[thing] if plain.get(name) not in (None, "", "-")), None)


def _path(plain: Mapping[str, Any]) -> str | None:
    return path_of(_get(plain, "path")) or request_line(_get(plain, "request"))[1]


def _line(plain: Mapping[str, Any], family: str) -> dict[str, Any]:
    own, sent = text_of(_get(plain, "own_id")), text_of(_get(plain, "sent_id"))
    status = count(_get(plain, "status"))
    return (_nginx(plain) if family == "nginx" else _envoy(plain)) | {
        "status": status if status is not None and status < 1000 else None,  # noqa: PLR2004
        "flags": text_of(_get(plain, "flags")),
        "client_id": sent or own,
        "gateway_id": own,
        "trace_id": trace_of(_get(plain, "trace")),
        "method": text_of(_get(plain, "method")) or request_line(_get(plain, "request"))[0],
        "path": _path(plain),
        "upstream": text_of(_get(plain, "upstream")),
        "bytes_sent": count(_get(plain, "bytes_sent")),
    }


def _nginx(plain: Mapping[str, Any]) -> dict[str, Any]:
    """Seconds; the stamp is the end.  ``$msec`` has milliseconds, the others whole seconds."""
    end = instant_of(_get(plain, "end"))
    header = tries(_get(plain, "headers"))
    coarse = _get(plain, "coarse")
    is_fine = end is not None or (isinstance(coarse, str) and _MILLISECONDS.search(coarse) is not None)
    statuses = tries(_get(plain, "upstream_status"))
    return {
        "end_us": end if end is not None else instant_of(coarse),
        "is_coarse": not is_fine,
        "e2e_s": seconds(_get(plain, "duration")),
        "headers_s": last_of(header, tries(_get(plain, "response"))),
        "attempt": len(statuses) or None,
    }


def _envoy(plain: Mapping[str, Any]) -> dict[str, Any]:
    """Milliseconds; the stamp is the start."""
    headers = seconds(_get(plain, "headers"), _PER_MS)
    if headers is None:
        headers = seconds(_get(plain, "response"), _PER_MS)
    start = _get(plain, "start")
    start = _get(plain, "coarse") if start is None else start
    return {
        "start_us": instant_of(start),
        "is_coarse": isinstance(start, str) and _MILLISECONDS.search(start) is None,
        "e2e_s": seconds(_get(plain, "duration"), _PER_MS),
        "headers_s": headers if headers is not None else seconds(_get(plain, "service"), _PER_MS),
        "first_byte_s": seconds(_get(plain, "first_byte"), _PER_MS),
    }


FORMAT: Final = Format(
    name="access_json",
    title="gateway's access log, JSON lines (nginx, Envoy, Istio)",
    side=Side.CLIENT,
    fills=("client_request",),
    sniff=sniff,
    parse=parse,
    versions="nginx 1.22, Envoy 1.37, Istio 1.17 and later",
    complete="Real lines of nginx 1.22, lines of Envoy and Istio by hand. Health checks and other paths are read over. No TTFT: no gateway sees a token.",
    record="nginx: log_format with escape=json, $msec, $request_time, $upstream_header_time and $request_id, and proxy_set_header X-Request-Id $request_id",
    sample="nginx_1.22.1.jsonl",
)
