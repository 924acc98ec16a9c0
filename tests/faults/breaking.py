"""Broken inputs made of the samples, and the tally of what happened to them: for `fuzz.py` and `fuzz_atheris.py`."""

from __future__ import annotations

import io
import json
import os
import random
import sys
import traceback
from collections import Counter
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from tracelens import formats
from tracelens.formats.base import Chunk, Claim, Format, Parsed
from tracelens.ingestion.chunks import framed, head_of
from tracelens.opening import Input

SAMPLE_LOGS = Path(__file__).parents[2] / "sample_logs"
MOST_BYTES = 6000
WIDE_LINES = 2000
LONGEST_LINE = 1500
JUNK = (
    b"\x00", b"\xff\xfe", b"\r", b"\n", b"\x1b[31m", b"{", b"}", b"[1,", b'"', b"\\", b"1e400", b"-", b"nan", b"null",
    b"\xe2\x80\xae", b"9" * 40, b"=", b",", b",,,,", b"\t", b"%", b"99999999999999999999", b"true", b"[]", b"{}", b"\xc0\x80",
    b" " * 50, b"0001-01-01T00:00:00", b"99:99:99", b"-0", b"\\u0000", b'\\ud800',
)  # fmt: skip
ODD_VALUES = (
    None, True, 0, -1, 1e308, -1e-320, 2**63, 10**30, "", "x", "nan", "1e400", "\x00", "\ud7ff", "9" * 40, "-0", [], {}, [[]], [None],
    {"": None}, {"x": [1]}, "2026-02-30T25:61:61Z", "0001-01-01T00:00:00", "1,5", " 7 ", "\x1f7",
)  # fmt: skip


@dataclass
class Tally:
    """What a run has tried and found.  Times are CPU seconds."""

    folder: Path
    """Findings are kept here, one file per place in the code, beside `figures.json`."""
    inputs: int = 0
    lines: int = 0
    broken_lines: int = 0
    """Lines of wide files, each broken for itself: an input of its own to a reader that goes line by line."""
    sniffs: int = 0
    parses: int = 0
    opened: int = 0
    """Files taken the whole way."""
    slowest: dict[str, float] = field(default_factory=dict)
    by_format: Counter[str] = field(default_factory=Counter)
    seconds: Counter[str] = field(default_factory=Counter)  # type: ignore[assignment]
    """By format."""
    found: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        """Make the folder."""
        self.folder.mkdir(parents=True, exist_ok=True)

    def note(self, kind: Format, took_s: float, wrong: list[str], data: bytes, inputs: int = 1) -> None:
        """Count the inputs of a file, and keep it where it is the first that went wrong in this way."""
        self.inputs += inputs
        self.by_format[kind.name] += inputs
        self.seconds[kind.name] += took_s  # type: ignore[assignment]
        self.slowest[kind.name] = max(self.slowest.get(kind.name, 0.0), round(took_s, 4))
        for one in wrong:
            self.found[one] += 1
            if self.found[one] == 1:
                (self.folder / f"{len(self.found):03d}-{one.split()[0]}").write_bytes(data)
                print(f"{len(self.found):03d} {one}", flush=True)

    def write(self) -> None:
        """Write the figures, in one step."""
        figures = {name: value for name, value in vars(self).items() if name != "folder"}
        figures["formats"] = len(self.by_format)
        figures["fewest_of_a_format"] = min(self.by_format.values(), default=0)
        figures["cpu_seconds"] = round(sum(self.seconds.values()), 1)
        half = self.folder / "figures.half"
        half.write_text(json.dumps(figures, indent=1))
        half.replace(self.folder / "figures.json")


def memory(data: bytes) -> Input:
    """Bytes as an input."""
    return Input("memory", len(data), lambda: io.BytesIO(data))


@cache
def samples() -> list[tuple[Format, Claim, bytes]]:
    """Every sample, cut to its beginning, with its format and that format's claim."""
    found = []
    left_out = os.environ.get("FUZZ_WITHOUT", "").split(",")
    for kind in formats.FORMATS:
        if kind.name in left_out:
            continue
        folder = SAMPLE_LOGS / kind.name
        for path in sorted(folder.iterdir()) if folder.is_dir() else ():
            data = path.read_bytes()
            claim = kind.sniff(head_of(memory(data))[0]) if path.suffix != ".md" else None
            if claim is not None:
                found.append((kind, claim, data if kind.whole else data[:MOST_BYTES]))
    return found


