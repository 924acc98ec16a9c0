"""A run for other tools: Chrome trace JSON (Perfetto), OTLP spans (Jaeger, Tempo).

Both are made of the named queries `request_spans`, `engine_steps`, `counters` and `events`, and are written line by line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Final

from tracelens.exporting import otlp, perfetto

if TYPE_CHECKING:
    from tracelens.case import Case

__all__ = ["WRITERS"]

WRITERS: Final[Mapping[str, Callable[[Case, str], Iterator[bytes]]]] = {
    "perfetto": perfetto.trace,
    "otlp": otlp.spans,
}
"""From the name of a format to what gives its lines for a case and a run ("" for all runs)."""
