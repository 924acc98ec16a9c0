"""The table that ``vllm bench serve`` and ``sglang.bench_serving`` print at the end, and whose file it stands in.

A load generator of vLLM writes log lines in vLLM's own form, so a file with the table could be either side's.  It is the
server's as soon as a server speaks in it: a server's log is worth more than totals.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

TABLE: Final = re.compile(r"\s*={6,} ?Serving Benchmark Result ?={6,}\s*")
_SERVER: Final = re.compile(
    r"Avg (?:prompt|generation) (?:throughput|tput): |\((?:EngineCore|APIServer|Worker)[\w ]*(?:pid=\d+)?\)|Uvicorn running on"
    r'|Started server process|"(?:GET|POST) /\S* HTTP/|(?:Decode|Prefill) batch[. ,\[]|Received request \S+:'
)


def is_load_output(lines: Iterable[str]) -> bool:
    """Whether lines hold the table and nothing that a server says."""
    has_table = False
    for line in lines:
        if _SERVER.search(line):
            return False
        has_table = has_table or ("Serving Benchmark Result" in line and TABLE.fullmatch(line) is not None)
    return has_table
