"""``docker stats``, and the table of ``podman stats``: CPU and memory of each container, as a table or as JSON lines.

    CONTAINER ID   NAME      CPU %     MEM USAGE / LIMIT     MEM %     NET I/O           BLOCK I/O    PIDS
    1f8fbcd2e8f0   vllm-0    412.28%   24.31GiB / 125.5GiB   19.37%    45.2MB / 1.1GB    0B / 0B      214

``CPU %`` counts one core as 100.  Memory is without the file cache; its limit is the container's, or the host's memory where it has
none, and is not kept.  There is no time in it: that of a stamp before each line is read, or of a line above, from ``date`` in a loop.
A container is no process: several may be in it, so it is named ``container vllm-0``.  Written from the manuals and public output.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

import polars as pl

from tracelens.formats.base import Chunk, Claim, Clock, Format, Head, Parsed, Side
from tracelens.formats.gpu.cell_stamps import CLOCKS, kind_of, stamp
from tracelens.formats.gpu.gpu_lines import finish, is_noise, share, sort_out, split
from tracelens.formats.gpu.gpu_stamps import (
    PREFIX_CLOCKS,
    outside_stamp,
    resolution,
    sane,
    split_prefix,
    without_prefix,
)

_ESCAPE: Final = r"\x1b\[[0-9;?]*[A-Za-z]"
_BETWEEN: Final = r"\s{2,}|\t"
_NAMES: Final = ("NAME", "CONTAINER ID", "CONTAINER", "ID")
_CPU: Final = "CPU %"
_MEMORY: Final = ("MEM USAGE / LIMIT", "MEM USAGE/LIMIT", "MEM USAGE")
_JSON: Final = re.compile(r'^\{.*"CPUPerc": ?"')
_JSON_KEYS: Final = {"name": ("Name", "Container", "ID"), "cpu": ("CPUPerc",), "memory": ("MemUsage",)}
_UNITS: Final = {
    "b": 1.0, "kb": 1e3, "mb": 1e6, "gb": 1e9, "tb": 1e12,
    "kib": 1024.0, "mib": 1024.0**2, "gib": 1024.0**3, "tib": 1024.0**4,
}  # fmt: skip
_UNKNOWN: Final = r"^--(?:\s*/\s*--)?$"
_PERCENT: Final = 100.0
_MOST_CHARS: Final = 60
_MIN_SHARE: Final = 0.5

_DATE: Final = re.compile(
    r"^[A-Z][a-z]{2},? (?:[A-Z][a-z]{2} [ \d]\d|[ \d]?\d [A-Z][a-z]{2} \d{4}) .*\d\d:\d\d:\d\d .*$"
)
"""What ``date`` prints, by itself on a line."""
_ZONE: Final = r" (?:UTC|GMT|[A-Z]{2,4}T|[+-]\d{2,4})\b"
_DATE_FORMS: Final = (
    "%a %b %d %H:%M:%S %Y", "%a %d %b %Y %H:%M:%S", "%a %d %b %Y %I:%M:%S %p", "%a %b %d %I:%M:%S %p %Y",
)  # fmt: skip


def _bare(line: str) -> str:
    return re.sub(_ESCAPE, "", line).strip()


def _heading(line: str) -> tuple[str, ...] | None:
    names = tuple(re.split(_BETWEEN, line.strip()))
    return names if _CPU in names and names[0] in _NAMES else None


def sniff(head: Head) -> Claim | None:
    """Claim a file of such tables, or of such objects, and little else."""
    lines = [bare for line in head.lines if (bare := _bare(line))]
    prefix = next((kind for line in lines for kind, rest in [split_prefix(line)] if kind and rest), None)
    prefix = prefix if all(split_prefix(line)[0] == prefix for line in lines[:-1] or lines) else None
    rests = [without_prefix(line, prefix).strip() for line in lines]
    names = next((names for line in rests if (names := _heading(line))), None)
    own = (
        bool(_heading(rest) or _JSON.match(rest) or _alone_kind(rest)) or is_noise(rest)
        or len(re.split(_BETWEEN, rest)) == len(names or ())
        for rest in rests
    )  # fmt: skip
    if not (names or any(map(_JSON.match, rests))) or share(own) <= _MIN_SHARE:
        return None
    alone = next((kind for rest in rests if (kind := _alone_kind(rest))), None)
    clock = PREFIX_CLOCKS[prefix] if prefix else _clock_of(alone, rests)
    form = f"{len(names)} columns" if names else "JSON"
    timed = f", {prefix} prefix" if prefix else f", {alone} lines" if alone else ", no time"
    return Claim(f"{form}{timed}", clock, {"names": names, "prefix": prefix, "alone": alone})


def _alone_kind(rest: str) -> str | None:
    """Say what kind of stamp is all that a line holds."""
    return "date" if _DATE.match(rest) else kind_of(rest)


def _clock_of(alone: str | None, rests: list[str]) -> Clock:
    if alone != "date":
        return CLOCKS[alone] if alone else Clock.NONE
    dates = [rest for rest in rests if _DATE.match(rest)]
    return Clock.UTC if all(re.search(r" (?:UTC|GMT)\b", date) for date in dates) else Clock.LOCAL


def context(text: str, previous: str | None) -> str | None:
    """Find the last line of a chunk that is a stamp and nothing else."""
    bare = (_bare(line) for line in reversed(text.split("\n")))
    return next((line for line in bare if line[:1] not in ("", "{") and _alone_kind(line)), previous)


def _alone(text: pl.Expr, kind: str | None) -> pl.Expr:
    if kind is None:
        return pl.lit(None, pl.Datetime("us"))
    if kind != "date":
        return stamp(text, kind)
    local = text.str.replace(",", "").str.replace(_ZONE, "").str.replace_all(r" +", " ")
    return sane(
        pl.coalesce(local.str.to_datetime(form, strict=False, time_unit="us") for form in _DATE_FORMS)
    )


def _bytes(text: pl.Expr) -> pl.Expr:
    unit = text.str.extract(r"^[\d.]+ ?([A-Za-z]+)", 1).str.to_lowercase()
    amount = text.str.extract(r"^(\d+(?:\.\d+)?)", 1).cast(pl.Float64, strict=False)
    scale = unit.replace_strict(_UNITS, default=None, return_dtype=pl.Float64)
    return (amount * scale).round().cast(pl.Int64, strict=False)


def _cells(names: tuple[str, ...] | None) -> dict[str, pl.Expr]:
    """Name, CPU and memory of a row, as text: JSON by its keys, else by the heading."""
    text = pl.col("rest")
    if names is None:
        return {
            name: pl.coalesce(text.str.extract(rf'"{key}": ?"([^"]+)"', 1) for key in keys)
            for name, keys in _JSON_KEYS.items()
        }
    wanted = {"name": _NAMES, "cpu": (_CPU,), "memory": _MEMORY}
    places = {
        name: next((names.index(each) for each in wanted[name] if each in names), None) for name in wanted
    }
    return {
        name: pl.lit(None, pl.String) if at is None else pl.col("cells").list.get(at, null_on_oob=True)
        for name, at in places.items()
    }


def parse(chunk: Chunk) -> Parsed:
    """One row of `host_process_sample` per container and tick."""
    settings = chunk.claim.settings
    names, prefix, alone = (settings.get(name) for name in ("names", "prefix", "alone"))
    plain = chunk.lines.with_columns(pl.col("text").str.replace_all(_ESCAPE, ""))
    lines = split(replace(chunk, lines=plain), prefix).with_columns(pl.col("rest").str.strip_chars())
    carried = pl.lit(chunk.context, pl.String)
    when = _alone(pl.col("rest"), alone)
    lines = lines.with_columns(
        alone=when,
        sample_ts=outside_stamp(prefix) if prefix else when.forward_fill().fill_null(_alone(carried, alone)),
        cells=pl.col("rest").str.replace_all(_BETWEEN, "\t").str.split("\t"),
    )
    is_heading = pl.col("rest").str.contains(_CPU, literal=True) & ~pl.col("rest").str.starts_with("{")
    rows = _rows(lines.filter(~is_heading & pl.col("alone").is_null()), names, prefix)
    told = rows.select("line_no", "bad", is_row=pl.col("bad").is_null())
    lines = lines.join(told, on="line_no", how="left", maintain_order="left")
    understood = pl.col("is_row").fill_null(value=False) | is_heading | pl.col("alone").is_not_null()
    lines = sort_out(lines, understood, pl.col("bad")).with_columns(
        stamp=pl.when(pl.col("is_row") | pl.col("alone").is_not_null()).then("sample_ts"),
        event_ts=pl.col("sample_ts"),
        error_s=pl.lit(None, pl.Float64),
    )
    found = finish(lines, rows.clear())
    good = rows.filter(
        pl.col("bad").is_null()
        & (pl.col("cpu_cores").is_not_null() | pl.col("memory_used_bytes").is_not_null())
    )
    tables = {"host_process_sample": good.drop("bad"), "log_event": found.tables["log_event"]}
    return Parsed(tables, found.issues, found.understood, found.stamps)


def _rows(lines: pl.DataFrame, names: tuple[str, ...] | None, prefix: str | None) -> pl.DataFrame:
    """Read rows, with ``bad``: why a line is none."""
    cell = _cells(names)
    cpu, memory = cell["cpu"], cell["memory"]
    cores = cpu.str.extract(r"^(\d+(?:\.\d+)?)%$", 1).cast(pl.Float64, strict=False) / _PERCENT
    used = _bytes(memory)
    is_told = cores.is_not_null() | used.is_not_null() | cpu.str.contains(_UNKNOWN)
    misfit = pl.col("cells").list.len() != len(names) if names else ~pl.col("rest").str.ends_with("}")
    bad = (
        pl.when("is_open")
        .then(pl.lit("row cut in its last cell"))
        .when(misfit)
        .then(pl.lit("cells differ from heading" if names else "no object of docker stats"))
        .when(~is_told.fill_null(value=False) | cell["name"].is_null())
        .then(pl.lit("no measure can be read"))
    )
    is_timed = pl.col("sample_ts").is_not_null()
    return lines.select(
        "line_no",
        "sample_ts",
        bad=bad,
        error_s=pl.when(is_timed).then(resolution(pl.col("outside")) if prefix else pl.lit(1.0)),
        position=pl.lit(0, pl.Int32),
        process=pl.lit("container ") + cell["name"].str.strip_prefix("/").str.slice(0, _MOST_CHARS),
        cpu_cores=cores.round(12),
        memory_used_bytes=used,
    )


FORMAT: Final = Format(
    name="docker_stats",
    title="docker stats of a host's containers",
    side=Side.GPU,
    fills=("host_process_sample", "log_event"),
    sniff=sniff,
    parse=parse,
    context=context,
    carried={"log_event": "event_ts"},
    versions="docker 1.9 to 28, podman 4",
    complete="Public output and made-up rows in its form. Cores and memory of each container; limits, network and disks are not kept.",
    record="while date -u +%FT%TZ; do docker stats --no-stream; sleep 1; done > docker_stats.txt",
    sample="loop_with_date.txt",
)
