"""Fuzzing guided by coverage: ``python tests/faults/fuzz_atheris.py FOLDER -runs=1000000``, where atheris is installed.

An input is a letter that says how it is read, the number of a sample, and bytes.  ``p``: the sample's format parses them, beside every format that claims them; ``s``: every format is asked
whether they are its own; ``o``: they are a file, which goes the whole way: opened (compression, archives), recognised, cut into
chunks, parsed, scrubbed.  Nothing may raise, and no line may be lost.  libFuzzer keeps in FOLDER/corpus what reaches new code; half
of the mutations are its own, half break lines as `fuzz.py` does.  Findings go into FOLDER/found, one file per place in the
code, and figures into FOLDER/figures.json; times are CPU seconds.  It goes on after a finding.
"""

from __future__ import annotations

import gzip
import io
import json
import random
import sys
import tarfile
import tempfile
import time
import traceback
import zipfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["tracelens"], enable_loader_override=False):
    from tracelens import formats, opening
    from tracelens.formats.base import Chunk, Claim, Format
    from tracelens.formats.privacy import scrubbed
    from tracelens.ingestion.chunks import Reading, framed, head_of
    from tracelens.ingestion.recognise import Recognised, recognise

sys.path.insert(0, str(Path(__file__).parent))

from fuzz import narrow, samples, wide

MOST_BYTES = 3000
"""Of a seed."""
MOST_WIDE_BYTES = 500_000
WIDE_LINES = 1500
SMALL_CHUNK_BYTES = 700
SLOW_S = 2.0
TOLD_EVERY = 50


@dataclass
class Figures:
    """What a run has tried and found; `slowest` are CPU seconds by kind of input."""

    inputs: int = 0
    lines: int = 0
    broken_lines: int = 0
    """Lines of wide files, each broken for itself: to a reader that goes line by line each is an input of its own."""
    parses: int = 0
    sniffs: int = 0
    opened: int = 0
    seconds: float = 0.0
    slowest: dict[str, float] = field(default_factory=dict)
    by_format: Counter[str] = field(default_factory=Counter)
    found: Counter[str] = field(default_factory=Counter)


