"""A server log that stops inside its last line: whatever was cut, no wrong value comes of it, and what was whole stays."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import polars as pl
import pytest

from tracelens.formats import named
from tracelens.formats.base import Chunk, Claim, Format, Head
from tracelens.formats.server import framing
from tracelens.ingestion.chunks import Reading
from tracelens.ingestion.parts import parse_source
from tracelens.opening import Input

sys.path.insert(0, str(Path(__file__).parent))

from dialects import ACCESSES, OTHERS, REQUESTS, SETTINGS, STATS

Value = tuple[str, str, str, str]
SAMPLES = Path(__file__).parents[2] / "sample_logs"
DATA = Path(__file__).parent / "data" / "dialects"
IGNORED = {"line_no", "message", "other", "kind", "last_line_no", "dummy", "detail", "level"}
"""Columns of text, which may be cut, and what is said by default."""


def frame_of(lines: list[str]) -> pl.DataFrame:
    return pl.DataFrame(
        {"line_no": range(1, len(lines) + 1), "text": lines}, schema={"line_no": pl.Int64, "text": pl.String}
    )


def values(kind: Format, lines: list[str], claim: Claim, *, is_open: bool = False) -> dict[int, set[Value]]:
    """By line: each value with what it is the value of."""
    result = kind.parse(Chunk(frame_of(lines), claim, is_open=is_open))
    assert result.understood + result.issues.height == len(lines)
    found: dict[int, set[Value]] = {number: set() for number in range(1, len(lines) + 1)}
    for table, rows in result.tables.items():
        for row in rows.to_dicts():
            of = str(row.get("key") or row.get("name") or "")
            for column, value in row.items():
                if value is not None and column not in IGNORED:
                    found[row["line_no"]].add((table, of, column, str(value)))
    return found


def cut_anywhere(kind: Format, before: str, line: str) -> None:
    """Each cut as the last line of a file: all of them at once, their ends taken off as the end of a file is."""
    claim = kind.sniff(Head((before, line), complete=True))
    assert claim is not None
    whole = values(kind, [before, line], claim)[2]
    ends = range(21, len(line))
    cuts = [framing.without_cut_end(frame_of([line[:end]]))["text"][0] for end in ends]
    found = values(kind, [part for cut in cuts for part in (before, cut)], claim)
    for number, end in enumerate(ends, 1):
        assert found[2 * number] <= whole, (line[max(0, end - 40) : end], found[2 * number] - whole)


WHOLE = sorted(path.stem for path in DATA.glob("*.log") if path.stem != "v011-slow-ttft-after-10s-idle")[:9]
"""The one left out ends in a number, which may be cut for all one knows."""
LINES = [
    *[known.plain(7) for known in (*STATS[:1], *STATS[2:3], *STATS[4:], *REQUESTS[6:], *ACCESSES[:1], *SETTINGS, *OTHERS[:1])],
    "(APIServer pid=1) INFO 10-21 12:20:01 [utils.py:233] non-default args: {'model': 'acme/m', 'max_model_len': 65536, 'enforce_eager': True}",
    "INFO 10-21 12:30:01 api_server.py:529] args: Namespace(port=8000, model='acme/m', max_num_seqs=256, gpu_memory_utilization=0.92)",
    "INFO 10-21 12:30:06 llm_engine.py:237] Initializing an LLM engine (v0.6.3.post1) with config: model='acme/m', max_seq_len=16384, quantization=None, seed=17",
    "INFO 10-21 12:35:01 metrics.py:373] Speculative metrics: Draft acceptance rate: 0.613, Number of accepted tokens: 4410, Number of emitted tokens: 4865.",
    "(APIServer pid=101) INFO 10-21 12:35:01 [metrics.py:100] KV Transfer metrics: Num successful transfers=18, P90 xfer time (ms)=33.118, Throughput (MB/s)=4485.143",
    "(EngineCore pid=60) INFO 08-26 03:01:58 [kv_cache_utils.py:1101] GPU KV cache size: 1,048,576 tokens, Maximum concurrency for 131,072 tokens per request: 8.25x",
    '(RustFrontend pid=41) INFO 11-05 22:10:13 [inference.rs:272] grpc_inference{request_id=req-9 rpc="generate"}: gRPC inference request completed elapsed_ms=842',
    "INFO 06-03 14:02:03 [gpu_model_runner.py:1686] Graph capturing finished in 27 secs, took 1.63 GiB",
]  # fmt: skip


@pytest.mark.parametrize("line", LINES, ids=range(len(LINES)))
def test_no_wrong_value_comes_of_a_vllm_line_cut_at_the_end_of_the_file(line: str) -> None:
    cut_anywhere(named("vllm_log"), "INFO 10-21 12:20:00 [x.py:1] Added request r.", line)


@pytest.mark.parametrize(
    ("name", "sample", "number"),
    [
        ("sglang_log", "decode_batches_0.4.log", 2),
        ("sglang_log", "serving_0.5.log", 1),
        ("tgi_log", "grammar_3.1.1.log", 1),
    ],
)
def test_no_wrong_value_comes_of_other_servers_lines(name: str, sample: str, number: int) -> None:
    lines = (SAMPLES / name / sample).read_text(encoding="utf-8").split("\n")
    cut_anywhere(named(name), lines[0], lines[number])


@pytest.mark.parametrize("name", WHOLE)
def test_a_last_line_that_only_lacks_its_end_says_all_it_says(name: str) -> None:
    lines = (DATA / f"{name}.log").read_bytes().decode().removesuffix("\n").split("\n")
    kind = named("vllm_log")
    claim = kind.sniff(Head(tuple(lines), complete=True))
    assert claim is not None
    assert values(kind, lines, claim, is_open=True) == values(kind, lines, claim)


@pytest.mark.parametrize("end", ["", "\n"])
def test_ingest_knows_that_the_file_stops_inside_its_last_line(end: str, tmp_path: Path) -> None:
    source = Input(
        "memory",
        None,
        lambda: io.BytesIO(
            (LINES[0] + "\nINFO 10-21 12:20:00 [x.py:1] Using max model len 655" + end).encode()
        ),
    )
    claim = named("vllm_log").sniff(Head((LINES[0],), complete=True))
    assert claim is not None
    parsed = parse_source((named("vllm_log"), claim), Reading(source), tmp_path, keep_text=False)
    assert ("server_setting" in parsed.parts) is (end == "\n")
