"""Log records written as JSON objects, one a line: container runtimes, journals, and loggers with a JSON formatter.

    {"log":"(APIServer pid=1) INFO ...\\n","stream":"stdout","time":"2025-10-21T12:34:56.789Z"}      docker json-file
    {"MESSAGE":"...","__REALTIME_TIMESTAMP":"1761050096789012"}                                     journalctl -o json
    {"asctime":"2025-10-21 12:34:56,789","levelname":"INFO","name":"vllm...","message":"..."}        python-json-logger,
                                                                                                    vLLM 0.32 and later
    {"message":"(APIServer pid=1) INFO ...","@timestamp":"2025-10-21T12:34:56.789Z"}                 log collectors
    {"_index":"logs","_source":{"message":"(APIServer pid=1) INFO ...","@timestamp":"..."}}          Elasticsearch dumps

Read with one orjson call per line: the keys are the user's own.  An object that has a message and no time, level or
logger is no record: applications print such things, and what a user wrote may be in it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import orjson
import polars as pl

from tracelens.formats.server.framing import ANSI, LEVELS
from tracelens.formats.server.wrappers import PIPE_ERROR_S, is_log_line

TIME_KEYS: Final = ("asctime", "timestamp", "time", "ts", "@timestamp", "datetime", "date")
LEVEL_KEYS: Final = ("levelname", "level", "severity", "lvl", "log_level")
NAME_KEYS: Final = ("name", "logger", "logger_name", "module")
MESSAGE_KEYS: Final = ("message", "msg", "log", "line", "text", "event", "textPayload")
PROCESS_KEYS: Final = ("vllm_process_name", "processName", "process_name")

_PREFIX: Final = r"^(?:\([^()]*? pid=\d+[^()]*\) ?)*"
_LEVELS: Final = {"WARN": "WARNING", "FATAL": "CRITICAL", "ERR": "ERROR"}
_KNOWN_LEVELS: Final = tuple(LEVELS.split("|"))
_ANSI: Final = re.compile(ANSI)
_ACCESS: Final = re.compile(r"\S* - \"[A-Z]+ \S+ HTTP/[\d.]+\" \d{3}(?: [A-Za-z' -]*)?")
_EPOCH: Final = re.compile(r"\d{10}(?:\.\d+)?|\d{13}(?:\.\d+)?|\d{16}|\d{19}")
_SHAPE: Final[dict[str, Any]] = {
    "line_no": pl.Int64, "json_text": pl.String, "json_outer_ts": pl.Datetime("us"), "json_outer_error_s": pl.Float64,
    "json_local": pl.Datetime("us"), "json_local_error_s": pl.Float64, "json_partial": pl.Boolean, "json_stream": pl.String,
    "json_level": pl.String, "json_process": pl.String, "json_origin": pl.String,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class JsonStamp:
    """A record's time: an instant in UTC, or a wall clock without a zone; and its resolution, seconds."""

    utc: datetime | None = None
    local: datetime | None = None
    error_s: float | None = None


@dataclass(frozen=True, slots=True)
class JsonRecord:
    """A record's parts: `text` is a whole inner line where `level` is None, else the message."""

    text: str
    stamp: JsonStamp = JsonStamp()
    is_partial: bool = False
    stream: str | None = None
    level: str | None = None
    process: str | None = None
    origin: str | None = None


def read(lines: pl.DataFrame) -> tuple[pl.DataFrame, bool]:
    """Replace the text of lines that are JSON records by what they hold; others stay.  Says whether there were any.

    Fills ``level, process, origin, json_local, json_local_error_s`` (of loggers that wrote them as keys), and the
    columns that `wrappers.unwrap` has added.
    """
    looks = pl.col("level").is_null() & pl.col("text").str.contains('{"', literal=True)
    bare = lines.filter(looks & pl.col("text").str.contains(_PREFIX + r"\{\s*\"")).select(
        "line_no", text=pl.col("text").str.replace(_PREFIX, ""), prefix=pl.col("text").str.extract(r"\(([^()]*?) pid=\d+[^()]*\) ?\{")
    )  # fmt: skip
    rows = [
        (line_no, r.text, r.stamp.utc, r.stamp.utc and r.stamp.error_s, r.stamp.local, r.stamp.local and r.stamp.error_s,
         r.is_partial, r.stream, r.level, r.level and (prefix or r.process), r.level and r.origin)
        for line_no, text, prefix in bare.iter_rows()
        if (r := _record(text, prefix)) is not None
    ]  # fmt: skip
    return (_merged(lines, pl.DataFrame(rows, schema=_SHAPE, orient="row")), True) if rows else (lines, False)


def _merged(lines: pl.DataFrame, found: pl.DataFrame) -> pl.DataFrame:
    same = {"json_local", "json_local_error_s"}
    new = found.rename({name: name + "_new" for name in same})
    joined = lines.join(new, on="line_no", how="left", maintain_order="left")
    return joined.with_columns(
        text=pl.coalesce("json_text", "text"),
        outer_ts=pl.coalesce("outer_ts", "json_outer_ts"),
        outer_error_s=pl.coalesce("outer_error_s", "json_outer_error_s"),
        json_local=pl.coalesce("json_local", "json_local_new"),
        json_local_error_s=pl.coalesce("json_local_error_s", "json_local_error_s_new"),
        stream=pl.coalesce("stream", "json_stream"),
        is_partial=pl.col("json_partial").fill_null(pl.col("is_partial")),
        level=pl.coalesce("level", "json_level"),
        process=pl.coalesce("process", "json_process"),
        origin=pl.coalesce("origin", "json_origin"),
    ).select(lines.columns)


