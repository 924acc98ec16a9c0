"""Scrapes of ``/metrics`` as they were saved: one, or many behind each other, in the text format 0.0.4 or OpenMetrics.

One value a line, with its labels; a counter runs since the server's start.  The format has no time of the scrape: a
loop's own time line, a stamp before each line or a time behind each value is read, and without any of them the order is
kept (`metric_sample.scrape_index`).  Names stay as scraped: a current prometheus_client writes ``vllm_`` in OpenMetrics
and ``vllm:`` in the text format for the same metric.  Written from vLLM 0.6 to 0.33, dcgm-exporter 3 and 4.
"""

from __future__ import annotations

from typing import Final

from tracelens.formats.base import Claim, Format, Head, Side
from tracelens.formats.metrics import exposition

_SERVERS: Final = (("vLLM", ("vllm:", "vllm_")), ("DCGM exporter", ("DCGM_FI_",)), ("SGLang", ("sglang:",)))


def sniff(head: Head) -> Claim | None:
    """Claim a file most of whose lines are values with a name, or what describes them."""
    seen = exposition.look_at(head)
    if not seen.is_exposition or sum(sample.startswith("{") for sample in seen.samples) * 2 > len(
        seen.samples
    ):
        return None
    lines = (*head.lines, *head.sampled)
    form = "OpenMetrics" if any(line.strip() == "# EOF" for line in lines) else "text format"
    writers = [name for name, marks in _SERVERS if any(s.startswith(marks) for s in seen.samples)]
    return exposition.claim_of(seen, ", ".join([form, *writers]))


FORMAT: Final = Format(
    name="prometheus_text",
    title="scrapes of /metrics (Prometheus text format, OpenMetrics)",
    side=Side.SERVER,
    fills=("metric_sample",),
    sniff=sniff,
    parse=exposition.parse,
    carried={"metric_sample": "sample_ts"},
    versions="text format 0.0.4, OpenMetrics 1.0; vLLM 0.6 to 0.33, dcgm-exporter 3 and 4",
    complete="Recorded scrapes of vLLM 0.9.1 and 0.32; other samples invented in the forms of the sources. A time line behind its scrape, not before it, is taken for the next one's.",
    record='while sleep 5; do echo "# scraped_at $(date +%s.%N)"; curl -s localhost:8000/metrics; done > metrics.prom',
    sample="metrics_curl_loop.prom",
)
