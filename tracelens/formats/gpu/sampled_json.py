"""Home-made logs of GPUs and hosts as JSON lines: objects, nested ones by dotted names, lists of GPUs one sample each.

Names are those of the head of the file; keys that come later are kept in ``other``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

import orjson
import polars as pl

from tracelens.formats.base import Chunk, Claim, Clock, Head, Parsed, issues_of
from tracelens.formats.gpu.cell_stamps import CLOCKS, resolution, stamp
from tracelens.formats.gpu.gpu_lines import with_counted
from tracelens.formats.gpu.host_cpu import counters, is_counter, is_process_list, processes
from tracelens.formats.gpu.measure_names import meanings, plain
from tracelens.formats.gpu.sampled_plan import FEWEST_MEASURES, Plan, is_ordered, plan_of, said
from tracelens.formats.gpu.sampled_rows import gpu_rows, host_rows
from tracelens.formats.json_lines import objects_in, read_objects
from tracelens.formats.notes import is_note

_DEEPEST: Final = 4
_MOST_GPUS: Final = 256
_GPU_LISTS: Final = ("gpus", "devices", "cards", "gpu", "gpu_stats", "gpu_metrics")
_REQUEST_KEYS: Final = frozenset((
    "prompt_tokens", "completion_tokens", "ttft", "ttft_s", "ttft_ms", "request_id", "e2e_latency", "levelname", "resourceSpans",
    "status_code", "prompt", "messages", "usage", "trace_id", "response",
))  # fmt: skip
"""Keys of logs of requests: such a file is no log of load."""


@dataclass(slots=True)
class _Row:
    """One sample of a line: its flat keys, and what the line says of the host's CPUs."""

    flat: dict[str, Any] = field(default_factory=dict)
    host_keys: dict[str, Any] = field(default_factory=dict)


@lru_cache(maxsize=4096)
def _is_of_host(key: str) -> bool:
    return is_counter(key) or is_process_list(key)


def _flatten(value: Mapping[str, Any], row: _Row, above: str = "", depth: int = 0) -> None:
    for key, each in value.items():
        name = f"{above}{key}"
        if _is_of_host(key):
            row.host_keys[key] = each
        elif isinstance(each, dict) and depth < _DEEPEST:
            _flatten(each, row, f"{name}.", depth + 1)
        else:
            row.flat[name] = each


def _rows(value: dict[str, Any]) -> Iterator[_Row]:
    """Yield the samples of a line: one for each GPU of a list, each with the line's other keys."""
    key, gpus = _gpu_list(value)
    rest = {name: each for name, each in value.items() if name != key}
    for gpu in gpus[:_MOST_GPUS] or [{}]:
        row = _Row()
        _flatten(rest, row)
        _flatten(gpu, row, "gpu.")
        yield row


def _gpu_list(value: Mapping[str, Any]) -> tuple[str | None, list[dict[str, Any]]]:
    """Find the key of a line that lists GPUs, and them: a list of objects, or objects by index."""
    for key in _GPU_LISTS:
        gpus = value.get(key)
        if isinstance(gpus, dict) and gpus and all(str(name).isdecimal() for name in gpus):
            gpus = [
                {"index": name, **each} if isinstance(each, dict) else None for name, each in gpus.items()
            ]
        if isinstance(gpus, list) and gpus and all(isinstance(each, dict) for each in gpus):
            return key, gpus
    return None, []


def _text(value: Any) -> str:
    if value is None or isinstance(value, dict | list):
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)[:400]


def _named(names: Sequence[str]) -> dict[str, str]:
    """Tell by which name each key is understood: a dotted one that means nothing as a whole, by its last part."""
    shorts = [name.rpartition(".")[2] for name in names]
    return {
        name: short if shorts.count(short) == 1 and not meanings(plain(name)) else name
        for name, short in zip(names, shorts, strict=True)
    }


