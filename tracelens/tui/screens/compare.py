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
Named = tuple[str, Sequence[str]]
"""A row of a table: its name, its cells."""
_SHARE: Final = 20
_BEFORE_SHARE: Final = 61
_LONG_NAME: Final = 30
_CELL: Final = 10
_ENGINE_HEADS: Final = (
    "running",
    "waiting",
    "KV mean",
    "KV max",
    "gen",
    "of tokens",
    "prompt",
    "preempted",
    "hits",
)
_GPU_HEADS: Final = ("busy", "util", "power", "tensor", "DRAM", "watts", "clock", "hottest")


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
    known = max(len(_known_in(row)) for row in rows)
    share = max(min(width - _BEFORE_SHARE - known - 1, _SHARE), 1)
    for one in runs:
        if len(runs) > 1:
            yield Text(shorten(f"run {clean(one)}", width), style=ink.strong if one == run else ink.dim)
        yield Text(
            f"{'stages':<14}{heads}  {'of TTFT':>7}  {'':<{share}} {'known in':>{known}}",
            style=ink.head,
            no_wrap=True,
        )
        for row in rows:
            if row["run_id"] == one:
                line = _stage(row, share, ink)
                yield line.append(f" {_known_in(row):>{known}}", style=ink.dim)


def _known_in(row: Facts) -> str:
    return f"{count(row['observed_count'])} of {count(row['request_count'])}"


def _stage(row: Facts, share: int, ink: Ink) -> Text:
    letter = STAGE_LETTERS[row["stage"]]
    known = row["p50_s"] is not None
    line = Text(f"{letter} {row['stage']:<12}", style=ink.stage(letter) if known else ink.dim, no_wrap=True)
    line.append(
        "".join(f"{duration(row[f'{name}_s']):>9}" for name in ("p50", "p90", "p99", "max")),
        style=ink.plain if known else ink.dim,
    )
    part = row["share_of_ttft_ratio"]
    line.append(f"  {percent(part) if part is not None else '':>7}  ")
    cells = max(min(round((part or 0.0) * share), share), 1 if part and part > 0 else 0)
    return line.append(f"{letter * cells:<{share}}", style=ink.stage(letter))


def _table(title: str, heads: Sequence[str], rows: Sequence[Named], width: int, ink: Ink) -> Iterator[Text]:
    """A row per name; columns that do not fit stand below, with the names again."""
    wide = min(max(len(title), *(len(name) for name, _ in rows)) + 1, _LONG_NAME)
    fit = max((width - wide) // _CELL, 1)
    for start in range(0, len(heads), fit):
        yield Text(f"{title:<{wide}}" + _cells(heads[start : start + fit]), style=ink.head, no_wrap=True)
        for name, cells in rows:
            said = shorten(name, wide - 1, middle=True)
            yield Text(f"{said:<{wide}}" + _cells(cells[start : start + fit]), no_wrap=True)


def _cells(cells: Iterable[str]) -> str:
    return "".join(f"{cell:>{_CELL}}" for cell in cells)


def engine_lines(rows: Sequence[Facts], width: int, ink: Ink) -> Iterator[Text]:
    """Each engine, and whether it has more than its part of the load."""
    yield from _table("engines", _ENGINE_HEADS, [_engine(row) for row in rows], width, ink)
    for row in rows:
        if row["is_uneven"]:
            said = (
                f"▲ engine {count(row['engine_index'])} makes {percent(row['generation_share_ratio'])} of the tokens; "
                f"an even part is {percent(row['even_ratio'])}"
            )
            yield from sentence(said, width, ink.warn)
    lines = plural(rows[0]["run_sample_count"], "stats line")
    said = f"running and waiting: mean–highest; gen and prompt: mean tokens/s; {lines}"
    yield from sentence(said, width, ink.dim)


def _engine(row: Facts) -> Named:
    cells = (
        _mean_to_max(row["running_mean_count"], row["running_max_count"]),
        _mean_to_max(row["waiting_mean_count"], row["waiting_max_count"]),
        percent(row["kv_cache_usage_mean_ratio"]),
        percent(row["kv_cache_usage_max_ratio"]),
        number(row["generation_mean_tps"]),
        percent(row["generation_share_ratio"]),
        number(row["prompt_mean_tps"]),
        count(row["preemption_count"]),
        percent(row["prefix_cache_hit_mean_ratio"]),
    )
    return f"engine {count(row['engine_index'])}", cells


def _mean_to_max(mean: float | None, most: int | None) -> str:
    return UNKNOWN if mean is None else f"{mean:.1f}–{count(most)}"


def gpu_lines(rows: Sequence[Facts], width: int, ink: Ink) -> Iterator[Text]:
    """Each GPU while kernels ran: utilisation beside power, tensor cores and memory; pairs that mislead are told."""
    yield from _table("GPUs", _GPU_HEADS, [_gpu(row) for row in rows], width, ink)
    for row in rows:
        if row["misleading"]:
            yield from sentence(f"▲ {row['gpu']}: {row['misleading']}", width, ink.warn)
    yield from sentence(
        "util, power, tensor, DRAM: medians while kernels ran (busy: share of samples); power and clock in parts of their limit. "
        "Utilisation says that a kernel ran, not how much of the GPU worked.",
        width, ink.dim,
    )  # fmt: skip


def _gpu(row: Facts) -> Named:
    watts, heat = row["busy_power_p50_w"], row["busy_temp_max_c"]
    cells = (
        percent(row["busy_ratio"]),
        percent(row["busy_util_p50_ratio"]),
        percent(row["busy_power_p50_ratio"]),
        percent(row["busy_tensor_p50_ratio"]),
        percent(row["busy_dram_p50_ratio"]),
        UNKNOWN if watts is None else f"{watts:.0f} W",
        percent(row["busy_clock_ratio"]),
        UNKNOWN if heat is None else f"{heat:.0f} °C",
    )
    return clean(f"{row['gpu']} {row['gpu_name'] or ''}".strip()), cells
