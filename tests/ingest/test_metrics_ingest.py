"""What a case holds after scrapes went in: scrapes counted, engine and GPU samples, settings, means that agree with spans."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tracelens.ingestion import IngestOptions, State, TimeOptions, ingest
from tracelens.store import Store

SAMPLES = Path(__file__).parents[2] / "sample_logs"
RECORDED = Path(__file__).parent / "data" / "scrapes"
DAY = dt.date(2026, 11, 29)
RECORDINGS = ("a0_delta_logging", "f_kv_preemption")
GPU_LABELS = 'Hostname="n",UUID="GPU-1",gpu="2",modelName="H100"'

Ask = Callable[[str], list[dict[str, Any]]]

WITHOUT_TIMES = """\
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0"} 1
vllm:prompt_tokens_total{engine="0"} 100
vllm:num_requests_running{engine="0"} 2
vllm:prompt_tokens_total{engine="0"} 150
vllm:request_success_total{engine="0"} 1
vllm:num_requests_running{engine="0"} 3
vllm:prompt_tokens_total{engine="0"} 150
"""

# Scrapes 15 s apart; the server begins anew before the third one.
RESTARTED = "".join(
    f"# 2026-11-29T10:00:{at:02d}Z\n# TYPE vllm:num_requests_running gauge\n"
    f"vllm:num_requests_running{{engine='0'}} 4\n".replace("'", '"')
    + f'vllm:num_requests_waiting{{engine="0"}} {waiting}\n'
    f'vllm:prompt_tokens_total{{engine="0"}} {prompt}\nvllm:generation_tokens_total{{engine="0"}} {made}\n'
    f'vllm:num_preemptions_total{{engine="0"}} {preempted}\nvllm:prefix_cache_queries_total{{engine="0"}} {prompt}\n'
    f'vllm:prefix_cache_hits_total{{engine="0"}} {hits}\nvllm:gpu_cache_usage_perc{{engine="0"}} 0.25\n'
    for at, waiting, prompt, made, preempted, hits in (
        (0, 7, 1000, 500, 3, 0), (15, 8, 2500, 800, 5, 300), (30, 0, 600, 150, 1, 60), (45, 0, 600, 300, 1, 60)
    )
)  # fmt: skip

# One scrape a second: 100 prompt tokens in every second, in lumps of 500 at every fifth.
CLOSE = "".join(
    f"# scraped_at {1795953600 + at}\n# TYPE vllm:num_requests_running gauge\nvllm:num_requests_running 4\n"
    f"vllm:gpu_cache_usage_perc 0.0\nvllm:prompt_tokens_total {500 * (at // 5)}\n"
    for at in range(31)
)

TARGETS = json.dumps(
    {"status": "success", "data": {"resultType": "matrix", "result": [
        {"metric": {"__name__": "vllm:num_requests_running", "engine": "0", "instance": f"node-{node}:8000"},
         "values": [[1795953600, str(node)], [1795953615, str(node + 10)]]}
        for node in (1, 2)
    ]}}
)  # fmt: skip

DCGM = "".join(
    f"# scraped_at {1795953600 + at}\n# TYPE DCGM_FI_DEV_GPU_UTIL gauge\nDCGM_FI_DEV_GPU_UTIL{{{GPU_LABELS}}} 97\n"
    f"DCGM_FI_DEV_FB_USED{{{GPU_LABELS}}} 1024\nDCGM_FI_DEV_POWER_VIOLATION{{{GPU_LABELS}}} {at * 250_000_000}\n"
    f"DCGM_FI_DEV_XID_ERRORS{{{GPU_LABELS}}} 31\n"
    f'DCGM_FI_PROF_SM_ACTIVE{{{GPU_LABELS},GPU_I_ID="7"}} 0.5\n'
    for at in (0, 10)
)

LOG = "".join(
    f"INFO 11-29 10:00:{at:02d} [loggers.py:111] Engine 000: Avg prompt throughput: 100.0 tokens/s, Avg generation throughput: "
    "20.0 tokens/s, Running: 4 reqs, Waiting: 7 reqs, GPU KV cache usage: 25.0%, Prefix cache hit rate: 0.0%\n"
    for at in (0, 10, 20, 30)
)


@pytest.fixture(scope="module")
def ask(tmp_path_factory: pytest.TempPathFactory, facts_alone: Callable[[], Any]) -> Ask:
    """Rows of a query on a case of several runs: each file its own run by its name, log and scrapes together in ``both``."""
    folder = tmp_path_factory.mktemp("metrics")
    written = {"without_times.prom": WITHOUT_TIMES, "restarted.prom": RESTARTED, "close.prom": CLOSE, "targets.json": TARGETS, "dcgm.prom": DCGM, "server.log": LOG}  # fmt: skip
    for name, text in written.items():
        (folder / name).write_text(text, encoding="utf-8")
    case = folder / "case.duckdb"

    def add(run: str, *paths: Path) -> None:
        report = ingest(
            [str(path) for path in paths], case, IngestOptions(run=run, time=TimeOptions(date=DAY))
        )
        assert all(one.state is State.READ and one.skipped == 0 for one in report.files), report

    with facts_alone():
        add("samples", *(SAMPLES / "prometheus_text").glob("*.*m"), SAMPLES / "prometheus_api" / "dcgm_range.json", SAMPLES / "aiperf_server" / "server_metrics_export.json")  # fmt: skip
        for name in ("without_times", "restarted", "close", "dcgm"):
            add(name, folder / f"{name}.prom")
        add("targets", folder / "targets.json")
        for name in RECORDINGS:
            add(name, RECORDED / f"{name}.prom", RECORDED / f"{name}.spans.jsonl")
    add("both", folder / "restarted.prom", folder / "server.log")

    def rows(sql: str) -> list[dict[str, Any]]:
        with Store(case) as store:
            return store.run(sql).dicts()

    return rows


def of_sample(table: str, name: str) -> str:
    return f"SELECT t.* FROM {table} AS t INNER JOIN source USING (source_id) WHERE source.run_id = 'samples' AND path LIKE '%{name}' ORDER BY t.line_no"


def test_a_series_that_comes_again_begins_the_next_scrape(ask: Ask) -> None:
    found = ask(
        "SELECT line_no, scrape_index FROM metric_sample WHERE run_id = 'without_times' ORDER BY line_no"
    )
    assert [row["scrape_index"] for row in found] == [0, 0, 1, 1, 1, 2, 2]
    samples = ask(
        "SELECT running_count, sample_ts, prompt_tps FROM engine_sample WHERE run_id = 'without_times' ORDER BY line_no"
    )
    assert [(row["running_count"], row["sample_ts"], row["prompt_tps"]) for row in samples] == [
        (n, None, None) for n in (1, 2, 3)
    ]


def test_a_new_time_line_begins_the_next_scrape(ask: Ask) -> None:
    found = ask(
        "SELECT DISTINCT scrape_index, epoch(sample_ts) AS at FROM metric_sample WHERE run_id = 'restarted' ORDER BY 1"
    )
    assert [(row["scrape_index"], row["at"] % 60) for row in found] == [(0, 0), (1, 15), (2, 30), (3, 45)]


def test_gauges_and_counters_become_samples_of_the_engine_and_a_restart_begins_at_0(ask: Ask) -> None:
    found = ask("SELECT * FROM engine_sample WHERE run_id = 'restarted' ORDER BY line_no")
    assert [row["waiting_count"] for row in found] == [7, 8, 0, 0]
    assert [row["prompt_tps"] for row in found] == [None, 100.0, 40.0, 0.0]
    assert [row["generation_tps"] for row in found] == [None, 20.0, 10.0, 10.0]
    assert [row["preemption_count"] for row in found] == [None, 2, 1, 0]
    assert [row["prefix_cache_hit_ratio"] for row in found] == [None, 0.2, 0.1, None]
    assert {row["kv_cache_usage_ratio"] for row in found} == {0.25}
    assert {row["line_no"] for row in found} == {3, 13, 23, 33}


def test_rates_of_scrapes_that_are_close_together_are_means_over_ten_seconds(ask: Ask) -> None:
    found = ask("SELECT prompt_tps FROM engine_sample WHERE run_id = 'close' ORDER BY line_no")
    assert {row["prompt_tps"] for row in found[10:]} == {100.0}


def test_targets_of_a_prometheus_are_engines_of_their_own(ask: Ask) -> None:
    found = ask(
        "SELECT engine_index, process, running_count FROM engine_sample WHERE run_id = 'targets' ORDER BY sample_ts, engine_index"
    )
    assert [(row["engine_index"], row["process"], row["running_count"]) for row in found] == [
        (0, "node-1:8000", 1), (1, "node-2:8000", 2), (0, "node-1:8000", 11), (1, "node-2:8000", 12)
    ]  # fmt: skip


def test_one_scrape_of_two_engines_is_a_row_each(ask: Ask) -> None:
    found = ask(of_sample("engine_sample", "v0.10-0.33_v1.prom"))
    assert [
        (row["engine_index"], row["running_count"], row["waiting_count"], row["deferred_count"])
        for row in found
    ] == [(0, 212, 57, 12), (1, 148, None, None)]
    assert [row["kv_cache_usage_ratio"] for row in found] == [0.991, None]
    (v0,) = ask(of_sample("engine_sample", "v0.6_v0.prom"))
    assert (v0["running_count"], v0["waiting_count"], v0["swapped_count"], v0["kv_cache_usage_ratio"]) == (
        44,
        12,
        0,
        0.968,
    )


def test_settings_stand_in_the_labels_of_a_metric(ask: Ask) -> None:
    found = ask(of_sample("server_setting", "v0.10-0.33_v1.prom"))
    assert {(row["key"], row["value"], row["basis"]) for row in found} == {
        ("block_size", "16", "stated"), ("kv_cache_dtype", "auto", "stated"), ("enable_prefix_caching", "True", "stated"),
        ("gpu_memory_utilization", "0.93", "stated"), ("gpu_blocks", "46080", "stated"),
    }  # fmt: skip


def test_a_cache_of_which_nothing_is_ever_used_while_requests_run_is_another_one(ask: Ask) -> None:
    # V0 on a CPU: the gauge of the GPU's cache stays 0.
    assert ask("SELECT count(kv_cache_usage_ratio) AS n FROM engine_sample WHERE run_id = 'close'") == [
        {"n": 0}
    ]
    assert ask("SELECT count(kv_cache_usage_ratio) AS n FROM engine_sample WHERE run_id = 'restarted'") == [
        {"n": 4}
    ]


def test_dcgm_exporter_and_a_range_query_give_gpu_samples(ask: Ask) -> None:
    (row,) = ask(of_sample("gpu_sample", "dcgm_exporter.prom"))
    assert (row["sample_ts"], row["gpu_index"], row["sm_ratio"], row["mem_ratio"], row["mem_temp_c"]) == (
        None,
        0,
        1.0,
        0.71,
        None,
    )
    assert (row["power_w"], row["dram_active_ratio"], row["pcie_rx_bps"], row["host"]) == (
        492.337,
        0.842311,
        2210441.0,
        "node-a",
    )
    found = ask(of_sample("gpu_sample", "dcgm_range.json").replace("t.*", "t.*, epoch(t.sample_ts) AS at"))
    assert [(row["at"], row["dram_active_ratio"], row["sm_ratio"], row["tick"]) for row in found] == [
        (1767225600.0, 0.842311, 1.0, 0), (1767225615.0, 0.838920, 1.0, 1), (1767225630.0, None, 1.0, 2)
    ]  # fmt: skip


def test_a_mig_instance_is_no_gpu_of_its_own_and_what_has_no_column_is_kept(ask: Ask) -> None:
    found = ask("SELECT * FROM gpu_sample WHERE run_id = 'dcgm' ORDER BY tick, gpu_index NULLS LAST")
    assert [row["gpu_index"] for row in found] == [2, None, 2, None]
    assert [row["memory_used_bytes"] for row in found[::2]] == [1024 * 1048576] * 2
    assert [row["power_violation_ratio"] for row in found[::2]] == [None, 0.25]
    assert json.loads(found[0]["other"]) == {"DCGM_FI_DEV_XID_ERRORS": 31.0}
    assert json.loads(found[1]["other"]) == {"entity": "GPU 2 GPU-I 7"}


def test_aggregates_are_no_samples_of_the_engine_but_a_window_of_latencies(ask: Ask) -> None:
    assert ask(of_sample("engine_sample", "server_metrics_export.json")) == []
    (row,) = ask(of_sample("metric_latency", "server_metrics_export.json"))
    assert (row["metric"], row["observed_count"], row["mean_s"]) == ("ttft_s", 20, pytest.approx(0.06))
    assert (row["p50_low_s"], row["p50_high_s"], row["p99_low_s"], row["p99_high_s"]) == (
        0.0,
        0.05,
        0.05,
        0.1,
    )
    assert row["basis"] == "over the phase that the load generator names"


def test_a_histogram_that_appears_with_its_first_observation_loses_none(ask: Ask) -> None:
    text = (SAMPLES / "prometheus_text" / "v0.9.1_v0_engine.prom").read_text(encoding="utf-8")
    counts = [
        float(line.split()[1])
        for line in text.splitlines()
        if line.startswith("vllm:time_to_first_token_seconds_count")
    ]
    found = {
        row["metric"]: row["observed_count"]
        for row in ask(of_sample("metric_latency", "v0.9.1_v0_engine.prom"))
    }
    assert found["ttft_s"] == counts[-1] == 74


def spans_of(name: str) -> dict[str, list[float]]:
    """Numbers of the request spans of a file, by plain JSON."""
    found: dict[str, list[float]] = {}
    for line in (RECORDED / f"{name}.spans.jsonl").read_text(encoding="utf-8").splitlines():
        for resource in json.loads(line)["resourceSpans"]:
            for span in (span for scope in resource["scopeSpans"] for span in scope["spans"]):
                for pair in span["attributes"]:
                    if "doubleValue" in pair["value"]:
                        found.setdefault(pair["key"], []).append(pair["value"]["doubleValue"])
    return found


@pytest.mark.parametrize("name", RECORDINGS)
def test_means_of_the_histograms_are_those_of_the_spans(ask: Ask, name: str) -> None:
    spans = spans_of(name)
    found = {row["metric"]: row for row in ask(f"SELECT * FROM metric_latency WHERE run_id = '{name}'")}
    for metric, key in (
        ("queue_s", "gen_ai.latency.time_in_queue"), ("prefill_s", "gen_ai.latency.time_in_model_prefill"),
        ("ttft_s", "gen_ai.latency.time_to_first_token"), ("e2e_s", "gen_ai.latency.e2e"),
    ):  # fmt: skip
        values, row = sorted(spans[key]), found[metric]
        assert row["observed_count"] == len(values), metric
        assert row["mean_s"] == pytest.approx(sum(values) / len(values), rel=0.02), metric
        for share in (50, 90, 99):
            value = values[-(-share * len(values) // 100) - 1]
            low, high = row[f"p{share}_low_s"], row[f"p{share}_high_s"]
            assert low < value and (high is None or value <= high), (metric, share)


def test_preemptions_of_the_samples_add_up_to_what_the_counter_grew_by(ask: Ask) -> None:
    (row,) = ask("SELECT sum(preemption_count) AS n FROM engine_sample WHERE run_id = 'f_kv_preemption'")
    assert row["n"] == 41


def test_what_log_and_scrapes_both_state_is_not_counted_twice(ask: Ask) -> None:
    windows = ask(
        "SELECT second(window_ts) AS s, running_count, waiting_count FROM time_window WHERE run_id = 'both' AND running_count IS NOT NULL ORDER BY 1"
    )
    assert [(row["s"], row["running_count"], row["waiting_count"]) for row in windows] == [
        (0, 4, 7), (10, 4, 7), (15, 4, 8), (20, 4, 7), (30, 4, 0), (45, 4, 0)
    ]  # fmt: skip
    state = ask(
        "SELECT format FROM engine_state INNER JOIN source USING (source_id) WHERE engine_state.run_id = 'both'"
    )
    assert [row["format"] for row in state] == ["vllm_log"] * 4
    assert ask("SELECT count(*) AS n FROM binding_limit WHERE run_id = 'both'") == [{"n": 4}]
    assert {
        row["source_id"] for row in ask("SELECT source_id FROM queue_wait_estimate WHERE run_id = 'both'")
    } <= {row["source_id"] for row in ask("SELECT source_id FROM source WHERE format = 'vllm_log'")}
