"""Results of vllm bench serve: expected values are computed here from the samples' JSON."""

from __future__ import annotations

import json
from itertools import accumulate
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracelens.formats.base import Chunk, Claim, Clock, Head, Parsed
from tracelens.formats.client.vllm_bench import FORMAT

SAMPLES = Path(__file__).parents[2] / "sample_logs" / "vllm_bench"
CHAT = "v0.32.0_chat_detailed.json"
APPENDED = "v0.32.0_chat_append_multitoken_detailed.json"
COMPLETIONS = "v0.32.0_completions_errors_detailed.json"
NOT_DETAILED = "v0.32.0_chat_maxconc2_errors_not_detailed.json"
SHORTENED = "v0.4.0_shortened_gaps.json"


def claim_of(text: str) -> Claim | None:
    return FORMAT.sniff(Head(tuple(text.splitlines()[:400]), complete=len(text.splitlines()) <= 400))


def parse(text: str, keep_text: bool = False) -> Parsed:
    lines = text.splitlines()
    frame = pl.DataFrame(
        {"line_no": range(1, len(lines) + 1), "text": lines}, schema={"line_no": pl.Int64, "text": pl.String}
    )
    return FORMAT.parse(Chunk(frame, claim_of(text) or Claim("forced", Clock.RELATIVE), keep_text=keep_text))


def sample(name: str) -> str:
    return (SAMPLES / name).read_text()


def rows(parsed: Parsed, table: str = "client_request") -> list[dict[str, Any]]:
    return parsed.tables[table].to_dicts()


@pytest.mark.parametrize("path", sorted(SAMPLES.glob("*.json")), ids=lambda path: path.name)
def test_every_sample_is_claimed_and_understood(path: Path) -> None:
    parsed = parse(path.read_text())
    assert claim_of(path.read_text()) is not None
    assert parsed.issues.height == 0
    assert parsed.understood == len(path.read_text().splitlines())


def test_chat_content_starts_one_gap_after_the_role_message() -> None:
    result = json.loads(sample(CHAT))
    parsed = parse(sample(CHAT))
    for at, row in enumerate(rows(parsed)):
        ttft, gaps, start = result["ttfts"][at], result["itls"][at], result["start_times"][at]
        assert (row["line_no"], row["position"]) == (at + 1, at)
        assert row["client_reported_ttft_s"] == pytest.approx(ttft)
        assert row["client_ttft_s"] == pytest.approx(ttft + gaps[0])
        assert row["client_ttft_kind"] == "role"
        assert row["client_e2e_s"] == pytest.approx(result["latencies"][at])
        assert row["client_sent_s"] == pytest.approx(start)
        assert row["client_planned_s"] == pytest.approx(start - result["queue_times"][at])
        assert row["client_wait_s"] == pytest.approx(result["queue_times"][at])
        assert row["client_tpot_s"] == pytest.approx(sum(gaps[1:]) / (result["output_lens"][at] - 1))
        assert (row["input_tokens"], row["output_tokens"]) == (
            result["input_lens"][at],
            result["output_lens"][at],
        )
        assert (row["status"], row["streamed"], row["output_tokens_basis"]) == ("ok", True, "usage")
        assert row["chunk_count"] == len(gaps)
    for at, row in enumerate(rows(parsed, "client_stream")):
        gaps = result["itls"][at]
        assert row["chunk_kind"] == "r" + "c" * len(gaps)
        assert row["chunk_offset_s"] == pytest.approx(
            list(accumulate([result["ttfts"][at], *gaps])), abs=1e-6
        )


def test_a_role_message_lost_to_a_keep_alive_is_not_made_up() -> None:
    results = [json.loads(line) for line in sample(APPENDED).splitlines()]
    got = rows(parse(sample(APPENDED)))
    ttfts = [ttft or None for result in results for ttft in result["ttfts"]]
    assert [row["line_no"] for row in got] == list(range(1, 41))
    assert [row["position"] for row in got] == [*range(20), *range(20)]
    assert [row["client_ttft_s"] for row in got] == pytest.approx(ttfts)
    assert sum(row["status"] == "error" for row in got) == 4
    assert {row["client_ttft_kind"] for row in got if row["status"] == "ok"} == {"content"}


def test_a_role_message_long_before_the_text_is_still_the_role() -> None:
    result = {
        "date": "20250320-101010", "backend": "openai-chat", "endpoint_type": "openai-chat", "num_prompts": 2,
        "output_lens": [4, 4], "ttfts": [0.9, 0.8], "itls": [[1.3, 0.02, 0.02], [1.2, 0.02, 0.02]], "errors": ["", ""],
    }  # fmt: skip
    assert [row["client_ttft_s"] for row in rows(parse(json.dumps(result)))] == pytest.approx([2.2, 2.0])


def test_failed_rows_keep_what_came_and_no_zeros() -> None:
    result = json.loads(sample(COMPLETIONS))
    for at, row in enumerate(rows(parse(sample(COMPLETIONS)))):
        failed = result["errors"][at] != ""
        assert row["status"] == ("error" if failed else "ok")
        assert (row["error"] is None) == (not failed)
        assert row["client_ttft_s"] == pytest.approx(result["ttfts"][at] or None)
        assert row["output_tokens"] == (result["output_lens"][at] or None)
        assert (row["client_e2e_s"] is None) == failed
        assert row["http_status"] == (500 if result["errors"][at] == "Internal Server Error" else None)


