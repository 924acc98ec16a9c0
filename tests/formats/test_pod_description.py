"""Kubernetes' words on a pod; expected rows are read off the samples by hand."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from tracelens import formats
from tracelens.formats.base import Chunk, Head, Parsed
from tracelens.formats.gpu.pod_documents import yaml_values
from tracelens.ingestion import ingest
from tracelens.ingestion.chunks import lines_frame
from tracelens.store import Store

SAMPLES = Path(__file__).parents[2] / "sample_logs" / "pod_description"
DESCRIBED = (SAMPLES / "oom_killed.txt").read_text()
YAML = (SAMPLES / "oom_killed.yaml").read_text()
DOCUMENTS = ("oom_killed.yaml", "oom_killed.json")
FORMAT = formats.named("pod_description")


def parsed(text: str) -> Parsed:
    claim = FORMAT.sniff(Head(tuple(text.splitlines()), complete=True))
    assert claim is not None
    return FORMAT.parse(Chunk(lines_frame(text.encode(), 1), claim))


def events(text: str) -> list[tuple[Any, ...]]:
    return list(parsed(text).tables["log_event"].select("line_no", "kind", "message").iter_rows())


def settings(text: str) -> dict[str, str]:
    return dict(parsed(text).tables["server_setting"].select("key", "value").iter_rows())


def test_the_end_of_a_container_is_a_death_at_its_time() -> None:
    row = parsed(DESCRIBED).tables["log_event"].row(0, named=True)
    assert (row["line_no"], row["last_line_no"], row["kind"]) == (45, 49, "dead")
    assert row["message"] == "Container vllm terminated: OOMKilled, exit code 137"
    assert row["event_ts"] == datetime(2025, 11, 25, 3, 12, 44)


def test_warnings_among_the_events_are_kept_without_a_time() -> None:
    rows = events(DESCRIBED)[1:]
    assert [row[:2] for row in rows] == [(81, "warning"), (82, "warning")]
    assert rows[0][2].startswith("Unhealthy: Liveness probe failed")


def test_settings_are_those_of_the_container_with_the_gpu() -> None:
    found = settings(DESCRIBED)
    assert found.pop("api_key") is not None  # ingest masks it, see below
    assert found == {
        "vllm_version": "0.11.0",
        "max_model_len": "32768",
        "max_num_seqs": "256",
        "cpu_quota_cores": "4.5",
        "omp_num_threads": "64",
    }


def test_of_two_containers_without_a_gpu_no_settings_are_taken() -> None:
    assert settings(DESCRIBED.replace("nvidia.com/gpu", "example.com/disk")) == {}


@pytest.mark.parametrize(
    ("code", "reason", "kind"),
    [("0", "Completed", "stop"), ("143", "Error", "stop"), ("1", "Error", "dead"), ("139", "Error", "dead"), ("0", "OOMKilled", "dead")],
)  # fmt: skip
def test_what_ended_as_it_was_told_did_not_die(code: str, reason: str, kind: str) -> None:
    text = DESCRIBED.replace("Exit Code:    137", f"Exit Code:    {code}").replace("OOMKilled", reason)
    assert events(text)[0][1] == kind


@pytest.mark.parametrize("file", DOCUMENTS)
def test_a_pods_document_says_what_its_description_says(file: str) -> None:
    text = (SAMPLES / file).read_text()
    found = parsed(text)
    (event,) = found.tables["log_event"].to_dicts()
    assert (event["kind"], event["event_ts"]) == ("dead", datetime(2025, 11, 25, 3, 12, 44))
    assert event["message"] == "Container vllm terminated: OOMKilled, exit code 137"
    assert settings(text) == settings(DESCRIBED)
    assert found.issues.height == 0
    lines = text.splitlines()
    assert (
        "137" in lines[event["line_no"] - 1] + lines[event["line_no"]]
    )  # beside its first value, the container's id
    told = found.tables["server_setting"].rows_by_key("key", named=True)
    assert "4500m" in lines[told["cpu_quota_cores"][0]["line_no"] - 1]


def test_a_document_on_one_line_is_read_too() -> None:
    text = json.dumps(json.loads((SAMPLES / "oom_killed.json").read_text()))
    claim = FORMAT.sniff(Head(tuple((SAMPLES / "oom_killed.json").read_text().splitlines()), complete=True))
    assert claim is not None
    found = FORMAT.parse(Chunk(lines_frame(text.encode(), 1), claim))
    assert found.tables["log_event"]["line_no"].to_list() == [1]


def test_a_list_of_pods_holds_the_ends_of_all_of_them() -> None:
    items = "".join(
        f"{'- ' if at == 0 else '  '}{line}\n" for _ in range(2) for at, line in enumerate(YAML.splitlines())
    )
    rows = events(f"apiVersion: v1\nitems:\n{items}kind: List\n")
    assert [row[1:] for row in rows] == [("dead", "Container vllm terminated: OOMKilled, exit code 137")] * 2


def test_arguments_of_a_shells_command_line_and_of_a_template_are_read() -> None:
    text = """apiVersion: apps/v1
