"""Fingerprints of prompts: what they show, and that no word can be got from them."""

from __future__ import annotations

import hashlib
import itertools
import json
import zlib
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import tracelens
from tracelens.formats.prompt_blocks import BLOCK_CHARS, MAX_BLOCKS, prompt_blocks

SYSTEM = "You answer questions about the warehouse of Oldenburg. " * 8
PARAMS = "params: SamplingParams(n=1, max_tokens=16), prompt_token_ids: None, lora_request: None."


def fingerprints(*texts: str | None, ids: str | None = None, key: int = 99) -> list[dict[str, Any]]:
    frame = pl.DataFrame(
        {
            "line_no": list(range(1, len(texts) + 1)),
            "request_id": "r",
            "text": texts,
            "ids": [ids] * len(texts),
        },
        schema={"line_no": pl.Int64, "request_id": pl.String, "text": pl.String, "ids": pl.String},
    )
    return prompt_blocks(frame, key).to_dicts()


def same_links(one: list[int], other: list[int]) -> int:
    return sum(a == b for a, b in zip(one, other, strict=False))


@pytest.mark.parametrize("place", [0, 1, 63, 64, 130, 300])
def test_links_are_the_same_up_to_the_block_in_which_two_prompts_part(place: int) -> None:
    other = SYSTEM[:place] + "#" + SYSTEM[place + 1 :]
    first, second = fingerprints(SYSTEM, other)
    assert len(first["chain"]) == len(SYSTEM) // BLOCK_CHARS
    assert same_links(first["chain"], second["chain"]) == place // BLOCK_CHARS


