"""Home-made logs of GPUs and hosts: CSV, TSV or JSON lines whose columns go by names that people use (`measure_names`).

Claimed only where rows have a time or a tick, and at least two columns are measures.  A column without a unit counts where
its values leave one only; all that is not certain stays in ``other``, with labels such as a phase.
Columns of several GPUs in one row (``gpu0_util``) give one sample per GPU.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

import polars as pl

from tracelens.formats.base import Chunk, Claim, Clock, Format, Head, Parsed, Side
from tracelens.formats.gpu import dcgm_long, nvidia_dmon, nvidia_query, nvitop, sampled_json, vendor_tables
from tracelens.formats.gpu.cell_stamps import CLOCKS
from tracelens.formats.gpu.gpu_lines import finish, last_heading
from tracelens.formats.gpu.measure_names import meanings, plain, wide
from tracelens.formats.gpu.named_tables import (
    Layout,
    Names,
    Tool,
    by_commas,
    cells_of,
    heading_text,
    read_rows,
    reason,
    stamp_columns,
)
from tracelens.formats.gpu.sampled_plan import FEWEST_MEASURES, Plan, is_ordered, plan_of, said
from tracelens.formats.gpu.sampled_rows import gpu_rows, has_measure, host_rows

_SEPARATORS: Final = ("\t", ";", ",")
_MARKS: Final = (
    "ime",
    "IME",
    "ts",
    "TS",
    "poch",
    "POCH",
    "date",
    "Date",
    "utc",
    "UTC",
    "tick",
    "wall",
    "mono",
    "elapsed",
    "t,",
    "step",
)
_MIN_SHARE: Final = 0.5
_TOOLS: Final = (
    nvidia_dmon.FORMAT, nvidia_query.FORMAT, nvitop.FORMAT, vendor_tables.AMD_SMI, vendor_tables.ROCM_SMI,
    vendor_tables.NPU_SMI, vendor_tables.XPU_SMI, dcgm_long.FORMAT,
)  # fmt: skip
"""Tools whose tables have names for it too: theirs is the word."""

_LONGEST_HEADING: Final = 20_000


def _separator(line: str) -> str:
    return next((sign for sign in _SEPARATORS if sign in line), ",")


@lru_cache(maxsize=256)
def _heading(line: str) -> Names | None:
    """Read a heading: names, one of them of a time, no fewer than two of measures."""
    bare = line.lstrip("\ufeff# ")
    if (not bare[:1].isalpha() and bare[:1] not in ('"', "_", "%")) or len(line) > _LONGEST_HEADING:
        return None
    names = tuple(cell.strip().strip('"') for cell in bare.split(_separator(bare)))
    if len(set(names)) != len(names) or len(names) < FEWEST_MEASURES + 1 or not all(names):
        return None
    simple = [plain(name) for name in names]
    measured = sum(
        bool(meanings(name)) or bool((found := wide(name)) and meanings(found[1])) for name in simple
    )
    return names if measured >= FEWEST_MEASURES else None


def _cells(text: pl.Expr) -> pl.Expr:
    """Split at the separator of the heading above."""
    heading, commas = pl.col("heading"), text
    for sign in _SEPARATORS[1::-1]:
        has_sign = heading.str.contains(sign, literal=True)
        commas = pl.when(has_sign).then(text.str.replace_all(sign, ",", literal=True)).otherwise(commas)
    return by_commas(commas)


_TOOL: Final = Tool(_MARKS, _heading, _cells, {}, passed=r"^\s*#", variant="table")


def sniff(head: Head) -> Claim | None:
    """Claim a table or JSON lines with a time or a tick and no fewer than two measures."""
    if head.first.lstrip("\ufeff \t").startswith("{"):
        return sampled_json.sniff(head)
    lines = [stripped for line in head.lines if (stripped := line.rstrip("\r")).strip()]
    at = next((at for at, line in enumerate(lines[:50]) if _heading(line)), None)
    if at is None:
        return None
    names = _heading(lines[at]) or ()
    rows, share_of = _rows_in(lines[at:])
    if not rows or share_of <= _MIN_SHARE:
        return None
    # The last row may be cut inside a number.
    texts = {name: [row[at] or "" for row in rows[:-1] or rows] for at, name in enumerate(names)}
    plan = plan_of(names, texts)
    is_own = plan.measure_count >= FEWEST_MEASURES and is_ordered(names, plan)
    if not is_own or any(tool.sniff(head) for tool in _TOOLS):
        return None
    return claim_by("table", plan, {"heading": lines[at]})


def _rows_in(lines: list[str]) -> tuple[list[list[str]], float]:
    """Split the rows under the first heading, and say which share of all rows has as many cells as its heading."""
    first: list[list[str]] = []
    fits = 0
    groups: list[list[str]] = []
    for line in lines:
        if _heading(line):
            groups.append([])
        groups[-1].append(line)
    for group in groups:
        names, sign = _heading(group[0]) or (), _separator(group[0])
        rows = [
            row
            for row in cells_of(by_commas, [line.replace(sign, ",") for line in group[1:]])
            if len(row) == len(names)
        ]
        fits += len(rows)
        first = first or rows if group is groups[0] else first
    below = len(lines) - len(groups)
    return first, fits / below if below else 0.0


def claim_by(form: str, plan: Plan, settings: dict[str, Any]) -> Claim:
    """Say what was found."""
    clock = CLOCKS[plan.stamp_kind] if plan.stamp_kind else Clock.NONE
    return Claim(f"home-made {form}, {said(plan)}", clock, {"plan": plan, "prefix": None, **settings})


def context(text: str, previous: str | None) -> str | None:
    """Return the last heading of a chunk; JSON lines have none."""
    if text.lstrip("\ufeff \n").startswith("{"):
        return previous
    return last_heading(text, previous, _MARKS, heading_text(_TOOL))


def _plan_under(names: Names, claim: Claim) -> Plan:
    """Keep of the file's plan what stands under a heading: a run that was appended may have fewer columns."""
    plan: Plan = claim.settings["plan"]
    here = set(names)
    return Plan(
        plan.stamp if plan.stamp in here else None,
        plan.stamp_kind if plan.stamp in here else None,
        plan.index if plan.index in here else None,
        {name: each for name, each in plan.gpu.items() if name in here},
        {name: each for name, each in plan.host.items() if name in here},
        {
            gpu: kept
            for gpu, each in plan.wide.items()
            if (kept := {n: r for n, r in each.items() if n in here})
        },
        plan.date if plan.date in here else None,
        plan.unnumbered,
    )


