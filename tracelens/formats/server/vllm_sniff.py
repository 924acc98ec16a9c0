"""Whether a file is a vLLM server log, and in which dialect: wrappers, broken lines, clocks, headers."""

from __future__ import annotations

import re
from typing import Any, Final

import polars as pl

from tracelens.formats.base import Claim, Clock, Head
from tracelens.formats.bench_table import is_load_output
from tracelens.formats.server import framing, hard_wraps, records, vllm_clocks, wrappers
from tracelens.formats.server.access import UVICORN
from tracelens.formats.server.lone_traces import is_lone_trace
from tracelens.formats.server.vllm_kinds import kinds_of
from tracelens.formats.server.wrapper_forms import WRAPPERS

_PERHAPS: Final = re.compile(
    rf"\b(?i:{framing.LEVELS})\b|throughput: |tput: |\d\d-\d\d \d\d:\d\d:\d\d |(?:Added|Received|Finished|Aborted) request"
    r"|is preempted by PreemptionMode"
)
_STATS: Final = re.compile(
    r"Avg (?:prompt|generation) (?:throughput|tput): |[Tt]hroughput: [\d.]+ tokens/s, Running: "
)
_TRACED: Final = re.compile(
    r'^\s*(?:\[rank\d+\]: +|\(\w+ pid=\d+\) +)?File "[^"]*/vllm/(?:\w+/)*\w+\.py", line \d+'
    r"|^(?:[A-Z]\w+Error: .*`gpu_memory_utilization`|vllm\.(?:\w+\.)+[A-Z]\w*Error\b)"
)
_WATCHED: Final = re.compile(
    r"\bProcessGroupNCCL\.cpp:\d+\]|\bNCCL (?:INFO|WARN) |^\s*frame #\d+: |^Exception raised from "
    r"|^(?:CUDA kernel errors might be|For debugging consider passing|Compile with `TORCH_USE_CUDA_DSA`)"
)
_WATCHDOG: Final = re.compile(r"\bProcessGroupNCCL\.cpp:\d+\] .*[Ww]atchdog ")
_OTHER_SERVER: Final = "/sglang/"
"""SGLang's tracebacks go through code of vLLM too."""
_OTHER_SIGNS: Final = (_OTHER_SERVER, "Decode batch", "Prefill batch", "text_generation")
"""Marks of the logs of SGLang and TGI, in which PyTorch says the same."""

_MIN_SHARE: Final = 0.05
"""Share of the lines seen that must be vLLM's: a report that quotes one line is not a log."""
_NEWEST_FIRST: Final = "its newest line comes first, and what follows what decides here; turn it round: tac FILE | tracelens ingest -"
_JSON: Final = re.compile(r"^[^'\"]{0,200}\{\s*\"")

_UVICORN: Final = re.compile(rf"{UVICORN}|{framing.PREFIX}(?:{framing.LEVELS}):     ".replace("(?s:", "(?:"))
_SERVES: Final = re.compile(r"\"POST /(?:v1/|generate|invocations)")


def sniff(head: Head) -> Claim | None:
    """Claim a file in which enough lines are vLLM's own, or that is a traceback through its code."""
    whole = (*head.lines, *head.sampled)
    if is_load_output(whole):
        return None
    found = _log(head) if any(_PERHAPS.search(line) for line in whole) else None
    if found is None and is_lone_trace(whole, _TRACED) and not any(_OTHER_SERVER in line for line in whole):
        return Claim("a traceback alone", Clock.NONE)
    if found is None and _is_watchdog(whole):
        return Claim("PyTorch's watchdog alone", Clock.NONE)
    return found


def _is_watchdog(lines: tuple[str, ...]) -> bool:
    """Whether what PyTorch says of a collective that failed is all that somebody kept."""
    said = [line for line in lines if line.strip()]
    if not any(map(_WATCHDOG.search, said)) or any(sign in line for line in said for sign in _OTHER_SIGNS):
        return False
    return sum(map(bool, map(_WATCHED.search, said))) > len(said) / 2


