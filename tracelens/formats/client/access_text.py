"""Access logs of gateways as text: nginx with upstream times, ingress-nginx, combined, Envoy, Istio, HAProxy.

    1.2.3.4 - - [29/Nov/2026:12:50:59 +0000] "POST /v1/chat/completions HTTP/1.1" 200 4133 "-" "curl" rt=0.176 uht="0.004" rid=f1f8
    1.2.3.4 - - [29/Nov/2026:12:50:59 +0000] "POST ... HTTP/1.1" 200 4133 "-" "curl" 314 0.176 [svc] [] 10.0.0.1:80 4133 0.176 200 f1f8
    [2026-11-29T12:50:59.485Z] "POST /v1/chat/completions HTTP/1.1" 200 - 314 4133 176 4 "-" "curl" "f1f8" "llm" "10.0.0.1:80"
    haproxy[7]: 1.2.3.4:5 [29/Nov/2026:12:50:59.485] in pool/a 0/0/3/1/176 200 4133 - - ---- 1/1/1/1/0 0/0 "POST ... HTTP/1.1"

nginx stamps the end of a request in whole seconds, Envoy and HAProxy its start in milliseconds (HAProxy's without a zone).
``combined`` has no times: of it only the end and the status are kept.
"""

from __future__ import annotations

import re
from typing import Final

import polars as pl

from tracelens.formats.base import Chunk, Claim, Clock, Format, Head, Parsed, Side, issues_of
from tracelens.formats.client.access_forms import FORMS
from tracelens.formats.client.gateway_rows import is_inference, requests_of, stamps_of
from tracelens.formats.client.gateway_values import path_of

NO_LINE: Final = "no line of this access log"

_WRAPPER: Final = r"^\d{4}-\d\d-\d\dT\S+ (?:stdout|stderr) [FP] "
"""What a container runtime puts before each line."""
_BARE: Final = re.compile(_WRAPPER)


def sniff(head: Head) -> Claim | None:
    """Claim a file of which at least half of the lines are of one form, one of them for a path that reaches the engine."""
    lines = [_BARE.sub("", line) for line in (*head.lines, *head.sampled) if line.strip()]
    for form in FORMS:
        found = [match for line in lines if (match := form.pattern.match(line))]
        if found and len(found) * 2 >= len(lines):
            if not any(is_inference(path_of(match["path"])) for match in found):
                return None
            return Claim(
                form.variant(lines), Clock.LOCAL if form.is_local else Clock.UTC, {"form": form.name}
            )
    return None


def parse(chunk: Chunk) -> Parsed:
    """One row of `client_request` per request to the engine; other access lines are understood and left out."""
    form = next((each for each in FORMS if each.name == chunk.claim.settings.get("form")), FORMS[0])
    text = pl.col("text").fill_null("").str.replace(_WRAPPER, "").str.strip_chars_end("\r")
    lines = chunk.lines.with_columns(text=text)
    is_line = pl.col("text").str.contains(form.pattern.pattern)
    is_blank = pl.col("text").str.strip_chars() == ""
    passed = form.read(_uncut(lines.filter(is_line), chunk))
    issues = issues_of(chunk.lines.filter(lines.select(~(is_line | is_blank)).to_series()), NO_LINE)
    tables = {"client_request": requests_of(passed)}
    return Parsed(tables, issues, chunk.lines.height - issues.height, stamps_of(passed))


def _uncut(lines: pl.DataFrame, chunk: Chunk) -> pl.DataFrame:
    """Take the last word off a last line without an end: a number that is cut is no value."""
    if not chunk.is_open or not chunk.lines.height:
        return lines
    is_last = pl.col("line_no") == chunk.lines["line_no"][-1]
    shorter = pl.col("text").str.replace(r"[^\s\"]*$", "")
    return lines.with_columns(text=pl.when(is_last).then(shorter).otherwise("text"))


FORMAT: Final = Format(
    name="access_text",
    title="gateway's access log, text (nginx, ingress-nginx, Envoy, Istio, HAProxy)",
    side=Side.CLIENT,
    fills=("client_request",),
    sniff=sniff,
    parse=parse,
    versions="nginx 1.22, ingress-nginx 1, Envoy 1.37, Istio 1.17 and later, HAProxy 2",
    complete="Real lines of nginx 1.22, lines of ingress-nginx, Envoy, Istio and HAProxy by hand. The combined format has no times: status by second is all.",
    record='nginx: log_format with rt=$request_time uht="$upstream_header_time" urt="$upstream_response_time" rid=$request_id',
    sample="nginx_1.22.1_upstream_times.log",
)
