"""How much a command says on stderr: with ``--quiet`` nothing that could be left unsaid, with ``--verbose`` each step.

The steps are told by the library, through Python's `logging` below the name ``tracelens``: a notebook hears them with
``logging.getLogger("tracelens").setLevel("INFO")`` and a handler of its own.
"""

from __future__ import annotations

import contextlib
import logging
import re
import resource
import sys
import time
from pathlib import Path
from typing import Final

import click

from tracelens.text.terminal import clean
from tracelens.units import size

DEBUG: Final = "tracelens.debug"
QUIET: Final = "tracelens.quiet"
VERBOSE: Final = "tracelens.verbose"
_PEAK_UNIT_BYTES: Final = 1 if sys.platform == "darwin" else 1024
"""Of `ru_maxrss`."""


def peak_bytes() -> int:
    """The most memory that this process has held so far, and not whoever started it (`ru_maxrss` keeps that one's on Linux)."""
    with contextlib.suppress(OSError):
        found = re.search(rb"^VmHWM:\s*(\d+) kB", Path("/proc/self/status").read_bytes(), re.MULTILINE)
        if found:
            return int(found[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _PEAK_UNIT_BYTES


def asked_for(key: str) -> bool:
    """Whether the running command was given this option, before or after its name."""
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.find_root().meta.get(key))


def remember(context: click.Context, param: click.Parameter, given: bool) -> None:
    """Keep one of the options for the whole command, and begin to tell the steps where that is asked for."""
    meta = context.find_root().meta
    key = f"tracelens.{param.name}"
    if not given or meta.get(key):
        return
    meta[key] = True
    if meta.get(QUIET) and meta.get(VERBOSE):
        raise click.UsageError("--quiet and --verbose: which of the two?", context)
    if key == VERBOSE:
        _tell_steps(context)


def _tell_steps(context: click.Context) -> None:
    log, steps = logging.getLogger("tracelens"), _Steps()
    log.addHandler(steps)
    log.setLevel(logging.INFO)

    def end() -> None:
        steps.end()
        log.removeHandler(steps)
        log.setLevel(logging.NOTSET)

    context.find_root().call_on_close(end)


class _Steps(logging.Handler):
    """A line on stderr for each step when it is done: how long it took, the process's peak memory so far, and what it was."""

    def __init__(self) -> None:
        super().__init__()
        self._began = self._before = time.perf_counter()

    def emit(self, record: logging.LogRecord) -> None:
        """One step."""
        now = time.perf_counter()
        self._print(now - self._before, record.getMessage())
        self._before = now

    def end(self) -> None:
        """The whole command: time by the clock and on all cores."""
        used = resource.getrusage(resource.RUSAGE_SELF)
        took_s = time.perf_counter() - self._began
        self._print(took_s, f"in all; {used.ru_utime + used.ru_stime:.2f} s on all cores")

    def _print(self, took_s: float, text: str) -> None:
        print(f"{took_s:8.3f} s {size(peak_bytes()):>9}  {clean(text)}", file=sys.stderr)
