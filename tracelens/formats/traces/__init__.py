"""Requests as the serving side traced or logged them, one by one."""

from __future__ import annotations

from typing import Final

from tracelens.formats.base import Format
from tracelens.formats.traces import (
    dynamo_trace,
    otlp_spans,
    request_log,
    sglang_requests,
    span_documents,
)

FORMATS: Final[tuple[Format, ...]] = (
    otlp_spans.FORMAT,
    span_documents.FORMAT,
    request_log.FORMAT,
    dynamo_trace.FORMAT,
    sglang_requests.FORMAT,
)
"""Requests as the serving side traced or logged them, one by one."""
