"""Pods as ``kubectl get pod -o yaml`` and ``-o json`` write them, in the words of ``kubectl describe pod``.

Of YAML only what kubectl itself writes is read: blocks by indentation, plain and quoted scalars (long ones go on below), block
scalars; no flow collections, anchors or tags.  Manifests that hold a pod's template (Deployment and others) have the same keys.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import polars as pl

from tracelens.formats.json_lines import decode

Path = tuple[str | int, ...]

KINDS: Final = r"(?:Pod|Deployment|StatefulSet|DaemonSet|ReplicaSet)"
_YAML: Final = re.compile(rf"^kind: {KINDS}\s*$")
_YAML_ITEM: Final = re.compile(rf"^(?:- |  )kind: {KINDS}\s*$")
_JSON: Final = re.compile(rf'^(?: {{2}}| {{4}}| {{6}}| {{12}})"kind": ?"{KINDS}",?\s*$')
"""Of the document, or of an item of a list, with an indent of two or four; further inside, an event names its pod so."""
_KEY: Final = re.compile(r"^(?P<quote>[\"']?)(?P<key>[A-Za-z_][^:\"']*?)(?P=quote):(?: +(?P<value>\S.*))?$")
_BLOCK: Final = re.compile(r"^[|>][-+]?\d?$")
_MOST_DEPTH: Final = 60
_SCHEMA: Final[dict[str, Any]] = {
    "line_no": pl.Int64, "text": pl.String, "section": pl.String, "container": pl.String, "block": pl.String,
    "block_line": pl.Int64, "name": pl.String, "given": pl.String,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Value:
    """A scalar of a document: its line, where it stands, and what it is, as text."""

    line_no: int
    path: Path
    text: str


def form_of(lines: Sequence[str]) -> str | None:
    """Say whether the beginning of a file is a pod's, or a list of them, as ``yaml`` or ``json``; None for other files."""
    first = next((line for line in lines if line.strip()), "")
    if first.startswith("{"):
        return "json" if any(map(_JSON.match, lines)) else None
    if not first.startswith(("apiVersion: ", "---")):
        return None
    has_items = any(line.rstrip() == "items:" for line in lines)
    kinds = (_YAML, _YAML_ITEM) if has_items else (_YAML,)
    return "yaml" if any(kind.match(line) for kind in kinds for line in lines) else None


@dataclass(frozen=True, slots=True)
class _Scalar:
    """A scalar that may go on in the lines below."""

    line_no: int
    indent: int
    path: Path
    parts: list[str]

    def goes_on(self, indent: int, body: str) -> bool:
        """Whether a line is part of it: deeper ones are, and those of a plain one that do not look like a key."""
        is_plain = not _BLOCK.match(self.parts[0]) and self.parts[0][:1] not in ("'", '"')
        return not body or (indent > self.indent and not (is_plain and _KEY.match(body)))

    def value(self) -> Value:
        return Value(self.line_no, self.path, _text_of(self.parts))


def yaml_values(texts: Sequence[str]) -> Iterator[Value]:
    """Scalars of YAML as kubectl writes it; lines are numbered from 1."""
    open_keys: list[tuple[int, str | int]] = []
    last: _Scalar | None = None
    for line_no, text in enumerate(texts, 1):
        body, indent = text.strip(), len(text) - len(text.lstrip(" "))
        if last is not None and last.goes_on(indent, body):
            last.parts.append(body)
            continue
        if last is not None:
            yield last.value()
        last = None
        if body == "---":  # another document
            open_keys = [(-1, line_no)]
        elif body and not body.startswith("#"):
            last = _opened(open_keys, line_no, indent, body)
    if last is not None:
        yield last.value()


def _opened(open_keys: list[tuple[int, str | int]], line_no: int, indent: int, body: str) -> _Scalar | None:
    """Open the items and the key of a line; returns the scalar that it begins."""
    indent, body = _items(open_keys, indent, body)
    found = _KEY.match(body)
    if found is not None:
        _close(open_keys, indent)
        open_keys.append((indent, found["key"]))
        body = found["value"] or ""
    path = tuple(key for _, key in open_keys)
    return _Scalar(line_no, indent if found else indent - 1, path, [body]) if body else None


def _items(open_keys: list[tuple[int, str | int]], indent: int, body: str) -> tuple[int, str]:
    """Open the items that a line begins (``- - x``); returns where what is behind them stands."""
    while body == "-" or body.startswith("- "):
        count = 0
        while open_keys and (
            open_keys[-1][0] > indent or (open_keys[-1][0] == indent and isinstance(open_keys[-1][1], int))
        ):
            place, key = open_keys.pop()
            count = key + 1 if place == indent and isinstance(key, int) else count
        open_keys.append((indent, count))
        rest = body[1:].lstrip(" ")
        indent, body = indent + len(body) - len(rest), rest
    return indent, body


def _close(open_keys: list[tuple[int, str | int]], indent: int) -> None:
    while open_keys and open_keys[-1][0] >= indent:
        open_keys.pop()


