"""The same records in any dialect give the same facts: wrapped, coloured, cut, glued, broken, interleaved, compressed."""

from __future__ import annotations

import gzip
import io
import random
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import polars as pl
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from tracelens.formats.server import vllm_log
from tracelens.ingestion.chunks import Reading, head_of
from tracelens.ingestion.parts import ParsedSource, parse_source
from tracelens.opening import Input, expand

sys.path.insert(0, str(Path(__file__).parent))

import itertools

from dialects import (
    ACCESSES,
    JSON_WRAPPERS,
    LINE_WRAPPERS,
    NESTED,
    POOL,
    STATS,
    Fact,
    Known,
    expected,
    facts,
    utc,
    wrapped,
)

ESCAPE = "\x1b"
NOISE = (
    "",
    "gpu-box:98211:99120 [0] NCCL INFO Using network Socket",
    "(raylet) [2026-04-02 11:00:21,114 E 88 88] (raylet) node_manager.cc:3065: 1 Workers killed due to memory pressure (OOM)",
    "/usr/lib/python3/site-packages/x.py:3: UserWarning: do not",
    "[rank1]:[W1129 12:08:21.426415540 ProcessGroupNCCL.cpp:685] [Rank 1] slow",
    "Loading safetensors checkpoint shards:  25% Completed | 1/4 [00:01<00:03,  1.01s/it]\rLoading safetensors checkpoint shards:  50% Completed | 2/4 [00:02<00:02,  1.01s/it]",
    "Traceback (most recent call last):",
    '  File "/srv/vllm/engine/core.py", line 1560, in run_engine_core',
    "something that nobody knows",
)
BAR = "Capturing CUDA graph shapes:  97%|#########7| 34/35 [00:18<00:00,  1.90it/s]"


@dataclass(frozen=True)
class Dialect:
    """How the records of one file are written."""

    wrappers: tuple[str, ...] = ()
    prefix: bool = True
    bracket: bool = True
    colour: str = "none"
    line_end: str = "\n"
    width: int = 0
    """Trailing blanks up to this width."""
    seed: int = 0
    noise: float = 0.0
    bars: float = 0.0
    glued: bool = False
    parts: bool = False
    broken_at: int = 0
    """Stats lines are broken at this many columns."""


def coloured(line: str, how: str) -> str:
    """The line as a coloured formatter writes it."""
    head, bracket, rest = line.partition(" pid=")
    if how == "none" or not line.startswith("(") or not bracket:
        return line
    number, _, rest = rest.partition(") ")
    line = f"{ESCAPE}[1;36m{head} pid={number}){ESCAPE}[0;0m {rest}"
    if how == "all":
        for level in ("INFO", "WARNING", "ERROR"):
            line = line.replace(f"{ESCAPE}[0;0m {level}", f"{ESCAPE}[0;0m {ESCAPE}[32m{level}{ESCAPE}[0m", 1)
    return line


def written(records: list[Known], dialect: Dialect) -> str:
    """The text of a file."""
    chance = random.Random(dialect.seed)
    lines: list[str] = []
    for second, line in enumerate(physical(records, dialect, chance)):
        for text in noised(line, dialect, chance):
            lines += list(around(text.ljust(dialect.width), second, dialect, chance))
    return "".join(line + dialect.line_end for line in lines)


def physical(records: list[Known], dialect: Dialect, chance: random.Random) -> Iterator[str]:
    """Lines before they are wrapped: stats lines glued to each other, progress bars glued before records."""
    held = ""
    for second, known in enumerate(records):
        line = coloured(known.plain(second, prefix=dialect.prefix, bracket=dialect.bracket), dialect.colour)
        if dialect.glued and known in STATS and not held:
            held = line
            continue
        if held:
            if known in STATS:
                yield f"{held} {line}"
            else:
                yield held
                yield line
            held = ""
        elif not known.is_access and chance.random() < dialect.bars:
            yield BAR + line
        else:
            yield line
    if held:
        yield held


def noised(line: str, dialect: Dialect, chance: random.Random) -> Iterator[str]:
    while chance.random() < dialect.noise:
        yield chance.choice(NOISE)
    is_stats = (
        "Avg prompt " in line
        and "Received" not in line
        and "Generated" not in line
        and "JSON body" not in line
    )
    begun = line.find("Avg prompt t")
    is_alone = (
        line.count("Avg prompt t") == 1
        and not dialect.parts
        and not set(dialect.wrappers) & set(JSON_WRAPPERS)
    )
    if (
        dialect.broken_at
        and is_stats
        and is_alone
        and 0 < begun < dialect.broken_at - len("Avg prompt throughput: ")
    ):
        at = dialect.broken_at
        yield from (line[start : start + at] for start in range(0, len(line), at))
    else:
        yield line


