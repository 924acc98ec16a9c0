"""Reports on a machine: vLLM's ``collect_env.py``, and the topology of ``nvidia-smi topo -m``, alone or in such a report.

        GPU0  GPU1  CPU Affinity
    GPU0   X   PHB   0-15
    GPU1  PHB   X    0-15

Every report of a vLLM issue begins with one.  Kept are the version of vLLM, the cores of the host, the threads that the
environment asks for, and how two GPUs meet at best (``gpu_link``): NV# is NVLink, PIX and PXB are PCIe switches, PHB, NODE and
SYS go through the CPU.  Of ``lspci -vv`` and of reports that say ``x4 lanes negotiated``, links that have fewer lanes than the GPU (``pcie_link``).  Nothing else of the environment is kept: tokens stand there.  Forms of vLLM 0.4 to 0.30 and of the
drivers 470 to 575, from public reports.
"""

from __future__ import annotations

import re
from typing import Final

import polars as pl

from tracelens.formats.base import Chunk, Claim, Clock, Format, Head, Parsed, Side, no_issues, no_stamps

_BEGINS: Final = re.compile(
    r"^Collecting environment information\.\.\.|^\s*vLLM Version *: |\bPCIe:\*{0,2} x\d+ lanes negotiated|^\s*LnkSta:\s*Speed "
)
_MATRIX: Final = re.compile(r"^(?:\x1b\[\d*m|\s)*GPU0\s+(?:.*\s)?(?:GPU1\b|CPU Affinity)")
_SERVER_LINE: Final = re.compile(r"\b(?:DEBUG|INFO|WARNING|ERROR) \d\d-\d\d \d\d:\d\d:\d\d ")
_MIN_SHARE: Final = 0.05
"""With this share of lines of a server's log, a file is that log, whatever stands above it."""

_PAIRS: Final = {
    "vllm_version": r"^\s*vLLM Version *: v?(\d+\.\d+\.\d+\S*)",
    "host_cpu_count": r"^CPU\(s\): +(\d{1,6})\s*$",
    "omp_num_threads": r"^(?:export )?OMP_NUM_THREADS=(\d{1,6})\s*$",
}
_LANES: Final = r"\bPCIe:\*{0,2} (x\d{1,2}) lanes negotiated \(GPU max (x\d{1,2})\b"
_LSPCI: Final = r"^\s*LnkSta:\s*Speed .*\bWidth (x\d{1,2}) \(downgraded\)"
"""``lspci -vv`` says what a link could do on a line above, ``LnkCap``; a link that has all its lanes is not ``downgraded``."""
_LINKS: Final = ("NV", "PIX", "PXB", "PHB", "NODE", "SYS")
"""From the fastest to the slowest."""
_ROW: Final = r"^\s*(?:\x1b\[\d*m)?GPU\d+\s.*\bX\b"


def is_report(lines: tuple[str, ...]) -> bool:
    """Say whether lines hold such a report or a matrix."""
    return any(_BEGINS.search(line) or _MATRIX.search(line) for line in lines)


def sniff(head: Head) -> Claim | None:
    """Claim a report or a matrix that is not the beginning of a server's log."""
    lines = [line for line in (*head.lines, *head.sampled) if line.strip()]
    served = sum(1 for line in lines if _SERVER_LINE.search(line))
    if not is_report(head.lines) or served >= max(1, _MIN_SHARE * len(lines)):
        return None
    is_whole = any(_BEGINS.search(line) for line in head.lines)
    return Claim("collect_env.py" if is_whole else "nvidia-smi topo -m", Clock.NONE)


def parse(chunk: Chunk) -> Parsed:
    """Settings that rules ask for; every line of a report is understood."""
    text = pl.col("text")
    stated = chunk.lines.select(
        "line_no", **{key: text.str.extract(pattern) for key, pattern in _PAIRS.items()}
    )
    rows = stated.unpivot(index="line_no", variable_name="key", value_name="value").drop_nulls("value")
    settings = pl.concat([rows, _best_link(chunk.lines), _narrow_links(chunk.lines)]).sort("line_no")
    tables = {"server_setting": settings.with_columns(basis=pl.lit("stated"))} if settings.height else {}
    return Parsed(tables, no_issues(), chunk.lines.height, no_stamps())


def _best_link(lines: pl.DataFrame) -> pl.DataFrame:
    """The fastest link between any two GPUs of the matrix, at the first line that has it; links to network cards do not count."""
    rows = lines.filter(pl.col("text").str.contains(_ROW))
    cells = rows.with_columns(cell=pl.col("text").str.strip_chars().str.split("\t"))
    if rows.height and not rows["text"].str.contains("\t", literal=True).all():
        cells = rows.with_columns(cell=pl.col("text").str.strip_chars().str.extract_all(r"\S+"))
    # The first cell names the GPU; those of the other GPUs stand before the network cards.
    links = cells.select("line_no", link=pl.col("cell").list.slice(1, rows.height)).explode("link")
    link = pl.col("link").str.strip_chars()
    rank = pl.coalesce([pl.when(link.str.starts_with(name)).then(at) for at, name in enumerate(_LINKS)])
    best = links.select("line_no", value=link, rank=rank).drop_nulls("rank").sort("rank", "line_no").head(1)
    return best.select("line_no", key=pl.lit("gpu_link"), value="value")


def _narrow_links(lines: pl.DataFrame) -> pl.DataFrame:
    """Each PCIe link that has fewer lanes than the GPU: ``x1 of x16``."""
    text = pl.col("text")
    most = pl.coalesce(text.str.extract(_LANES, 2), pl.lit("more"))
    now = pl.coalesce(text.str.extract(_LANES, 1), text.str.extract(_LSPCI, 1))
    found = lines.with_columns(now=now, most=most).filter(pl.col("now") != pl.col("most"))
    return found.select("line_no", key=pl.lit("pcie_link"), value=pl.col("now") + " of " + pl.col("most"))


FORMAT: Final = Format(
    name="env_report",
    title="report on a machine (vLLM's collect_env.py, nvidia-smi topo -m)",
    side=Side.SERVER,
    fills=("server_setting",),
    sniff=sniff,
    parse=parse,
    whole=True,
    versions="vLLM 0.4 to 0.30, drivers 470 to 575",
    complete="vLLM's version, cores, threads, and the best link between two GPUs; forms as in public reports.",
    record="python collect_env.py > env.txt; nvidia-smi topo -m > topo.txt",
    sample="topo_m.txt",
)
