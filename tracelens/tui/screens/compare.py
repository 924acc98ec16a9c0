"""Stages, engines and GPUs beside each other: which stage takes the time, which engine the load, which GPU only seems busy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from rich.text import Text
from textual.containers import VerticalScroll

from tracelens.store import Result
from tracelens.text.terminal import clean, shorten
from tracelens.tui.draw import sentence
from tracelens.tui.ink import Ink
from tracelens.tui.pane import Pane
from tracelens.tui.view import View
from tracelens.units import STAGE_LETTERS, UNKNOWN, count, duration, number, percent, plural

if TYPE_CHECKING:
    from textual.widget import Widget

Facts = Mapping[str, Any]
_SHARE: Final = 20
_NAME: Final = 12
_LONG_NAME: Final = 22
_CELL: Final = 10
_UNEVEN: Final = 1.5
"""Times its even part from which on an engine is marked."""


class Compare(View):
    """Three tables of the run; the stages of the other runs too."""

    NAME = "compare"

    def __init__(self) -> None:
        super().__init__()
        self.stages = Pane("the stages", name="stages")
        self.engines = Pane("the engines", name="engines", classes="ruled")
        self.gpus = Pane("the GPUs", name="gpus", classes="ruled")

    def title_text(self) -> str:
        """Its place in the way."""
        return "Stages, engines, GPUs"

    def compose_body(self) -> Iterable[Widget]:
        """The tables, one below the other."""
        yield VerticalScroll(self.stages, self.engines, self.gpus, can_focus=True, id="page")

    def load(self) -> None:
        """All three."""
        self.query_case(self.stages, "stages", self._show_stages)
        self.query_case(self.engines, "engine_summary", self._show_engines, run=self.run_id)
        self.query_case(self.gpus, "gpu_compare", self._show_gpus, run=self.run_id)
        self.query_one("#page").focus()

    def _show_stages(self, result: Result) -> None:
        rows = result.dicts()
        if any(row["observed_count"] for row in rows):
            self.stages.fill(lambda width, ink: stage_lines(rows, self.run_id, width, ink))
        else:
            self.stages.empty(
                "Stages: none is known of any request.",
                "Spans (--otlp-traces-endpoint) and a streaming client show them.",
            )

    def _show_engines(self, result: Result) -> None:
        rows = result.dicts()
        if rows:
            self.engines.fill(lambda width, ink: engine_lines(rows, width, ink))
        else:
            self.engines.empty(
                "Engines: no stats line in this run (run without --disable-log-stats), and no scrape of /metrics."
            )

    def _show_gpus(self, result: Result) -> None:
        rows = result.dicts()
        if rows:
            self.gpus.fill(lambda width, ink: gpu_lines(rows, width, ink))
        else:
            self.gpus.empty(
                "GPUs: no GPU log in this run; nvidia-smi dmon -s pucvmet -o DT, better dcgmi dmon -e 1002,1004,1005."
            )

    def copied_text(self) -> str:
        """All three tables."""
        return "\n\n".join(part.plain_text() for part in self.query(Pane))


def stage_lines(rows: Sequence[Facts], run: str, width: int, ink: Ink) -> Iterator[Text]:
    """Quantiles of each stage, and its part of all time to first token; the run that is looked at first."""
    runs = list(dict.fromkeys([run, *(row["run_id"] for row in rows)]))
    heads = "".join(f"{name:>9}" for name in ("p50", "p90", "p99", "max"))
    for one in runs:
        title = f"stages of run {clean(one)}" if len(runs) > 1 else "stages"
        yield Text(
            shorten(f"{title:<14}{heads}  {'of TTFT':>7}  {'':<{_SHARE}} known in", width),
            style=ink.head,
            no_wrap=True,
        )
        yield from (_stage(row, ink) for row in rows if row["run_id"] == one)


def _stage(row: Facts, ink: Ink) -> Text:
    letter = STAGE_LETTERS[row["stage"]]
    known = row["p50_s"] is not None
    line = Text(f"{letter} {row['stage']:<12}", style=ink.stage(letter) if known else ink.dim, no_wrap=True)
    line.append(
        "".join(f"{duration(row[f'{name}_s']):>9}" for name in ("p50", "p90", "p99", "max")),
        style=ink.plain if known else ink.dim,
    )
    share = row["share_of_ttft_ratio"]
    line.append(f"  {percent(share) if share is not None else '':>7}  ")
    cells = max(min(round((share or 0.0) * _SHARE), _SHARE), 1 if share and share > 0 else 0)
    line.append(f"{letter * cells:<{_SHARE}}", style=ink.stage(letter))
    return line.append(f" {count(row['observed_count'])} of {count(row['request_count'])}", style=ink.dim)


def engine_lines(rows: Sequence[Facts], width: int, ink: Ink) -> Iterator[Text]:
    """Each engine, and whether it has more than its part of the load."""
    heads = (
        "running",
        "waiting",
        "KV mean",
        "KV max",
        "gen./s",
        "of tokens",
        "prompt/s",
        "preempted",
        "hits",
    )
    fit = max((width - _NAME) // _CELL, 1)
    yield Text(f"{'engines':<{_NAME}}" + _cells(heads[:fit]), style=ink.head, no_wrap=True)
    for row in rows:
        running = f"{number(row['running_mean_count'])}–{count(row['running_max_count'])}"
        waiting = f"{number(row['waiting_mean_count'])}–{count(row['waiting_max_count'])}"
        cells = (
            running, waiting, percent(row["kv_cache_usage_mean_ratio"]), percent(row["kv_cache_usage_max_ratio"]),
            number(row["generation_mean_tps"]), percent(row["generation_share_ratio"]), number(row["prompt_mean_tps"]),
            count(row["preemption_count"]), percent(row["prefix_cache_hit_mean_ratio"]),
        )  # fmt: skip
        uneven = (row["generation_share_ratio"] or 0.0) >= _UNEVEN * row["even_ratio"]
        name = f"engine {count(row['engine_index'])}"
        line = Text(f"{name:<{_NAME}}" + _cells(cells[:fit]), no_wrap=True)
        yield line.append("  ▲ more than its part" if uneven else "", style=ink.warn)
    lines = sum(row["sample_count"] for row in rows)
    yield Text(
        shorten(f"running and waiting: mean–highest; {plural(lines, 'stats line')}", width),
        style=ink.dim,
        no_wrap=True,
    )


def _cells(cells: Iterable[str]) -> str:
    return "".join(f"{cell:>{_CELL}}" for cell in cells)


def gpu_lines(rows: Sequence[Facts], width: int, ink: Ink) -> Iterator[Text]:
    """Each GPU while kernels ran: utilisation beside power, tensor cores and memory; pairs that mislead are told."""
    heads = ("busy", "util", "of limit", "tensor", "DRAM", "power", "clock", "hottest")
    fit = max((width - _LONG_NAME) // _CELL, 1)
    yield Text(f"{'GPUs':<{_LONG_NAME}}" + _cells(heads[:fit]), style=ink.head, no_wrap=True)
    for row in rows:
        watts = UNKNOWN if row["busy_power_p50_w"] is None else f"{row['busy_power_p50_w']:.0f} W"
        heat = UNKNOWN if row["busy_temp_max_c"] is None else f"{row['busy_temp_max_c']:.0f} °C"
        cells = (
            percent(row["busy_ratio"]), percent(row["busy_util_p50_ratio"]), percent(row["busy_power_p50_ratio"]),
            percent(row["busy_tensor_p50_ratio"]), percent(row["busy_dram_p50_ratio"]), watts, percent(row["busy_clock_ratio"]), heat,
        )  # fmt: skip
        name = shorten(clean(f"{row['gpu']} {row['gpu_name'] or ''}".strip()), _LONG_NAME - 1, middle=True)
        yield Text(f"{name:<{_LONG_NAME}}" + _cells(cells[:fit]), no_wrap=True)
        if row["misleading"]:
            yield from sentence(f"  ▲ {row['misleading']}", width, ink.warn)
    yield from sentence(
        "util, power, tensor, DRAM: medians while kernels ran (busy: share of samples). Utilisation says that a kernel ran, not how much of the GPU worked.",
        width, ink.dim,
    )  # fmt: skip
