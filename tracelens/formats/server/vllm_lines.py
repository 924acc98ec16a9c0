"""The messages of a vLLM server log that become facts: one table, one row per form.

`starts` is the literal that a message begins with; it is looked for first, since a literal costs next to nothing.
`versions` says which releases write the form, `source` where in them; `sample` is a real message of it.  The tables in
docs/formats.md are made from these rows.  Adding a form is adding a row (and, for a new kind of fact, a function in `vllm_facts`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class LineForm:
    """One form of message and the kind of fact it carries."""

    kind: str
    starts: str
    versions: str
    source: str
    """Where vLLM writes it; file names move with the releases, so nothing is matched against them."""
    sample: str
    contains: str = ""
    """A second literal that must stand in the message."""
    begins: str = ""
    """A pattern for the beginning, where no literal stands there."""


LINE_FORMS: Final[tuple[LineForm, ...]] = (
    LineForm(
        "received",
        "Received request ",
        "all",
        "entrypoints/logger.py, async_llm_engine.py up to 0.5.2",
        "Received request chatcmpl-1: params: SamplingParams(n=1), lora_request: None.",
    ),
    LineForm(
        "added",
        "Added request ",
        "V0 0.5.3+, V1 0.6.6+",
        "async_llm.py, V0: engine.py, async_llm_engine.py",
        "Added request chatcmpl-1-1c9be07a.",
    ),
    LineForm(
        "finished",
        "Finished request ",
        "V0 without the MQ engine",
        "async_llm_engine.py",
        "Finished request chatcmpl-1.",
    ),
    LineForm(
        "aborted",
        "Aborted request",
        "all",
        "async_llm.py, V0: engine.py",
        "Aborted request(s) chatcmpl-1-1c9be07a,chatcmpl-2-0a8ce9c6.",
    ),
    LineForm(
        "generated",
        "Generated response ",
        "0.10.1+",
        "entrypoints/logger.py",
        "Generated response chatcmpl-1 (streaming complete): output: 'x', output_token_ids: None, finish_reason: length",
    ),
    LineForm(
        "body",
        "Request ",
        "0.31+",
        "entrypoints/.../request_logger.py",
        "Request 1 JSON body: {}",
        contains=" JSON body: ",
    ),
    LineForm(
        "details",
        "Request ",
        "0.11.1+ at DEBUG",
        "entrypoints/.../request_logger.py",
        "Request chatcmpl-1 details: prompt: 'x', prompt_token_ids: None, prompt_embeds shape: None.",
        contains=" details: ",
    ),
    LineForm(
        "ended",
        "Request ",
        "V1",
        "v1/engine/async_llm.py",
        "Request chatcmpl-1 aborted.",
        contains=" aborted",
    ),
    LineForm(
        "ended",
        "Request ",
        "V1",
        "v1/engine/async_llm.py",
        "Request chatcmpl-1 failed (bad request): too long.",
        contains=" failed",
    ),
    LineForm(
        "preempted",
        "Sequence group ",
        "V0 0.4.3 to 0.10.2, every 50th",
        "core/scheduler.py",
        "Sequence group cmpl-1-0 is preempted by PreemptionMode.RECOMPUTE mode because there is not enough KV cache space. This can affect the end-to-end performance. total_num_cumulative_preemption=1",
        contains=" is preempted by ",
    ),
    LineForm(
        "stats",
        "Engine ",
        "V1 0.8.3+",
        "v1/metrics/loggers.py",
        "Engine 000: Avg prompt throughput: 10.0 tokens/s, Avg generation throughput: 5.0 tokens/s, Running: 1 reqs, Waiting: 0 reqs, GPU KV cache usage: 0.1%, Prefix cache hit rate: 0.0%",
        contains="Avg prompt ",
    ),
    LineForm(
        "stats",
        "Avg prompt ",
        "V0, V1 up to 0.8.2, Rust front end",
        "llm_engine.py, from 0.4 metrics.py; Rust: log_stats.rs",
        "Avg prompt throughput: 10.0 tokens/s, Avg generation throughput: 5.0 tokens/s, Running: 1 reqs, Swapped: 0 reqs, Pending: 0 reqs, GPU KV cache usage: 0.1%, CPU KV cache usage: 0.0%.",
    ),
    LineForm(
        "stats",
        "Throughput: ",
        "0.1",
        "core/scheduler.py",
        "Throughput: 16.1 tokens/s, Running: 1 reqs, Swapped: 0 reqs, Pending: 0 reqs, GPU KV cache usage: 0.1%, CPU KV cache usage: 0.0%",
        contains="Running: ",
    ),
    LineForm(
        "stats",
        "",
        "0.11.1+ with --aggregate-engine-logging",
        "v1/metrics/loggers.py",
        "2 Engines Aggregated: Avg prompt throughput: 10.0 tokens/s, Avg generation throughput: 5.0 tokens/s, Running: 1 reqs, Waiting: 0 reqs, GPU KV cache usage: 0.1%",
        contains=" Engines Aggregated: ",
        begins=r"^\d+ Engines Aggregated: Avg ",
    ),
    LineForm(
        "step",
        "Iteration(",
        "0.14 to 0.25",
        "v1/engine/core.py",
        "Iteration(7): 2 context requests, 4096 context tokens, 118 generation requests, 118 generation tokens, iteration elapsed time: 212.08 ms",
    ),
    LineForm(
        "step",
        "Engine ",
        "0.26+",
        "v1/metrics/loggers.py",
        "Engine 000: Iteration(7): 2 context requests, 4096 context tokens, 1 generation requests, 1 generation tokens, iteration elapsed time: 187.32 ms, GPU KV cache usage: 71.4%",
        contains=": Iteration(",
    ),
    LineForm(
        "companion",
        "SpecDecoding metrics: ",
        "V1 0.8.3+",
        "v1/spec_decode/metrics.py",
        "SpecDecoding metrics: Mean acceptance length: 2.75, Accepted: 10 tokens, Drafted: 20 tokens",
    ),
    LineForm(
        "companion",
        "Speculative metrics: ",
        "V0 0.4.1 to 0.9.2",
        "engine/metrics.py",
        "Speculative metrics: Draft acceptance rate: 0.613, System efficiency: 0.541",
    ),
    LineForm(
        "companion",
        "KV Transfer metrics: ",
        "0.11+",
        "v1/metrics/loggers.py",
        "KV Transfer metrics: Num successful transfers=3, Avg xfer time (ms)=1.5",
    ),
    LineForm(
        "companion",
        "EC Transfer metrics: ",
        "0.31+",
        "v1/metrics/loggers.py",
        "EC Transfer metrics: Num transfers=3",
    ),
    LineForm(
        "companion",
        "DiffusionDecoding metrics: ",
        "0.24+",
        "v1/metrics/loggers.py",
        "DiffusionDecoding metrics: Committed token throughput: 10.0 tokens/s",
    ),
    LineForm(
        "companion",
        "MFU: ",
        "0.14+ with --enable-mfu-metrics",
        "v1/metrics/perf.py",
        "MFU: 312.4 TF/s/GPU 1904.7 GB/s/GPU",
    ),
    LineForm(
        "companion",
        "Engine ",
        "0.14+ with --enable-mfu-metrics",
        "v1/metrics/perf.py",
        "Engine 000: MFU: 312.4 TF/s/GPU 1904.7 GB/s/GPU",
        contains=": MFU: ",
    ),
    LineForm(
        "rust_finished",
        "chat_completions{",
        "Rust front end, 0.22+",
        "rust/, chat_completions.rs and its like",
        'chat_completions{request_id=chatcmpl-1 engine_request_id=chatcmpl-1-0badcafe}: chat completion finished stream=true model=m prompt_tokens=211 output_tokens=96 finish_reason="stop"',
        contains=" finished ",
    ),
    LineForm(
        "rust_finished",
        "completions{",
        "Rust front end, 0.22+",
        "rust/, chat_completions.rs and its like",
        'completions{request_id=cmpl-1 engine_request_id=cmpl-1-0-0badcafe}: completion finished stream=false model=m prompt_tokens=2 output_tokens=9 finish_reason="length"',
        contains=" finished ",
    ),
    LineForm(
        "rust_finished",
        "generate{",
        "Rust front end, 0.22+",
        "rust/, chat_completions.rs and its like",
        'generate{request_id=g-1 engine_request_id=g-1-0badcafe}: generate finished stream=true model=m prompt_tokens=2 output_tokens=9 finish_reason="stop"',
        contains=" finished ",
    ),
    LineForm(
        "grpc",
        "grpc_inference{",
        "Rust front end, 0.22+",
        "rust/, inference.rs",
        'grpc_inference{request_id=req-9 rpc="generate" model= lora_name= media_count=0 data_parallel_rank=None}: gRPC inference request completed elapsed_ms=842',
        contains=" completed elapsed_ms=",
    ),
    LineForm(
        "companion",
        "Prefix cache hit rate: GPU: ",
        "V0 0.5.5 to 0.10.2",
        "engine/metrics.py",
        "Prefix cache hit rate: GPU: 41.27%, CPU: 0.00%",
    ),
)
