"""Totals of load generators stay totals: names, statistics and units as the tools state them."""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from load_files import claims_of, figures, parse, requests, sample


def rows(name: str, file: str) -> list[dict[str, Any]]:
    parsed = parse(sample(name, file), name)
    assert "client_request" not in parsed.tables or parsed.tables["client_request"].height == 0
    return parsed.tables["client_summary"].to_dicts()


def by_name(name: str, file: str) -> dict[tuple[str, str | None], dict[str, Any]]:
    return {(row["name"], row["statistic"]): row for row in reversed(rows(name, file))}


def test_the_printed_table_has_the_values_of_the_result_file() -> None:
    printed = by_name("bench_stdout", "v0.32.0_chat_detailed.txt")
    stated = json.loads(sample("vllm_bench", "v0.32.0_chat_detailed.json"))
    for word, statistic in (("mean", "mean"), ("median", "p50"), ("p99", "p99")):
        for metric in ("ttft", "tpot", "itl"):
            row = printed[(f"{metric.upper()} (ms)", statistic)]
            assert row["measured"] == pytest.approx(stated[f"{word}_{metric}_ms"], abs=0.006)
            assert row["measured_s"] == pytest.approx(row["measured"] / 1000)
    assert printed[("Successful requests", None)]["measured"] == stated["completed"]
    assert printed[("Total input tokens", None)]["measured"] == stated["total_input_tokens"]
    assert printed[("request_id_prefix", None)]["stated"] == "bench-31143aed-"
    assert printed[("TTFT (ms)", "mean")]["line_no"] == 28


def test_two_printed_runs_stay_apart_by_their_lines() -> None:
    all_rows = rows("bench_stdout", "sglang_0.5_two_rates.txt")
    latencies = [
        (row["line_no"], row["measured"])
        for row in all_rows
        if (row["name"], row["statistic"]) == ("E2E Latency (ms)", "mean")
    ]
    assert latencies == [(26, 1748.30), (54, 2240.73)]
    assert [row["stated"] for row in all_rows if row["name"] == "Traffic request rate" and row["stated"]] == [
        "inf"
    ]
    assert {row["tool"] for row in all_rows} == {"sglang bench"}
    assert [row["measured"] for row in all_rows if row["name"] == "Peak concurrent requests"] == [
        9
    ]  # -1 is none
    assert (
        max(row["measured"] for row in all_rows if (row["name"], row["statistic"]) == ("ITL (ms)", "max"))
        == 97.45
    )


def test_a_table_is_the_servers_file_once_a_server_speaks_in_it() -> None:
    table = sample("bench_stdout", "v0.32.0_chat_detailed.txt").decode()
    server = "(EngineCore pid=1) INFO 11-29 12:21:31 [loggers.py:1] Engine 000: Avg prompt throughput: 1.0 tokens/s, Avg generation throughput: 1.0 tokens/s, Running: 1 reqs, Waiting: 0 reqs, GPU KV cache usage: 0.0%, Prefix cache hit rate: 0.0%\n"
    assert [kind.name for kind, _ in claims_of((table + server * 3).encode())] == ["vllm_log"]


@pytest.mark.parametrize(
    "line",
    ["Mean TTFT (ms):                          65.08     ", "Request goodput (req/s):                 1.20"],
)
def test_lines_are_understood_wherever_a_file_is_cut(line: str) -> None:
    head = "============ Serving Benchmark Result ============\n"
    assert figures(parse(head + line, "bench_stdout")) == figures(
        parse(head + "x\n" * 3 + line, "bench_stdout")
    )


def test_aiperfs_table_and_document_are_read_number_by_number() -> None:
    table = by_name("aiperf_summary", "v0.13.0_chat.csv")
    lines = sample("aiperf_summary", "v0.13.0_chat.csv").decode().splitlines()
    (stated,) = [row for row in csv.DictReader(lines) if row["Metric"] == "Request Latency (ms)"]
    for column, statistic in (("avg", "mean"), ("p99", "p99"), ("std", "std"), ("max", "max")):
        assert table[("Request Latency (ms)", statistic)]["measured"] == float(stated[column])
        assert table[("Request Latency (ms)", statistic)]["measured_s"] == pytest.approx(
            float(stated[column]) / 1000
        )
    assert table[("Completed Requests (Success + Error)", None)]["measured"] == 20
    assert table[("NVIDIA GPU Power Usage (W)", "mean")]["subject"] == "GPU 0"
    document = json.loads(sample("aiperf_summary", "v0.13.0_errors.json"))
    read = by_name("aiperf_summary", "v0.13.0_errors.json")
    for name in ("request_latency", "time_to_first_token", "credit_to_start_latency", "effective_latency"):
        for key, statistic in (("avg", "mean"), ("p99", "p99"), ("count", "count")):
            assert read[(name, statistic)]["measured"] == document[name][key]
        assert read[(name, "mean")]["measured_s"] == pytest.approx(document[name]["avg"] / 1000)
        assert read[(name, "count")]["measured_s"] is None


