"""What holds for any bytes at all: reading never raises, no line is lost, and where a file is cut never matters."""

from __future__ import annotations

import io
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tracelens import formats
from tracelens.formats.base import Chunk, Claim, Format
from tracelens.ingestion import State, ingest
from tracelens.ingestion.chunks import Reading, head_of, lines_frame
from tracelens.ingestion.parts import ParsedSource, parse_source
from tracelens.opening import Input

SAMPLE_LOGS = Path(__file__).parents[2] / "sample_logs"
NAMES = [known.name for known in formats.FORMATS]
LONGEST = 700
JUNK = st.one_of(st.text(max_size=60), st.sampled_from(["", " ", "{", '{"a": [1,', "\x1b[31m", "Traceback (most recent call last):",
                                                          "    raise", "1e400", "-", "nan", '" HTTP/1.1" 200']))  # fmt: skip


@cache
def sample_of(name: str) -> tuple[list[str], Claim]:
    """Lines of a format's samples, and its claim on the first of them."""
    paths = sorted(path for path in (SAMPLE_LOGS / name).iterdir() if path.name != "README.md")
    data = paths[0].read_bytes()
    claim = formats.named(name).sniff(head_of(memory(data))[0])
    assert claim is not None
    texts = [path.read_bytes().decode("utf-8", "replace") for path in paths]
    every = [line.rstrip("\r") for text in texts for line in text.split("\n")]
    lines = [line for line in every if len(line) < LONGEST]
    if not any(line.strip() for line in lines):
        lines = [line[:LONGEST] for line in every]
    return lines[:400] + lines[-100:], claim


def memory(data: bytes) -> Input:
    return Input("memory", len(data), lambda: io.BytesIO(data))


@st.composite
def line_of(draw: st.DrawFn, name: str) -> str:
    """A line of a sample as it is, cut, doubled, with a hole or with something put in; or no such line at all."""
    lines, _ = sample_of(name)
    line = draw(st.sampled_from(lines))
    place = draw(st.integers(0, len(line)))
    how = draw(
        st.sampled_from(["whole", "whole", "whole", "cut", "hole", "put in", "digits", "glued", "junk"])
    )
    if how == "cut":
        return line[:place]
    if how == "hole":
        return line[:place] + line[place + draw(st.integers(1, 30)) :]
    if how == "put in":
        return line[:place] + draw(JUNK).replace("\n", " ") + line[place:]
    if how == "digits":
        return (
            "".join(draw(st.sampled_from("0123456789")) if char.isdigit() else char for char in line[:200])
            + line[200:]
        )
    if how == "glued":
        return line + draw(st.sampled_from(lines))
    return draw(JUNK).replace("\n", " ") if how == "junk" else line


@st.composite
def file_of(draw: st.DrawFn, names: list[str], size: int) -> tuple[str, bytes]:
    name = draw(st.sampled_from(names))
    lines = draw(st.lists(line_of(name), min_size=1, max_size=size))
    end = draw(st.sampled_from(["\n", "\n", "\r\n"]))
    text = end.join(lines) + draw(st.sampled_from([end, ""]))
    return name, text.encode("utf-8", "surrogatepass")


@settings(max_examples=15, deadline=None)
@given(st.one_of(*[st.binary(max_size=500)] * 9, file_of(NAMES, 5).map(lambda named: named[1][:80])))
def test_any_bytes_can_be_ingested(data: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file"
        path.write_bytes(data)
        (report,) = ingest([str(path)], Path(folder) / "case.duckdb").files
        assert report.state in (State.READ, State.EMPTY, State.UNKNOWN, State.UNREADABLE)
        assert report.lines == report.understood + report.skipped


@settings(max_examples=30, deadline=None)
@given(file_of(NAMES, 12))
def test_every_line_is_understood_or_an_issue(named: tuple[str, bytes]) -> None:
    name, data = named
    kind, (_, claim) = formats.named(name), sample_of(name)
    lines = lines_frame(data, 1)
    result = kind.parse(Chunk(lines, claim))
    assert result.understood + result.issues.height == lines.height
    assert result.issues["line_no"].is_unique().all()
    numbers = set(lines["line_no"])
    for table, frame in result.tables.items():
        assert table in kind.fills
        if not kind.whole:
            assert set(frame["line_no"]) <= numbers
    assert set(result.issues["line_no"]) <= numbers


@settings(max_examples=15, deadline=None)
@given(st.sampled_from(NAMES), st.binary(max_size=300))
def test_a_format_that_is_forced_on_anything_does_not_raise(name: str, data: bytes) -> None:
    kind, (_, claim) = formats.named(name), sample_of(name)
    lines = lines_frame(data, 1)
    result = kind.parse(Chunk(lines, claim))
    assert result.understood + result.issues.height == lines.height


def rows(whole: ParsedSource) -> dict[str, list[tuple[Any, ...]]]:
    found = {}
    for table, parts in whole.parts.items():
        frame = pl.concat([pl.read_parquet(part) for part in parts], how="diagonal_relaxed")
        columns = [column for column in sorted(frame.columns) if frame[column].count()]
        found[table] = sorted(frame.select(columns).rows(), key=repr)
    return found


def read_in(kind: Format, claim: Claim, data: bytes, size: int | None) -> tuple[Any, ...]:
    with tempfile.TemporaryDirectory() as folder:
        whole = parse_source(
            (kind, claim), Reading(memory(data)), Path(folder), keep_text=True, chunk_bytes=size
        )
        counts = (whole.line_count, whole.understood, dict(whole.reasons), dict(whole.first_issue_line))
        return rows(whole), counts, (whole.first_stamp, whole.last_stamp, whole.steps, whole.back_steps)


GPU_AND_HOST = (
    b'{"timestamp_ns": 1795955136068414372, "gpu_index": 0, "telemetry_data": {"nvidia_power_usage": 312.5}}\n'
    b'{"timestamp_ns": 1795955136168414372, "process_cpu_s": 5}\n{"process_cpu_s": 5}\n'
    b'{"ts": 1795956103.8, "cpu_times": {"user": 4, "idle": 9}, "process_cpu_s": [["vllm", 56.1]]}\n'
)
"""Lines of a host in a log of GPUs: one with CPU counters made the lines before it samples of a host."""

CHUNKED = [known.name for known in formats.FORMATS if not (known.whole or known.binary)]


@settings(max_examples=15, deadline=None)
@example(("sampled_table", GPU_AND_HOST), 64)
@given(file_of(CHUNKED, 6), st.sampled_from([64, 200, 1000]))
def test_where_a_file_is_cut_never_changes_a_result(named: tuple[str, bytes], size: int) -> None:
    name, data = named
    kind, (_, claim) = formats.named(name), sample_of(name)
    assert read_in(kind, claim, data, size) == read_in(kind, claim, data, None)


@settings(max_examples=6, deadline=None)
@given(file_of(["vllm_log"], 10))
def test_where_a_server_log_is_cut_never_changes_a_result(named: tuple[str, bytes]) -> None:
    kind, (_, claim) = formats.named("vllm_log"), sample_of("vllm_log")
    assert read_in(kind, claim, named[1], 64) == read_in(kind, claim, named[1], None)
