"""Scraped and dumped metrics."""

from __future__ import annotations

from typing import Final

from tracelens.formats.base import Format

FORMATS: Final[tuple[Format, ...]] = ()