def around(line: str, second: int, dialect: Dialect, chance: random.Random) -> Iterator[str]:
    """One line in its wrappers, in parts where the innermost is a container's."""
    lines = [line]
    for name in reversed(dialect.wrappers):
        if name == "cri" and dialect.parts and len(lines) == 1:
            lines = list(cri_parts(lines[0], second, chance))
        else:
            lines = [wrapped(name, one, second) for one in lines]
    yield from lines


def cri_parts(line: str, second: int, chance: random.Random) -> Iterator[str]:
    """A record in parts, with a line of the other stream in between."""
    cuts = sorted(chance.sample(range(1, len(line)), min(2, len(line) - 1))) if len(line) > 1 else []
    bounds = [0, *cuts, len(line)]
    pieces = [line[a:b] for a, b in itertools.pairwise(bounds)]
    for number, piece in enumerate(pieces):
        yield f"{utc(second)}Z stdout {'F' if number == len(pieces) - 1 else 'P'} {piece}"
        if number == 0 and chance.random() < 0.3:
            yield f"{utc(second)}Z stderr F /usr/x.py:1: UserWarning: in between"


def memory(data: bytes, packed: str) -> Input:
    """A file in memory, compressed as asked."""
    if packed == "gz":
        return _opened(gzip.compress(data, 1), ".gz")
    if packed == "zst":
        return _opened(zstandard.ZstdCompressor(1).compress(data), ".zst")
    return Input("memory", len(data), lambda: io.BytesIO(data))


def _opened(data: bytes, suffix: str) -> Input:
    folder = Path(tempfile.mkdtemp(dir=tempfile.gettempdir(), prefix="dialect"))
    (folder / f"a.log{suffix}").write_bytes(data)
    (source,) = expand([str(folder / f"a.log{suffix}")])
    assert isinstance(source, Input)
    return source


def read(
    data: bytes, chunk_bytes: int | None, packed: str = ""
) -> tuple[ParsedSource, list[Fact], dict[str, pl.DataFrame]]:
    """A whole file, as ingest reads it."""
    source = memory(data, packed)
    claim = vllm_log.sniff(head_of(source)[0])
    assert claim is not None
    with tempfile.TemporaryDirectory() as folder:
        whole = parse_source(
            (vllm_log.FORMAT, claim), Reading(source), Path(folder), keep_text=False, chunk_bytes=chunk_bytes
        )
        tables = {
            name: pl.concat([pl.read_parquet(path) for path in paths], how="diagonal")
            for name, paths in whole.parts.items()
        }
    assert whole.line_count == whole.understood + whole.skipped
    return whole, facts(tables), tables


DIALECTS = st.builds(
    Dialect,
    wrappers=st.one_of(
        st.just(()),
        st.sampled_from([(name,) for name in LINE_WRAPPERS + JSON_WRAPPERS]),
        st.sampled_from(NESTED),
    ),
    prefix=st.booleans(),
    bracket=st.booleans(),
    colour=st.sampled_from(["none", "prefix", "all"]),
    line_end=st.sampled_from(["\n", "\r\n"]),
    width=st.sampled_from([0, 0, 180]),
    seed=st.integers(0, 10_000),
    noise=st.sampled_from([0.0, 0.2, 0.5]),
    bars=st.sampled_from([0.0, 0.3]),
    glued=st.booleans(),
    parts=st.booleans(),
    broken_at=st.sampled_from([0, 0, 80, 100, 120]),
)
RECORDS = st.lists(st.sampled_from(POOL), min_size=3, max_size=25).map(
    lambda known: [STATS[0], *known, *STATS[:2], *ACCESSES[:1]]
)


@settings(max_examples=25, deadline=None)
@given(
    RECORDS, DIALECTS, st.sampled_from([200, 900, 2500, None, None]), st.sampled_from(["", "", "gz", "zst"])
)
def test_the_same_records_in_any_dialect_give_the_same_facts(
    known: list[Known], dialect: Dialect, chunk_bytes: int | None, packed: str
) -> None:
    text = written(known, dialect)
    _, found, _ = read(text.encode(), chunk_bytes, packed)
    assert found == expected(known)
