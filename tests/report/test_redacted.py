"""``report --redact``: no name of a made-up case is left, the same name is the same word, and numbers stay."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parent))

from report_pages import document, written

from tracelens.cli import cli
from tracelens.compare import Comparison, Difference
from tracelens.ingestion import IngestOptions, ingest
from tracelens.marks import Mark, write_marks
from tracelens.outcomes import Evidence, Outcome
from tracelens.report import redacted

INCIDENT = Path(__file__).parent.parent / "cli" / "data" / "incident"
ADDRESSES = ("10.77.3.4", "fe80::77:beef:1", "192.168.77.9")
HOSTS = ("gpu-node-77.corp.internal", "ip-10-77-3-4", "zebra77.lan")
FOLDERS = ("acme-secret", "team-zebra")
SECRETS = ("sk-zebra77abcdefgh", "jane.zebra@acme.example")
STAMP = "(APIServer pid=29049) ERROR 11-29 12:47:08 [serving.py:1] "
SAID = (
    f"EngineCore failed: connect to {HOSTS[0]}:8000 ({ADDRESSES[0]}:41234) refused",
    f"Fatal: cannot reach http://{HOSTS[2]}:9000/v1 from {ADDRESSES[1]}, key {SECRETS[0]}",
    f"Error reading /srv/{FOLDERS[0]}/models/{FOLDERS[1]}/weights.bin for {SECRETS[1]} at {ADDRESSES[2]} by {HOSTS[1]}",
)


def ids() -> list[str]:
    return [json.loads(line)["response_id"] for line in (INCIDENT / "client.jsonl").read_text().splitlines()]


@pytest.fixture(scope="module")
def private(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small incident in a folder with a name to hide, with lines that name hosts, addresses and folders."""
    folder = tmp_path_factory.mktemp("x") / FOLDERS[0] / FOLDERS[1]
    folder.mkdir(parents=True)
    for name in ("client.jsonl", "otel_spans.jsonl"):
        (folder / name).write_text((INCIDENT / name).read_text())
    log = (INCIDENT / "server.log").read_text().rstrip("\n").replace("/models/", f"/srv/{FOLDERS[0]}/models/")
    (folder / "server.log").write_text("\n".join([log, *(STAMP + said for said in SAID)]) + "\n")
    case = folder / "case.duckdb"
    ingest([str(folder)], case, IngestOptions())
    write_marks(case, [Mark("request", "default", ids()[0], f"like {ids()[1]} on {HOSTS[0]}")])
    return case


@pytest.mark.parametrize("kind", [".html", ".md", ".json"])
def test_no_name_is_left(private: Path, kind: str) -> None:
    text = written(private, kind, "", True)
    shared = ids()[0].rpartition("-")[0]
    for name in (*ids(), shared, *ADDRESSES, *HOSTS, *FOLDERS, *SECRETS):
        assert name not in text, name
    for key in ("trace_id", "request_id"):
        for line in (INCIDENT / "client.jsonl").read_text().splitlines():
            assert str(json.loads(line)[key]) not in text


def test_the_names_were_there_before(private: Path) -> None:
    text = written(private, ".json")
    for name in (ids()[0], *FOLDERS, HOSTS[0]):
        assert name in text


def test_the_same_name_has_the_same_word(private: Path) -> None:
    before, after = document(private), redacted(document(private))
    pairs = {
        (old["request_id"], new["request_id"])
        for key in ("slowest", "worst_stages", "length_points")
        for old, new in zip(before["runs"][0][key], after["runs"][0][key], strict=True)
    }
    assert len(pairs) == len({old for old, _ in pairs}) == len({new for _, new in pairs}) == len(set(ids()))
    words = dict(pairs)
    assert all(re.fullmatch(r"request-\d+", word) for word in words.values())
    assert after["marks"][0]["name"] == words[ids()[0]]
    assert words[ids()[1]] in after["marks"][0]["note"]


