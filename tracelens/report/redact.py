"""Names taken out of a report: ids, hosts, addresses and folders, each replaced by the same word wherever it stands."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import PurePath
from typing import Any, Final

_ID_KEYS: Final = ("request_id", "client_id", "trace_id", "subject")
_HOST_KEYS: Final = ("host",)
_PATH_KEYS: Final = ("path", "from_path", "to_path", "source", "case", "opened_by")
_UUID: Final = r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"
_SHAPES: Final[Mapping[str, re.Pattern[str]]] = {
    "gpu": re.compile(rf"\b(?:GPU|MIG)-{_UUID}"),
    "request": re.compile(rf"\b(?:chatcmpl|cmpl|resp|embd|score)-[\w.:-]+|\b{_UUID}\b|\b[0-9a-f]{{32}}\b"),
    "mail": re.compile(r"\b[\w.+-]+@[\w-]+(?:\.[\w-]+)+"),
    "address": re.compile(
        r"\b(?:\d{1,3}\.){3}\d{1,3}(?::\d{1,5})?\b|\[?(?:[0-9a-fA-F]{1,4}:){3,7}[0-9a-fA-F:]{1,}\]?(?::\d{1,5})?"
    ),
    "host": re.compile(
        r"\b(?:ip-\d+-\d+-\d+-\d+|[a-z][\w-]*(?:\.[\w-]+)*\.(?:internal|local|lan|corp|svc|cluster\.local))\b"
    ),
    "secret": re.compile(r"\b(?:sk|hf|ghp|xox[bap])[-_][\w-]{8,}|(?i:bearer)\s+[\w.~+/-]{8,}=*"),
}
"""What the name of a thing looks like, in text where no key says what it is."""
_FOLDER: Final = re.compile(r"(?<![\w<])(?:~|\.{0,2})/(?:[\w.@+ -]+/)+(?=[\w.@+-])")
"""A folder in front of a file's name."""
_SHORTEST: Final = 3


def redacted(document: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of a document in which names are words such as ``request-1``; times, numbers and findings stay as they are."""
    names = _Names()
    for kind, value in _named(document):
        names.word(kind, value)
    known = names.pattern()
    replaced = _mapped(document, lambda text: _clean(text, names, known))
    assert isinstance(replaced, dict)
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
        """All names so far, the longest first: one may hold another."""
        longest = sorted((name for name in self._words if len(name) >= _SHORTEST), key=len, reverse=True)
        return re.compile("|".join(map(re.escape, longest))) if longest else None


def _named(value: Any, key: str = "") -> Iterator[tuple[str, str]]:
    """Every value whose key says that it is a name, with its kind."""
    if isinstance(value, Mapping):
        for inner, one in value.items():
            yield from _named(one, inner)
    elif isinstance(value, list):
        for one in value:
            yield from _named(one, key)
    elif isinstance(value, str) and value:
        if key in _ID_KEYS:
            yield "request", value
        elif key in _HOST_KEYS:
            yield "host", value


def _clean(text: str, names: _Names, known: re.Pattern[str] | None) -> str:
    if known is not None:
        text = known.sub(lambda match: names.word("request", match[0]), text)
    for kind, shape in _SHAPES.items():
        text = shape.sub(lambda match, kind=kind: names.word(kind, match[0]), text)  # type: ignore[misc]
    return _FOLDER.sub("", text)


def _mapped(value: Any, change: Callable[[str], str], key: str = "") -> Any:
    if isinstance(value, Mapping):
        return {name: _mapped(one, change, name) for name, one in value.items()}
    if isinstance(value, list):
        return [_mapped(one, change, key) for one in value]
    if isinstance(value, str):
        return change(_without_folder(value) if key in _PATH_KEYS else value)
    return value


def _without_folder(path: str) -> str:
    """The file's name; of an archive's member both names."""
    return "!".join(PurePath(part).name for part in path.split("!"))
