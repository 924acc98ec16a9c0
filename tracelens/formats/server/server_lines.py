"""Lines that servers write around their log records: HTTP access lines, tracebacks, progress bars, C++ log lines.

Shared by every server log, whatever the engine.  Each line is judged alone, so that the place where a chunk is cut
cannot change the verdict; loading joins the lines of one traceback.
"""

from __future__ import annotations

from typing import Final

import polars as pl

from tracelens.formats.base import PLACEHOLDER_YEAR
from tracelens.formats.server.framing import LEVELS, PREFIX
from tracelens.formats.server.vllm_lines import EVENT_FORMS

UVICORN: Final = (
    rf"^(?P<processes>{PREFIX})(?:(?:{LEVELS}):\s+)?(?P<client_addr>\S*) - \"(?P<method>[A-Z]+) (?P<path>\S+) "
    r"HTTP/[\d.]+\" (?P<status>\d{3})(?: [A-Za-z' -]*)?$"
)
_UVICORN_NOTE: Final = rf"^{PREFIX}({LEVELS}):\s+(\S(?s:.*))$"
_TRACEBACK: Final = (
    r"^(?:\([^()]*? pid=\d+[^()]*\) ?)*(?:\[(?:rank)?\d+\]: ?)?(?:T?r?a?ceback \(most recent call last\)|  File \".*\", line \d+|    \s*\S|\s*[~^]+\s*$|"
    r"  \[Previous line repeated |During handling of the above exception|The above exception was the direct cause|"
    r"(?:[A-Za-z_][\w]*\.)*[A-Z]\w*(?:Error|Exception|Interrupt|Exit|Warning)(?::|$))"
)
_PROGRESS: Final = r"\d+%\|.*\||\d+% Completed \||\d+(?:\.\d+)?(?:it|s)/(?:s|it)\b|^\s*\d+%"
_LONG_PROGRESS: Final = "Compiling FSM index"
"""A progress bar that a request waits for; bars of loading and capturing are no event."""

