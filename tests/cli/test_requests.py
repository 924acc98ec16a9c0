"""``slowest`` and ``show`` against the truth in the logs, worked out here in plain Python."""

from __future__ import annotations

import itertools
import json
import statistics
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from tracelens.cli import cli

if TYPE_CHECKING:
    from pathlib import Path

WORST = "chatcmpl-b_queue_dominated-1bea85931a95"
STAGES = (
    "network_in_s",
    "tokenize_s",
    "step_wait_s",
    "queue_s",
    "prefill_s",
    "stream_out_s",
    "unaccounted_s",
)


@pytest.fixture(scope="module")
def whole(case: Path) -> dict[str, Any]:
    """What ``show --format json`` prints of the worst request."""
    result = CliRunner().invoke(cli, ["show", WORST, "-c", str(case), "--format", "json"])
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def rows_of(run, *args: str) -> list[dict[str, Any]]:
    result = run(*args, "--format", "json")
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def test_the_worst_by_ttft_are_the_clients_longest_waits(run, clients) -> None:
    rows = rows_of(run, "slowest", "--top", "4")
    wanted = sorted(clients, key=lambda one: -clients[one]["ttft_s"])[:4]
    assert [row["request_id"] for row in rows] == wanted
    for row in rows:
        assert row["measure_s"] == pytest.approx(clients[row["request_id"]]["ttft_s"], abs=2e-6)
        assert row["input_tokens"] == clients[row["request_id"]]["prompt_tokens"]
        assert row["output_tokens"] == clients[row["request_id"]]["completion_tokens"]


def test_queue_and_prefill_are_the_spans_and_the_stages_add_up_to_ttft(run, spans) -> None:
    for row in rows_of(run, "slowest"):
        span = spans[row["request_id"]]
        assert row["queue_s"] == pytest.approx(span["gen_ai.latency.time_in_queue"], abs=1e-9)
        assert row["prefill_s"] == pytest.approx(span["gen_ai.latency.time_in_model_prefill"], abs=1e-9)
        assert sum(row[stage] or 0 for stage in STAGES) == pytest.approx(row["client_ttft_s"], abs=1e-6)


def test_the_largest_stage_is_named_with_its_share(run, clients, spans) -> None:
    worst = rows_of(run, "slowest", "--top", "1")[0]
    assert worst["request_id"] == WORST
    assert worst["largest_stage"] == "queue"
    share = spans[WORST]["gen_ai.latency.time_in_queue"] / clients[WORST]["ttft_s"]
    assert worst["largest_stage_ratio"] == pytest.approx(share, abs=1e-5)


@pytest.mark.parametrize(
    ("by", "key"),
    [("queue", "gen_ai.latency.time_in_queue"), ("prefill", "gen_ai.latency.time_in_model_prefill")],
)
def test_by_queue_and_prefill_follow_the_spans(run, spans, by: str, key: str) -> None:
    wanted = sorted(spans, key=lambda one: -spans[one][key])
    assert [row["request_id"] for row in rows_of(run, "slowest", "--by", by)] == wanted


def test_by_e2e_and_tpot_follow_client_and_spans(run, clients, spans) -> None:
    wanted = sorted(clients, key=lambda one: -clients[one]["e2e_s"])
    assert [row["request_id"] for row in rows_of(run, "slowest", "--by", "e2e")] == wanted
    tpot = {
        one: span["gen_ai.latency.time_in_model_decode"] / (int(span["gen_ai.usage.completion_tokens"]) - 1)
        for one, span in spans.items()
    }
    rows = rows_of(run, "slowest", "--by", "tpot")
    assert [row["request_id"] for row in rows] == sorted(tpot, key=lambda one: -tpot[one])
    assert rows[0]["measure_s"] == pytest.approx(max(tpot.values()), rel=1e-9)


def test_the_screen_shows_short_times_a_bar_and_the_largest_stage_at_p99(run, clients) -> None:
    lines = run("slowest", "--format", "table", "--top", "3").stdout.splitlines()
    worst = lines[2]
    assert WORST in worst
    assert "12.00 s" in worst
    assert "QQQQQQ" in worst
    assert "Q 97 %" in worst
    assert "p99 TTFT is 11.97 s" in lines[-1]  # 11.6378 + 0.91 * (12.0041 - 11.6378)
    assert "queue (Q): 11.66 s" in lines[-1]


