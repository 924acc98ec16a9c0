"""Ids and texts made to act: on a terminal, in Markdown, as a line of their own."""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

HOSTILE = "evil\x1b[2J\x9b31m|x\n<img src=x>\u202e`[link](http://x)"


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory, logs: Path, ingested) -> Path:
    folder = tmp_path_factory.mktemp("hostile")
    rows = [json.loads(line) for line in (logs / "client.jsonl").read_text().splitlines()]
    rows[0].update(
        request_id=HOSTILE, response_id="chatcmpl-" + HOSTILE, trace_id=None, label=HOSTILE, error=HOSTILE
    )
    (folder / "client.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    ingested(folder / "case.duckdb", folder / "client.jsonl", run="r\x1bun")
    return folder / "case.duckdb"


@pytest.mark.parametrize("kind", ["table", "md"])
@pytest.mark.parametrize(
    "args",
    [
        ("slowest", "--top", "20"),
        ("query", "requests"),
        ("sources",),
        ("sql", "SELECT * FROM client_request"),
        ("show", "evil"),
    ],
)
def test_a_hostile_id_never_acts_in_what_people_read(
    run, hostile: Path, args: tuple[str, ...], kind: str
) -> None:
    result = run(*args, "-c", hostile, "--format", kind)
    assert result.exit_code == 0, result.stderr
    assert not set(result.stdout) & set("\x1b\x9b\u202e\r")
    assert not any(line.startswith("<img") for line in result.stdout.splitlines())


def test_a_hostile_id_stays_in_its_markdown_cell(run, hostile: Path) -> None:
    head, rule, *rows = run("query", "requests", "-c", hostile, "--format", "md").stdout.splitlines()
    assert len(rows) == 10
    for line in (head, rule, *rows):
        assert line.replace("\\|", "").count("|") == head.count("|")


def test_data_formats_keep_the_id_as_it_is(run, hostile: Path) -> None:
    wanted = "chatcmpl-" + HOSTILE
    objects = json.loads(run("query", "requests", "-c", hostile, "--format", "json").stdout)
    assert wanted in [row["request_id"] for row in objects]
    cells = csv.DictReader(io.StringIO(run("query", "requests", "-c", hostile, "--format", "csv").stdout))
    assert wanted in [row["request_id"] for row in cells]


def test_an_error_message_that_quotes_an_id_does_not_act(run, hostile: Path) -> None:
    several = run("show", "chatcmpl", "-c", hostile)
    assert several.exit_code == 2
    assert "\x1b" not in several.stderr
    assert "\u202e" not in several.stderr
    failed = run(
        "sql",
        "SELECT CAST(request_id AS INTEGER) FROM request WHERE starts_with(request_id, 'chatcmpl-evil')",
        "-c",
        hostile,
    )
    assert failed.exit_code == 3
    assert "\x1b" not in failed.stderr
