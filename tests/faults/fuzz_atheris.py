"""Fuzzing guided by coverage: ``python tests/faults/fuzz_atheris.py FOLDER -runs=1000000``, where atheris is installed.

An input is a letter that says how it is read, the number of a sample, and bytes.  ``p``: the sample's format parses them, beside every format that claims them; ``s``: every format is asked
whether they are its own; ``o``: they are a file, which goes the whole way: opened (compression, archives), recognised, cut into
chunks, parsed, scrubbed.  Nothing may raise, and no line may be lost.  libFuzzer keeps in FOLDER/corpus what reaches new code; half
of the mutations are its own, half break lines as `fuzz.py` does.  Findings go into FOLDER/found, one file per place in the
code, beside figures.json; times are CPU seconds.  It goes on after a finding.
"""

from __future__ import annotations

import gzip
import io
import random
import sys
import tarfile
import tempfile
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["tracelens"], enable_loader_override=False):
    from tracelens import formats, opening
    from tracelens.formats.base import Chunk, Claim, Format
    from tracelens.formats.privacy import scrubbed
    from tracelens.ingestion.chunks import Reading, framed, head_of
    from tracelens.ingestion.recognise import Recognised, recognise

sys.path.insert(0, str(Path(__file__).parent))

from breaking import Tally, memory, narrow, read, samples, where, wide

MOST_BYTES = 3000
"""Of a seed."""
MOST_WIDE_BYTES = 500_000
WIDE_LINES = 1500
SMALL_CHUNK_BYTES = 700
SLOW_S = 2.0
TOLD_EVERY = 50


class Target:
    """Reads inputs, keeps count, and keeps what goes wrong."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.known, self.tally = folder, samples(), Tally(folder / "found")
        self.file = Path(tempfile.mkdtemp(prefix="fuzz-")) / "input"
        (folder / "corpus").mkdir(parents=True, exist_ok=True)

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
            wrong = [f"{kind.name} {where()}"]
        took_s = time.process_time() - began
        self.tally.note(kind, took_s, wrong + ([f"{kind.name} slow"] if took_s > SLOW_S else []), given)
        if self.tally.inputs % TOLD_EVERY == 0:
            self.tally.write()

    def _parse(self, data: bytes, kind: Format, claim: Claim) -> Iterator[str]:
        self.tally.parses += 1
        _, count, wrong = read(data, kind, claim)
        self.tally.lines += count
        yield from wrong

    def _sniff(self, data: bytes, _: Format, __: Claim) -> Iterator[str]:
        head = head_of(memory(data))[0]
        for each in formats.FORMATS:
            self.tally.sniffs += 1
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
                self.tally.opened += 1
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
            self.tally.lines += lines.height
            chunk = Chunk(lines, seen.claim, context, is_open=not data.endswith(b"\n"), raw=raw, prompt_key=1)
            result = kind.parse(chunk)
            if result.understood + result.issues.height != lines.height:
                yield f"{kind.name} loses lines in chunks"
            scrubbed({**result.tables, "ingest_issue": result.issues}, keep_text=False, prompt_key=1)
            number += data.count(b"\n")
            context = kind.context(data.decode("utf-8", "replace"), context)

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
            self.tally.broken_lines += count if len(broken) < most - 2 else broken[: most - 2].count(b"\n")
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


if __name__ == "__main__":
    target = Target(Path(sys.argv[1]))
    target.seed()
    atheris.Setup(
        [sys.argv[0], str(target.folder / "corpus"), f"-max_len={MOST_WIDE_BYTES}", "-len_control=0", "-timeout=600", "-report_slow_units=300", *sys.argv[2:]],
        target,
        custom_mutator=target.mutated,
    )  # fmt: skip
    atheris.Fuzz()
