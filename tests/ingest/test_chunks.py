"""From bytes to lines: encodings, line ends, very long lines, and cuts that never change a result."""

from __future__ import annotations

import codecs
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracelens.formats import FORMATS, named
from tracelens.formats.base import Head
from tracelens.ingestion import chunks, ingest
from tracelens.ingestion.chunks import Reading, head_of, lines_frame, peeked, utf8
from tracelens.ingestion.parts import ParsedSource, parse_source
from tracelens.opening import Input, expand

Rows = Callable[[Path, str], list[dict[str, Any]]]
REPO = Path(__file__).parents[2]


def log(*ids: str) -> str:
    return "".join(f"INFO 11-29 12:00:00 [async_llm.py:1] Added request {one}.\n" for one in ids)


def stream(data: bytes) -> Input:
    return Input("memory", len(data), lambda: io.BytesIO(data))


def texts(data: bytes, size: int) -> list[tuple[int, str]]:
    found: list[tuple[int, str]] = []
    first = 1
    for chunk in Reading(stream(data)).chunks(size):
        frame = lines_frame(chunk, first)
        found += frame.rows()
        first += chunk.count(b"\n")
    return found


@settings(max_examples=40, deadline=None)
@given(st.binary(max_size=400), st.sampled_from([1, 7, 64, 1000]))
def test_lines_are_those_of_the_whole_file_whatever_the_chunk(data: bytes, size: int) -> None:
    if data.startswith((codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return
    pieces = data.split(b"\n")
    if pieces[-1] == b"":
        pieces.pop()
    expected = [piece.removesuffix(b"\r").decode("utf-8", "replace") for piece in pieces]
    assert texts(data, size) == list(enumerate(expected, 1))


@settings(max_examples=40, deadline=None)
@given(st.binary(max_size=200))
def test_what_comes_out_is_always_utf8_and_valid_text_stays_as_it_is(data: bytes) -> None:
    utf8(data).decode("utf-8")
    text = data.decode("latin-1").encode("utf-8")
    assert utf8(text) == text


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("size", [3, 64, 1 << 20])
def test_byte_order_marks_are_obeyed(encoding: str, size: int) -> None:
    mark = {"utf-8-sig": b"", "utf-16-le": codecs.BOM_UTF16_LE, "utf-16-be": codecs.BOM_UTF16_BE}[encoding]
    text = "Grüße\r\n漢字 🚀\nend"
    assert texts(mark + text.encode(encoding), size) == [(1, "Grüße"), (2, "漢字 🚀"), (3, "end")]
    assert head_of(stream(mark + text.encode(encoding)))[0] == Head(
        ("Grüße", "漢字 🚀", "end"), complete=True
    )


def test_every_encoding_and_line_end_gives_the_same_rows(case: Path, tmp_path: Path, rows_of: Rows) -> None:
    text = log("a", "b-é-漢") + "what is this\n" + log("c")
    files = {
        "plain": text.encode(),
        "no_end": text.removesuffix("\n").encode(),
        "crlf": text.replace("\n", "\r\n").encode(),
        "bom": codecs.BOM_UTF8 + text.encode(),
        "utf16le": codecs.BOM_UTF16_LE + text.encode("utf-16-le"),
        "utf16be": codecs.BOM_UTF16_BE + text.replace("\n", "\r\n").encode("utf-16-be"),
        "nul": text.replace("what is", "what\x00is").encode(),
        "latin": text.replace("what is", "wh\udce4t is").encode("utf-8", "surrogateescape"),
    }
    for name, data in files.items():
        (tmp_path / f"{name}.log").write_bytes(data)
    report = ingest([str(tmp_path / f"{name}.log") for name in files], case)
    assert {(one.format, one.lines, one.understood, one.skipped) for one in report.files} == {
        ("vllm_log", 4, 3, 1)
    }
    rows = rows_of(
        case,
        "SELECT regexp_extract(path, '(\\w+).log', 1) AS file, line_no, logged_id FROM request_event"
        " JOIN source USING (source_id) ORDER BY ALL",
    )
    by_file = {
        name: [(row["line_no"], row["logged_id"]) for row in rows if row["file"] == name] for name in files
    }
    assert by_file == {name: [(1, "a"), (2, "b-é-漢"), (4, "c")] for name in files}
    sizes = {
        row["path"].rpartition("/")[2]: row["size_bytes"] for row in rows_of(case, "SELECT * FROM source")
    }
    assert sizes == {f"{name}.log": len(data) for name, data in files.items()}
    excerpts = {row["excerpt"] for row in rows_of(case, "SELECT excerpt FROM ingest_issue")}
    assert excerpts == {"what is this", "what\x00is this", "wh\ufffdt is this"}


def test_a_line_of_five_megabytes_is_one_line(case: Path, tmp_path: Path, rows_of: Rows) -> None:
    path = tmp_path / "long.log"
    prompt = "x" * 5_000_000
    long = f"INFO 11-29 12:00:01 [logger.py:39] Received request big: prompt: '{prompt}', params: SamplingParams(n=1, max_tokens=7), prompt_token_ids: None, lora_request: None.\n"
    path.write_text(log("a") + long + log("b") + prompt)
    (report,) = ingest([str(path)], case).files
    assert (report.lines, report.understood, report.skipped) == (4, 3, 1)
    rows = rows_of(
        case, "SELECT line_no, logged_id, max_tokens, input_char_count FROM request_event ORDER BY ALL"
    )
    assert [tuple(row.values()) for row in rows] == [
        (1, "a", None, None),
        (2, "big", 7, 5_000_000),
        (3, "b", None, None),
    ]
    assert rows_of(case, "SELECT line_no, length(excerpt) AS size FROM ingest_issue") == [
        {"line_no": 4, "size": 400}
    ]


def test_a_line_beyond_all_bounds_is_cut_and_its_pieces_keep_its_number(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(chunks, "MAX_LINE_BYTES", 100)
    pieces = texts(b"a\n" + b"x" * 330 + b"\nb\n", 50)
    assert {number for number, text in pieces if "x" in text} == {2}
    assert "".join(text for number, text in pieces if number == 2) == "x" * 330
    assert max(len(text) for _, text in pieces) <= 150
    assert (pieces[0], pieces[-1]) == ((1, "a"), (3, "b"))


def test_the_head_of_a_large_file_has_samples_of_the_rest(tmp_path: Path) -> None:
    path = tmp_path / "big.log"
    path.write_text("".join(f"line {number}\n" for number in range(60_000)))
    (source,) = (one for one in expand([str(path)]) if isinstance(one, Input))
    head, has_nul = head_of(source)
    assert (head.lines, head.complete, has_nul) == (tuple(f"line {n}" for n in range(400)), False, False)
    assert head.sampled[-1] == "line 59999"
    assert all(line.removeprefix("line ").isdigit() for line in head.sampled)
    numbers = [int(line.removeprefix("line ")) for line in head.sampled]
    assert any(15_000 < n < 22_000 for n in numbers), "about a third"
    assert any(38_000 < n < 43_000 for n in numbers), "about two thirds"


def test_a_head_that_ends_in_the_middle_of_a_line_leaves_it_out() -> None:
    data = b"first\n" + b"y" * (chunks.HEAD_BYTES + 10) + b"\n"
    assert head_of(stream(data))[0].lines == ("first",)


def test_a_pipe_is_looked_at_without_losing_its_beginning() -> None:
    data = log(*(f"r{n}" for n in range(4000))).encode()
    beginning, whole = peeked(stream(data))
    assert head_of(beginning)[0].first == data.split(b"\n")[0].decode()
    reading = Reading(whole)
    assert b"".join(reading.blocks(1000)) == data
    assert reading.bytes_read == len(data)
    assert peeked(stream(data))[1].open().read(-1) == data[: chunks.HEAD_BYTES]


def tables(whole: ParsedSource) -> dict[str, list[tuple[Any, ...]]]:
    """Rows of all parts, columns by name."""
    found = {}
    for table, parts in whole.parts.items():
        frame = pl.concat([pl.read_parquet(part) for part in parts], how="diagonal_relaxed")
        frame = frame.select(name for name in sorted(frame.columns) if frame[name].count())
        found[table] = sorted(frame.rows(), key=repr)
    return found


def cut_into(
    path: Path, size: int | None, folder: Path
) -> tuple[dict[str, list[tuple[Any, ...]]], tuple[Any, ...]]:
    (source,) = (one for one in expand([str(path)]) if isinstance(one, Input))
    head, _ = head_of(source)
    kind = named(path.parent.name)
    claim = kind.sniff(head)
    assert claim is not None
    folder.mkdir()
    whole = parse_source((kind, claim), Reading(source), folder, keep_text=True, chunk_bytes=size)
    counts = (
        whole.line_count,
        whole.understood,
        whole.reasons,
        whole.first_issue_line,
        whole.first_stamp,
        whole.last_stamp,
        whole.steps,
        whole.back_steps,
    )
    return tables(whole), counts


def size_for(path: Path) -> int:
    """Every line of a small sample is a chunk of its own; large ones are cut more coarsely, to be quick."""
    return next(
        size
        for bytes_of, size in ((1500, 64), (6000, 800), (1 << 30, 8000))
        if path.stat().st_size < bytes_of
    )


def samples_of(name: str) -> list[Path]:
    return sorted(path for path in (REPO / "sample_logs" / name).glob("*") if path.suffix != ".md")


SAMPLES = [
    path
    for known in FORMATS
    if not known.whole
    for path in (samples_of(known.name) if known.name == "vllm_log" else samples_of(known.name)[:1])
]


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_cutting_a_sample_anywhere_gives_the_same_parts(path: Path, tmp_path: Path) -> None:
    expected = cut_into(path, None, tmp_path / "whole")
    assert cut_into(path, size_for(path), tmp_path / "cut") == expected


@pytest.mark.parametrize("threads", [1, 5])
def test_the_number_of_threads_changes_nothing(
    threads: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = REPO / "sample_logs" / "vllm_log" / "v0.17-0.30_v1.log"
    expected = cut_into(path, None, tmp_path / "whole")
    monkeypatch.setattr("tracelens.ingestion.parts.WORKERS", threads)
    assert cut_into(path, 800, tmp_path / "cut") == expected
