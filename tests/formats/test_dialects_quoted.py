"""A log line inside a prompt, an answer or a body is text, also where the line that quotes it was cut or broken."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tracelens.formats.base import Parsed
from tracelens.formats.server import vllm_log

sys.path.insert(0, str(Path(__file__).parent))

from dialects import ACCESSES, STATS, claim_of, expected, facts, parsed, utc

EVIL = (
    "Engine 000: Avg prompt throughput: 9.9 tokens/s, Avg generation throughput: 9.9 tokens/s, Running: 99 reqs, Waiting: 99 reqs, "
    "GPU KV cache usage: 99.9%, Prefix cache hit rate: 99.9%"
)
QUOTED = {
    "stats": f"INFO 01-01 00:00:00 [loggers.py:123] {EVIL}",
    "stats, no header": EVIL,
    "request": "(APIServer pid=6) INFO 01-01 00:00:00 [async_llm.py:1] Added request evil.",
    "abort": "INFO 01-01 00:00:00 async_llm_engine.py:154] Aborted request evil.",
    "end of a request's line": "x', params: SamplingParams(n=66, max_tokens=66), prompt_token_ids: [6, 6], lora_request: None.",
    "end of an answer's line": "x', output_token_ids: [6, 6], finish_reason: stop",
    "settings": "INFO 01-01 00:00:00 [utils.py:1] non-default args: {'max_num_seqs': 666}",
    "error": "ERROR 01-01 00:00:00 [core.py:1] EngineCore encountered a fatal error.",
}
REAL = STATS[1].plain(3)
PARAMS = "SamplingParams(n=2, stop=['INFO 01-01 00:00:00 [a.py:1] Added request evil.'], max_tokens=64, min_tokens=0)"
FORMS = {
    "received": "Received request r-1: prompt: {text}, params: " + PARAMS + ", prompt_token_ids: [5, 6, 7], lora_request: None.",
    "0.2": "Received request r-1: prompt: {text}, sampling params: " + PARAMS + ", prompt token ids: [5, 6, 7].",
    "details": "Request r-1 details: prompt: {text}, prompt_token_ids: [5, 6, 7], prompt_embeds shape: None.",
    "generated": "Generated response r-1: output: {text}, output_token_ids: [1, 2], finish_reason: length",
    "body": 'Request r-1 JSON body: {{"messages": [{{"content": {text}}}]}}',
}  # fmt: skip


def line(form: str, text: str) -> str:
    shown = json.dumps(text) if form == "body" else repr(text)
    return "(APIServer pid=7) INFO 11-29 12:00:00 [logger.py:39] " + FORMS[form].format(text=shown)


def check(result: Parsed, samples: int) -> None:
    """Only the one request and the real stats lines are facts; a number of the request is the true one or none."""
    found = result.tables
    events = found["request_event"].to_dicts() if "request_event" in found else []
    assert {row["logged_id"] for row in events} <= {"r-1"}, events
    true = {"max_tokens": 64, "sequence_count": 2, "input_tokens": 3, "output_tokens": 2, "finish_reason": "length"}  # fmt: skip
    for row in events:
        assert all(row.get(name) in (None, value) for name, value in true.items()), row
    stats = found["engine_sample"].to_dicts() if "engine_sample" in found else []
    assert [(row["running_count"], row["engine_index"]) for row in stats] == [(18, 3)] * samples
    assert set(found) <= {"request_event", "engine_sample"}, found


PROMPTS = {name: f"Look. {text} So?\n{text}" for name, text in QUOTED.items()}


HEAD = "(APIServer pid=7) INFO 11-29 12:00:00 [logger.py:39] Received "


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", PROMPTS)
def test_a_quoted_line_is_text_wherever_the_line_that_quotes_it_is_cut(form: str, name: str) -> None:
    whole = line(form, PROMPTS[name])
    cuts = [whole[:end] for end in range(len(HEAD), len(whole), 3)]
    lines = [REAL, *(one for part in [*cuts, whole] for one in (part, REAL))]
    check(parsed(lines), len(cuts) + 2)


def broken(text: str, wide: int) -> list[str]:
    return [text[start : start + wide] for start in range(0, len(text), wide)]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("wide", [80, 132])
def test_a_quoted_line_is_text_where_a_terminal_broke_the_line_that_quotes_it(form: str, wide: int) -> None:
    begin = line(form, "").index('""' if form == "body" else "''") + 1
    lines = broken(REAL, wide)
    count = 0
    for text in QUOTED.values():
        # The quoted line comes first on a row, behind one character, behind some.
        for shift in (0, 1, 5):
            lead = ("long story. " * 40)[: -begin % wide + wide + shift - 1] + "."
            whole = line(form, lead + text + " and so on. " * 12)
            lines += [row for one in (whole, REAL, REAL) for row in broken(one, wide)]
            count += 1
    assert claim_of(lines).settings["columns"] == wide
    check(parsed(lines), 2 * count + 1)


@pytest.mark.parametrize("form", FORMS)
def test_a_quoted_line_is_text_where_the_line_that_quotes_it_was_broken_once(form: str) -> None:
    """No width is known: what stands below an open quotation is text, up to the next line of the log."""
    lines = [REAL]
    for text in QUOTED.values():
        for lead in ("long story. ", "so: "):
            whole = line(form, lead + text + " thanks")
            at = whole.index(text[:15])
            for cut in (at - 4, at - 1, at + 1):
                lines += [whole[:cut], whole[cut:], REAL]
    check(parsed(lines), len(lines) // 3 + 1)


@pytest.mark.parametrize("form", FORMS)
def test_a_whole_request_line_and_a_record_glued_behind_it_are_two(form: str) -> None:
    whole = line(form, "say INFO 01-01 00:00:00 [a.py:1] Added request evil. now")
    check(parsed([f"{whole} {REAL}", REAL]), 2)


@pytest.mark.parametrize("form", FORMS)
def test_parts_of_a_container_that_lack_their_beginning_are_no_facts(form: str) -> None:
    whole = line(form, "long. " * 30 + QUOTED["stats"] + " and so on. " * 5)
    lines = [f"{utc(n)}Z stdout F {one}" for n, one in enumerate([REAL, whole[150:], REAL])]
    check(parsed(lines), 2)


def test_an_id_of_the_clients_own_opens_no_quotation() -> None:
    text = repr("' hi. INFO 01-01 00:00:00 [a.py:1] Added request evil. x")
    for name in ("-'", "a: prompt: 'b', '", "x', params: SamplingParams(n=66, max_tokens=66). '"):
        whole = "INFO 11-29 12:00:00 [logger.py:39] " + FORMS["received"].replace("r-1", name).format(
            text=text
        )
        found = parsed([REAL, whole, REAL]).tables
        events = found["request_event"]["logged_id"].to_list() if "request_event" in found else []
        assert "evil" not in str(events), name
        assert found["engine_sample"].height == 2


def test_the_text_below_an_open_quotation_is_not_shown() -> None:
    lines = [REAL, line("received", "x")[:90], "my password is swordfish", REAL]
    result = parsed(lines)
    assert result.issues["line_no"].to_list() == [3]
    assert "swordfish" not in str(result.issues["excerpt"].to_list())


def test_no_chunk_ends_below_an_open_quotation() -> None:
    claim = claim_of([REAL, REAL])
    cut = line("received", "x")[:90]
    for tail, may in (([REAL], True), ([cut], False), ([cut, "and so on"], False), ([cut, REAL], True)):
        data = "".join(row + "\n" for row in [REAL, *tail]).encode()
        assert vllm_log.may_cut(data, claim) is may, tail


def test_records_that_follow_a_cut_request_line_are_read() -> None:
    cut = line("received", "long story")[:90]
    lines = [
        REAL,
        cut,
        f"INFO:     {ACCESSES[0].message}",
        cut,
        REAL,
        cut,
        '{"a": 1}',
        "Traceback (most recent call last):",
        REAL,
    ]
    result = parsed(lines)
    assert [fact for fact in facts(result.tables) if fact[0] != "event"] == expected(
        [STATS[1]] * 3 + ACCESSES[:1]
    )
    events: list[Any] = result.tables["log_event"]["kind"].to_list()
    assert events == ["traceback"]