def numbers(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [one for part in value.values() for one in numbers(part)]
    if isinstance(value, list):
        return [one for part in value for one in numbers(part)]
    return [] if isinstance(value, str) else [value]


def test_numbers_findings_and_files_stay(private: Path) -> None:
    before, after = document(private), redacted(document(private))
    assert numbers(after) == numbers(before)
    for key in ("rule", "outcome", "title", "belief", "measured"):
        assert [one[key] for one in after["outcomes"]] == [one[key] for one in before["outcomes"]]
    for key in ("stage", "provenance"):
        rows = [[row[key] for row in found["runs"][0]["worst_stages"]] for found in (before, after)]
        assert rows[0] == rows[1]
    assert [row["path"] for row in after["runs"][0]["sources"]] == [
        "client.jsonl",
        "otel_spans.jsonl",
        "server.log",
    ]


def test_a_name_that_is_a_number_or_a_word_of_ours_changes_no_sentence() -> None:
    rows = [{"request_id": "17", "stage": "queue"}, {"request_id": "queue", "stage": "queue"}]
    found = redacted({"rows": rows, "message": "17 requests in 170 s", "stage": "queue"})
    assert [row["request_id"] for row in found["rows"]] == ["request-1", "request-2"]
    assert [row["stage"] for row in found["rows"]] == ["queue", "queue"]
    assert found["message"] == "17 requests in 170 s"
    assert found["stage"] == "queue"


def test_the_host_of_a_gpu_is_a_word() -> None:
    found = redacted(
        {"gpus": [{"gpu": "zebra GPU 0"}, {"gpu": "GPU 1"}], "message": "zebra GPU 0: 66 W of 300 W"}
    )
    assert found == {
        "gpus": [{"gpu": "host-1 GPU 0"}, {"gpu": "GPU 1"}],
        "message": "host-1 GPU 0: 66 W of 300 W",
    }


@settings(max_examples=30, deadline=None)
@given(st.recursive(st.none() | st.integers() | st.text(max_size=12), lambda inner: st.lists(inner, max_size=3)
                    | st.dictionaries(st.sampled_from(["request_id", "host", "text", "path", "gpu", "kind", "name", "value", "basis", "key"]),
                                      inner, max_size=4), max_leaves=12))  # fmt: skip
def test_any_document_is_redacted_and_keeps_its_shape(found: Any) -> None:
    after = redacted({"any": found})["any"]
    assert numbers(after) == numbers(found)


@pytest.fixture(scope="module")
def two_cases(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Cases of two servers whose names are to be hidden, in a folder whose name is too."""
    folder = tmp_path_factory.mktemp("y") / FOLDERS[0]
    folder.mkdir()
    rows = [json.loads(line) for line in (INCIDENT / "client.jsonl").read_text().splitlines()]
    (folder / "client.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows * 4))
    log = (INCIDENT / "server.log").read_text().rstrip("\n")
    cases = []
    for number, host in enumerate(("zebra-one", "zebra-two")):
        args = f"INFO 11-29 12:46:40 [utils.py:1] non-default args: {{'host': '{host}', 'port': 8000}}"
        (folder / f"{number}.log").write_text("\n".join([log, args, *(STAMP + said for said in SAID)]) + "\n")
        cases.append(folder / f"case{number}.duckdb")
        ingest(
            [str(folder / "client.jsonl"), str(folder / f"{number}.log")],
            cases[-1],
            IngestOptions(f"run{number}"),
        )
    return cases[0], cases[1]


def test_a_comparison_names_nobody(two_cases: tuple[Path, Path]) -> None:
    names = [f"{case}::run{number}" for number, case in enumerate(two_cases)]
    result = CliRunner().invoke(cli, ["compare", *names, "--format", "json", "--redact"])
    assert result.exit_code in (0, 4), result.output
    for name in ("zebra-one", "zebra-two", *FOLDERS, *HOSTS, *ADDRESSES, *SECRETS):
        assert name not in result.stdout
    hidden = json.loads(result.stdout)
    assert (hidden["before"], hidden["after"]) == ("case0.duckdb::run0", "case1.duckdb::run1")
    (host,) = [one for one in hidden["differences"] if one["fact"] == "host"]
    assert (host["before"], host["after"]) == ("host-1", "host-2")


def test_every_text_of_a_comparison_is_redacted() -> None:
    said = Outcome(
        "gpu.throttling", "gpu-throttling", "Clocks fall", "", "fired", "warning", "high", "a", "zebra GPU 0",
        f"zebra GPU 0 is slow for chatcmpl-77 of {SECRETS[1]}", evidence=(Evidence("/srv/acme-secret/gpu.log", 3, "x"),),
    )  # fmt: skip
    found = Comparison(
        "a",
        "b",
        (Difference("setting", "host", "zebra", "lion"),),
        "Worse: zebra GPU 0",
        new=(said,),
        goodput=({"good_count": 3}, {}),
    )
    after = redacted(found)
    assert after.goodput == found.goodput
    assert isinstance(after, Comparison)
    assert after.new[0].message == "host-1 GPU 0 is slow for request-1 of mail-1"
    assert (after.new[0].subject, after.new[0].rule) == ("host-1 GPU 0", "gpu.throttling")
    assert after.new[0].evidence == (Evidence("gpu.log", 3, "x"),)
    assert after.verdict == "Worse: host-1 GPU 0"
    assert after.differences[0].before == "host-1"
