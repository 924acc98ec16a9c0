"""What ``evalscope perf`` writes beside its database: its arguments, totals, percentiles, and tokens over time.

Read in EvalScope 1.14 (``benchmark_args.json``, ``workload_timeline.json``); ``benchmark_summary.json`` and
``benchmark_percentile.json`` by their documented keys.  ``t`` of the timeline counts from a monotonic ``wall_start``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tracelens.formats.base import Chunk, Claim, Clock, Format, Head, Parsed, Side, no_stamps
from tracelens.formats.client.bench_documents import documents_in
from tracelens.formats.client.tool_summaries import Figure, figure, statistic_of, summary_frame, unit_of
from tracelens.formats.json_lines import number

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

TOOL: Final = "evalscope"
_HEAD_CHARS: Final = 20_000
_ARGUMENTS: Final = (
    "number", "parallel", "rate", "warmup_num", "max_tokens", "min_tokens", "max_prompt_length", "min_prompt_length",
    "prefix_length", "num_workers", "total_timeout",
)  # fmt: skip
_KINDS: Final = (
    ("arguments of a run", ('"parallel"', '"max_prompt_length"', '"db_commit_interval"')),
    ("tokens over time", ('"wall_start"', '"cum_completion"')),
    ("totals", ('"Time taken for tests (s)"', '"Total requests"')),
    ("percentiles", ('"Percentiles"', '"TTFT (s)"')),
)
_KEYS: Final = frozenset(("points", "Percentiles", "db_commit_interval", "Time taken for tests (s)"))


def sniff(head: Head) -> Claim | None:
    """Claim a JSON document with the keys of one of the four."""
    begin = "\n".join(head.lines)[:_HEAD_CHARS].lstrip("\ufeff \t\n")
    if not begin.startswith(("{", "[")):
        return None
    kind = next((kind for kind, marks in _KINDS if all(mark in begin for mark in marks)), None)
    return None if kind is None else Claim(kind, Clock.NONE)


def parse(chunk: Chunk) -> Parsed:
    """Read the numbers of each object."""
    documents, issues = documents_in(chunk.lines, _is_known)
    figures = [(place, each) for place, document in enumerate(documents, 1) for each in _figures(document)]
    tables = {"client_summary": summary_frame(TOOL, figures)}
    return Parsed(tables, issues, chunk.lines.height - issues.height, no_stamps())


def _is_known(document: Mapping[str, Any]) -> bool:
    return not _KEYS.isdisjoint(document)


def _figures(document: Mapping[str, Any]) -> Iterator[Figure]:
    if isinstance(document.get("points"), list):
        yield from _points(document["points"])
    elif isinstance(document.get("Percentiles"), list):
        yield from _columns(document)
    elif "Percentiles" in document:
        statistic = statistic_of(str(document["Percentiles"]))
        yield from _numbers(document, statistic)
    elif "db_commit_interval" in document:
        yield from _numbers({key: document.get(key) for key in _ARGUMENTS}, None)
    else:
        yield from _numbers(document, None)


def _numbers(document: Mapping[str, Any], statistic: str | None) -> Iterator[Figure]:
    for key, value in document.items():
        if isinstance(value, int | float) and not isinstance(value, bool) and number(value) is not None:
            yield figure(key, value, statistic, unit_of(key), None)


def _columns(document: Mapping[str, Any]) -> Iterator[Figure]:
    """A column per metric beside the column of percentiles."""
    words = document["Percentiles"]
    for key, values in document.items():
        if key != "Percentiles" and isinstance(values, list):
            for word, value in zip(words, values, strict=False):
                yield from _numbers({key: value}, statistic_of(str(word)))


def _points(points: list[Any]) -> Iterator[Figure]:
    """Tokens so far, each under the moment it was counted at."""
    for point in points:
        moment = number(point.get("t")) if isinstance(point, dict) else None
        if moment is None:
            continue
        for key, value in point.items():
            if key != "t" and number(value) is not None:
                yield figure(key, value, "sum", "tokens", f"until {moment:.6f} s")


FORMAT: Final = Format(
    name="evalscope_summary",
    title="totals and arguments of evalscope perf",
    side=Side.CLIENT,
    fills=("client_summary",),
    sniff=sniff,
    parse=parse,
    whole=True,
    versions="EvalScope 1.14",
    complete="Totals and arguments of 1.14.",
    record="evalscope perf ... (benchmark_summary.json, benchmark_args.json)",
    sample="v1.14.1_benchmark_args.json",
)
