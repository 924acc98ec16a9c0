"""What clients and load generators wrote."""

from __future__ import annotations

from typing import Final

from tracelens.formats.base import Format
from tracelens.formats.client import client_stream, vllm_bench

FORMATS: Final[tuple[Format, ...]] = (
    client_stream.FORMAT,
    vllm_bench.FORMAT,
)
