"""``gpustat``: one JSON object per sample (``--json``), or a head line and one line per GPU.

Keys are the names of ``--query-gpu``; power is whole watts, memory MiB (the table says MB), ``query_time`` local wall time.
Samples of several runs stand one after the other.  Users' names are not kept.  Written from gpustat 0.6 to 1.1.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import polars as pl

from tracelens.formats.base import Chunk, Claim, Clock, Format, Head, Parsed, Side
from tracelens.formats.gpu.cell_stamps import CLOCKS, kind_of, resolution, stamp
from tracelens.formats.gpu.gpu_columns import MIB, PERCENT, QUERY, Reading, columns, number
from tracelens.formats.gpu.gpu_lines import finish, layout_code, sort_out, split
from tracelens.formats.json_lines import count, decode, text_of

_READINGS: Final[Mapping[str, Reading]] = {
    **QUERY,
    "utilization.enc": Reading("enc_ratio", PERCENT),
    "utilization.dec": Reading("dec_ratio", PERCENT),
}
_NAMES: Final = (
    "uuid", "name", "temperature.gpu", "fan.speed", "utilization.gpu", "utilization.enc", "utilization.dec", "power.draw",
    "enforced.power.limit", "memory.used", "memory.total",
)  # fmt: skip
_INDEX_LINE: Final = re.compile(r'^\s*"index"\s*:')
_ROW: Final = re.compile(r"^\[\d+\] .*\|.*\d.*\|.*/.*MB")
_ROW_PARTS: Final = (
    r"^\[(?P<index>\d{1,4})\] (?P<name>[^|]{1,80}?)\s*\|\s*(?P<temp>[-\d?]+)(?:'C|°C)"
    r"(?:,\s*(?P<fan>[\d?]+)\s*%)??,\s*(?P<load>[\d?]+)\s*%(?:,\s*(?P<power>[\d?]+)\s*/\s*(?P<limit>[\d?]+)\s*W)?"
    r"\s*\|\s*(?P<used>[\d?]+)\s*/\s*(?P<total>[\d?]+)\s*MB(?:\s|\||$)"
)
_TOP: Final = r"^(\S+)\s+([A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4})(?:\s|$)"


def sniff(head: Head) -> Claim | None:
    """Claim JSON with ``query_time`` and ``gpus``, or the table."""
    start = "\n".join(head.lines[:80]).lstrip("\ufeff \n")
    if start.startswith("{") and '"query_time"' in start and '"gpus"' in start:
        found = re.search(r'"query_time"\s*:\s*"([^"]{1,40})"', start)
        kind = kind_of(found.group(1)) if found else None
        return Claim("gpustat --json", CLOCKS[kind] if kind else Clock.NONE, {"stamp_kind": kind or ""})
    lines = [line for line in head.lines if line.strip()]
    rows = sum(bool(_ROW.match(line)) for line in lines)
    tops = sum(bool(re.match(_TOP, line)) for line in lines)
    if not rows or (rows + tops) * 2 <= len(lines):
        return None
    return Claim("gpustat table", Clock.LOCAL if tops else Clock.NONE, {"is_table": True})


@dataclass(frozen=True, slots=True)
class _Block:
    """The lines of one JSON object, by their numbers, and the object; None where it is none."""

    first: int
    texts: list[str]
    value: dict[str, Any] | None


def _blocks(chunk: Chunk) -> Iterator[_Block]:
    """Cut the file at the lines that begin with ``{``: gpustat indents what is inside."""
    lines = [text or "" for text in chunk.lines["text"].to_list()]
    first = int(chunk.lines["line_no"][0]) if lines else 1
    starts = [at for at, text in enumerate(lines) if text.lstrip("\ufeff").startswith("{")]
    for at, end in pairwise([*starts, len(lines)]):
        texts = lines[at:end]
        yield _Block(first + at, texts, _value("\n".join(texts).strip().lstrip("\ufeff")))


def _value(text: str) -> dict[str, Any] | None:
    try:
        found = decode(text)
    except ValueError:
        return None
    return found if isinstance(found, dict) and isinstance(found.get("gpus"), list) else None


def _gpus(block: _Block) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the GPUs of a sample with the line each begins on: that of its index where the object is indented."""
    found = [gpu for gpu in (block.value or {}).get("gpus", ()) if isinstance(gpu, dict)]
    at = [block.first + nth for nth, text in enumerate(block.texts) if _INDEX_LINE.match(text)]
    lines = at if len(at) == len(found) else [block.first] * len(found)
    yield from zip(lines, found, strict=True)


def _cell(value: Any) -> str:
    return "" if value is None or isinstance(value, dict | list | bool) else str(value)[:200]


def _tables(blocks: list[_Block], kind: str) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Make the samples of GPUs, and those of the processes on them."""
    gpus: list[tuple[Any, ...]] = []
    processes: list[tuple[Any, ...]] = []
    for block in blocks:
        said = block.value or {}
        when, host = text_of(said.get("query_time")), text_of(said.get("hostname"))
        for line_no, gpu in _gpus(block):
            index = count(gpu.get("index"))
            top = (line_no, when, host, index if index is not None and index < 10_000 else None)  # noqa: PLR2004
            gpus.append((*top, [_cell(gpu.get(name)) for name in _NAMES]))
            running = gpu.get("processes")
            for each in running if isinstance(running, list) else ():
                if isinstance(each, dict):
                    used = count(each.get("gpu_memory_usage"))
                    processes.append((*top, count(each.get("pid")), text_of(each.get("command")), used))
    schema = {"line_no": pl.Int64, "when": pl.String, "host": pl.String, "gpu_index": pl.Int32}
    return _framed(gpus, {**schema, "cells": pl.List(pl.String)}, kind), _framed(
        processes, {**schema, "pid": pl.Int64, "command": pl.String, "used": pl.Int64}, kind
    )


def _framed(rows: list[tuple[Any, ...]], schema: Mapping[str, Any], kind: str) -> pl.DataFrame:
    """Put rows into a frame and read their stamps."""
    frame = pl.DataFrame(rows, schema=schema, orient="row")
    when = stamp(pl.col("when"), kind) if kind in CLOCKS else pl.lit(None, pl.Datetime("us"))
    error = resolution(pl.col("when"), kind) if kind in CLOCKS else pl.lit(None, pl.Float64)
    return frame.with_columns(sample_ts=when, error_s=pl.when(when.is_not_null()).then(error)).drop("when")


def _parse_json(chunk: Chunk) -> Parsed:
    blocks = list(_blocks(chunk))
    gpus, processes = _tables(blocks, str(chunk.claim.settings.get("stamp_kind", "")))
    samples = gpus.select(
        "line_no", "sample_ts", "error_s", "host", "gpu_index", *columns(_NAMES, _READINGS), layout_code(_NAMES).alias("segment"),
    )  # fmt: skip
    used = (pl.col("used") * int(MIB)).alias("memory_used_bytes")
    processes = processes.select(
        "line_no", "sample_ts", "error_s", "host", "gpu_index", "pid", "command", used
    )
    whole = [line for b in blocks if b.value is not None for line in range(b.first, b.first + len(b.texts))]
    bad = [line for b in blocks if b.value is None for line in range(b.first, b.first + len(b.texts))]
    lines = split(chunk, None)
    reason = pl.when(pl.col("line_no").is_in(bad)).then(pl.lit("sample cut, or not JSON"))
    lines = sort_out(
        lines,
        pl.col("line_no").is_in(whole),
        pl.coalesce(reason, pl.lit("not a line of gpustat")),
    )
    return _finished(lines, samples, processes)


def _finished(lines: pl.DataFrame, samples: pl.DataFrame, processes: pl.DataFrame) -> Parsed:
    stamps = samples.select("line_no", stamp="sample_ts").unique("line_no", maintain_order=True)
    lines = lines.join(stamps, on="line_no", how="left", maintain_order="left")
    lines = lines.with_columns(event_ts=pl.col("stamp").forward_fill(), error_s=pl.lit(None, pl.Float64))
    return finish(lines, samples, gpu_process_sample=processes)


def _parse_table(chunk: Chunk) -> Parsed:
    """Read the lines of the table; a GPU's stamp is that of the head line above it."""
    rest = pl.col("rest")
    lines = split(chunk, None)
    when = stamp(rest.str.extract(_TOP, 2), "ctime")
    host = rest.str.extract(_TOP, 1)
    parts = rest.str.extract_groups(_ROW_PARTS).alias("parts")
    lines = lines.with_columns(parts, top=when, host=pl.when(when.is_not_null()).then(host))
    lines = lines.with_columns(sample_ts=pl.col("top").forward_fill(), host=pl.col("host").forward_fill())
    is_row = pl.col("parts").struct.field("index").is_not_null()
    cut = pl.when(pl.col("is_open") & is_row).then(pl.lit("row cut in its last cell"))
    lines = lines.with_columns(is_row=is_row & ~pl.col("is_open"), bad=cut)
    rows = lines.filter("is_row").select("line_no", "sample_ts", "host", pl.col("parts").struct.unnest())
    samples = rows.select(
        "line_no", "sample_ts", "host",
        error_s=pl.when(pl.col("sample_ts").is_not_null()).then(1.0),
        gpu_index=pl.col("index").cast(pl.Int32, strict=False),
        gpu_name="name",
        temp_c=number(pl.col("temp")),
        sm_ratio=(number(pl.col("load")) * PERCENT).round(12),
        power_w=number(pl.col("power")),
        power_limit_w=number(pl.col("limit")),
        memory_used_bytes=(number(pl.col("used")) * MIB).cast(pl.Int64, strict=False),
        memory_total_bytes=(number(pl.col("total")) * MIB).cast(pl.Int64, strict=False),
    )  # fmt: skip
    reason = pl.coalesce("bad", pl.lit("not a line of gpustat"))
    own = pl.col("is_row") | pl.col("top").is_not_null()
    lines = sort_out(lines.drop("sample_ts", "host", "parts"), own, reason)
    return _finished(lines, samples, samples.clear().select("line_no", "sample_ts", "error_s", "gpu_index"))


def parse(chunk: Chunk) -> Parsed:
    """Read all samples; one that is cut or no JSON is an issue, line by line."""
    return _parse_table(chunk) if chunk.claim.settings.get("is_table") else _parse_json(chunk)


FORMAT: Final = Format(
    name="gpustat",
    title="gpustat --json, and its table",
    side=Side.GPU,
    fills=("gpu_sample", "gpu_process_sample", "log_event"),
    sniff=sniff,
    parse=parse,
    whole=True,
    versions="0.6 to 1.1",
    complete="JSON and table. Users of processes are not kept; processes of the table are left out.",
    record="while sleep 1; do gpustat --json; done > gpustat.json",
    sample="gpustat.json",
)