def sniff(head: Head) -> Claim | None:
    """Claim JSON lines with a time or a tick and no fewer than two measures."""
    objects = objects_in(head.lines)
    if not objects or any(_REQUEST_KEYS & each.keys() for each in objects[:20]):
        return None
    rows = [row for each in objects for row in _rows(each)]
    names = list(dict.fromkeys(name for row in rows for name in row.flat))
    called = _named(names)
    texts = {called[name]: [_text(row.flat.get(name)) for row in rows] for name in names}
    is_list = any(_gpu_list(each)[1] for each in objects)
    plan = plan_of(list(texts), texts, is_list=is_list)
    has_cpu = any(row.host_keys for row in rows)
    if plan.measure_count + has_cpu < FEWEST_MEASURES or not is_ordered(list(texts), plan):
        return None
    clock = CLOCKS[plan.stamp_kind] if plan.stamp_kind else Clock.NONE
    cpu = ", CPU counters" if has_cpu else ""
    settings = {"is_json": True, "plan": plan, "called": called}
    return Claim(f"home-made JSON lines, {said(plan)}{cpu}", clock, settings)


def _used(plan: Plan) -> tuple[str, ...]:
    """Name the columns that the plan places."""
    wide = [name for each in plan.wide.values() for name in each]
    placed_by = [name for name in (plan.stamp if plan.stamp_kind else None, plan.date, plan.index) if name]
    return tuple(dict.fromkeys([*placed_by, *plan.gpu, *plan.host, *wide]))


class _Reader:
    """Takes the objects of a chunk, line by line, and makes frames of them."""

    def __init__(self, claim: Claim) -> None:
        self.plan: Plan = claim.settings["plan"]
        self.called: Mapping[str, str] = claim.settings["called"]
        self.names = _used(self.plan)
        order = {self.plan.stamp, self.plan.date, self.plan.index}
        self.measured = frozenset(self.names) - order
        self.line_nos: list[int] = []
        self.firsts: list[bool] = []
        """Whether a sample is the first of its line."""
        self.cells: dict[str, list[str]] = {name: [] for name in self.names}
        self.rests: list[str | None] = []
        """What no column holds, as JSON."""
        self.cpus: list[tuple[int, float, float]] = []
        self.processes: list[tuple[Any, ...]] = []
        self.unread: dict[int, str] = {}

    def take(self, line_no: int, value: dict[str, Any]) -> None:
        """Take one line."""
        has_any = False
        for nth, row in enumerate(_rows(value)):
            flat = {self.called.get(name, name): each for name, each in row.flat.items()}
            has_any |= not self.measured.isdisjoint(flat) or bool(row.host_keys)
            for name in self.names:
                self.cells[name].append(_text(flat.pop(name, None)))
            rest = {name: each for name, each in flat.items() if is_note(name, each)}
            self.rests.append(_dumped(rest) if rest else None)
            self.line_nos.append(line_no)
            self.firsts.append(nth == 0)
            if nth == 0:
                self._take_cpu(line_no, row.host_keys)
        if not has_any:
            self.unread[line_no] = "no measure in it"

    def _take_cpu(self, line_no: int, host_keys: Mapping[str, Any]) -> None:
        for key, each in host_keys.items():
            if is_counter(key):
                both = counters(key, each)
                if both is not None:
                    self.cpus.append((line_no, *both))
            else:
                self.processes.extend((line_no, *process) for process in processes(key, each))

    def rows(self) -> pl.DataFrame:
        """All samples as ``line_no, is_first, cells, rest`` with their stamps."""
        cells = [pl.Series(str(at), each, pl.String) for at, each in enumerate(self.cells.values())]
        frame = pl.DataFrame(
            {"line_no": self.line_nos, "is_first": self.firsts, "rest": self.rests},
            schema={"line_no": pl.Int64, "is_first": pl.Boolean, "rest": pl.String},
        ).with_columns(cells)
        joined = (
            pl.concat_list([str(at) for at in range(len(cells))])
            if cells
            else pl.lit(None, pl.List(pl.String))
        )
        frame = frame.select("line_no", "is_first", "rest", cells=joined)
        kept = frame.filter(~pl.col("line_no").is_in(list(self.unread)))
        return kept.with_columns(*_stamps(self.names, self.plan))


def _dumped(rest: Mapping[str, Any]) -> str:
    return orjson.dumps(rest, option=orjson.OPT_NON_STR_KEYS).decode()


