"""Scraped and dumped metrics."""

from __future__ import annotations

from typing import Final

from tracelens.formats.base import Format
from tracelens.formats.metrics import (
    aiperf_scrapes,
    aiperf_server,
    prometheus_api,
    prometheus_text,
    promtool_dump,
    stat_logger,
)

FORMATS: Final[tuple[Format, ...]] = (
    prometheus_text.FORMAT,
    promtool_dump.FORMAT,
    prometheus_api.FORMAT,
    stat_logger.FORMAT,
    aiperf_scrapes.FORMAT,
    aiperf_server.FORMAT,
)
