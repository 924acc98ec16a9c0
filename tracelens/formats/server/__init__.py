"""Text logs of inference servers."""

from __future__ import annotations

from typing import Final

from tracelens.formats.base import Format
from tracelens.formats.server import sglang_log, tgi_log, vllm_log

FORMATS: Final[tuple[Format, ...]] = (
    vllm_log.FORMAT,
    sglang_log.FORMAT,
    tgi_log.FORMAT,
)
