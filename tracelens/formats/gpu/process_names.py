"""What a process is called, out of a command line: its arguments hold keys and prompts, so only its name is kept."""

from __future__ import annotations

from typing import Final

import polars as pl

_PYTHON: Final = r"^(?:\S*/)?python[\d.]*$"
_MOST_CHARS: Final = 60


def process_name(command: pl.Expr) -> pl.Expr:
    """Name the program; of Python its script or module: ``/usr/bin/python3 /opt/bin/vllm serve --api-key x`` is ``vllm``."""
    program = command.str.extract(r"^\s*(\S+)", 1)
    script = command.str.extract(r"^\s*\S+\s+(?:-[A-Za-z]\s+)*([^\s-]\S*)", 1)
    named = pl.when(program.str.contains(_PYTHON)).then(pl.coalesce(script, program)).otherwise(program)
    # Threads of the kernel have a slash in their names (kworker/1:1H), which is no path.
    is_path = named.str.contains(r"^\.{0,2}/|/bin/|\.py$")
    return pl.when(is_path).then(named.str.extract(r"([^/]+)$", 1)).otherwise(named).str.slice(0, _MOST_CHARS)
