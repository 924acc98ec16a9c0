"""Every sample is claimed by exactly the format that its folder is named after, so the formats' order cannot matter."""

from __future__ import annotations

from pathlib import Path

import pytest

from tracelens import formats
from tracelens.formats.base import Format, Head
from tracelens.ingestion.chunks import head_of
from tracelens.opening import Input, expand

SAMPLE_LOGS = Path(__file__).parents[2] / "sample_logs"
NAMES = {known.name for known in formats.FORMATS}
SAMPLES = sorted(
    path
    for folder in SAMPLE_LOGS.iterdir()
    if folder.name in NAMES
    for path in folder.iterdir()
    if path.is_file() and path.name != "README.md"
)
INCIDENTS = {
    "server.log": "vllm_log",
    "client.jsonl": "client_stream",
    "otel_spans.jsonl": "otlp_spans",
    "gpu_dmon.log": "nvidia_dmon",
}


def head_as_ingest_makes_it(path: Path) -> Head:
    (source,) = expand([str(path)])
    assert isinstance(source, Input), source
    return head_of(source)[0]


def claimed_by(head: Head) -> list[str]:
    return [known.name for known, _ in formats.claims(head)]


def test_every_format_has_samples_whose_origin_is_told() -> None:
    for name in NAMES:
        told = (SAMPLE_LOGS / name / "README.md").read_text(encoding="utf-8")
        files = [path.name for path in SAMPLES if path.parent.name == name]
        assert files, name
        assert [file for file in files if file not in told] == [], name


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_a_sample_is_claimed_by_its_own_format_alone(path: Path) -> None:
    head = head_as_ingest_makes_it(path)
    assert claimed_by(head) == [path.parent.name]


@pytest.mark.parametrize(
    "path", sorted(SAMPLE_LOGS.glob("incidents/*/*.*")), ids=lambda path: f"{path.parent.name}/{path.name}"
)
def test_files_of_an_incident_are_claimed_once(path: Path) -> None:
    if path.name in INCIDENTS:
        assert claimed_by(head_as_ingest_makes_it(path)) == [INCIDENTS[path.name]]


@pytest.mark.parametrize("name", sorted(NAMES))
def test_a_format_knows_its_file_with_windows_line_ends_and_without_the_last_one(
    name: str, tmp_path: Path
) -> None:
    sample = next(path for path in SAMPLES if path.parent.name == name)
    data = sample.read_bytes().replace(b"\r\n", b"\n").rstrip(b"\n")
    (tmp_path / "sample").write_bytes(data.replace(b"\n", b"\r\n"))
    assert claimed_by(head_as_ingest_makes_it(tmp_path / "sample")) == [name]


@pytest.mark.parametrize(
    "text",
    [
        "", "\n\n", "{}", "[]", "null", "{", "[[[[", "a,b,c\n1,2,3\n", "# heading\n\ntext\n", "INFO something happened\n",
        "2025-11-29 12:00:00 INFO app: started\n", '{"level": "info", "msg": "hello"}\n', "#!/bin/sh\nset -e\n", "\x00\x01\x02",
        "127.0.0.1 - - [29/Nov/2025:12:00:00 +0000] \"GET / HTTP/1.1\" 200 12\n",
        "# HELP is what we need\napples 12\npears 4\n", "Nov 29 12:00:00 host sshd[1]: Accepted publickey for root\n",
    ],
)  # fmt: skip
def test_foreign_files_are_nobodys(text: str) -> None:
    assert claimed_by(Head(tuple(text.split("\n")), complete=True)) == []


@pytest.mark.parametrize("one", formats.FORMATS, ids=lambda one: one.name)
def test_a_format_says_how_complete_it_is_how_to_record_it_and_shows_a_sample(one: Format) -> None:
    assert one.versions
    assert one.complete.endswith(".")
    assert one.record
    assert (SAMPLE_LOGS / one.name / one.sample).is_file()