def test_only_whole_blocks_count_and_no_more_than_so_many() -> None:
    lengths = [0, 1, BLOCK_CHARS - 1, BLOCK_CHARS, 3 * BLOCK_CHARS + 5, (MAX_BLOCKS + 9) * BLOCK_CHARS]
    found = {row["prompt_length"]: len(row["chain"]) for row in fingerprints(*("ü" * n for n in lengths))}
    assert found == {n: min(n // BLOCK_CHARS, MAX_BLOCKS) for n in lengths if n}


def test_passages_are_the_same_wherever_they_stand() -> None:
    first, second = fingerprints(SYSTEM, "Now it is 12:03. And here is what to do.\\n" + SYSTEM)
    assert same_links(first["chain"], second["chain"]) == 0
    assert set(first["passage"]) <= set(second["passage"])


def test_token_ids_stand_in_where_no_text_is() -> None:
    ids = ", ".join(map(str, range(40)))
    (row,) = fingerprints(None, ids=ids)
    (longer,) = fingerprints(None, ids=ids + ", 7, 8, 9, 10, 11, 12, 13, 14")
    assert (row["unit"], row["block_length"], row["prompt_length"], len(row["chain"])) == (
        "tokens",
        16,
        40,
        2,
    )
    assert longer["chain"][:2] == row["chain"]
    assert len(longer["chain"]) == 3


def test_another_key_gives_other_fingerprints() -> None:
    (one,), (other,) = fingerprints(SYSTEM, key=1), fingerprints(SYSTEM, key=2)
    assert not set(one["chain"] + one["passage"]) & set(other["chain"] + other["passage"])


def common(texts: list[str]) -> str:
    return "".join(
        marks[0] for marks in itertools.takewhile(lambda m: len(set(m)) == 1, zip(*texts, strict=False))
    )


def server_log(prompts: list[str]) -> str:
    lines = [f"INFO 01-05 12:00:{n:02d} logger.py:39] Received request cmpl-{n}: prompt: {text!r}, {PARAMS}" for n, text in enumerate(prompts)]  # fmt: skip
    return "\n".join(lines) + "\n"


def client_log(prompts: list[str]) -> str:
    return "".join(
        json.dumps({"request_id": f"c{n}", "sent_at": 1767614400.0 + n, "ttft": 0.1, "status": 200, "messages": [{"role": "user", "content": text}]}) + "\n"
        for n, text in enumerate(prompts)
    )  # fmt: skip


STAMPED = [
    f"It is 12:{n:02d}:00 on a cold day in January, said the clerk. {SYSTEM} Question {n}" for n in range(10)
]


@pytest.mark.parametrize("written", [server_log, client_log])
def test_a_stamp_in_front_shows_as_repeated_text_that_cannot_be_shared(written: Any, tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text(written(STAMPED))
    tracelens.ingest([str(tmp_path / "a.log")], case=tmp_path / "case.duckdb")
    with tracelens.open(tmp_path / "case.duckdb") as case:
        (row,) = case.sql("SELECT * FROM prefix_sharing").dicts()
    assert row["prompt_count"] == 10
    assert row["attainable_ratio"] == 0
    assert row["parts_after"] == 0
    assert row["repeated_ratio"] > 0.7


def test_the_same_beginning_can_be_shared(tmp_path: Path) -> None:
    prompts = [f"{SYSTEM} Question {n}: {'where' * (n + 30)}?" for n in range(10)]
    (tmp_path / "a.log").write_text(server_log(prompts))
    tracelens.ingest([str(tmp_path / "a.log")], case=tmp_path / "case.duckdb")
    with tracelens.open(tmp_path / "case.duckdb") as case:
        (row,) = case.sql("SELECT * FROM prefix_sharing").dicts()
    whole = len(common(prompts)) // BLOCK_CHARS
    blocks = sum(len(f"{text}'") // BLOCK_CHARS for text in prompts)  # as repr writes it, less the first mark
    assert row["parts_after"] == whole * BLOCK_CHARS
    assert row["attainable_ratio"] == pytest.approx(9 * whole / blocks)


def test_no_word_and_no_plain_hash_of_a_prompt_is_in_the_case(tmp_path: Path) -> None:
    secret = "The launch code of the northern station is tulip seven four nine one, do not tell."
    prompts = [f"{SYSTEM} {secret} {n}" for n in range(4)]
    (tmp_path / "s.log").write_text(server_log(prompts))
    (tmp_path / "c.jsonl").write_text(client_log(prompts))
    path = tmp_path / "case.duckdb"
    tracelens.ingest([str(tmp_path)], case=path)
    raw = path.read_bytes()
    assert raw.count(b"prompt_key")
    for words in (b"launch code", b"tulip", b"Oldenburg"):
        assert words not in raw
    text = prompts[0]
    blocks = {text[at : at + BLOCK_CHARS] for at in range(0, len(text) - BLOCK_CHARS, BLOCK_CHARS)}
    for block in {*blocks, text, secret}:
        data = block.encode()
        plain = int(pl.Series([block]).hash()[0])
        for digest in (
            hashlib.sha256(data).digest(), hashlib.md5(data).digest(), hashlib.blake2b(data).digest()[:8],
            plain.to_bytes(8, "little"), plain.to_bytes(8, "big"),
        ):  # fmt: skip
            assert digest[:8] not in raw
        assert hashlib.sha256(data).hexdigest().encode() not in raw
        assert f"{zlib.crc32(data):08x}".encode() not in raw


def test_a_case_keeps_its_key_and_two_cases_have_different_ones(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text(server_log(STAMPED))
    (tmp_path / "b.log").write_text(server_log(STAMPED[:5]))
    one, other = tmp_path / "one.duckdb", tmp_path / "other.duckdb"
    tracelens.ingest([str(tmp_path / "a.log")], case=one)
    tracelens.ingest([str(tmp_path / "b.log")], case=one)
    tracelens.ingest([str(tmp_path / "a.log")], case=other)
    asked = "SELECT source_id, chain FROM prompt_block ORDER BY source_id, line_no"
    with tracelens.open(one) as case, tracelens.open(other) as second:
        rows, others = case.sql(asked).dicts(), second.sql(asked).dicts()
    assert [row["chain"] for row in rows[:5]] == [row["chain"] for row in rows[10:]]
    assert rows[0]["chain"] != others[0]["chain"]


def test_a_prompt_has_the_same_links_whatever_script_its_neighbours_are_in() -> None:
    alone = fingerprints(SYSTEM)
    beside = fingerprints(SYSTEM, SYSTEM + "Grüße " * 20, "日本語" * 50)
    assert beside[0]["chain"] == alone[0]["chain"]
    assert beside[1]["chain"][: len(SYSTEM) // BLOCK_CHARS] == alone[0]["chain"]


def request_log(prompts: list[str]) -> str:
    return "".join(
        json.dumps({"request_id": f"r{n}", "arrival_ts": 1767614400.0 + n, "queue_s": 0.1, "e2e_s": 1.0, "prompt": text}) + "\n"
        for n, text in enumerate(prompts)
    )  # fmt: skip


def inference_perf(prompts: list[str]) -> str:
    return json.dumps([
        {"start_time": 100.0 + n, "end_time": 101.0 + n, "request": json.dumps({"model": "m", "prompt": text, "max_tokens": 8}),
         "response": "", "info": {"input_tokens": 9, "output_tokens": 0, "output_token_times": []}, "error": None}
        for n, text in enumerate(prompts)
    ])  # fmt: skip


def guidellm(prompts: list[str]) -> str:
    entries = [
        {"type_": "generative_request_stats", "request_id": f"g{n}", "request_args": json.dumps({"body": {"model": "m", "messages": text}}),
         "scheduler_info": {}, "request_start_time": 100.0 + n, "request_end_time": 101.0 + n}
        for n, text in enumerate(prompts)
    ]  # fmt: skip
    return json.dumps({"benchmarks": [{"requests": {"successful": entries}}]})


@pytest.mark.parametrize("written", [server_log, client_log, request_log, inference_perf, guidellm])
def test_blocks_and_shared_beginnings_are_those_that_are_counted_by_hand(
    written: Any, tmp_path: Path
) -> None:
    # 128 characters in common are two blocks, then the prompts part; 200 characters hold three whole blocks.  (The JSON of a
    # conversation puts less than a block before it, and after it.)
    prompts = ["a" * 128 + letter * 72 for letter in "xyz"]
    source, case = tmp_path / "a.log", tmp_path / "case.duckdb"
    source.write_text(written(prompts))
    tracelens.ingest([str(source)], case=case)
    with tracelens.open(case) as opened:
        rows = opened.sql("SELECT chain, prompt_length FROM prompt_block ORDER BY line_no").rows
    assert [len(chain) for chain, _ in rows] == [3, 3, 3]
    assert [same_links(rows[0][0], chain) for chain, _ in rows[1:]] == [2, 2]
    assert b"aaaaaaaaaaaaaaaa" not in case.read_bytes()
