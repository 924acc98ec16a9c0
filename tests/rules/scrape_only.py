"""Servers of which nothing is left but scrapes, written out from a few numbers as vLLM's /metrics has them."""

from __future__ import annotations

from dataclasses import dataclass, field

TTFT_EDGES = (0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0)
ITL_EDGES = (0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3)
BEGIN_S = 1_761_050_000
STEP_S = 15
LABELS = 'engine="0",model_name="acme/moe-test-30b"'


@dataclass(frozen=True)
class Server:
    """What holds at every scrape (gauges), and what each second adds (counters); times are means in seconds."""

    gauges: dict[str, float]
    per_s: dict[str, float]
    ttft_s: float
    itl_s: float
    requests_rps: float
    scrapes: int = 12
    config: str = 'block_size="16",enable_prefix_caching="True",num_gpu_blocks="46080"'
    jitter: dict[str, tuple[float, ...]] = field(default_factory=dict)
    """Values of a gauge that changes, over and over."""

    def text(self) -> str:
        """Scrapes fifteen seconds apart, a line with the epoch second before each."""
        return "".join(self._scrape(index) for index in range(self.scrapes))

    def _scrape(self, index: int) -> str:
        passed_s = 1000 + index * STEP_S
        lines = [f"# scraped_at {BEGIN_S + index * STEP_S}"]
        for name, value in self.gauges.items():
            changing = self.jitter.get(name, (value,))
            lines += [
                f"# TYPE vllm:{name} gauge",
                f"vllm:{name}{{{LABELS}}} {changing[index % len(changing)]}",
            ]
        for name, rate in self.per_s.items():
            lines += [f"# TYPE vllm:{name} counter", f"vllm:{name}_total{{{LABELS}}} {rate * passed_s}"]
        count = self.requests_rps * passed_s
        lines += histogram("time_to_first_token_seconds", TTFT_EDGES, count, self.ttft_s)
        gaps = self.per_s["generation_tokens"] * passed_s
        lines += histogram("inter_token_latency_seconds", ITL_EDGES, gaps, self.itl_s)
        if self.config:
            lines += [
                "# TYPE vllm:cache_config_info gauge",
                f'vllm:cache_config_info{{{self.config},engine="0"}} 1.0',
            ]
        return "\n".join(lines) + "\n"


def histogram(name: str, edges: tuple[float, ...], count: float, mean_s: float) -> list[str]:
    """A histogram all of whose observations are the mean."""
    buckets = [
        f'vllm:{name}_bucket{{{LABELS},le="{edge}"}} {count if edge >= mean_s else 0.0}'
        for edge in (*edges, "+Inf")
        if edge != "+Inf"
    ]
    return [
        f"# TYPE vllm:{name} histogram",
        *buckets,
        f'vllm:{name}_bucket{{{LABELS},le="+Inf"}} {count}',
        f"vllm:{name}_count{{{LABELS}}} {count}",
        f"vllm:{name}_sum{{{LABELS}}} {count * mean_s}",
    ]


SEATS = Server(
    gauges={"num_requests_running": 64, "num_requests_waiting": 120, "kv_cache_usage_perc": 0.41},
    per_s={
        "prompt_tokens": 9000, "generation_tokens": 1800, "num_preemptions": 0,
        "prefix_cache_queries": 9000, "prefix_cache_hits": 3600,
    },
    ttft_s=9.0,
    itl_s=0.035,
    requests_rps=13,
)  # fmt: skip
KV_FULL = Server(
    gauges={"num_requests_running": 48, "num_requests_waiting": 40, "kv_cache_usage_perc": 0.99},
    per_s={
        "prompt_tokens": 9000, "generation_tokens": 1500, "num_preemptions": 6,
        "prefix_cache_queries": 9000, "prefix_cache_hits": 3600,
    },
    ttft_s=4.0,
    itl_s=0.035,
    requests_rps=10,
    jitter={"num_requests_running": (52, 48, 47, 50, 45), "kv_cache_usage_perc": (0.99, 1.0, 0.98)},
)  # fmt: skip
NO_HITS = Server(
    gauges={"num_requests_running": 22, "num_requests_waiting": 0, "kv_cache_usage_perc": 0.35},
    per_s={
        "prompt_tokens": 20000, "generation_tokens": 800, "num_preemptions": 0,
        "prefix_cache_queries": 20000, "prefix_cache_hits": 0,
    },
    ttft_s=0.8,
    itl_s=0.03,
    requests_rps=5,
    jitter={"num_requests_running": (22, 25, 19, 24, 21)},
)  # fmt: skip
HOST_BOUND = Server(
    gauges={"num_requests_running": 4, "num_requests_waiting": 0, "kv_cache_usage_perc": 0.03},
    per_s={
        "prompt_tokens": 60, "generation_tokens": 44, "num_preemptions": 0,
        "prefix_cache_queries": 60, "prefix_cache_hits": 20,
    },
    ttft_s=0.2,
    itl_s=0.09,
    requests_rps=0.2,
    jitter={"num_requests_running": (4, 4, 3, 5, 4)},
)  # fmt: skip
SEATS_BARE = Server(
    gauges={"num_requests_running": 64, "num_requests_waiting": 120},
    per_s={"prompt_tokens": 9000, "generation_tokens": 1800},
    ttft_s=9.0,
    itl_s=0.035,
    requests_rps=13,
    config="",
)