def test_a_stage_of_inference_perf_in_both_forms() -> None:
    stage = json.loads(sample("inference_perf", "v0.7.0_errors_stage_0.json"))
    read = by_name("inference_perf", "v0.7.0_errors_stage_0.json")
    delay = stage["load_summary"]["schedule_delay"]
    assert read[("load_summary.schedule_delay", "p99.9")]["measured_s"] == delay["p99.9"]
    assert read[("load_summary.schedule_delay", "p50")]["measured_s"] == delay["median"]
    assert (
        read[("successes.latency.time_to_first_token", "mean")]["measured_s"]
        == stage["successes"]["latency"]["time_to_first_token"]["mean"]
    )
    assert read[("failures", "count")]["measured"] == stage["failures"]["count"]
    report = by_name("inference_perf", "v0.7.0_completion_stage_0.yaml")
    ttft = report[("results.request_performance.aggregate.latency.time_to_first_token", "p99.9")]
    assert (ttft["measured"], ttft["unit"], ttft["measured_s"], ttft["line_no"]) == (
        0.08900001708900573,
        "s",
        0.08900001708900573,
        65,
    )
    assert report[("run.time.start", None)]["stated"] == "2026-11-29T12:31:52.241610Z"
    assert (
        report[("results.request_performance.aggregate.throughput.request_rate", "mean")]["measured_s"]
        is None
    )


def test_llmperf_by_request_and_in_total() -> None:
    stated = json.loads(sample("llmperf", "handmade_individual_responses.json"))
    got = requests(parse(sample("llmperf", "handmade_individual_responses.json"), "llmperf"))
    assert [row["status"] for row in got] == ["ok", "ok", "rejected", "ok", "error"]
    assert [row["client_ttft_s"] for row in got] == [entry["ttft_s"] or None for entry in stated]
    assert [row["client_e2e_s"] for row in got] == [entry["end_to_end_latency_s"] or None for entry in stated]
    assert [row["output_tokens"] for row in got] == [150, 148, None, 152, None]
    assert {row["output_tokens_basis"] for row in got} == {"client", None}
    assert {row["client_tpot_s"] for row in got} == {None}
    total = by_name("llmperf", "handmade_summary.json")
    summary = json.loads(sample("llmperf", "handmade_summary.json"))
    assert total[("ttft_s", "p50")]["measured_s"] == summary["results_ttft_s_quantiles_p50"]
    assert total[("number_input_tokens", "max")]["measured"] == 552
    assert total[("request_output_throughput_token_per_s", "mean")]["measured_s"] is None
    assert total[("num_requests_started", None)]["measured"] == 5


def test_evalscopes_arguments_and_tokens_over_time() -> None:
    arguments = by_name("evalscope_summary", "v1.14.1_benchmark_args.json")
    assert (arguments[("parallel", None)]["measured"], arguments[("number", None)]["measured"]) == (4, 20)
    points = json.loads(sample("evalscope_summary", "v1.14.1_workload_timeline.json"))["points"]
    read = [
        row
        for row in rows("evalscope_summary", "v1.14.1_workload_timeline.json")
        if row["name"] == "cum_completion"
    ]
    assert [row["measured"] for row in read] == [point["cum_completion"] for point in points]
    assert read[0]["subject"] == f"until {points[0]['t']:.6f} s"


def test_evalscopes_totals_by_their_documented_keys() -> None:
    totals = parse(
        json.dumps(
            {"Time taken for tests (s)": 5.5, "Total requests": 10, "Average time to first token (s)": 0.25}
        ),
        "evalscope_summary",
    )
    assert figures(totals) == {
        ("Time taken for tests (s)", None): 5.5,
        ("Total requests", None): 10,
        ("Average time to first token (s)", None): 0.25,
    }
    shares = parse(json.dumps([{"Percentiles": "99%", "TTFT (s)": 0.5}], indent=1), "evalscope_summary")
    (row,) = shares.tables["client_summary"].to_dicts()
    assert (row["name"], row["statistic"], row["measured_s"]) == ("TTFT (s)", "p99", 0.5)
    columns = parse(json.dumps({"Percentiles": ["50%", "99%"], "TTFT (s)": [0.25, 0.5]}), "evalscope_summary")
    assert figures(columns) == {("TTFT (s)", "p50"): 0.25, ("TTFT (s)", "p99"): 0.5}


def test_speculative_decoding_is_part_of_the_printed_table() -> None:
    """Line names of vLLM 0.13 and later."""
    text = "============ Serving Benchmark Result ============\n---------------Speculative Decoding---------------\nAcceptance rate (%):                     61.50\nPer-position acceptance (%):\n  Position 0:                            80.25\n"
    parsed = parse(text, "bench_stdout")
    assert parsed.issues.height == 0
    assert figures(parsed) == {("Acceptance rate (%)", None): 61.5, ("Position 0", None): 80.25}


def test_names_that_only_look_like_times_are_none() -> None:
    read = by_name("sglang_bench", "v0.5.23_chat_nodetails.jsonl")
    assert (
        read[("max_output_tokens_per_s", None)]["measured"],
        read[("max_output_tokens_per_s", None)]["measured_s"],
    ) == (310.0, None)
    assert read[("ttft_ms", "p99")]["measured_s"] == pytest.approx(0.0912673007798594)
    assert read[("duration", None)]["measured_s"] == pytest.approx(1.0686922159998176)
    assert sorted({row["line_no"] for row in rows("sglang_bench", "v0.5.23_chat_nodetails.jsonl")}) == [1, 2]


def test_totals_of_genai_perf_are_not_aiperfs() -> None:
    """The layout that AIPerf took over from it."""
    document = {
        "request_latency": {"unit": "ms", "avg": 200.0, "p99": 300.0},
        "input_config": {"model_names": ["m"]},
    }
    ((kind, claim),) = claims_of(json.dumps(document, indent=2).encode())
    (mean, _) = parse(json.dumps(document), "aiperf_summary").tables["client_summary"].to_dicts()
    assert (kind.name, claim.variant, mean["tool"], mean["measured_s"]) == (
        "aiperf_summary",
        "totals, GenAI-Perf",
        "genai-perf",
        0.2,
    )