kind: Deployment
spec:
  template:
    spec:
      containers:
      - command:
        - /bin/sh
        - -c
        args:
        - |
          vllm serve Qwen/Qwen3-8B \\
            --max-model-len 8192 \\
            --max-num-seqs=64
        image: 'vllm/vllm-openai:v0.9.2'
        name: server
        resources:
          limits:
            cpu: 4
            nvidia.com/gpu: 1
"""
    # Another document in the file is another pod: its container without a GPU has no word here.
    assert settings(text + "---\n" + YAML.replace("nvidia.com/gpu", "example.com/disk")) == settings(text)
    assert settings(text) == {
        "max_model_len": "8192", "max_num_seqs": "64", "vllm_version": "0.9.2", "cpu_quota_cores": "4",
    }  # fmt: skip


def test_scalars_may_be_quoted_go_on_below_or_be_blocks() -> None:
    text = """a: 'it''s'
b: "two\\nlines"
c: one long
  scalar
d:
- x
- - y
  - z: |-
      k: v
      w
e: >-
  last"""
    assert [(each.path, each.text) for each in yaml_values(text.splitlines())] == [
        (("a",), "it's"), (("b",), "two\nlines"), (("c",), "one long scalar"), (("d", 0), "x"), (("d", 1, 0), "y"),
        (("d", 1, 1, "z"), "k: v\nw"), (("e",), "last"),
    ]  # fmt: skip


def test_an_evicted_pod_ended() -> None:
    text = YAML.replace(
        "  phase: Running",
        "  message: 'The node was low on resource: memory.'\n  phase: Failed\n  reason: Evicted",
    )
    assert events(text)[-1][1:] == ("dead", "Evicted: The node was low on resource: memory.")


def test_notes_of_a_pod_are_no_states() -> None:
    assert [row[0] for row in events(YAML)] == [88]  # lines 6 and 7 say terminated too


@pytest.mark.parametrize("file", DOCUMENTS)
def test_a_cut_document_says_less_and_invents_nothing(file: str) -> None:
    lines = (SAMPLES / file).read_text().splitlines(keepends=True)
    for at in range(16, len(lines)):
        claim = FORMAT.sniff(Head(tuple("".join(lines[:at]).splitlines()), complete=True))
        assert claim is not None
        found = FORMAT.parse(Chunk(lines_frame("".join(lines[:at]).encode(), 1), claim))
        assert found.understood + found.issues.height == at
        if file.endswith("json"):
            assert not found.tables
        else:
            assert {row["line_no"] for row in found.tables["log_event"].to_dicts()} <= {88}


@pytest.mark.parametrize(
    "text",
    [
        "apiVersion: v1\nkind: ConfigMap\ndata:\n  kind: Pod\n",
        '{\n  "kind": "Service"\n}\n',
        "kind: Pod\n",
        "apiVersion: v1\ninvolvedObject:\n  kind: Pod\nkind: Event\n",
        '{\n    "involvedObject": {\n        "kind": "Pod"\n    }\n}',
    ],
)
def test_other_documents_are_none(text: str) -> None:
    assert FORMAT.sniff(Head(tuple(text.splitlines()), complete=True)) is None


def test_a_list_of_events_tells_of_probes_and_evictions() -> None:
    rows = events((SAMPLES / "events.txt").read_text())
    assert [row[:2] for row in rows] == [(3, "warning"), (4, "dead"), (6, "dead")]


def test_a_row_of_the_list_that_cannot_be_read_is_kept() -> None:
    text = (SAMPLES / "events.txt").read_text() + "what is this\n"
    assert parsed(text).issues["line_no"].to_list() == [7]


def test_a_cut_description_says_less_and_invents_nothing() -> None:
    lines = DESCRIBED.splitlines(keepends=True)
    whole = set(events(DESCRIBED))
    for at in range(16, len(lines)):
        cut = events("".join(lines[:at]))
        assert {row[0] for row in cut} <= {row[0] for row in whole}


@pytest.mark.parametrize("file", ["oom_killed.txt", *DOCUMENTS])
def test_no_key_enters_the_case(tmp_path: Path, file: str) -> None:
    case = tmp_path / "case.duckdb"
    ingest([str(SAMPLES / file)], case)
    with Store(case) as store:
        kept = store.run("SELECT value FROM server_setting WHERE key = 'api_key'").rows
    assert kept == [("***",)]
    assert b"sk-0000" not in case.read_bytes()


def test_the_events_alone_are_read_without_the_rest_of_the_description() -> None:
    text = """Events:
  Type     Reason     Age                From     Message
  ----     ------     ----               ----     -------
  Warning  Unhealthy  25m (x3 over 25m)  kubelet  Liveness probe failed: HTTP probe failed with statuscode: 404
  Normal   Killing    25m                kubelet  Container vllm failed liveness probe, will be restarted
  Normal   Started    25m (x2 over 28m)  kubelet  Started container vllm
"""
    assert events(text) == [
        (4, "warning", "Unhealthy: Liveness probe failed: HTTP probe failed with statuscode: 404"),
        (5, "dead", "Killing: Container vllm failed liveness probe, will be restarted"),
    ]
