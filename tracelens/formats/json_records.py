"""Log records written as JSON objects, one a line: container runtimes, journals, and loggers with a JSON formatter.

    {"log":"(APIServer pid=1) INFO ...\\n","stream":"stdout","time":"2025-10-21T12:34:56.789Z"}      docker json-file
    {"MESSAGE":"...","__REALTIME_TIMESTAMP":"1761050096789012"}                                     journalctl -o json
    {"asctime":"2025-10-21 12:34:56,789","levelname":"INFO","name":"vllm...","message":"..."}        python-json-logger,
                                                                                                    vLLM 0.32 and later

Read with one orjson call per line: the keys are the user's own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import orjson
import polars as pl

TIME_KEYS: Final = ("asctime", "timestamp", "time", "ts", "@timestamp", "datetime")
LEVEL_KEYS: Final = ("levelname", "level", "severity", "lvl", "log_level")
NAME_KEYS: Final = ("name", "logger", "logger_name", "module")
MESSAGE_KEYS: Final = ("message", "msg", "text", "event")
PROCESS_KEYS: Final = ("vllm_process_name", "processName", "process_name")

_PREFIX: Final = r"^(?:\([^()]*? pid=\d+[^()]*\) ?)*"
_LEVELS: Final = {"WARN": "WARNING", "FATAL": "CRITICAL", "ERR": "ERROR"}
_KNOWN_LEVELS: Final = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL", "TRACE")
_EPOCH: Final = re.compile(r"\d{10}(?:\.\d+)?|\d{13}|\d{16}|\d{19}")
_SHAPE: Final[dict[str, Any]] = {
    "line_no": pl.Int64, "json_text": pl.String, "json_outer_ts": pl.Datetime("us"), "json_local": pl.Datetime("us"),
    "json_partial": pl.Boolean, "json_level": pl.String, "json_process": pl.String, "json_origin": pl.String,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class JsonRecord:
    """A record's parts: `text` is a whole inner line where `level` is None, else the message."""

    text: str
    outer_ts: datetime | None = None
    local: datetime | None = None
    is_partial: bool = False
    level: str | None = None
    process: str | None = None
    origin: str | None = None


def read(lines: pl.DataFrame) -> pl.DataFrame:
    """Replace the text of lines that are JSON records by what they hold; others stay.

    Adds ``level, process, origin`` (of loggers that wrote them as keys) and fills ``outer_ts, outer_local, is_partial``.
    """
    bare = lines.filter(pl.col("text").str.contains(_PREFIX + r"\{\s*\"")).select(
        "line_no",
        text=pl.col("text").str.replace(_PREFIX, ""),
        prefix=pl.col("text").str.extract(r"\(([^()]*?) pid=\d+[^()]*\) ?\{"),
    )
    rows = [
        (line_no, r.text, r.outer_ts, r.local, r.is_partial, r.level, prefix or r.process, r.origin)
        for line_no, text, prefix in bare.iter_rows()
        if (r := _record(text)) is not None
    ]
    found = pl.DataFrame(rows, schema=_SHAPE, orient="row")
    return _merged(lines, found)


def _merged(lines: pl.DataFrame, found: pl.DataFrame) -> pl.DataFrame:
    if not found.height:
        none = pl.lit(None, pl.String)
        return lines.with_columns(level=none, process=none, origin=none)
    joined = lines.join(found, on="line_no", how="left", maintain_order="left")
    return joined.with_columns(
        text=pl.coalesce("json_text", "text"),
        outer_ts=pl.coalesce("outer_ts", "json_outer_ts"),
        outer_local=pl.coalesce("outer_local", "json_local"),
        is_partial=pl.col("is_partial") | pl.col("json_partial").fill_null(value=False),
        level=pl.col("json_level"),
        process=pl.col("json_process"),
        origin=pl.col("json_origin"),
    ).drop([name for name in _SHAPE if name.startswith("json_")])


def _record(text: str) -> JsonRecord | None:
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    if not isinstance(value, dict):
        return None
    if isinstance(value.get("log"), str) and ("stream" in value or "time" in value):
        return _docker(value)
    if "MESSAGE" in value:
        return _journal(value)
    return _logger(value)


def _docker(value: Mapping[str, Any]) -> JsonRecord:
    text: str = value["log"]
    outer, _ = _stamp(value.get("time"))
    return JsonRecord(text.rstrip("\r\n"), outer, is_partial=not text.endswith("\n"))


def _journal(value: Mapping[str, Any]) -> JsonRecord | None:
    text = value["MESSAGE"]
    if isinstance(text, list):
        try:
            text = bytes(text).decode("utf-8", "replace")
        except (ValueError, TypeError):
            return None
    if not isinstance(text, str):
        return None
    outer, _ = _stamp(value.get("__REALTIME_TIMESTAMP"))
    return JsonRecord(text, outer)


def _logger(value: Mapping[str, Any]) -> JsonRecord | None:
    message = _first(value, MESSAGE_KEYS)
    if message is None:
        return None
    level = (_first(value, LEVEL_KEYS) or "").upper()
    level = _LEVELS.get(level, level)
    trouble = value.get("exc_info") or value.get("exc_text") or value.get("stack_info")
    outer, local = _stamp(next((value[key] for key in TIME_KEYS if key in value), None))
    text = f"{message}\n{trouble}" if isinstance(trouble, str) else message
    name = _first(value, NAME_KEYS)
    is_access = name == "uvicorn.access" or " HTTP/" in message
    known = level if level in _KNOWN_LEVELS and not is_access else None
    return JsonRecord(
        text.replace("\r\n", "\n"),
        outer,
        local,
        level=known,
        process=_first(value, PROCESS_KEYS),
        origin=name,
    )


def _first(value: Mapping[str, Any], keys: tuple[str, ...]) -> str | None:
    return next((value[key] for key in keys if isinstance(value.get(key), str)), None)


def _stamp(text: Any) -> tuple[datetime | None, datetime | None]:
    """A stamp as (UTC instant, None) where it has a zone or is an epoch number, as (None, wall clock) where not."""
    if isinstance(text, int | float) and not isinstance(text, bool):
        text = repr(text)
    if not isinstance(text, str):
        return None, None
    if _EPOCH.fullmatch(text):
        return _epoch(text), None
    try:
        found = datetime.fromisoformat(_six_digits(text.strip().replace(",", ".")))
    except ValueError:
        return None, None
    if found.tzinfo is None:
        return None, found
    return found.astimezone(UTC).replace(tzinfo=None), None


def _six_digits(text: str) -> str:
    return re.sub(r"(\.\d{6})\d+", r"\1", text)


def _epoch(text: str) -> datetime | None:
    digits = len(text.partition(".")[0])
    seconds = float(text) / 10 ** (digits - 10)
    try:
        return datetime.fromtimestamp(seconds, UTC).replace(tzinfo=None)
    except (ValueError, OverflowError, OSError):
        return None
