"""What ``vllm bench serve`` and ``sglang.bench_serving`` print: the table of totals, and what they say before it.

Line names of vLLM 0.3 to 0.32 and SGLang 0.3 to 0.5.  Each line says by itself what it is, so a file may hold many runs (their lines
tell them apart) and be cut anywhere.  Other output in between is no part of it.  Totals only: nothing here tells of one
request.  From the arguments that vLLM prints, the prefix of its request ids is kept, by which its requests are found in a
server's log; of all others only the load.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from tracelens.formats.base import Chunk, Claim, Clock, Format, Head, Parsed, Side, no_stamps
from tracelens.formats.bench_table import TABLE, is_load_output
from tracelens.formats.client.tool_summaries import Figure, figure, led_by_statistic, summary_frame, unit_of
from tracelens.formats.json_lines import number, refusals

if TYPE_CHECKING:
    from collections.abc import Iterator

OTHER_OUTPUT: Final = "other output than the result"

_RULE: Final = re.compile(r"\s*(?:={20,}|-{3,}[A-Za-z][\w .()/-]{2,60}-{3,})\s*")
_ROW: Final = re.compile(r"\s*([A-Z][\w %./()-]{2,60}?):\s+(\S.*?)\s*")
_LATENCY: Final = re.compile(
    r"(?:Mean|Median|Std|Min|Max|P\d{1,2}(?:\.\d+)?) (?:TTFT|TPOT|ITL|E2EL|E2E Latency|TTFC|Latency) \(ms\)"
)
_NAMES: Final = frozenset((
    # vLLM
    "Successful requests", "Failed requests", "Maximum request concurrency", "Request rate configured (RPS)",
    "Benchmark duration (s)", "Total input tokens", "Total generated tokens", "Request throughput (req/s)",
    "Request goodput (req/s)", "Input token throughput (tok/s)", "Output token throughput (tok/s)",
    "Peak output token throughput (tok/s)", "Peak concurrent requests", "Total Token throughput (tok/s)",
    "Total token throughput (tok/s)", "RTFx (Inverse Real-Time Factor)", "Traffic request rate", "Burstiness factor",
    "Acceptance rate (%)", "Acceptance length", "Drafts", "Draft tokens", "Accepted tokens", "Backend", "Traffic ramp-up strategy",
    "Max input tokens", "Max output tokens", "Max total tokens", "Committed tokens", "Denoising steps",
    "Committed per denoising step", "Denoising steps per canvas", "Canvas positions evaluated",
    # SGLang
    "Benchmark Mode", "Max request concurrency", "Max reqeuest concurrency", "Elapsed time (s)", "Total input text tokens", "Total input vision tokens",
    "Total generated tokens (retokenized)", "Total throughput (tok/s)", "Concurrency", "Accept length",
))  # fmt: skip
_POSITION: Final = re.compile(r"Position \d{1,3}")
_ARGUMENT: Final = re.compile(r"\b(\w+)=('[^']{0,100}'|[\w.+-]{1,40})")
_ARGUMENTS: Final = frozenset((
    "backend", "endpoint", "num_prompts", "request_rate", "burstiness", "max_concurrency", "request_id_prefix", "dataset_name",
    "random_input_len", "random_output_len", "num_warmups", "ramp_up_strategy",
))  # fmt: skip
_CHATTER: Final = re.compile(
    r"Starting (?:initial|main|warmup)|Initial test run completed|Skipping endpoint ready check|Warmup completed"
    r"|WARNING: |tip: install|\s*\d{1,3}%\|| *#Input tokens|#Output tokens|benchmark_args=|server_args=|Per-position acceptance"
)


def sniff(head: Head) -> Claim | None:
    """Claim a file with the table's heading that is no log of a server."""
    lines = (*head.lines, *head.sampled)
    if not is_load_output(lines):
        return None
    tool = "sglang bench" if any("E2E Latency (ms):" in line for line in lines) else "vllm bench"
    return Claim(tool, Clock.NONE)


def parse(chunk: Chunk) -> Parsed:
    """Read rows of tables and arguments; blank lines, rules and the tool's own chatter hold nothing."""
    figures: list[tuple[int, Figure]] = []
    refused: dict[int, str] = {}
    lines = chunk.lines
    for line_no, text in zip(lines["line_no"].to_list(), lines["text"].fill_null("").to_list(), strict=True):
        found = _line(text)
        if found is None:
            refused[line_no] = OTHER_OUTPUT
        else:
            figures += [(line_no, each) for each in found]
    tool = chunk.claim.variant if chunk.claim.variant == "sglang bench" else "vllm bench"
    issues = refusals(lines, refused)
    return Parsed(
        {"client_summary": summary_frame(tool, figures)}, issues, lines.height - issues.height, no_stamps()
    )


def _line(text: str) -> list[Figure] | None:
    """What a line states; None where it is none of the tool's."""
    if not text.strip() or TABLE.fullmatch(text) or _RULE.fullmatch(text) or _CHATTER.match(text):
        return []
    if text.startswith(("Namespace(", "benchmark_args=")):
        return list(_arguments(text))
    row = _ROW.fullmatch(text[:400])
    if row is None or not (row[1] in _NAMES or _LATENCY.fullmatch(row[1]) or _POSITION.fullmatch(row[1])):
        return None
    name, statistic = led_by_statistic(row[1])
    value = row[2].partition(" (")[0]
    amount = number(value)
    if amount is not None and amount < 0:
        return []  # -1 is a simulation's "not measured"
    return [figure(name, value, statistic, unit_of(row[1]), None)]


def _arguments(text: str) -> Iterator[Figure]:
    for found in _ARGUMENT.finditer(text):
        if found[1] in _ARGUMENTS and found[2] != "None":
            yield figure(found[1], found[2].strip("'"), None, None, None)


FORMAT: Final = Format(
    name="bench_stdout",
    title="output of vllm bench serve or sglang.bench_serving",
    side=Side.CLIENT,
    fills=("client_summary",),
    sniff=sniff,
    parse=parse,
    versions="vLLM 0.3 to 0.32, SGLang 0.3 to 0.5",
    complete="Totals as printed, by every name that a version gave them; the SGLang sample is hand-made.",
    record="vllm bench serve ... | tee bench.txt",
    sample="v0.32.0_chat_detailed.txt",
)
