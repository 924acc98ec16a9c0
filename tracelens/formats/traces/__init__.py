"""Requests as the serving side traced or logged them, one by one."""

from __future__ import annotations

from typing import Final

from tracelens.formats.base import Format
from tracelens.formats.traces import otlp_spans, request_log

FORMATS: Final[tuple[Format, ...]] = (
    otlp_spans.FORMAT,
    request_log.FORMAT,
)
