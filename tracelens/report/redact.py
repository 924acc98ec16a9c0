"""Names taken out of a report or a comparison: ids, hosts, addresses and folders, each replaced by the same word wherever it stands.

What is a name is known by the key that holds it, and in free text by its shape.  Times, numbers, findings, settings and the
names of runs, models and files stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from pathlib import PurePath
from typing import Any, Final, TypeVar

_T = TypeVar("_T")

_KINDS: Final[Mapping[str, str]] = {
    "request_id": "request", "client_id": "request", "trace_id": "request",
    "host": "host", "client_addr": "address",
}  # fmt: skip
"""Keys whose value is a name, and what it names."""
_HOST_SETTINGS: Final = re.compile(r"(?:^|_)(?:host|hostname|node|address|addr|ip)$")
"""Settings whose value is a host."""
_PATH_KEYS: Final = ("path", "from_path", "to_path", "source", "case", "opened_by")
_UUID: Final = r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"
_LOCAL: Final = (
    r"internal|local|localdomain|lan|corp|intra|home|svc|cluster\.local|amazonaws\.com|googleapis\.com"
)
_SHAPES: Final[Mapping[str, re.Pattern[str]]] = {
    "gpu": re.compile(rf"\b(?:GPU|MIG)-{_UUID}"),
    "request": re.compile(
        rf"\b(?:chatcmpl|cmpl|resp|embd|score|req)-[\w.:-]*\w|\b{_UUID}\b|\b[0-9a-f]{{32}}\b"
    ),
    "mail": re.compile(r"\b[\w.+-]+@[\w-]+(?:\.[\w-]+)+"),
    "address": re.compile(
        r"(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?::\d{1,5})?(?![\w.]*\d)"
        r"|(?<![\w:])\[?(?:(?:[0-9a-fA-F]{1,4}:){7}[0-9a-fA-F]{1,4}|(?:[0-9a-fA-F]{1,4}:){1,6}(?::[0-9a-fA-F]{1,4}){1,6})\]?"
        r"|\b(?:[0-9a-fA-F]{2}:){5}[0-9a-fA-F]{2}\b"
    ),
    "host": re.compile(rf"\b(?:ip-\d+-\d+-\d+-\d+|[a-zA-Z0-9][\w-]*(?:\.[\w-]+)*\.(?:{_LOCAL}))\b"),
    "secret": re.compile(r"\b(?:sk|hf|ghp|xox[bap])[-_][\w-]{8,}|(?i:bearer)\s+[\w.~+/-]{8,}=*"),
}
"""What the name of a thing looks like, in text where no key says what it is."""
_URL_HOST: Final = re.compile(r"(?<=://)[^\s/:?#'\"<>@]+")
_FOLDER: Final = re.compile(
    r"(?<![\w<:/])(?:~|\.{0,2})/(?:[\w.@+ -]+/)+(?=[\w.@+-])|\b[A-Za-z]:\\(?:[^\\\s]+\\)+"
)
"""A folder in front of a file's name."""
_NUMBER: Final = re.compile(r"[\d.,+-]*")
_OURS: Final = frozenset({
    "stage", "largest_stage", "status", "provenance", "measure", "slice", "bound_by", "told", "state", "side", "format", "kind",
    "rule", "rules", "cause", "causes", "outcome", "severity", "confidence", "factor", "unit", "run", "run_id", "tracelens",
    "duckdb", "key", "slo", "measured_at", "variant",
})  # fmt: skip
"""Keys whose values are words of this program, or of the person who named a run."""


def redacted(document: _T) -> _T:
    """A copy of a document in which names are words such as ``request-1``; times, numbers and findings stay as they are."""
    names = _Names()
    for kind, value in _named(document):
        names.word(kind, value)
    known = names.pattern()
    replaced: _T = _mapped(document, names, lambda text: _clean(text, names, known))
    return replaced


class _Names:
    """The words that stand for names; the same name always has the same word."""

    def __init__(self) -> None:
        self._words: dict[str, str] = {}
        self._counts: dict[str, int] = {}

    def word(self, kind: str, name: str) -> str:
        if name not in self._words:
            self._counts[kind] = self._counts.get(kind, 0) + 1
            self._words[name] = f"{kind}-{self._counts[kind]}"
        return self._words[name]

    def pattern(self) -> re.Pattern[str] | None:
        """All names so far, the longest first, as one may hold another.

        A name that is a bare number is replaced where a key says what it is, and not within sentences.
        """
        telling = sorted((name for name in self._words if not _NUMBER.fullmatch(name)), key=len, reverse=True)
        return re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, telling))})(?![^\W_])") if telling else None


def _kind(row: Mapping[str, Any], key: str) -> str | None:
    """What the cell of a row names, if anything."""
    if key == "name" and row.get("kind") == "request":
        return "request"
    if key == "value" and "basis" in row and _HOST_SETTINGS.search(str(row.get("key"))):
        return "host"
    if key in ("before", "after") and _HOST_SETTINGS.search(str(row.get("fact"))):
        return "host"
    return _KINDS.get(key)


def _cells(value: Any) -> Mapping[str, Any] | None:
    """What an object of a document consists of; None for a list or a single value."""
    if is_dataclass(value):
        return {one.name: getattr(value, one.name) for one in fields(value)}
    return value if isinstance(value, Mapping) else None


def _named(value: Any) -> Iterator[tuple[str, str]]:
    """Every value whose key says that it is a name, with its kind."""
    if (cells := _cells(value)) is not None:
        for key, one in cells.items():
            if not isinstance(one, str):
                yield from _named(one)
            elif one and (kind := _kind(cells, key)):
                yield kind, one
            elif key in ("gpu", "subject") and (host := one.rpartition(" GPU")[0]):
                yield "host", host
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _named(one)


def _mapped(value: Any, names: _Names, clean: Callable[[str], str], key: str = "") -> Any:
    """The same document with its names replaced and its texts cleaned."""
    if (cells := _cells(value)) is not None:
        found = {}
        for name, one in cells.items():
            kind = _kind(cells, name) if isinstance(one, str) and one else None
            found[name] = names.word(kind, one) if kind else _mapped(one, names, clean, name)
        return found if isinstance(value, Mapping) else replace(value, **found)
    if isinstance(value, list | tuple):
        return type(value)(_mapped(one, names, clean, key) for one in value)
    if not isinstance(value, str) or key in _OURS:
        return value
    return clean(_without_folder(value) if key in _PATH_KEYS else value)


def _clean(text: str, names: _Names, known: re.Pattern[str] | None) -> str:
    """Text without the known names, and without what looks like one."""
    if known is not None:
        text = known.sub(lambda match: names.word("request", match[0]), text)
    text = _URL_HOST.sub(lambda match: names.word("host", match[0]), text)
    for kind, shape in _SHAPES.items():
        text = shape.sub(lambda match, kind=kind: names.word(kind, match[0]), text)  # type: ignore[misc]
    return _FOLDER.sub("", text)


def _without_folder(path: str) -> str:
    """The file's name; of an archive's member both names."""
    return "!".join(PurePath(part).name for part in path.split("!"))
