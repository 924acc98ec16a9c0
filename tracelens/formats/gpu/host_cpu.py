"""CPU time of hosts and their processes in a JSON line: counters of the machine, and CPU seconds per process."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from tracelens.formats.json_lines import count, number, text_of

_COUNTERS: Final = re.compile(r"^(?:host_|system_|proc_stat_)?cpu_(?:jiffies|times|stat|ticks)(?:_(.+))?$")
_PROCESSES: Final = re.compile(
    r"^(?:proc|process|processes|server_processes)(?:_cpu)?(?:_(s|seconds|pct|percent|cores))?$"
)
_STATES: Final = {
    "user": True, "nice": True, "sys": True, "system": True, "irq": True, "softirq": True, "steal": True,
    "idle": False, "iowait": False,
}  # fmt: skip
"""States of a CPU and whether it is busy in them; guest time is part of user time already."""

_MOST_PROCESSES: Final = 1000
_NAMES: Final = ("name", "process", "comm", "command", "cmd")
_RSS: Final = ("rss_bytes", "rss", "memory_rss_bytes")


def is_counter(key: str) -> bool:
    """Say whether a key holds the machine's CPU counters."""
    return bool(_COUNTERS.match(key))


def is_process_list(key: str) -> bool:
    """Say whether a key holds CPU time of processes."""
    return bool(_PROCESSES.match(key))


def counters(key: str, value: Any) -> tuple[float, float] | None:
    """Return busy and total CPU time; None where the key does not name the states, or one is no number.

    ``cpu_jiffies_user_nice_sys_idle: [1, 2, 3, 4]`` names them in the key, ``cpu_times: {"user": 1, ...}`` inside.
    """
    found = _COUNTERS.match(key)
    if isinstance(value, dict):
        pairs = list(value.items())
    elif found and found.group(1) and isinstance(value, list):
        names = found.group(1).split("_")
        pairs = list(zip(names, value, strict=True)) if len(names) == len(value) else []
    else:
        return None
    states = [(_STATES[name], number(each)) for name, each in pairs if name in _STATES]
    if not any(busy for busy, _ in states) or not any(name == "idle" for name, _ in pairs):
        return None
    if any(each is None for _, each in states):
        return None
    total = float(sum(each or 0 for _, each in states))
    return float(sum(each or 0 for busy, each in states if busy)), total


Process = tuple[int, int | None, str | None, float | None, float | None, int | None]
"""Position, pid, name, CPU seconds, cores, resident bytes."""


def processes(key: str, value: Any) -> Iterator[Process]:
    """Yield the processes of a line: pairs of name and number, an object of them, or objects with names."""
    found = _PROCESSES.match(key)
    unit = (found.group(1) if found else None) or ""
    pairs = list(value.items()) if isinstance(value, dict) else value if isinstance(value, list) else []
    for position, each in enumerate(pairs[:_MOST_PROCESSES]):
        if isinstance(each, dict):
            yield _from_object(position, each)
        elif isinstance(each, list | tuple) and len(each) == 2:  # noqa: PLR2004 - a pair
            yield position, None, text_of(each[0]), *_cpu(unit, each[1]), None


def _cpu(unit: str, value: Any) -> tuple[float | None, float | None]:
    """CPU seconds and cores; neither where the key has no unit."""
    amount = number(value)
    if amount is None or amount < 0:
        return None, None
    if unit in ("s", "seconds"):
        return float(amount), None
    scale = {"pct": 0.01, "percent": 0.01, "cores": 1.0}.get(unit)
    return None, float(amount) * scale if scale else None


def _from_object(position: int, said: Mapping[str, Any]) -> Process:
    name = next((text_of(said[key]) for key in _NAMES if key in said), None)
    seconds = next(
        (_cpu("s", said[key])[0] for key in ("cpu_s", "cpu_seconds", "cpu_time_s") if key in said), None
    )
    share = next((_cpu("pct", said[key])[1] for key in ("cpu_percent", "cpu_pct") if key in said), None)
    rss = next((count(said[key]) for key in _RSS if key in said), None)
    return position, count(said.get("pid")), name, seconds, share, rss