def test_a_narrow_terminal_keeps_bar_and_largest_stage(run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "110")
    table = run("slowest", "--format", "table").stdout.splitlines()[:12]
    assert max(len(line) for line in table) <= 110
    assert "QQQ" in table[2]
    assert "931a95" in table[2]


def test_requests_without_the_measure_are_counted_and_not_listed(run, log_case: Path) -> None:
    result = run("slowest", "-c", log_case, "--format", "json")
    assert json.loads(result.stdout) == []
    assert "TTFT is not known for 10 of 10 requests" in result.stderr
    by_end = run("slowest", "-c", log_case, "--by", "e2e", "--format", "json")
    assert len(json.loads(by_end.stdout)) == 10


@pytest.mark.parametrize(
    "given",
    [
        WORST,  # the server's id
        "b_queue_dominated-1bea85931a95",  # the client's
        WORST + "-a51b5128",  # as the log's "Added request" line has it
        WORST + "-0badcafe",  # with 8 hex digits that no log has
        "931a95",  # its end
        "d-1bea8593",  # a part
    ],
)
def test_a_request_is_found_by_any_form_of_its_id(run, given: str) -> None:
    (found,) = rows_of(run, "query", "request_find", f"id={given}")
    assert found["request_id"] == WORST


def test_a_trace_id_finds_its_request(run, clients) -> None:
    assert WORST in run("show", clients[WORST]["trace_id"]).stdout


def test_an_ambiguous_id_lists_five_and_none_gives_a_hint(run) -> None:
    ambiguous = run("show", "b_queue")
    assert ambiguous.exit_code == 2
    assert "may mean 10 requests" in ambiguous.stderr
    assert ambiguous.stderr.count("chatcmpl-") == 5
    nothing = run("show", "no-such-request")
    assert nothing.exit_code == 2
    assert "tracelens query requests" in nothing.stderr
    assert run("show", "").exit_code == 2


def test_one_id_in_two_runs_asks_for_the_run(run, tmp_path: Path, logs: Path, ingested) -> None:
    case = tmp_path / "two.duckdb"
    ingested(case, logs / "client.jsonl", run="before")
    ingested(case, logs / "client.jsonl", run="after")
    asked = run("show", WORST, "-c", case)
    assert asked.exit_code == 2
    assert "--run" in asked.stderr
    assert run("show", WORST, "-c", case, "--run", "after").exit_code == 0
    assert run("show", WORST, "-c", case, "--run", "between").exit_code == 2
    assert len(rows_of(run, "slowest", "-c", case, "--run", "before")) == 10
    assert len(rows_of(run, "slowest", "-c", case, "--top", "50")) == 20


def test_the_object_of_a_request_has_stages_that_agree_with_the_logs(whole, clients, spans) -> None:
    client, span = clients[WORST], spans[WORST]
    stages = {row["stage"]: row for row in whole["stages"]}
    assert whole["request"]["status"] == "ok"
    assert whole["request"]["input_tokens"] == 264
    assert stages["queue"]["duration_s"] == pytest.approx(span["gen_ai.latency.time_in_queue"])
    assert stages["queue"]["provenance"] == "observed"
    queues = [one["gen_ai.latency.time_in_queue"] for one in spans.values()]
    assert stages["queue"]["median_s"] == pytest.approx(statistics.median(queues))
    assert stages["queue"]["percentile_ratio"] == 0.9  # nine of ten waited less
    assert stages["network_in"]["duration_s"] == pytest.approx(span["start"] - client["sent_at"], abs=2e-6)
    assert stages["network_in"]["provenance"] == "derived"
    assert stages["kv_alloc"]["duration_s"] is None
    assert stages["kv_alloc"]["provenance"] == "within"
    assert stages["decode"]["duration_s"] == pytest.approx(client["e2e_s"] - client["ttft_s"], abs=2e-6)