def _object(text: str | bytes) -> dict[str, Any] | None:
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    return value if isinstance(value, dict) else None


def _record(text: str, prefix: str | None) -> JsonRecord | None:
    value = _object(text)
    if value is None:
        return None
    if isinstance(inner := value.get("_source"), dict):
        value = inner
    if "MESSAGE" in value:
        return _journal(value)
    if isinstance(value.get("log"), str) and "stream" in value:
        return _container(value)
    return _logger(value, prefix)


def _is_docker(value: Mapping[str, Any]) -> bool:
    """Docker's own file, in which a line end stands on every record that is whole; collectors take it off."""
    return set(value) <= {"log", "stream", "time", "attrs"}


def _container(value: Mapping[str, Any]) -> JsonRecord:
    text: str = value["log"]
    partial = _goes_on(value)
    stamp = _stamp(next((value[key] for key in TIME_KEYS if key in value), None))
    stream = value["stream"]
    return JsonRecord(
        text.rstrip("\r\n"), _piped(stamp), partial, stream if isinstance(stream, str) else None
    )


def _goes_on(value: Mapping[str, Any]) -> bool:
    """Whether a container's record is a part whose next one is below."""
    if _is_docker(value):
        return not str(value["log"]).endswith("\n")
    return bool(value.get("logtag", value.get("_p")) == "P")


def _journal(value: Mapping[str, Any]) -> JsonRecord | None:
    text = value["MESSAGE"]
    if isinstance(text, list):
        try:
            text = bytes(text).decode("utf-8", "replace")
        except (ValueError, TypeError):
            return None
    if not isinstance(text, str):
        return None
    return JsonRecord(text, _piped(_stamp(value.get("__REALTIME_TIMESTAMP"))))


def _logger(value: Mapping[str, Any], prefix: str | None) -> JsonRecord | None:
    message = _first(value, MESSAGE_KEYS)
    level = _first(value, LEVEL_KEYS)
    name = _first(value, NAME_KEYS)
    when = next((value[key] for key in TIME_KEYS if key in value), None)
    if message is None or (level is None and name is None and when is None and prefix is None):
        return None
    stamp = _stamp(when)
    if is_log_line(_ANSI.sub("", message)):
        return JsonRecord(message.rstrip("\r\n"), _piped(stamp))
    if name == "uvicorn.access" or _ACCESS.fullmatch(message):
        return JsonRecord(message, stamp)
    upper = (level or "").upper()
    known = _LEVELS.get(upper, upper)
    text = "\n".join([message, *_trouble(value)]).replace("\r\n", "\n").rstrip("\n")
    return JsonRecord(
        text,
        stamp,
        level=known if known in _KNOWN_LEVELS else "INFO",
        process=_first(value, PROCESS_KEYS),
        origin=name,
    )


def _trouble(value: Mapping[str, Any]) -> list[str]:
    """A traceback that stands beside the message."""
    said = next((value[key] for key in ("exc_info", "exc_text", "stack_info") if value.get(key)), None)
    return [said] if isinstance(said, str) else []


def _piped(stamp: JsonStamp) -> JsonStamp:
    """The stamp of a runtime, which is that of the pipe."""
    return JsonStamp(stamp.utc, stamp.local, max(stamp.error_s or 0.0, PIPE_ERROR_S))


def _first(value: Mapping[str, Any], keys: tuple[str, ...]) -> str | None:
    return next((value[key] for key in keys if isinstance(value.get(key), str)), None)


def _stamp(text: Any) -> JsonStamp:
    if isinstance(text, int | float) and not isinstance(text, bool):
        text = repr(text)
    if not isinstance(text, str):
        return JsonStamp()
    if _EPOCH.fullmatch(text):
        return JsonStamp(_epoch(text), error_s=1.0 if len(text) == 10 else 0.001)  # noqa: PLR2004 - whole seconds
    text = text.strip().replace(",", ".")
    try:
        found = datetime.fromisoformat(re.sub(r"(\.\d{6})\d+", r"\1", text))
    except ValueError:
        return JsonStamp()
    error_s = 0.001 if "." in text else 1.0
    if found.tzinfo is None:
        return JsonStamp(local=found, error_s=error_s)
    try:
        return JsonStamp(found.astimezone(UTC).replace(tzinfo=None), error_s=error_s)
    except (ValueError, OverflowError):
        return JsonStamp()


def _epoch(text: str) -> datetime | None:
    digits = len(text.partition(".")[0])
    try:
        micros = (
            round(float(text) * 1e6 / 10 ** (digits - 10))
            if "." in text
            else int(text) * 10**6 // 10 ** (digits - 10)
        )
        return datetime.fromtimestamp(micros // 10**6, UTC).replace(tzinfo=None, microsecond=micros % 10**6)
    except (ValueError, OverflowError, OSError):
        return None


def goes_on(lines: Sequence[bytes]) -> bool:
    """Whether a container's record among these physical lines (whole ones, in order) has its next part below them."""
    open_streams: set[str] = set()
    for line in lines:
        if not line.startswith(b'{"') or (value := _object(line)) is None:
            continue
        if isinstance(value.get("log"), str) and isinstance(stream := value.get("stream"), str):
            (open_streams.add if _goes_on(value) else open_streams.discard)(stream)
    return bool(open_streams)
