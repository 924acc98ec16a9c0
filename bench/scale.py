"""Measures how a case grows: check, the queries of the screens, memory and size: ``python bench/scale.py``.

The cases are those of check_rules.py, at ten thousand, a hundred thousand and a million requests; each is made once and kept
in bench/out.  Each is measured in a process of its own, in CPU seconds of all its threads (other programs on the machine
hardly change those) and in wall time.  The exponent is that of the growth from the second size to the third: 1 is linear.
"""

from __future__ import annotations

import argparse
import json
import math
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import duckdb
from check_rules import big_case
from run import machine, table

import tracelens
from tracelens.errors import QueryError
from tracelens.named import named_query
from tracelens.store import Store

OUT: Final = Path(__file__).parent / "out"
SIZES: Final = (10_000, 100_000, 1_000_000)
QUERIES: Final = {
    # what the screens ask when they are opened, and of what
    "sources": "", "run_span": "", "stages": "", "latency_percentiles": "", "latency_map": "", "lanes": "", "gpu_compare": "",
    "slowest": "", "requests": "", "request_list": "", "request_find": "id", "request_rank": "request",
    "request_facts": "request", "request_stages": "request", "request_peers": "request", "request_company": "request",
    "request_batch": "request", "request_chunks": "request",
}  # fmt: skip
ROWS: Final = 1000
"""Rows of a list that a screen takes at once."""
LIMIT_S: Final = 20.0


def measured(path: Path) -> dict[str, list[float]]:
    """CPU and wall seconds of a whole check and of each query; peak bytes; bytes per request (both alone)."""
    found: dict[str, list[float]] = {}
    with Store(path) as store:
        request_id, count = store.run("SELECT max(request_id), count(*) FROM request").rows[0]
        for name, asks in QUERIES.items():
            query = named_query(name)
            params = query.bind({asks: request_id} if asks else {})

            def ask(sql: str = query.sql, given: dict[str, Any] = params) -> None:
                store.run(sql, given, limit=ROWS, timeout_s=LIMIT_S)

            found[f"query {name}"] = _timed(ask)
    with tracelens.open(path) as case:
        found["check"] = _timed(case.check)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return found | {"peak memory": [peak], "case bytes per request": [path.stat().st_size / count]}


def _timed(work: Callable[[], object]) -> list[float]:
    cpu, wall = time.process_time(), time.perf_counter()
    try:
        work()
    except QueryError:
        return [math.nan, math.nan]
    return [time.process_time() - cpu, time.perf_counter() - wall]


def report(sizes: list[int], found: list[dict[str, list[float]]]) -> str:
    """The results as Markdown."""
    heads = ("", *(f"{size:,} requests" for size in sizes), "exponent")
    rows = [_row(name, [one[name] for one in found]) for name in found[0]]
    lines = [
        "## As a case grows",
        "",
        f"Measured by `python bench/scale.py` on {machine()}; DuckDB {duckdb.__version__}. One run each; CPU seconds of all threads,",
        "then wall time, on a machine that other programs used at the same time.",
        "",
        *table(heads, rows),
    ]
    return "\n".join(lines) + "\n"


def _row(name: str, values: list[list[float]]) -> tuple[str, ...]:
    grown = math.log10(values[-1][0] / values[-2][0]) if len(values) > 1 and values[-2][0] > 0 else math.nan
    return (name, *(_shown(name, value) for value in values), f"{grown:.2f}")


def _shown(name: str, value: list[float]) -> str:
    if name == "peak memory":
        return f"{value[0] / 2**20:,.0f} MiB"
    if name == "case bytes per request":
        return f"{value[0]:,.0f} B"
    return f"{value[0]:.3f} s, {value[1]:.3f} s"


def main() -> None:
    """Make the cases where they are not there, measure each in a process of its own, print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--one", type=Path, help="measure this case and print JSON")
    parser.add_argument("--write", type=Path, metavar="FILE", help="add the table to the end of this file")
    asked: Any = parser.parse_known_args()[0]  # make bench gives both programs the same arguments
    if asked.one:
        print(json.dumps(measured(asked.one)))
        return
    OUT.mkdir(exist_ok=True)
    found = []
    for size in asked.sizes:
        path = OUT / f"check-{size}.duckdb"
        if not path.exists():
            big_case(path, size)
        child = (sys.executable, __file__, "--one", path)
        found.append(json.loads(subprocess.check_output(child, text=True)))
    text = report(list(asked.sizes), found)
    print(text)
    if asked.write:
        asked.write.write_text(asked.write.read_text(encoding="utf-8") + "\n" + text, encoding="utf-8")


if __name__ == "__main__":
    main()
