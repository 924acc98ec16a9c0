"""Broken files without end: ``python tests/faults/fuzz.py SECONDS [SEED] [FOLDER]``.

Each file is made of a format's samples.  A narrow one is a few lines with some breaks anywhere; a wide one is many lines, each
broken for itself: cut, doubled, glued, with bytes flipped or put in.  Of a narrow file, and of some wide ones, every format is
asked whether it is its own (`sniff`); the format of the sample reads it (`parse`), and so does every other one that claims it.  Nothing may raise, no line may be lost, and no input may take more than `SLOW_S`.  What breaks is written into
FOLDER and counted; the last line of the output holds the figures.
"""

from __future__ import annotations

import io
import json
import os
import random
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from tracelens import formats
from tracelens.formats.base import Chunk, Claim, Format, Head
from tracelens.ingestion.chunks import framed, head_of
from tracelens.opening import Input

SAMPLE_LOGS = Path(__file__).parents[2] / "sample_logs"
SLOW_S = 10.0
MOST_BYTES = 6000
WIDE_LINES = 2000
LONGEST_LINE = 1500
JUNK = (
    b"\x00", b"\xff\xfe", b"\r", b"\n", b"\x1b[31m", b"{", b"}", b"[1,", b'"', b"\\", b"1e400", b"-", b"nan", b"null",
    b"\xe2\x80\xae", b"9" * 40, b"=", b",", b",,,,", b"\t", b"%", b"99999999999999999999", b"true", b"[]", b"{}", b"\xc0\x80",
    b" " * 50, b"0001-01-01T00:00:00", b"99:99:99", b"-0", b"\\u0000", b'\\ud800',
)  # fmt: skip


@dataclass
class Tally:
    """What a run has tried and found."""

    files: int = 0
    broken_lines: int = 0
    """Lines broken for themselves: each is an input of its own to a reader that goes line by line."""
    sniffs: int = 0
    parses: int = 0
    slowest_s: float = 0.0
    found: Counter[str] = field(default_factory=Counter)


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


def tried(data: bytes, kind: Format, claim: Claim, tally: Tally, *, asked: bool) -> Iterator[str]:
    """Show one input to every format, let those read it that claim it; yields what went wrong."""
    head: Head = head_of(memory(data))[0]
    readers = {kind.name: (kind, claim)}
    for each in formats.FORMATS if asked else ():
        tally.sniffs += 1
        try:
            if (seen := each.sniff(head)) is not None:
                readers[each.name] = (each, seen)
        except Exception:  # noqa: BLE001 - this is what is looked for
            yield f"{each.name} sniff {_where()}"
    for each, seen in readers.values():
        tally.parses += 1
        try:
            lines, raw = framed(data, 1, binary=each.binary)
            result = each.parse(Chunk(lines, seen, is_open=not data.endswith(b"\n"), raw=raw, prompt_key=1))
            if result.understood + result.issues.height != lines.height:
                yield f"{each.name} loses lines"
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            yield f"{each.name} parse {_where()}"


def _where() -> str:
    kind, error, trace = sys.exc_info()
    last = [frame for frame in traceback.extract_tb(trace) if "tracelens" in frame.filename][-1]
    return f"{kind.__name__ if kind else ''} {Path(last.filename).name}:{last.lineno} {str(error)[:100]}"


def run(seconds: float, seed: int, folder: Path) -> Tally:
    """Try broken files for some seconds."""
    chance, tally, known = random.Random(seed), Tally(), samples()
    folder.mkdir(parents=True, exist_ok=True)
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        kind, claim, data = known[tally.files % len(known)]
        other = chance.choice(known)[2]
        if kind.whole or kind.binary or chance.random() < 0.25:
            broken, count = narrow(chance, data, other), 0
        else:
            broken, count = wide(chance, data, other)
        began = time.monotonic()
        wrong = list(tried(broken, kind, claim, tally, asked=not count or chance.random() < 0.1))
        took = time.monotonic() - began
        wrong += [f"{kind.name} slow"] if took > SLOW_S else []
        tally.files += 1
        tally.broken_lines += count
        tally.slowest_s = max(tally.slowest_s, took)
        _keep(wrong, broken, tally, folder)
        if tally.files % 100 == 0:
            print(json.dumps(shown(tally)), flush=True)
    return tally


def _keep(wrong: list[str], data: bytes, tally: Tally, folder: Path) -> None:
    for one in wrong:
        tally.found[one] += 1
        if tally.found[one] == 1:
            (folder / f"{len(tally.found):03d}-{one.split()[0]}").write_bytes(data)
            print(f"{len(tally.found):03d} {one}", flush=True)


def shown(tally: Tally) -> dict[str, Any]:
    """The figures of a run."""
    return {
        "files": tally.files, "broken_lines": tally.broken_lines, "sniffs": tally.sniffs, "parses": tally.parses,
        "slowest_s": round(tally.slowest_s, 2), "found": dict(tally.found),
    }  # fmt: skip


if __name__ == "__main__":
    seconds, seed, place = (sys.argv[1:] + ["1", "fuzz-found"][len(sys.argv) - 2 :])[:3]
    print(json.dumps(shown(run(float(seconds), int(seed), Path(place)))))
