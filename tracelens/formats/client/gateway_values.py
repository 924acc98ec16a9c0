"""Values as gateways write them: lists of tries, request lines, paths, stamps, trace ids."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any, Final

from tracelens.formats.json_lines import hex_id, seconds
from tracelens.formats.stamps import instant

_TRACEPARENT: Final = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}", re.IGNORECASE)
_REQUEST_LINE: Final = re.compile(r"([A-Z]{3,7}) (\S+)(?: HTTP/[\d.]+)?")
_COMMON: Final = re.compile(r"\d{2}/[A-Z][a-z]{2}/\d{4}:\d\d:\d\d:\d\d [+-]\d{4}")
_ZERO: Final = datetime(1970, 1, 1, tzinfo=UTC)


def tries(value: Any) -> list[float | None]:
    """``"502, 200"`` or ``"-, 0.002"`` as numbers, one per upstream that was tried; a colon stands for a redirect inside."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return [seconds(value)]
    if not isinstance(value, str) or not value.strip():
        return []
    return [seconds(part.strip()) for part in re.split(r"[,:]", value)]


def last_of(last: list[float | None], whole: list[float | None]) -> float | None:
    """Return the last try's time, seconds, from the first try's start: `whole` are the lengths of the tries."""
    if not last or last[-1] is None:
        return None
    before = whole[: len(last) - 1]
    if len(before) != len(last) - 1 or any(each is None for each in before):
        return None
    return sum(each for each in before if each is not None) + last[-1]


def request_line(value: Any) -> tuple[str | None, str | None]:
    """``POST /v1/chat/completions?x=1 HTTP/1.1`` as method and path without its query."""
    found = _REQUEST_LINE.match(value) if isinstance(value, str) else None
    return (found[1], path_of(found[2])) if found else (None, None)


def path_of(value: Any) -> str | None:
    """Return a path without its query, which can hold anything."""
    return re.split(r"[?#]", value, maxsplit=1)[0][:200] or None if isinstance(value, str) else None


def instant_of(value: Any) -> int | None:
    """Microseconds since 1970 of an epoch number, an ISO 8601 text (without zone: UTC) or ``29/Nov/2026:12:50:59 +0000``."""
    if isinstance(value, str) and _COMMON.fullmatch(value):
        try:
            stamp = datetime.strptime(value, "%d/%b/%Y:%H:%M:%S %z")
        except ValueError:
            return None
        return int((stamp - _ZERO).total_seconds()) * 1_000_000
    found = instant(value)
    return found[0] if found is not None and found[0] > _FIRST_US else None


_FIRST_US: Final = 1_420_070_400_000_000


def trace_of(value: Any) -> str | None:
    """Return a trace id from a ``traceparent`` or from bare hex."""
    parent = _TRACEPARENT.fullmatch(value) if isinstance(value, str) else None
    return hex_id(parent[1] if parent else value)