class Target:
    """Reads inputs, keeps count, and keeps what goes wrong."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.known, self.figures = folder, samples(), Figures()
        self.file = Path(tempfile.mkdtemp(prefix="fuzz-")) / "input"
        for name in ("corpus", "found"):
            (folder / name).mkdir(parents=True, exist_ok=True)

    def seed(self) -> None:
        """A sample of every format, to be parsed; some of them in the other ways too, compressed and in archives."""
        seen: set[str] = set()
        for number, (kind, _, data) in enumerate(self.known):
            if kind.name in seen:
                continue
            seen.add(kind.name)
            self._plant(f"{number:03d}-parse", b"p", number, data)
            if len(seen) % 8 == 0 and not kind.whole:
                self._plant(f"{number:03d}-sniff", b"s", number, data)
                for ending, packed in _packed(data[:MOST_BYTES]):
                    self._plant(f"{number:03d}-{ending}", b"o", number, packed)

    def _plant(self, name: str, how: bytes, number: int, data: bytes) -> None:
        (self.folder / "corpus" / name).write_bytes(how + bytes([number % 256]) + data[:MOST_BYTES])

    def __call__(self, given: bytes) -> None:
        """One input."""
        if len(given) < 3:
            return
        kind, claim, _ = self.known[given[1] % len(self.known)]
        ways = {ord("p"): self._parse, ord("s"): self._sniff, ord("o"): self._open}
        way = ways.get(given[0], self._parse)
        began = time.process_time()
        try:
            wrong = list(way(given[2:], kind, claim))
        except Exception:  # noqa: BLE001 - this is what is looked for
            wrong = [f"{kind.name} {_where()}"]
        self._note(given, kind, time.process_time() - began, wrong)

    def _parse(self, data: bytes, kind: Format, claim: Claim) -> Iterator[str]:
        self.figures.parses += 1
        lines, raw = framed(data, 1, binary=kind.binary)
        self.figures.lines += lines.height
        result = kind.parse(Chunk(lines, claim, is_open=not data.endswith(b"\n"), raw=raw, prompt_key=1))
        if result.understood + result.issues.height != lines.height:
            yield f"{kind.name} loses lines"

    def _sniff(self, data: bytes, _: Format, __: Claim) -> Iterator[str]:
        head = head_of(opening.Input("memory", len(data), lambda: io.BytesIO(data)))[0]
        for each in formats.FORMATS:
            self.figures.sniffs += 1
            claim = each.sniff(head)
            if claim is not None:
                yield from self._parse(data, each, claim)

    def _open(self, data: bytes, _: Format, __: Claim) -> Iterator[str]:
        self.file.write_bytes(data)
        for one in opening.expand([str(self.file)]):
            if isinstance(one, opening.Input):
                yield from self._read(one)

    def _read(self, source: opening.Input) -> Iterator[str]:
        try:
            seen = recognise(source, [], None)
            if isinstance(seen, Recognised):
                self.figures.opened += 1
                yield from self._chunks(seen)
        except opening.READ_ERRORS:  # ingestion tells them in the file's line
            return

    def _chunks(self, seen: Recognised) -> Iterator[str]:
        kind, reading, number, context = seen.kind, Reading(seen.source), 1, None
        parts = (
            [reading.whole()]
            if kind.whole or kind.binary
            else reading.chunks(SMALL_CHUNK_BYTES, lambda tail: kind.may_cut(tail, seen.claim))
        )
        for data in parts:
            lines, raw = framed(data, number, binary=kind.binary)
            self.figures.lines += lines.height
            chunk = Chunk(lines, seen.claim, context, is_open=not data.endswith(b"\n"), raw=raw, prompt_key=1)
            result = kind.parse(chunk)
            if result.understood + result.issues.height != lines.height:
                yield f"{kind.name} loses lines in chunks"
            scrubbed({**result.tables, "ingest_issue": result.issues}, keep_text=False, prompt_key=1)
            number += data.count(b"\n")
            context = kind.context(data.decode("utf-8", "replace"), context)

    def _note(self, given: bytes, kind: Format, took_s: float, wrong: list[str]) -> None:
        figures, how = self.figures, chr(given[0]) if given[0] in b"pso" else "p"
        figures.inputs += 1
        figures.seconds += took_s
        figures.by_format[kind.name] += 1
        if took_s > figures.slowest.get(how, 0.0):
            figures.slowest[how] = round(took_s, 3)
            (self.folder / f"slowest-{how}").write_bytes(given)
        for one in [*wrong, *([f"{kind.name} slow"] if took_s > SLOW_S else [])]:
            figures.found[one] += 1
            if figures.found[one] == 1:
                (self.folder / "found" / f"{len(figures.found):03d}-{one.split()[0]}").write_bytes(given)
                print(one, flush=True)
        if figures.inputs % TOLD_EVERY == 0:
            (self.folder / "figures.json").write_text(json.dumps(vars(figures), indent=1))

    def mutated(self, data: bytes, most: int, seed: int) -> bytes:
        """libFuzzer's own changes; or lines broken, doubled, crossed with another sample; or many lines, each broken."""
        chance = random.Random(seed)
        if len(data) < 3 or chance.random() < 0.2:
            return bytes(atheris.Mutate(data, min(most, max(2 * len(data), MOST_BYTES))))
        number = chance.randrange(len(self.known)) if chance.random() < 0.1 else data[1]
        how = bytes([chance.choice(b"ppppppso")]) if chance.random() < 0.1 else data[:1]
        other = self.known[number % len(self.known)][2]
        if chance.random() < 0.7 and not self.known[number % len(self.known)][0].whole:
            broken, count = wide(chance, other, chance.choice(self.known)[2], WIDE_LINES)
            self.figures.broken_lines += count if len(broken) < most - 2 else broken[: most - 2].count(b"\n")
            return (b"p" + bytes([number]) + broken)[:most]
        body = data[2 : MOST_BYTES + 2] if chance.random() < 0.8 else other
        return (how + bytes([number]) + narrow(chance, body or b"\n", other))[:most]


def _packed(data: bytes) -> Iterator[tuple[str, bytes]]:
    yield "gz", gzip.compress(data)
    tar, zipped = io.BytesIO(), io.BytesIO()
    with tarfile.open(fileobj=tar, mode="w") as archive:
        member = tarfile.TarInfo("a.log")
        member.size = len(data)
        archive.addfile(member, io.BytesIO(data))
    yield "tar.gz", gzip.compress(tar.getvalue())
    with zipfile.ZipFile(zipped, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.log", data)
    yield "zip", zipped.getvalue()


def _where() -> str:
    kind, error, trace = sys.exc_info()
    last = [frame for frame in traceback.extract_tb(trace) if "tracelens" in frame.filename][-1]
    return f"{kind.__name__ if kind else ''} {Path(last.filename).name}:{last.lineno} {str(error)[:100]}"


if __name__ == "__main__":
    target = Target(Path(sys.argv[1]))
    target.seed()
    atheris.Setup(
        [sys.argv[0], str(target.folder / "corpus"), f"-max_len={MOST_WIDE_BYTES}", "-len_control=0", "-timeout=600", "-report_slow_units=300", *sys.argv[2:]],
        target,
        custom_mutator=target.mutated,
    )  # fmt: skip
    atheris.Fuzz()