def test_company_and_gaps_agree_with_the_logs(whole, clients, spans) -> None:
    me = spans[WORST]
    end = me["start"] + me["gen_ai.latency.e2e"]
    first = me["start"] + me["gen_ai.latency.time_to_first_token"]
    others = [span for one, span in spans.items() if one != WORST]
    overlapping = [
        s for s in others if s["start"] < end and s["start"] + s["gen_ai.latency.e2e"] > me["start"]
    ]
    served = [s for s in others if me["start"] < s["start"] + s["gen_ai.latency.time_to_first_token"] < first]
    assert whole["company"]["overlapping_count"] == len(overlapping)
    assert whole["company"]["served_meanwhile_count"] == len(served)
    arrivals = [
        at
        for at, kind in zip(clients[WORST]["chunk_at"], clients[WORST]["chunk_kind"], strict=True)
        if kind == "c"
    ]
    longest = max(later - earlier for earlier, later in itertools.pairwise(arrivals))
    assert whole["gaps"][0]["gap_s"] == pytest.approx(longest, abs=5e-6)


def test_the_evidence_names_the_very_lines(whole, logs: Path) -> None:
    lines = {(row["path"].rsplit("/", 1)[-1], row["line_no"]) for row in whole["evidence"]}
    wanted = {
        (name, number)
        for name in ("server.log", "client.jsonl", "otel_spans.jsonl")
        for number, text in enumerate((logs / name).read_text().splitlines(), 1)
        if WORST in text
    }
    assert lines == wanted
    assert len(wanted) == 5


def test_the_engine_rows_are_the_stats_lines_around_it(whole, logs: Path) -> None:
    numbers = [
        n for n, text in enumerate((logs / "server.log").read_text().splitlines(), 1) if "Engine 000" in text
    ]
    assert [row["line_no"] for row in whole["engine_samples"]] == numbers
    assert whole["engine"]["waiting_high_count"] == 26
    assert [row["phase"] for row in whole["engine_samples"]] == ["during", "during", "after"]


def test_the_page_says_everything_that_matters(run) -> None:
    page = run("show", WORST).stdout
    for text in (
        "Q queue",
        "11.66 s",
        "97 %",
        "█  observed",
        "▒  derived",
        "┊┊ within",
        "─ TTFT",
        "12.00 s",
        "─ E2E",
        "12.58 s",
        "joined with the server by",
        "waiting 0 to 26",
        "no GPU log in this case",
        "9 other requests",
        "server.log:46",
        "client.jsonl:10",
    ):
        assert text in page, text
    assert max(len(line) for line in page.splitlines()) <= 110


def test_a_request_that_only_the_log_has_shows_what_is_unknown(run, log_case: Path) -> None:
    page = run("show", WORST, "-c", log_case).stdout
    assert "no client file has it" in page
    assert "unknown" in page
    assert "needs spans" in page
    assert "0 ms" not in page.split("engine")[0]


def test_gpus_are_shown_where_a_log_has_them(run, tmp_path: Path, logs: Path, ingested) -> None:
    head = "timestamp, index, utilization.gpu [%], power.draw [W], memory.used [MiB]\n"
    rows = "".join(
        f"2026/11/29 12:47:0{n}.000, 0, {40 + n} %, {200 + n}.00 W, 1024 MiB\n" for n in range(1, 4)
    )
    (tmp_path / "gpu.csv").write_text(head + rows)
    ingested(tmp_path / "gpu.duckdb", logs, tmp_path / "gpu.csv")
    (gpu,) = json.loads(run("show", WORST, "-c", tmp_path / "gpu.duckdb", "--format", "json").stdout)["gpus"]
    assert gpu["sample_count"] == 3
    assert gpu["sm_mean_ratio"] == pytest.approx(0.42)
    assert gpu["power_max_w"] == 203
    assert "1.0 GiB" in run("show", WORST, "-c", tmp_path / "gpu.duckdb").stdout


def test_show_as_csv_gives_the_stages(run) -> None:
    lines = run("show", WORST, "--format", "csv").stdout.splitlines()
    assert lines[0].startswith("run_id,stage,")
    assert len(lines) == 12