def _frames(found: _Reader, rows: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """Make the samples of GPUs, of hosts and of processes."""
    names, plan = found.names, found.plan
    tables = {}
    if plan.gpu or plan.wide:
        gpus = gpu_rows(rows, names, plan).drop("other")
        rest = rows.filter("is_first") if plan.wide else rows
        tables["gpu_sample"] = _with_rest(gpus, rest, per_line=bool(plan.wide))
    host = host_rows(rows.filter("is_first"), names, plan).drop("other")
    host = _with_cpu(host, found)
    if not tables:
        host = _with_rest(host, rows.filter("is_first"), per_line=True)
    if plan.host or found.cpus:
        tables["host_sample"] = host
    stamps = rows.filter("is_first").select("line_no", "sample_ts", "error_s")
    tables["host_process_sample"] = _process_frame(found, stamps)
    return tables


def _stamps(names: Sequence[str], plan: Plan) -> tuple[pl.Expr, pl.Expr]:
    if not plan.stamp or not plan.stamp_kind:
        none = pl.lit(None, pl.Datetime("us")).alias("sample_ts")
        return none, pl.lit(None, pl.Float64).alias("error_s")
    cell = pl.col("cells").list.get(names.index(plan.stamp), null_on_oob=True)
    if plan.date:
        cell = pl.col("cells").list.get(names.index(plan.date), null_on_oob=True) + pl.lit(" ") + cell
    when = stamp(cell, plan.stamp_kind)
    error = pl.when(when.is_not_null()).then(resolution(cell, plan.stamp_kind))
    return when.alias("sample_ts"), error.alias("error_s")


def _with_rest(samples: pl.DataFrame, rows: pl.DataFrame, *, per_line: bool) -> pl.DataFrame:
    """Add ``other``: by line where a line's samples share it, else row by row, which are in the same order."""
    if per_line:
        rest = rows.select("line_no", other="rest")
        return samples.join(rest, on="line_no", how="left", maintain_order="left")
    return samples.with_columns(rows["rest"].alias("other"))


def _with_cpu(host: pl.DataFrame, found: _Reader) -> pl.DataFrame:
    """Add the CPU counters; where the plan has no measure of a host, a line without counters is no sample of one."""
    schema = {"line_no": pl.Int64, "cpu_busy_ticks": pl.Float64, "cpu_total_ticks": pl.Float64}
    cpus = pl.DataFrame(found.cpus, schema=schema, orient="row").unique("line_no", keep="first")
    return host.join(cpus, on="line_no", how="left" if found.plan.host else "inner", maintain_order="left")


def _process_frame(found: _Reader, stamps: pl.DataFrame) -> pl.DataFrame:
    schema = {
        "line_no": pl.Int64, "position": pl.Int32, "pid": pl.Int64, "process": pl.String, "cpu_s": pl.Float64,
        "cpu_cores": pl.Float64, "memory_used_bytes": pl.Int64,
    }  # fmt: skip
    rows = pl.DataFrame(found.processes, schema=schema, orient="row")
    return rows.join(stamps, on="line_no", how="inner", maintain_order="left")


def _reasons(found: _Reader, rows: pl.DataFrame) -> dict[int, str]:
    """Say why lines cannot be read: no measure, or no stamp in a file that has stamps."""
    bare = rows.filter(pl.col("sample_ts").is_null())["line_no"] if found.plan.stamp_kind else ()
    return {**found.unread, **dict.fromkeys(bare, "stamp cannot be read")}


def parse(chunk: Chunk) -> Parsed:
    """Read each line's object; a line without a measure, or without its stamp, is an issue."""
    objects = read_objects(chunk.lines)
    found = _Reader(chunk.claim)
    for line_no, value in objects:
        found.take(line_no, value)
    rows = found.rows()
    reasons = _reasons(found, rows)
    rows = rows.filter(~pl.col("line_no").is_in(list(reasons)))
    tables = _frames(found, rows)
    why = pl.DataFrame(
        {"line_no": list(reasons), "reason": list(reasons.values())},
        schema={"line_no": pl.Int64, "reason": pl.String},
    )
    unread = issues_of(chunk.lines.join(why, on="line_no", maintain_order="left"), pl.col("reason"))
    issues = pl.concat([objects.issues, unread]).sort("line_no")
    stamps = rows.filter("is_first").select("line_no", stamp="sample_ts").drop_nulls()
    if "gpu_sample" in tables:
        tables["gpu_sample"] = with_counted(tables["gpu_sample"])
    return Parsed(tables, issues, chunk.lines.height - issues.height, stamps)
