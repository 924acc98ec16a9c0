"""Lines that servers write around their log records: tracebacks, progress bars, notes, C++ log lines; and their events.

Shared by every server log, whatever the engine.  Each line is judged alone, so that the place where a chunk is cut
cannot change the verdict; loading joins the lines of one traceback.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

import polars as pl

from tracelens.formats import host_words
from tracelens.formats.base import PLACEHOLDER_YEAR
from tracelens.formats.server.event_forms import EVENT_FORMS
from tracelens.formats.server.framing import LEVELS, PREFIX

_UVICORN_NOTE: Final = rf"^{PREFIX}({LEVELS}):\s+(\S(?s:.*))$"
_TRACEBACK: Final = (
    r"^(?:\([^()]*? pid=\d+[^()]*\) ?)*(?:\[(?:rank)?\d+\]: ?)?(?:T?r?a?ceback \(most recent call last\)|  File \".*\", line \d+|    \s*\S|\s*[~^]+\s*$|"
    r"  \[Previous line repeated |During handling of the above exception|The above exception was the direct cause|"
    r"(?:[A-Za-z_][\w]*\.)*[A-Z]\w*(?:Error|Exception|Interrupt|Exit|Warning)(?::|$)|"
    # What C++, PyTorch and Python write below their exceptions in a process that ends by itself.
    r"  what\(\):  |frame #\d+: |Exception raised from |"
    r"CUDA kernel errors might be asynchronously reported|For debugging consider passing CUDA_LAUNCH_BLOCKING|Compile with `TORCH_USE_CUDA_DSA`|"
    r"Extension modules: |(?:Current t|T)hread 0x[0-9a-f]+ |(?:\([^()]*? pid=\d+[^()]*\) ?)*Process [\w.-]+:$)"
)
_PROGRESS: Final = r"\d+%\|.*\||\d+% Completed \||\d+(?:\.\d+)?(?:it|s)/(?:s|it)\b|^\s*\d+%"
MAX_MESSAGE_CHARS: Final = 2048
EVENT_SCHEMA: Final[dict[str, Any]] = {
    "line_no": pl.Int64, "level": pl.String, "kind": pl.String, "process": pl.String, "origin": pl.String,
    "last_line_no": pl.Int64, "event_ts": pl.Datetime("us"), "error_s": pl.Float64, "message": pl.String,
}  # fmt: skip
_LONG_PROGRESS: Final = "Compiling FSM index"
"""A progress bar that a request waits for; bars of loading and capturing are no event."""

_GLOG: Final = r"^(?:\([^()]*? pid=\d+[^()]*\) ?)*(?:\[rank\d+\]:?)?\[?([EWIF])(?:(\d{1,2})(\d{2}) (\d\d:\d\d:\d\d)\.\d+ .*?\b| )([\w./-]+:\d+)\] (?s:(.*))$"
"""With the time of day from PyTorch 2.3 on (the month in as many digits as it has), without one before."""
_PYTHON_WARNING: Final = r"^\S+\.py:\d+: ([A-Z]\w*Warning: (?s:.*))$"
_FOREIGN: Final = (
    # writer, pattern with the level as its group
    ("NCCL", r"^\S+:\d+:\d+ \[\d+\] NCCL (INFO|WARN)\b"),
    ("raylet", r"^\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} ([A-Z]) \d+ \d+\] "),
    ("raylet", r"^\(\w+(?: pid=\d+)?(?:, ip=[^)]*)?\) \[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} ([A-Z]) "),
    (
        "torch",  # the lines below "Warning only once for all operators"; they are indented, but no traceback
        r"^ +(?:operator: |registered at /|dispatch key: |previous kernel: |new kernel: |Overriding a previously registered kernel)()",
    ),
    ("torch", r"^(?:No CUDA runtime is found, using|Triton is installed, but )()"),
    ("launcher", r"^\[nvlink\] ()"),  # scripts around vllm serve, on boxes of several consumer GPUs
    ("Rust", r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z +(TRACE|DEBUG|INFO|WARN|ERROR) \S"),
)
"""Libraries that log beside the server, each in its own shape."""

_WARNED_CODE: Final = r"^ {2}(?:[A-Za-z_][\w.]*(?:\(|\[| [=+*/-]* ?\S+.*\()|(?:if|for|while|with|return|assert|raise|del|elif|else|try|def|class)\b).*$"
"""The line of code that Python prints below a warning, two blanks in front."""

_FOREIGN_LEVEL: Final = {"WARN": "WARNING", "W": "WARNING", "E": "ERROR", "ERROR": "ERROR", "F": "CRITICAL"}
_LETTER_LEVEL: Final = {"E": "ERROR", "W": "WARNING", "I": "INFO", "F": "CRITICAL"}


def kind_of_event(message: pl.Expr, level: pl.Expr) -> pl.Expr:
    """Kind of a `log_event`; NULL for a message that is none."""
    kind: pl.Expr = (
        pl.when(level.is_in(["ERROR", "CRITICAL"]))
        .then(pl.lit("error"))
        .when(level == "WARNING")
        .then(pl.lit("warning"))
    )
    for form in reversed(EVENT_FORMS):
        kind = (
            pl.when(message.str.contains(form.contains, literal=True)).then(pl.lit(form.kind)).otherwise(kind)
        )
    return kind


def log_events(frame: pl.DataFrame) -> pl.DataFrame:
    """``line_no, stamp, level, process, origin, message`` as rows of `log_event`; lines that are no event drop out.

    Stamps are of whole seconds, unless the frame has a column ``error_s``; ``repeat_count`` is kept where it is there.
    """
    counted = [name for name in ("repeat_count",) if name in frame.columns]
    if not frame.height:
        return pl.DataFrame(schema=EVENT_SCHEMA | dict.fromkeys(counted, pl.Int64))
    kinds = frame.with_columns(kind=_KIND).drop_nulls("kind")
    error_s = pl.col("error_s") if "error_s" in frame.columns else pl.lit(1.0)
    return kinds.select(
        "line_no",
        "level",
        "kind",
        "process",
        "origin",
        *counted,
        last_line_no="line_no",
        event_ts=pl.col("stamp"),
        error_s=pl.when(pl.col("stamp").is_not_null()).then(error_s),
        message=pl.col("message").str.slice(0, MAX_MESSAGE_CHARS),
    )


def headless(frame: pl.DataFrame) -> pl.DataFrame:
    """Judge lines without a log header (``line_no, text``): adds ``verdict``, ``level``, ``message``, ``stamp``, ``origin``.

    Verdicts: blank, progress, note (uvicorn's own lines), traceback, glog (C++ and torch log lines), python warning,
    code (printed below such a warning), foreign (libraries that log beside the server), host (the kernel, systemd, a shell), or NULL.
    """
    text = pl.col("text")
    verdict = (
        pl.when(~text.str.contains(r"\S"))
        .then(pl.lit("blank"))
        .when(text.str.contains(_UVICORN_NOTE))
        .then(pl.lit("note"))
        .when(pl.col("form_no").is_not_null())
        .then(pl.lit("host"))
        .when(text.str.contains(_GLOG))
        .then(pl.lit("glog"))
        .when(text.str.contains(_PYTHON_WARNING))
        .then(pl.lit("python warning"))
        .when(pl.any_horizontal([text.str.contains(pattern) for _, pattern in _FOREIGN]))
        .then(pl.lit("foreign"))
        .when(text.str.contains(host_words.PASSED))
        .then(pl.lit("foreign"))
        .when(text.str.contains(_PROGRESS))
        .then(pl.lit("progress"))
        .when(text.str.contains(_TRACEBACK))
        .then(pl.lit("traceback"))
        .when(text.str.contains(_WARNED_CODE))
        .then(pl.lit("code"))
    )
    return frame.with_columns(form_no=host_words.form_no(frame["text"])).select(
        "line_no", "text", "form_no", verdict=verdict
    )


def headless_events(judged: pl.DataFrame) -> pl.DataFrame:
    """The events among judged lines, ready for `log_event`."""
    is_bar = pl.col("verdict") == "progress"
    events = judged.filter(~is_bar | pl.col("text").str.contains(_LONG_PROGRESS, literal=True))
    found = events.partition_by("verdict", as_dict=True)
    lines = [_as_said(found[verdict,], said()) for verdict, said in _SAID.items() if (verdict,) in found]
    told = log_events(pl.concat(lines)) if lines else pl.DataFrame(schema=EVENT_SCHEMA)
    rows = [read(found[verdict,]) for verdict, read in _ROWS.items() if (verdict,) in found]
    return pl.concat([told, *rows])


@dataclass(frozen=True, slots=True)
class _Said:
    """Where a line without a header has what an event says."""

    message: pl.Expr
    level: pl.Expr = field(default_factory=lambda: pl.lit(None, pl.String))
    origin: pl.Expr = field(default_factory=lambda: pl.lit(None, pl.String))
    stamp: pl.Expr = field(default_factory=lambda: pl.lit(None, pl.Datetime("us")))


def _note() -> _Said:
    return _Said(_text(_UVICORN_NOTE, 2), level=_text(_UVICORN_NOTE, 1))


def _glog() -> _Said:
    level = _text(_GLOG, 1).replace_strict(_LETTER_LEVEL, default=None, return_dtype=pl.String)
    return _Said(_text(_GLOG, 6), level, _text(_GLOG, 5), _glog_stamp())


def _warned() -> _Said:
    return _Said(_text(_PYTHON_WARNING, 1), pl.lit("WARNING"), _text(r"^(\S+\.py:\d+): ", 1))


def _foreign() -> _Said:
    said = pl.coalesce([_text(pattern, 1) for _, pattern in _FOREIGN])
    return _Said(pl.col("text"), said.replace_strict(_FOREIGN_LEVEL, default=None, return_dtype=pl.String))


def _progress() -> _Said:
    return _Said(pl.col("text").str.split("\r").list.last())


_SAID: Final = {
    "note": _note,
    "glog": _glog,
    "python warning": _warned,
    "foreign": _foreign,
    "progress": _progress,
}


def _text(pattern: str, group: int) -> pl.Expr:
    return pl.col("text").str.extract(pattern, group)


def _as_said(lines: pl.DataFrame, said: _Said) -> pl.DataFrame:
    return lines.select(
        "line_no",
        stamp=said.stamp,
        level=said.level,
        process=pl.lit(None, pl.String),
        origin=said.origin,
        message=said.message,
    )


def _glog_stamp() -> pl.Expr:
    parts = [_text(_GLOG, n) for n in (2, 3, 4)]
    text = pl.concat_str(
        [
            pl.lit(f"{PLACEHOLDER_YEAR}-"),
            parts[0].str.pad_start(2, "0"),
            pl.lit("-"),
            parts[1],
            pl.lit(" "),
            parts[2],
        ]
    )
    return text.str.to_datetime("%Y-%m-%d %H:%M:%S", strict=False, time_unit="us")


def _trace_rows(frame: pl.DataFrame) -> pl.DataFrame:
    nothing = pl.lit(None, pl.String)
    return _rows(frame, kind_of_event(pl.col("text"), nothing).fill_null("traceback"), nothing, nothing)


def _host_rows(frame: pl.DataFrame) -> pl.DataFrame:
    number = pl.col("form_no")
    kind, level, writer = (
        read(number) for read in (host_words.kind_of, host_words.level_of, host_words.writer_of)
    )
    return _rows(frame, kind, level, writer)


def _rows(frame: pl.DataFrame, kind: pl.Expr, level: pl.Expr, process: pl.Expr) -> pl.DataFrame:
    nothing = pl.lit(None, pl.String)
    return frame.select(
        "line_no",
        level=level,
        kind=kind,
        process=process,
        origin=nothing,
        last_line_no="line_no",
        event_ts=pl.lit(None, pl.Datetime("us")),
        error_s=pl.lit(None, pl.Float64),
        message=pl.col("text").str.slice(0, MAX_MESSAGE_CHARS),
    )


_ROWS: Final = {"traceback": _trace_rows, "host": _host_rows}
_KIND: Final = kind_of_event(pl.col("message"), pl.col("level"))
