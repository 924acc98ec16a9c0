"""Logs that a log service gave out as one JSON document, as the lines they were.

    [{"timestamp": "2025-11-19T20:16:00.09Z", "textPayload": "(APIServer pid=1) INFO ...", ...}, ...]   gcloud logging read --format=json
    {"events": [{"timestamp": 1763583396000, "message": "(APIServer pid=1) INFO ..."}]}                  aws logs filter-log-events
    {"results": [[{"field": "@timestamp", "value": "..."}, {"field": "@message", "value": "..."}]]}      CloudWatch Logs Insights
    {"data": {"result": [{"stream": {}, "values": [["1763583396000000000", "(APIServer ..."]]}]}}        Loki's HTTP API
    [{"line": "(APIServer pid=1) INFO ...", "timestamp": "1763583396000000000"}]                          Grafana's download
    {"hits": {"hits": [{"_source": {"@timestamp": "...", "message": "(APIServer ..."}}]}}                Elasticsearch
    {"resourceLogs": [{"scopeLogs": [{"logRecords": [{"timeUnixNano": "...", "body": {}}]}]}]}           OTLP, one document or one a line

A record becomes its lines, each with the service's time in front, as ``kubectl logs --timestamps`` writes it; the oldest comes
first, whatever the order of the answer.  Where the records are of several pods (or log streams), the name stands before that, as
``kubectl logs --prefix`` has it.  A document in which few texts are a server's log lines stays as it is.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import IO, Any, Final, NamedTuple, cast

import orjson

from tracelens.opening.replay import Replayed, read_up_to

PEEKED_BYTES: Final = 1 << 16
_MAX_BYTES: Final = 1 << 29
"""Larger documents are left alone: they have to be decoded whole."""
_MIN_SHARE: Final = 0.3
_MAX_DEPTH: Final = 12

_SHAPE: Final = re.compile(
    rb'^\s*(?:\[\s*\{|\{\s*"(?:events|results|data|status|hits|took|resourceLogs|streams|nextToken|searchedLogStreams|messages)")'
)
_LOG: Final = (
    r"(?:DEBUG|INFO|WARNING|ERROR|CRITICAL) +\d\d-\d\d \d\d:\d\d:\d\d|(?:Decode|Prefill) batch[.,] #|Avg prompt throughput: |"
    r"text_generation_(?:router|launcher)|HTTP/1\.[01]\\?\" \d{3}"
)
_MARK: Final = re.compile(_LOG.encode())
_LINE: Final = re.compile(_LOG)
_TEXTS: Final = ("textPayload", "message", "line", "log", "@message", "Line", "MESSAGE", "body")
_TIMES: Final = ("timestamp", "@timestamp", "time", "timeUnixNano", "observedTimeUnixNano", "ts", "Time")
_DIGITS: Final = re.compile(r"\d{10}|\d{13}|\d{16}|\d{19}")
_ISO: Final = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(Z|[+-]\d\d:?\d\d)?")
_OWN: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z ")

_PODS: Final = (
    "pod",
    "pod_name",
    "podName",
    "k8s_pod_name",
    "kubernetes_pod_name",
    "k8s.pod.name",
    "logStreamName",
    "@logStream",
)
_ABOUT: Final = ("kubernetes", "resource", "labels", "stream", "attributes")
"""Where a record, or what it stands in, says which pod wrote it."""
_ABOUT_DEPTH: Final = 3
_UNFIT: Final = re.compile(r"[\]\s]")


class Record(NamedTuple):
    """A stamp as it will stand before each line (empty: none), the text, and who wrote it, where that is said."""

    stamp: str
    text: str
    pod: str


class _AsItWas(Replayed):
    """A stream that was looked at; closing it closes the stream itself."""

    def close(self) -> None:
        """Close both."""
        if not self.closed:
            self._stream.close()
        super().close()


def may_be_export(start: bytes) -> bool:
    """Whether a stream of this beginning may be such a document."""
    return start[:1] in (b"{", b"[", b" ", b"\n") and bool(_SHAPE.match(start)) and bool(_MARK.search(start))


def as_lines(stream: IO[bytes]) -> IO[bytes]:
    """The lines of a document's records; the stream as it was where it is none."""
    try:
        start = read_up_to(stream, PEEKED_BYTES)
        if not may_be_export(start):
            return cast("IO[bytes]", _AsItWas(start, stream))
        whole = start + read_up_to(stream, _MAX_BYTES - len(start))
    except BaseException:
        stream.close()
        raise
    records = [one for value in _documents(whole) for one in _records(value, 0, "")]
    own = sum(1 for one in records if _LINE.search(one.text))
    if len(whole) >= _MAX_BYTES or not own or own < _MIN_SHARE * len(records):
        return cast("IO[bytes]", _AsItWas(whole, stream))
    stream.close()
    if all(one.stamp for one in records):
        records.sort(key=lambda record: record.stamp)
    are_many = len({one.pod for one in records}) > 1
    return io.BytesIO("".join(_written(one, named=are_many) for one in records).encode("utf-8", "replace"))


