"""Broken files without end: ``python tests/faults/fuzz.py small|files SECONDS SEED FOLDER``.

``small``: an input is one to five lines of a sample (a whole document, where its format needs one), broken in a few places, and
read by its format alone, up to 128 of them behind one another in a file, for a file costs its format some milliseconds, however
little is in it.  One file in `ASKED_EVERY` is shown to every format (`sniff`) too, and scrubbed.  No input is tried twice.

``files``: a narrow file is a few lines with some breaks anywhere; a wide one is many lines, each broken for itself: cut,
doubled, glued, with bytes flipped or put in.  Of a narrow file, and of some wide ones, every format is asked whether it is its
own; the format of the sample reads it (`parse`), and so does every other one that claims it.

Nothing may raise, no line may be lost, and no input may take more than `SLOW_S` CPU seconds.  What breaks is written into
FOLDER, and so are the figures, now and then and at the end (SIGTERM and Ctrl-C end a run too).
"""

from __future__ import annotations

import gc
import random
import signal
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

from breaking import Tally, memory, narrow, read, samples, small, twisted, where, wide

from tracelens import formats
from tracelens.formats.base import Claim, Format
from tracelens.formats.privacy import scrubbed
from tracelens.ingestion.chunks import head_of

SLOW_S = 10.0
ASKED_EVERY = 200
WRITTEN_EVERY_S = 10.0
MOST_WHOLE_BYTES = 20_000
PIECES = (1, 32, 128)


def tried(data: bytes, kind: Format, claim: Claim, tally: Tally, *, asked: bool) -> Iterator[str]:
    """Show one input to every format, let those read it that claim it; yields what went wrong."""
    readers = {kind.name: (kind, claim)}
    for each in formats.FORMATS if asked else ():
        tally.sniffs += 1
        try:
            if (seen := each.sniff(head_of(memory(data))[0])) is not None:
                readers[each.name] = (each, seen)
        except Exception:  # noqa: BLE001 - this is what is looked for
            yield f"{each.name} sniff {where()}"
    for each, seen in readers.values():
        yield from _parsed(data, each, seen, tally, scrub=asked)


def _parsed(
    data: bytes, kind: Format, claim: Claim, tally: Tally, context: str | None = None, *, scrub: bool = False
) -> Iterator[str]:
    tally.parses += 1
    try:
        found, count, wrong = read(data, kind, claim, context)
        if scrub:
            scrubbed({**found.tables, "ingest_issue": found.issues}, keep_text=False, prompt_key=1)
    except KeyboardInterrupt:
        raise
    except BaseException:  # noqa: BLE001 - a panic of Polars is no Exception
        yield f"{kind.name} parse {where()}"
    else:
        tally.lines += count
        yield from wrong


class Small:
    """Tries small inputs, none twice."""

    def __init__(self, seed: int, tally: Tally) -> None:
        self.chance, self.tally = random.Random(seed), tally
        self.seen: set[int] = set()
        self.kinds = {kind.name: kind for kind, _, _ in samples()}
        self.texts: dict[str, list[tuple[Claim, bytes, list[bytes], str | None]]] = defaultdict(list)
        for kind, claim, data in samples():
            if len(data) <= MOST_WHOLE_BYTES or kind.name not in self.texts:
                context = None if kind.binary else kind.context(data.decode("utf-8", "replace"), None)
                self.texts[kind.name].append((claim, data, data.split(b"\n"), context))

    def one(self) -> None:
        """One file of the format that is behind the others; a cheap one gets a little more time than a dear one, and many more inputs."""
        tally, chance = self.tally, self.chance
        name = min(self.kinds, key=lambda each: tally.seconds[each] ** 5 / (tally.by_format[each] or 1))
        kind = self.kinds[name]
        claim, data, lines, context = chance.choice(self.texts[name])
        if kind.whole or kind.binary:
            pieces = [self._document(data)]
        else:
            other = chance.choice(self.texts[name])[1]
            pieces = [small(chance, lines, other) for _ in range(chance.choice(PIECES))]
        pieces = list({hash(piece): piece for piece in pieces if hash(piece) not in self.seen}.values())
        self.seen.update(map(hash, pieces))
        broken = b"\n".join(pieces)
        began = time.process_time()
        wrong = list(_parsed(broken, kind, claim, tally, context if chance.random() < 0.4 else None))
        took = time.process_time() - began
        if tally.parses % ASKED_EVERY == 0:
            wrong += list(tried(broken, kind, claim, tally, asked=True))
        tally.note(kind, took, wrong + ([f"{name} slow"] if took > SLOW_S else []), broken, len(pieces))

    def _document(self, data: bytes) -> bytes:
        given = twisted(self.chance, data) if self.chance.random() < 0.7 else data
        return given if given is not data else narrow(self.chance, data, data)


class Files:
    """Tries narrow and wide files."""

    def __init__(self, seed: int, tally: Tally) -> None:
        self.chance, self.tally = random.Random(seed), tally

    def one(self) -> None:
        """One file of the sample whose turn it is."""
        chance, tally, known = self.chance, self.tally, samples()
        kind, claim, data = known[tally.inputs % len(known)]
        other = chance.choice(known)[2]
        if kind.whole or kind.binary or chance.random() < 0.25:
            broken, count = narrow(chance, data, other), 0
        else:
            broken, count = wide(chance, data, other)
        began = time.process_time()
        wrong = list(tried(broken, kind, claim, tally, asked=not count or chance.random() < 0.1))
        took = time.process_time() - began
        tally.broken_lines += count
        tally.note(kind, took, wrong + ([f"{kind.name} slow"] if took > SLOW_S else []), broken)


def run(way: Callable[[int, Tally], Small | Files], seconds: float, seed: int, folder: Path) -> Tally:
    """Try broken inputs for some seconds."""
    tally = Tally(folder)
    source = way(seed, tally)
    written = time.monotonic()
    ends = written + seconds
    try:
        while time.monotonic() < ends:
            source.one()
            if time.monotonic() > written + WRITTEN_EVERY_S:
                tally.write()
                written = time.monotonic()
    except KeyboardInterrupt:
        print("ended early")
    tally.write()
    return tally


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    gc.freeze()
    way, seconds, seed, place = sys.argv[1:5]
    run({"small": Small, "files": Files}[way], float(seconds), int(seed), Path(place))
    print((Path(place) / "figures.json").read_text())
