"""What clients and load generators wrote."""

from __future__ import annotations

from typing import Final

from tracelens.formats.base import Format
from tracelens.formats.client import (
    access_json,
    access_text,
    aiperf,
    aiperf_summary,
    bench_stdout,
    client_stream,
    curl_responses,
    curl_timings,
    curl_trace,
    evalscope,
    evalscope_summary,
    genai_perf,
    guidellm,
    inference_perf,
    k6_points,
    k6_summary,
    litellm,
    llmperf,
    load_tools,
    locust,
    sglang_bench,
    sse_capture,
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
    access_json.FORMAT,
    access_text.FORMAT,
    litellm.FORMAT,
    sse_capture.FORMAT,
    curl_trace.FORMAT,
    curl_responses.FORMAT,
    curl_timings.FORMAT,
    load_tools.FORMAT,
    locust.FORMAT,
    k6_summary.FORMAT,
    k6_points.FORMAT,
)
