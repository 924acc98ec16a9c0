"""Whether lines are nothing but a Python traceback, or its last line, that goes through a server's own code.

What people keep of a crash is often that alone, without a line of the log around it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import polars as pl

from tracelens.formats.server.server_lines import headless


def is_lone_trace(lines: Sequence[str], proof: re.Pattern[str]) -> bool:
    """Whether a line holds the proof, and most lines are of tracebacks."""
    said = [line for line in lines if line.strip()]
    if not any(map(proof.search, said)):
        return False
    judged = headless(pl.DataFrame({"line_no": range(len(said)), "text": said}))
    is_trace = (pl.col("verdict") == "traceback") | pl.col("text").str.contains(proof.pattern)
    return judged.filter(is_trace).height > len(said) / 2