_GLOG: Final = (
    r"^(?:\[rank\d+\]:?)?\[?([EWIF])(\d{2})(\d{2}) (\d\d:\d\d:\d\d)\.\d+ .*?\b([\w./-]+:\d+)\] (?s:(.*))$"
)
_PYTHON_WARNING: Final = r"^\S+\.py:\d+: ([A-Z]\w*Warning: (?s:.*))$"
_FOREIGN: Final = (
    # writer, pattern with the level as its group
    ("NCCL", r"^\S+:\d+:\d+ \[\d+\] NCCL (INFO|WARN)\b"),
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
    kinds = frame.with_columns(kind=kind_of_event(pl.col("message"), pl.col("level"))).drop_nulls("kind")
    error_s = pl.col("error_s") if "error_s" in frame.columns else pl.lit(1.0)
    return kinds.select(
        "line_no",
        "level",
        "kind",
        "process",
        "origin",
        *[name for name in ("repeat_count",) if name in frame.columns],
        last_line_no="line_no",
        event_ts=pl.col("stamp"),
        error_s=pl.when(pl.col("stamp").is_not_null()).then(error_s),
        message=pl.col("message").str.slice(0, 2048),
    )


def access_lines(frame: pl.DataFrame) -> pl.DataFrame:
    """``line_no, text, after`` of lines with " HTTP/" as rows of `access_line`; NULL ``status`` where it is none."""
    split = frame.with_columns(pl.col("text").str.extract_groups(UVICORN).struct.unnest())
    return split.select(
        "line_no",
        "method",
        client_addr=pl.when(pl.col("client_addr") != "").then("client_addr"),
        logged_after_ts=pl.col("after"),
        process=pl.col("processes").str.extract(r"\(([^()]*?) pid=\d+[^()]*\) ?$"),
        path=pl.col("path").str.replace(r"\?.*$", ""),
        status=pl.col("status").cast(pl.Int32, strict=False),
    )


def headless(frame: pl.DataFrame) -> pl.DataFrame:
    """Judge lines without a log header (``line_no, text``): adds ``verdict``, ``level``, ``message``, ``stamp``, ``origin``.

    Verdicts: blank, progress, note (uvicorn's own lines), traceback, glog (C++ and torch log lines), python warning,
    code (printed below such a warning), foreign (libraries that log beside the server), or NULL.
    """
    text = pl.col("text")
    verdict = (
        pl.when(~text.str.contains(r"\S"))
        .then(pl.lit("blank"))
        .when(text.str.contains(_UVICORN_NOTE))
        .then(pl.lit("note"))
        .when(text.str.contains(_GLOG))
        .then(pl.lit("glog"))
        .when(text.str.contains(_PYTHON_WARNING))
        .then(pl.lit("python warning"))
        .when(pl.any_horizontal([text.str.contains(pattern) for _, pattern in _FOREIGN]))
        .then(pl.lit("foreign"))
        .when(text.str.contains(_PROGRESS))
        .then(pl.lit("progress"))
        .when(text.str.contains(_TRACEBACK))
        .then(pl.lit("traceback"))
        .when(text.str.contains(_WARNED_CODE))
        .then(pl.lit("code"))
    )
    return frame.select("line_no", "text", verdict=verdict)


def headless_events(judged: pl.DataFrame) -> pl.DataFrame:
    """The events among judged lines, ready for `log_event`."""
    none = pl.lit(None, pl.String)
    notes = judged.filter(pl.col("verdict") == "note").select(
        "line_no",
        stamp=pl.lit(None, pl.Datetime("us")),
        level=pl.col("text").str.extract(_UVICORN_NOTE, 1),
        process=none,
        origin=none,
        message=pl.col("text").str.extract(_UVICORN_NOTE, 2),
    )
    glog = judged.filter(pl.col("verdict") == "glog").select(
        "line_no",
        stamp=_glog_stamp(),
        level=pl.col("text").str.extract(_GLOG, 1).replace_strict(_LETTER_LEVEL, default=None),
        process=none,
        origin=pl.col("text").str.extract(_GLOG, 5),
        message=pl.col("text").str.extract(_GLOG, 6),
    )
    warned = judged.filter(pl.col("verdict") == "python warning").select(
        "line_no",
        stamp=pl.lit(None, pl.Datetime("us")),
        level=pl.lit("WARNING"),
        process=none,
        origin=pl.col("text").str.extract(r"^(\S+\.py:\d+): "),
        message=pl.col("text").str.extract(_PYTHON_WARNING),
    )
    foreign = judged.filter(pl.col("verdict") == "foreign").select(
        "line_no",
        stamp=pl.lit(None, pl.Datetime("us")),
        level=_foreign_level(),
        process=none,
        origin=none,
        message="text",
    )
    traces = judged.filter(pl.col("verdict") == "traceback").select(
        "line_no",
        stamp=pl.lit(None, pl.Datetime("us")),
        level=none,
        process=none,
        origin=none,
        message="text",
    )
    progress = judged.filter(
        (pl.col("verdict") == "progress") & pl.col("text").str.contains(_LONG_PROGRESS, literal=True)
    ).select(
        "line_no",
        stamp=pl.lit(None, pl.Datetime("us")),
        level=none,
        process=none,
        origin=none,
        message=pl.col("text").str.split("\r").list.last(),
    )
    events = log_events(pl.concat([notes, glog, warned, foreign, progress]))
    return pl.concat([events, _trace_rows(traces)]) if traces.height else events


def _foreign_level() -> pl.Expr:
    said = pl.coalesce([pl.col("text").str.extract(pattern) for _, pattern in _FOREIGN])
    return said.replace_strict(_FOREIGN_LEVEL, default=None, return_dtype=pl.String)


def _glog_stamp() -> pl.Expr:
    parts = [pl.col("text").str.extract(_GLOG, n) for n in (2, 3, 4)]
    text = pl.concat_str(
        [pl.lit(f"{PLACEHOLDER_YEAR}-"), parts[0], pl.lit("-"), parts[1], pl.lit(" "), parts[2]]
    )
    return text.str.to_datetime("%Y-%m-%d %H:%M:%S", strict=False, time_unit="us")


def _trace_rows(frame: pl.DataFrame) -> pl.DataFrame:
    kind = kind_of_event(pl.col("message"), pl.lit(None, pl.String)).fill_null("traceback")
    return frame.select(
        "line_no",
        "level",
        kind.alias("kind"),
        "process",
        "origin",
        last_line_no="line_no",
        event_ts=pl.col("stamp"),
        error_s=pl.lit(None, pl.Float64),
        message=pl.col("message").str.slice(0, 2048),
    )