def _text_of(parts: list[str]) -> str:
    if _BLOCK.match(parts[0]):
        return "\n".join(parts[1:])
    text = " ".join(part for part in parts if part)
    if text[:1] == "'" and text[-1:] == "'":
        return text[1:-1].replace("''", "'")
    if text[:1] == '"' and text[-1:] == '"':
        try:
            return str(json.loads(text))
        except ValueError:
            return text[1:-1]
    return text


def json_values(texts: Sequence[str]) -> list[Value] | None:
    """Scalars of a JSON document, with their lines where each key has one; None where it is no whole document."""
    try:
        document = decode("\n".join(texts))
    except ValueError:
        return None
    found: list[Value] = []
    end = _walk(document, (), 1, found)
    is_by_line = end - 1 == len("\n".join(texts).rstrip().split("\n"))
    return found if is_by_line else [Value(1, each.path, each.text) for each in found]


def _walk(value: Any, path: Path, line_no: int, found: list[Value]) -> int:
    """Collect the scalars of a value that begins on a line; returns the line behind it, as indented JSON has it."""
    if not isinstance(value, dict | list) or not value or len(path) > _MOST_DEPTH:
        if isinstance(value, str | int | float) and not isinstance(value, bool):
            found.append(Value(line_no, path, str(value)))
        return line_no + 1
    line_no += 1
    for key, each in value.items() if isinstance(value, dict) else enumerate(value):
        line_no = _walk(each, (*path, key), line_no, found)
    return line_no + 1


@dataclass(slots=True)
class _Rows:
    """Rows in the words of ``kubectl describe pod``."""

    rows: list[tuple[Any, ...]] = field(default_factory=list)

    def add(self, line_no: int, where: tuple[str, str, int], name: str, given: str) -> None:
        container, block, block_line = where
        self.rows.append((line_no, "      " + given, "Containers", container, block, block_line, name, given))


_STATES: Final = {"state": "State", "lastState": "Last State"}
_ENDS: Final = {"reason": "Reason", "exitCode": "Exit Code", "finishedAt": "Finished"}


def described(values: Sequence[Value]) -> pl.DataFrame:
    """Containers, as rows of a description: ends, limits, image, threads, command and arguments."""
    rows = _Rows()
    for owner, part in _parts(values, "containerStatuses"):
        _add_ends(rows, owner, part)
    for owner, part in _parts(values, "containers"):
        _add_spec(rows, owner, part)
    return pl.DataFrame(rows.rows, schema=_SCHEMA, orient="row")


def evictions(values: Sequence[Value]) -> Iterator[tuple[int, str, str]]:
    """Line, reason and message of pods that the kubelet ended as a whole."""
    for value in values:
        if value.path[-2:] == ("status", "reason"):
            said = (each.text for each in values if each.path == (*value.path[:-1], "message"))
            yield value.line_no, value.text, next(said, "")


def _parts(values: Sequence[Value], key: str) -> Iterator[tuple[str, list[Value]]]:
    """Name and values, their paths from there on, of each item of the lists under a key."""
    parts: dict[Path, list[Value]] = {}
    for value in values:
        at = next(
            (
                at
                for at, each in enumerate(value.path[:-2])
                if each == key and at and value.path[at - 1] in ("spec", "status")
            ),
            None,
        )
        if at is not None:
            parts.setdefault(value.path[: at + 2], []).append(
                Value(value.line_no, value.path[at + 2 :], value.text)
            )
    for part in parts.values():
        yield next((each.text for each in part if each.path == ("name",)), ""), part


def _add_ends(rows: _Rows, owner: str, part: list[Value]) -> None:
    for key, block in _STATES.items():
        ended = [each for each in part if each.path[:2] == (key, "terminated")]
        if not ended:
            continue
        first = min(each.line_no for each in ended)
        rows.add(first, (owner, block, first), block, "Terminated")
        for each in ended:
            if each.path[-1] in _ENDS:
                rows.add(each.line_no, (owner, block, first), _ENDS[str(each.path[-1])], each.text)


def _add_spec(rows: _Rows, owner: str, part: list[Value]) -> None:
    named = {
        each.path[:-1]: each.text for each in part if each.path[:1] == ("env",) and each.path[-1] == "name"
    }
    for each in part:
        match each.path:
            case ("image",):
                rows.add(each.line_no, (owner, "Image", each.line_no), "Image", each.text)
            case ("resources", "limits", name):
                rows.add(each.line_no, (owner, "Limits", each.line_no), str(name), each.text)
            case ("env", _, "value"):
                rows.add(
                    each.line_no,
                    (owner, "Environment", each.line_no),
                    named.get(each.path[:-1], ""),
                    each.text,
                )
    # The arguments follow the command, whichever stands first in the file; a shell's command line is many of them.
    for key, block in (("command", "Command"), ("args", "Args")):
        for each in part:
            for word in each.text.split() if each.path[:1] == (key,) else ():
                if word != "\\":
                    rows.add(each.line_no, (owner, block, each.line_no), "", word)