def read(
    data: bytes, kind: Format, claim: Claim, context: str | None = None
) -> tuple[Parsed, int, list[str]]:
    """Parse some bytes as one chunk: what came out, the number of lines, and what is wrong with the count."""
    lines, raw = framed(data, 1, binary=kind.binary)
    chunk = Chunk(lines, claim, context, is_open=not data.endswith(b"\n"), raw=raw, prompt_key=1)
    found = kind.parse(chunk)
    whole = found.understood + found.issues.height == lines.height
    return found, lines.height, [] if whole else [f"{kind.name} loses lines"]


def where() -> str:
    """The error that is handled, and the last line of tracelens on its way."""
    kind, error, trace = sys.exc_info()
    last = [frame for frame in traceback.extract_tb(trace) if "tracelens" in frame.filename][-1]
    return f"{kind.__name__ if kind else ''} {Path(last.filename).name}:{last.lineno} {str(error)[:100]}"


def wide(chance: random.Random, data: bytes, other: bytes, count: int = WIDE_LINES) -> tuple[bytes, int]:
    """Many lines of a file in any order, each broken; and how many."""
    lines = [line[:LONGEST_LINE] for line in data.split(b"\n")]
    broken = []
    for _ in range(count):
        text = bytearray(chance.choice(lines))
        for _ in range(chance.choice((1, 1, 1, 2, 4))):
            _break(chance, text, other)
        broken.append(bytes(text).replace(b"\n", b" "))
    return b"\n".join(broken) + b"\n", len(broken)


def narrow(chance: random.Random, data: bytes, other: bytes) -> bytes:
    """A file, or a few lines of it, broken in some places."""
    lines = data.split(b"\n")
    start = chance.randrange(len(lines))
    if chance.random() < 0.7 and len(data) > 400:
        lines = lines[start : start + chance.randint(1, 12)]
    text = bytearray(b"\n".join(lines)[:MOST_BYTES])
    for _ in range(chance.randint(1, 8)):
        _break(chance, text, other)
    return bytes(text)


def small(chance: random.Random, lines: list[bytes], other: bytes) -> bytes:
    """One to five lines of a file, one in three times its first ones, broken in a few places."""
    start = 0 if chance.random() < 0.3 else chance.randrange(len(lines))
    taken = lines[start : start + chance.randint(1, 5)]
    if chance.random() < 0.4:
        at = chance.randrange(len(taken))
        taken[at] = twisted(chance, taken[at])
    text = bytearray(b"\n".join(taken) + chance.choice((b"", b"\n")))
    for _ in range(chance.choice((0, 1, 1, 2, 4))):
        _break(chance, text, other)
    return bytes(text)


def twisted(chance: random.Random, data: bytes) -> bytes:
    """A JSON document with some of its values replaced, taken out or doubled; anything else as it is."""
    if data[:1] not in (b"{", b"["):
        return data
    try:
        value = json.loads(data)
    except ValueError:
        return data
    for _ in range(chance.choice((1, 1, 2, 5))):
        _twist(chance, value)
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")


def _twist(chance: random.Random, value: Any) -> None:
    while value:
        key = chance.choice(list(value)) if isinstance(value, dict) else chance.randrange(len(value))
        if isinstance(value[key], dict | list) and value[key] and chance.random() < 0.85:
            value = value[key]
            continue
        how = chance.randrange(8)
        if how == 0:
            del value[key]
        elif how == 1 and isinstance(value, list):
            value.append(value[key])
        elif how == 2 and isinstance(value, dict):
            value[chance.choice(("", "x", str(key).upper(), f"{key}_s"))] = value.pop(key)
        elif how == 3 and isinstance(value[key], str):
            value[key] = value[key][: chance.randint(0, len(value[key]))]
        else:
            value[key] = deepcopy(chance.choice(ODD_VALUES))
        return


def _break(chance: random.Random, text: bytearray, other: bytes) -> None:
    at, length = chance.randint(0, len(text)), chance.randint(1, 40)
    how = chance.randrange(7)
    if how == 0:
        text[at : at + length] = b""
    elif how == 1:
        text[at:at] = chance.choice(JUNK)
    elif how == 2:
        text[at : at + length] = chance.choice(JUNK)
    elif how == 3 and at < len(text):
        text[at] = chance.randrange(256)
    elif how == 4:
        text[at:at] = text[at : at + length] * chance.randint(1, 3)
    elif how == 5:
        begin = chance.randint(0, len(other))
        text[at:at] = other[begin : begin + length * 4]
    elif chance.random() < 0.3:
        del text[at:]