def _log(head: Head) -> Claim | None:
    first, sampled = (
        framing.without_colours(_frame(list(lines)))["text"].to_list() for lines in (head.lines, head.sampled)
    )
    columns = hard_wraps.width(first)
    lines = [line for line in (*_mended(first, columns), *_mended(sampled, columns)) if line.strip()]
    names = wrappers.detect(lines)
    settings: dict[str, Any] = {"wrappers": names, "prefix": wrappers.own_prefix(lines, names)}
    seen = kinds_of(records.read(_frame(lines), settings), bare=True)
    own = (
        pl.col("inner").is_not_null()
        | pl.col("kind").is_not_null()
        | pl.col("origin").str.contains("vllm", literal=True)
    )
    mine = seen.filter(own.fill_null(value=False))
    if not mine.height and _is_access_log(lines):
        return Claim("access lines alone", Clock.NONE, settings | {"columns": columns})
    if mine.height < max(1, _MIN_SHARE * len(lines)):
        return None
    clock, from_outside = vllm_clocks.clock_of(mine)
    headed = mine.filter(pl.col("level").is_not_null()).height
    settings |= {
        "columns": columns,
        "bare": mine.height - headed >= headed,
        "from_outside": from_outside,
        "own_clock": vllm_clocks.own_clock(mine),
        "implies": _implied(lines, mine),
    }
    return Claim(
        _variant(lines, mine, settings, clock),
        clock,
        settings,
        _written_by(lines, mine, names, clock),
        _NEWEST_FIRST if vllm_clocks.newest_first(mine, clock) else "",
    )


def _is_access_log(lines: list[str]) -> bool:
    """Whether all that a server of this kind wrote, or that somebody kept of it, are lines of its web server."""
    return any(_SERVES.search(line) for line in lines) and all(map(_UVICORN.match, lines))


def _frame(lines: list[str]) -> pl.DataFrame:
    return pl.DataFrame(
        {"line_no": range(1, len(lines) + 1), "text": lines}, schema={"line_no": pl.Int64, "text": pl.String}
    )


def _mended(lines: list[str], columns: int | None) -> list[str]:
    return hard_wraps.joined(_frame(lines), columns)["text"].to_list() if columns else lines


def _written_by(lines: list[str], mine: pl.DataFrame, names: tuple[str, ...], clock: Clock) -> str:
    """What wrote the stamps, where it was not the log itself."""
    if clock not in (Clock.UTC, Clock.LOCAL):
        return ""
    marks = ("?P<outer>", "?P<epoch>", "?P<epoch_ms>") if clock is Clock.UTC else ("?P<local>", "?P<named>")
    forms = {form.name: form for form in WRAPPERS}
    stamped = next((name for name in names if any(mark in forms[name].pattern for mark in marks)), None)
    what = "stamps" if clock is Clock.UTC else "dates"
    if stamped:
        return f"{what} of the wrapper ({stamped}: {forms[stamped].writer.partition(';')[0]})"
    if any(_JSON.match(line) for line in lines):
        return f"{what} of the JSON records"
    return f"{what} of wrappers" if clock is Clock.UTC and mine["inner"].count() else f"{what} as written"


def _variant(lines: list[str], mine: pl.DataFrame, settings: dict[str, Any], clock: Clock) -> str:
    broken = f"broken at {settings['columns']} columns" if settings["columns"] else ""
    parts = (_engine("\n".join(lines[:400])), _shape(lines, mine, clock), *settings["wrappers"], broken)
    return ", ".join(part for part in parts if part)


def _engine(text: str) -> str:
    if "Pending: " in text:
        return "V0"
    if re.search(r"Waiting: \d+ reqs", text):
        return "V1"
    return "Rust" if "RustFrontend" in text else ""


def _shape(lines: list[str], mine: pl.DataFrame, clock: Clock) -> str:
    if mine["inner"].null_count() == mine.height:
        if any(line.lstrip().startswith("{") for line in lines):
            return "JSON records"
        return "no headers" if clock is Clock.NONE else "reformatted"
    if not any(re.search(r"\d\d:\d\d:\d\d \[", line) for line in lines[:400]):
        return "0.7 and older"
    return "process prefix" if mine["process"].count() else "no prefix"


def _implied(lines: list[str], mine: pl.DataFrame) -> dict[str, str]:
    """What the dialect says of the version, for the defaults where no line states it."""
    implied: dict[str, str] = {}
    if any("Pending: " in line for line in lines):
        implied["engine_version"] = "V0"
    if mine["inner"].count() and not any(re.search(r"\d\d:\d\d:\d\d \[", line) for line in lines):
        implied["vllm_version_below"] = "0.8.0"
    return implied