def _rows_under(group: pl.DataFrame, names: Names, claim: Claim) -> pl.DataFrame:
    """Read rows under one heading: ``cells`` with the stamp, and ``bad``: why a row is none."""
    plan = _plan_under(names, claim)
    layout = Layout(names, plan.gpu, plan.stamp, plan.stamp_kind, plan.index, date=plan.date)
    when, error = stamp_columns(layout, claim)
    rows = group.with_columns(sample_ts=when, error_s=error).with_columns(bad=reason(layout))
    unread = pl.when(~has_measure(names, plan)).then(pl.lit("no measure can be read"))
    return rows.select(
        "line_no",
        "sample_ts",
        "error_s",
        "cells",
        bad=pl.coalesce("bad", unread),
        heading=pl.lit(group["heading"][0]),
    )


def _tables(rows: pl.DataFrame, claim: Claim) -> dict[str, pl.DataFrame]:
    """Make the samples of GPUs and of hosts."""
    gpus, hosts = [], []
    for group in rows.partition_by("heading", maintain_order=True) if rows.height else ():
        names = _heading(heading_text(_TOOL)(group["heading"][0]) or "") or ()
        plan = _plan_under(names, claim)
        if plan.gpu or plan.wide:
            gpus.append(gpu_rows(group, names, plan))
        if plan.host:
            hosts.append(host_rows(group, names, plan))
    empty = rows.clear().select("line_no", "sample_ts", "error_s")
    return {
        name: pl.concat([empty, *found], how="diagonal").sort("line_no", maintain_order=True)
        for name, found in (("gpu_sample", gpus), ("host_sample", hosts))
    }


def parse(chunk: Chunk) -> Parsed:
    """Read rows by the plan of the file, whole columns at a time."""
    if chunk.claim.settings.get("is_json"):
        return sampled_json.parse(chunk)
    lines, rows = read_rows(_TOOL, chunk, _rows_under)
    good = rows.filter(pl.col("bad").is_null())
    if "cells" not in good.columns:
        return finish(lines, good.select("line_no", "sample_ts", "error_s"))
    tables = _tables(good, chunk.claim)
    return finish(lines, tables["gpu_sample"], host_sample=tables["host_sample"])


FORMAT: Final = Format(
    name="sampled_table",
    title="home-made logs of GPUs and hosts (csv, tsv, JSON lines)",
    side=Side.GPU,
    fills=("gpu_sample", "host_sample", "host_process_sample", "log_event"),
    sniff=sniff,
    parse=parse,
    context=context,
    carried={"log_event": "event_ts"},
    versions="by names of columns",
    complete="Columns whose names and values leave one meaning; all others stay in other. Names that are later than the head of the file do too.",
    record="any script that writes a time and two measures a line, units in the names (ts,gpu,util_pct,power_w)",
    sample="telemetry.jsonl",
)
