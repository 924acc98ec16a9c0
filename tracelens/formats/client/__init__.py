"""What clients and load generators wrote."""

from __future__ import annotations

from typing import Final

from tracelens.formats.base import Format
from tracelens.formats.client import (
    aiperf,
    aiperf_summary,
    bench_stdout,
    client_stream,
    evalscope,
    evalscope_summary,
    genai_perf,
    guidellm,
    inference_perf,
    llmperf,
    sglang_bench,
    vllm_bench,
)

FORMATS: Final[tuple[Format, ...]] = (
    client_stream.FORMAT,
    vllm_bench.FORMAT,
    bench_stdout.FORMAT,
    sglang_bench.FORMAT,
    aiperf.FORMAT,
    aiperf_summary.FORMAT,
    genai_perf.FORMAT,
    guidellm.FORMAT,
    inference_perf.FORMAT,
    llmperf.FORMAT,
    evalscope.FORMAT,
    evalscope_summary.FORMAT,
)