def test_what_is_left_of_a_result_without_details() -> None:
    result = json.loads(sample(NOT_DETAILED))
    claim = claim_of(sample(NOT_DETAILED))
    assert claim is not None
    assert claim.variant == "openai-chat, not detailed: latencies only"
    assert claim.clock is Clock.NONE
    for at, row in enumerate(rows(parse(sample(NOT_DETAILED)))):
        assert row["client_e2e_s"] == pytest.approx(result["latencies"][at] or None)
        assert row["client_wait_s"] == pytest.approx(result["queue_times"][at])
        assert row["status"] == ("ok" if result["latencies"][at] else "error")
    totals = {key: value for key, value in result.items() if not isinstance(value, list)}
    parsed = parse(json.dumps(totals))
    assert (rows(parsed), parsed.understood) == ([], 1)
    assert "totals only" in getattr(claim_of(json.dumps(totals)), "variant", "")


def test_gaps_that_contradict_the_stated_tpot_give_no_end() -> None:
    result = json.loads(sample(SHORTENED))
    parsed = parse(sample(SHORTENED))
    assert [row["client_ttft_s"] for row in rows(parsed)] == pytest.approx(result["ttfts"])
    assert {row["client_e2e_s"] for row in rows(parsed)} == {None}
    assert {row["output_tokens_basis"] for row in rows(parsed)} == {"client"}
    assert parsed.tables["client_stream"].height == 0


def test_an_old_result_ends_with_its_last_gap() -> None:
    result = {
        "date": "20240422-081350", "backend": "vllm", "num_prompts": 1, "mean_tpot_ms": 50.0,
        "input_lens": [9], "output_lens": [3], "ttfts": [0.5], "itls": [[0.04, 0.06]], "errors": [""],
    }  # fmt: skip
    (row,) = rows(parse(json.dumps(result)))
    assert (row["client_ttft_s"], row["client_e2e_s"], row["client_tpot_s"]) == pytest.approx(
        (0.5, 0.6, 0.05)
    )
    assert (row["client_sent_s"], row["client_ttft_kind"], row["chunk_count"]) == (None, "content", 3)


def test_pretty_printed_and_listed_results_are_the_same() -> None:
    result = json.loads(sample(CHAT))
    plain = rows(parse(sample(CHAT)))
    pretty = parse(json.dumps(result, indent=2))
    assert rows(pretty) == plain
    assert pretty.understood == len(json.dumps(result, indent=2).splitlines())
    assert rows(parse(json.dumps([result]))) == plain
    assert len(rows(parse(json.dumps(result, indent=1) + "\n" + json.dumps(result, indent=1)))) == 2 * len(
        plain
    )


def test_python_writes_nan_and_it_stays_unknown() -> None:
    text = sample(CHAT).replace('"mean_tpot_ms": ', '"mean_tpot_ms": NaN, "was": ')
    assert rows(parse(text)) == rows(parse(sample(CHAT)))


def test_texts_are_kept_only_when_asked_for() -> None:
    assert "request_text" not in parse(sample(CHAT)).tables
    texts = rows(parse(sample(CHAT), keep_text=True), "request_text")
    assert [row["content"] for row in texts] == json.loads(sample(CHAT))["generated_texts"]


def test_a_broken_document_is_an_issue_per_line() -> None:
    whole = json.dumps(json.loads(sample(CHAT)), indent=1).splitlines()
    parsed = parse("\n".join(whole[:-5]))
    assert parsed.understood == 0
    assert parsed.issues["reason"].to_list() == ["not JSON"] + ["part of a broken JSON document"] * (
        len(whole) - 6
    )
    appended = [*sample(CHAT).splitlines(), '{"date": "20261129-122409", "num_pro']
    parsed = parse("\n".join(appended))
    assert (len(rows(parsed)), parsed.understood, parsed.issues["line_no"].to_list()) == (20, 1, [2])


@pytest.mark.parametrize(
    "text",
    [
        '{"tag": null, "backend": "vllm-chat", "duration": 1.0, "completed": 20, "ttfts": [0.1], "mean_e2e_latency_ms": 1}',
        '{"benchmarks": [], "metadata": {"version": 2}}',
        '{"sent_at": 1795956414.5, "ttft_s": 0.5}',
        '[{"ttft_s": 0.5, "end_to_end_latency_s": 1}]',
        "INFO date num_prompts backend",
        "",
    ],
)
def test_other_files_are_not_claimed(text: str) -> None:
    assert claim_of(text) is None


ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.floats(),
    st.integers(-(2**70), 2**70),
    st.text(max_size=4),
    st.lists(st.floats(), max_size=3),
)
ARRAYS = st.lists(ODD, max_size=4) | ODD
RESULTS = st.fixed_dictionaries(
    {"num_prompts": ODD},
    optional=dict.fromkeys(("ttfts", "itls", "output_lens", "input_lens", "latencies", "queue_times", "start_times", "errors", "generated_texts", "endpoint_type", "backend", "mean_tpot_ms", "model_id"), ARRAYS),
)  # fmt: skip
TEXTS = st.lists(
    RESULTS.map(json.dumps) | st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=12),
    max_size=4,
)


@settings(max_examples=50, deadline=None)
@given(TEXTS, st.sampled_from(["\n", "", "\n\n"]))
def test_any_text_is_understood_or_issues(parts: list[str], between: str) -> None:
    text = between.join(parts)
    parsed = parse(text, keep_text=True)
    assert parsed.understood + parsed.issues.height == len(text.splitlines())
    claim_of(text)
