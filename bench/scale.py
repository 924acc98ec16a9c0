"""Measures how a case grows: check, the queries of the screens, memory and size: ``python bench/scale.py``.

The cases are those of check_rules.py, at ten thousand, a hundred thousand and a million requests; each is made once and kept
in bench/out.  Each is measured in a process of its own, in CPU seconds of all its threads (other programs on the machine
hardly change those) and in wall time.
"""

from __future__ import annotations

import argparse
import json
import math
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from check_rules import big_case
from contest import OUT, Figure, Section, table

import tracelens
from tracelens.cli.show import parts_of
from tracelens.errors import QueryError

SIZES: Final[Sequence[int]] = (10_000, 100_000, 1_000_000)
SCREEN_S: Final = {1_000_000: 0.1, 10_000_000: 0.5}
"""By requests: seconds that any query of a screen may take."""
CHECKED: Final = 1_000_000
CHECK_S: Final = 2.0
SHOW_S: Final = 0.15
QUERIES: Final = {
    # what the screens ask when they are opened, and of what
    "sources": "", "run_span": "", "stages": "", "latency_percentiles": "", "latency_map": "", "lanes": "", "gpu_compare": "",
    "slowest": "", "requests": "", "request_list": "", "request_find": "id", "request_rank": "request",
    "request_facts": "request", "request_stages": "request", "request_peers": "request", "request_company": "request",
    "request_batch": "request", "request_chunks": "request", "curve_points": "",
}  # fmt: skip
PART: Final = slice(9, -1)
"""Of an id, what is searched as a part of one."""
ROWS: Final = 1000
"""Rows of a list that a screen takes at once."""
LIMIT_S: Final = 20.0


def measured(path: Path) -> dict[str, list[float]]:
    """CPU and wall seconds of a whole check and of each query; peak bytes; bytes per request (both alone)."""
    found: dict[str, list[float]] = {}
    with tracelens.open(path) as case:
        request_id, count = case.sql("SELECT max(request_id), count(*) FROM request").rows[0]
        asked = [(name, name, {asks: request_id} if asks else {}) for name, asks in QUERIES.items()]
        asked.append(("request_find, a part", "request_find", {"id": request_id[PART]}))
        for title, name, params in asked:

            def ask(name: str = name, params: dict[str, Any] = params) -> None:
                case.query(name, limit=ROWS, timeout_s=LIMIT_S, **params)

            found[f"query {title}"] = _timed(ask)
        found["show"] = _timed(lambda: parts_of(case, "default", request_id))
        found["check"] = _timed(case.check, times=1)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return found | {"peak memory": [peak], "case bytes per request": [path.stat().st_size / count]}


def _timed(work: Callable[[], object], times: int = 3) -> list[float]:
    """CPU and wall seconds: the medians of so many runs."""
    cpus, walls = [], []
    for _ in range(times):
        cpu, wall = time.process_time(), time.perf_counter()
        try:
            work()
        except QueryError:
            return [math.nan, math.nan]
        cpus.append(time.process_time() - cpu)
        walls.append(time.perf_counter() - wall)
    return [statistics.median(cpus), statistics.median(walls)]


def section(sizes: Sequence[int] = SIZES) -> Section:
    """A table of all sizes, and what the largest of the usual ones must reach."""
    found = {size: _of_size(size) for size in sizes}
    heads = ("", *(f"{size:,} requests" for size in sizes), "exponent")
    rows = [_row(name, [one[name] for one in found.values()]) for name in found[sizes[-1]]]
    text = [
        "## As a case grows", "",
        "CPU seconds of all threads, then wall time; medians of three runs, check and sizes one. The exponent is that of the growth between the last two sizes.", "",
        *table(heads, rows),
    ]  # fmt: skip
    return Section(
        "\n".join(text),
        [one for size, target in SCREEN_S.items() for one in _figures(found.get(size), size, target)],
    )


def made(size: int) -> Path:
    """A case of so many requests, made where it is not there: by a process of its own, which may take much memory."""
    path = OUT / f"check-{size}.duckdb"
    if not path.exists():
        subprocess.run((sys.executable, __file__, "--make", str(size)), check=True)
    return path


def _of_size(size: int) -> dict[str, list[float]]:
    """Measure a case of this size in a process of its own."""
    child = (sys.executable, __file__, "--one", made(size))
    found: dict[str, list[float]] = json.loads(subprocess.check_output(child, text=True))
    return found


def _figures(found: dict[str, list[float]] | None, size: int, target_s: float) -> Iterator[Figure]:
    if found is None:
        return
    wall = {
        name.removeprefix("query "): values[1] for name, values in found.items() if name.startswith("query ")
    }
    slowest = max(wall, key=lambda name: math.inf if math.isnan(wall[name]) else wall[name])
    yield Figure(f"slowest query of a screen, {size:,} requests ({slowest})", wall[slowest], target_s, "s")
    if size == CHECKED:
        yield Figure(f"check, {size:,} requests", found["check"][1], CHECK_S, "s")
        yield Figure(f"show, {size:,} requests", found["show"][1], SHOW_S, "s")


def _row(name: str, values: list[list[float]]) -> tuple[str, ...]:
    known = len(values) > 1 and values[-2][0] > 0 and not math.isnan(values[-1][0])
    grown = f"{math.log10(values[-1][0] / values[-2][0]):.2f}" if known else "–"
    return (name, *(_shown(name, value) for value in values), grown)


def _shown(name: str, value: list[float]) -> str:
    if name == "peak memory":
        return f"{value[0] / 2**20:,.0f} MiB"
    if name == "case bytes per request":
        return f"{value[0]:,.0f} B"
    return "stopped" if math.isnan(value[0]) else f"{value[0]:.3f} s, {value[1]:.3f} s"


def main() -> None:
    """Measure each size, print; a case alone gives JSON."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--one", type=Path, help="measure this case and print JSON")
    parser.add_argument("--make", type=int, metavar="REQUESTS", help="make a case of so many requests")
    asked = parser.parse_args()
    OUT.mkdir(exist_ok=True)
    if asked.make:
        big_case(OUT / f"check-{asked.make}.duckdb", asked.make)
    else:
        print(json.dumps(measured(asked.one)) if asked.one else section(asked.sizes).text)


if __name__ == "__main__":
    main()