def _documents(whole: bytes) -> Iterator[Any]:
    """The one document, or those of each line."""
    try:
        yield orjson.loads(whole)
        return
    except orjson.JSONDecodeError:
        pass
    for line in whole.splitlines():
        try:
            yield orjson.loads(line)
        except orjson.JSONDecodeError:
            continue


def _records(value: Any, depth: int, pod: str) -> Iterator[Record]:
    if depth > _MAX_DEPTH:
        return
    if isinstance(value, dict):
        pod = _pod(value) or pod
        text, when = _text(value), _stamp(next((value[key] for key in _TIMES if key in value), None))
        if text is not None and when is not None:
            yield Record(when, text, pod)
            return
        found = [one for child in value.values() for one in _records(child, depth + 1, pod)]
        # A record without a text that is known is kept as it is: its line will be counted as not understood.
        yield from found or ([] if when is None else [Record(when, orjson.dumps(value).decode(), pod)])
    elif isinstance(value, list):
        yield from _of_list(value, depth, pod)


def _of_list(value: list[Any], depth: int, pod: str) -> Iterator[Record]:
    if len(value) >= 2 and isinstance(value[0], str) and isinstance(value[1], str):  # noqa: PLR2004 - Loki's pairs
        if _DIGITS.fullmatch(value[0]) and (when := _stamp(value[0])) is not None:
            yield Record(when, value[1], pod)
        return
    if value and all(isinstance(one, dict) and {"field", "value"} <= set(one) for one in value):
        row = {one["field"]: one["value"] for one in value}
        if isinstance(at := row.get("@timestamp"), str):
            row["@timestamp"] = f"{at}Z"  # CloudWatch writes UTC, and does not say so
        yield from _records(row, depth + 1, pod)
        return
    for child in value:
        yield from _records(child, depth + 1, pod)


def _pod(value: dict[str, Any], depth: int = 0) -> str:
    """The pod or log stream that an object names, or nothing."""
    for key in _PODS:
        found = value.get(key)
        if isinstance(found, dict):  # as of Elastic's agents: "pod": {"name": ...}
            found = found.get("name") or found.get("stringValue")
        if isinstance(found, str) and found:
            return found
    for key in _ABOUT if depth < _ABOUT_DEPTH else ():
        about = value.get(key)
        if isinstance(about, list):  # as of OTLP: {"key": "k8s.pod.name", "value": {"stringValue": ...}}
            about = {
                one.get("key"): one.get("value")
                for one in about
                if isinstance(one, dict) and isinstance(one.get("key"), str)
            }
        if isinstance(about, dict) and (found := _pod(about, depth + 1)):
            return found
    return ""


def _text(value: dict[str, Any]) -> str | None:
    payload = value.get("jsonPayload")
    if isinstance(payload, dict):
        return _text(payload)
    for key in _TEXTS:
        found = value.get(key)
        if isinstance(found, dict):
            found = found.get("stringValue")
        if isinstance(found, str):
            return found
    return None


def _stamp(value: Any) -> str | None:
    """A time in the form that is put before a line: an instant with Z, or a wall clock as written; None for no time."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        value = str(int(value))
    if not isinstance(value, str):
        return None
    if _DIGITS.fullmatch(value):
        micros = int(value) * 10**6 // 10 ** (len(value) - 10)
        at = datetime.fromtimestamp(micros // 10**6, UTC).replace(microsecond=micros % 10**6)
        return f"{at:%Y-%m-%dT%H:%M:%S.%f}Z"
    return value if _ISO.fullmatch(value.strip()) else None


def _written(one: Record, *, named: bool) -> str:
    """The lines of a record; one that has an instant of its own needs no other."""
    pod = f"[pod/{_UNFIT.sub('_', one.pod) or 'unknown'}] " if named else ""
    lines = one.text.replace("\r\n", "\n").rstrip("\n").split("\n")
    return "".join(f"{pod}{line}\n" if _OWN.match(line) else f"{pod}{one.stamp} {line}\n" for line in lines)
