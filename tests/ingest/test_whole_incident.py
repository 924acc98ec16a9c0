"""A folder as people have it after an incident: twelve files of twelve kinds, one command."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

import tracelens
from tracelens.cli import cli
from tracelens.ingestion import State, ingest

if TYPE_CHECKING:
    from tracelens.ingestion import IngestReport

ROOT = Path(__file__).parents[2]
INCIDENT = ROOT / "tests" / "cli" / "data" / "incident"
SAMPLES = ROOT / "sample_logs"
FILES = {
    "server.log": (INCIDENT / "server.log", "vllm_log"),
    "otel_spans.jsonl": (INCIDENT / "otel_spans.jsonl", "otlp_spans"),
    "client.jsonl": (INCIDENT / "client.jsonl", "client_stream"),
    "metrics.prom": (SAMPLES / "prometheus_text" / "v0.32.0_v1_queue.prom", "prometheus_text"),
    "gpu.log": (SAMPLES / "nvidia_dmon" / "dmon_DT_pucvmet_2gpu.log", "nvidia_dmon"),
    "dcgm.log": (SAMPLES / "dcgmi_dmon" / "dcgmi_dmon_epoch.log", "dcgmi_dmon"),
    "processes.log": (SAMPLES / "nvidia_pmon" / "pmon_DT_m.log", "nvidia_pmon"),
    "host.jsonl": (SAMPLES / "sampled_table" / "host_recorded.jsonl", "sampled_table"),
    "vmstat.txt": (SAMPLES / "vmstat" / "vmstat_t.txt", "vmstat"),
    "limits.txt": (SAMPLES / "host_env" / "pod_4_of_128.txt", "host_env"),
    "bench.out": (SAMPLES / "bench_stdout" / "v0.32.0_chat_detailed.txt", "bench_stdout"),
    "nginx.json": (None, "access_json"),
}


def gateway_lines() -> str:
    """What an nginx in front of the server would have logged of the client's requests."""
    lines = []
    for text in (INCIDENT / "client.jsonl").read_text().splitlines():
        sent = json.loads(text)
        took = (sent.get("finished_at") or sent["closed_at"]) - sent["sent_at"]
        lines.append(
            {
                "msec": f"{sent['sent_at'] + took:.3f}", "request_id": sent["request_id"], "method": "POST",
                "uri": "/v1/chat/completions", "status": "200", "request_time": f"{took:.3f}",
                "upstream_header_time": "0.200", "upstream_response_time": f"{took:.3f}", "bytes_sent": "4000",
            }
        )  # fmt: skip
    return "".join(json.dumps(line) + "\n" for line in lines)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("incident")
    for name, (sample, _) in FILES.items():
        if sample is not None:
            shutil.copy(sample, made / name)
    (made / "nginx.json").write_text(gateway_lines())
    return made


@pytest.fixture(scope="module")
def report(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> IngestReport:
    return ingest([str(folder)], tmp_path_factory.mktemp("case") / "incident.duckdb")


def test_each_of_twelve_files_finds_its_format(report: IngestReport) -> None:
    assert len(report.files) == len(FILES) == 12
    assert {Path(one.path).name: one.format for one in report.files} == {
        name: kind for name, (_, kind) in FILES.items()
    }
    assert all(one.state is State.READ for one in report.files)
    assert report.recognised


def test_every_source_gives_facts_and_no_request_is_counted_twice(report: IngestReport) -> None:
    requests = len((INCIDENT / "client.jsonl").read_text().splitlines())
    with tracelens.open(report.case) as case:
        assert all(row["record_count"] > 0 for row in case.query("sources").dicts())
        assert case.sql("SELECT count(*) FROM request WHERE client_ttft_s IS NOT NULL").rows == [(requests,)]
        gpus = {row[0] for row in case.sql("SELECT DISTINCT source_id FROM gpu_sample").rows}
        assert len(gpus) >= 2


def test_sources_names_every_file_and_what_it_opens(report: IngestReport) -> None:
    shown = CliRunner().invoke(
        cli, ["sources", "-c", str(report.case), "--format", "table"], env={"COLUMNS": "180"}
    )
    assert shown.exit_code == 0
    assert [name for name in FILES if name not in shown.stdout] == []
    answered = shown.stdout[shown.stdout.index("What these files answer") :]
    for subject in ("queue", "client TTFT", "preemptions", "GPU busy", "GPU memory traffic", "host load"):
        assert f"●  {subject}" in answered, subject


def test_check_says_the_same_first_thing_as_on_the_incident_alone(
    report: IngestReport, tmp_path: Path
) -> None:
    alone = ingest([str(INCIDENT)], tmp_path / "alone.duckdb")
    with tracelens.open(report.case) as whole, tracelens.open(alone.case) as few:
        assert whole.check().fired()[0].rule == few.check().fired()[0].rule == "queue.share_of_ttft"
