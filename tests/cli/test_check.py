"""``check`` and ``rules``: what they print, their exit codes, thresholds from files, rules from folders."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import tracelens
from tracelens import resources

if TYPE_CHECKING:
    from collections.abc import Callable

TOYS = Path(__file__).parent.parent / "rules" / "data" / "toys"
OUTCOME_KEYS = [
    "rule",
    "cause",
    "title",
    "belief",
    "outcome",
    "severity",
    "confidence",
    "run",
    "subject",
    "from",
    "to",
    "message",
    "measured",
    "threshold",
    "evidence",
    "missing",
    "remedies",
]


@pytest.fixture(autouse=True)
def only_toys(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The rules that come with tracelens are the two toys; no file of the user is near."""
    monkeypatch.setattr(resources, "rules", lambda: TOYS)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "config" / "tracelens"
    folder.mkdir(parents=True)
    return folder


def check_json(run: Callable[..., Any], *args: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(run("check", "--format", "json", *args).stdout)
    return found


# What it prints ---------------------------------------------------------------------------------------------------------


def test_text_has_verdict_findings_plan_and_what_is_clear(run) -> None:
    result = run("check")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0] == "Up to 26 requests waited; raise --max-num-seqs."
    assert "1  CRITICAL, high confidence: Requests wait" in lines
    assert "   people assume  The GPU is too slow." in lines
    assert "   measured       waiting count 26 (threshold 5, ×5.2)" in lines
    assert any(re.match(r"   evidence       server\.log:\d+  .*waiting 26", line) for line in lines)
    assert "   what to do     step 1: Raise --max-num-seqs." in lines
    assert any(
        re.match(r"1  config +toy-waiting +Raise --max-num-seqs\. Moves queue; then look at TPOT\.", x)
        for x in lines
    )
    assert " - Add cards. (toy.waits): no finding shows that the hardware is saturated" in lines


def test_a_pipe_gets_the_same_text_as_a_table(run) -> None:
    assert run("check").stdout == run("check", "--format", "table").stdout
    assert run("check").stdout == run("check").stdout


def test_what_is_not_decided_is_grouped_by_what_to_record(run, log_case: Path) -> None:
    text = run("check", "-c", log_case).stdout
    assert "record:\n - a streaming client that stamps the send and every chunk: toy.slow_client\n" in text


def test_json_has_the_shape_of_the_contract(run, case: Path) -> None:
    found = check_json(run)
    assert {"case", "runs", "verdict", "outcomes"} <= set(found)
    assert found["case"] == str(case)
    assert found["runs"] == ["default"]
    for outcome in found["outcomes"]:
        assert set(OUTCOME_KEYS) <= set(outcome)
        assert outcome["outcome"] in ("fired", "clear", "not_evaluated", "failed")
        assert outcome["severity"] in ("info", "warning", "critical")
        assert outcome["confidence"] in ("low", "medium", "high")
        assert all({"source", "line", "text"} <= set(line) for line in outcome["evidence"])
        assert all({"step", "kind", "text"} <= set(remedy) for remedy in outcome["remedies"])
    first = found["outcomes"][0]
    assert (first["rule"], first["outcome"], first["measured"]["waiting_count"]) == ("toy.waits", "fired", 26)
    assert first["from"] == "2026-11-29T12:46:56.000000"
    assert [(remedy["step"], remedy["text"]) for remedy in first["remedies"]] == [
        (1, "Raise --max-num-seqs.")
    ]
    assert [(step["step"], step["kind"]) for step in found["plan"]][:1] == [(1, "config")]
    assert [held["text"] for held in found["not_advised"]] == ["Add cards."]


def test_rows_say_what_the_object_says(run) -> None:
    outcomes = check_json(run)["outcomes"]
    lines = [json.loads(line) for line in run("check", "--format", "jsonl").stdout.splitlines()]
    rows = list(csv.DictReader(io.StringIO(run("check", "--format", "csv").stdout)))
    assert [(one["rule"], one["subject"], one["outcome"]) for one in lines] == [
        (one["rule"], one["subject"], one["outcome"]) for one in outcomes
    ]
    assert lines[0]["measured"] == outcomes[0]["measured"]
    assert json.loads(rows[0]["evidence"]) == outcomes[0]["evidence"]
    assert len(rows) == len(outcomes)


def test_markdown_is_a_page_with_the_same_findings(run) -> None:
    text = run("check", "--format", "md").stdout
    assert text.startswith("**Up to 26 requests waited; raise --max-num-seqs.**")
    assert "## 1. Requests wait (critical, high confidence)" in text
    assert "1. config: Raise --max-num-seqs." in text


def test_the_library_says_what_the_command_says(run, case: Path) -> None:
    with tracelens.open(case) as opened:
        check = opened.check(set={"toy.waits.min_waiting_count": 3})
    found = check_json(run, "--set", "toy.waits.min_waiting_count=3")
    assert check.verdict == found["verdict"]
    assert [one.rule for one in check.outcomes] == [one["rule"] for one in found["outcomes"]]


# Exit codes -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "code"),
    [
        ((), 0),
        (("--fail-on", "critical"), 1),
        (("--fail-on", "info"), 1),
        (("--fail-on", "critical", "--set", "toy.waits.min_waiting_count=1000"), 0),
        (("--set", "toy.waits.min=1"), 2),
        (("--set", "nonsense"), 2),
        (("--set", "toy.waits.min_waiting_count=many"), 2),
        (("--rules", "nowhere"), 2),
        (("--run", "never"), 2),
        (("--fail-on", "anything"), 2),
        (("-c", "nowhere.duckdb"), 2),
    ],
)
def test_exit_codes(run, args: tuple[str, ...], code: int) -> None:
    assert run("check", *args).exit_code == code


def test_a_rule_that_fails_is_exit_code_3_after_everything_else_is_printed(run, tmp_path: Path) -> None:
    shutil.copytree(TOYS, tmp_path / "more")
    broken = tmp_path / "more" / "toy" / "broken.sql"
    broken.write_text(
        (TOYS / "toy" / "waits.sql").read_text().replace("FROM engine_sample", "FROM no_such_table")
    )
    result = run("check", "--rules", tmp_path / "more", "--fail-on", "critical")
    assert result.exit_code == 3
    assert "CRITICAL, high confidence: Requests wait" in result.stdout
    assert "FAILED  toy.broken: " in result.stdout


def test_a_rule_that_cannot_be_read_is_exit_code_3_with_its_file(run, tmp_path: Path) -> None:
    (tmp_path / "more" / "toy").mkdir(parents=True)
    (tmp_path / "more" / "toy" / "bad.sql").write_text("SELECT 1")
    result = run("check", "--rules", tmp_path / "more")
    assert result.exit_code == 3
    assert "bad.sql: no leading comment" in result.stderr


# Thresholds and rules of the user's own ---------------------------------------------------------------------------------


def outcome_of(found: dict[str, Any], rule: str) -> str:
    return next(one["outcome"] for one in found["outcomes"] if one["rule"] == rule)


def test_thresholds_come_from_the_user_s_file_the_folder_s_file_and_the_option(
    run, home: Path, tmp_path: Path
) -> None:
    (home / "config.toml").write_text('[set]\n"toy.waits.min_waiting_count" = 1000\n')
    result = run("check", "--format", "json")
    assert outcome_of(json.loads(result.stdout), "toy.waits") == "clear"
    assert f"thresholds from {home / 'config.toml'}" in result.stderr
    (tmp_path / "tracelens.toml").write_text("[set]\ntoy.waits.min_waiting_count = 4\n")
    assert outcome_of(check_json(run), "toy.waits") == "fired"
    given = check_json(run, "--set", "toy.waits.min_waiting_count=2000")
    assert outcome_of(given, "toy.waits") == "clear"
    assert given["set"] == {"toy.waits.min_waiting_count": 2000}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[set]\ntoy.waits.min = 1\n", "tracelens.toml"),
        ("[thresholds]\n", "only the tables [set] and [slo] are known"),
        ("set = 3\n", "only the tables [set] and [slo] are known"),
        ("[set\n", "tracelens.toml"),
    ],
)
def test_a_file_that_makes_no_sense_is_named(run, tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "tracelens.toml").write_text(text)
    result = run("check")
    assert result.exit_code == 2
    assert said in result.stderr


def test_rules_of_the_user_s_own_folder_run_too(run, home: Path) -> None:
    (home / "rules" / "own").mkdir(parents=True)
    shutil.copy(TOYS / "toy" / "waits.sql", home / "rules" / "own" / "line.sql")
    assert outcome_of(check_json(run), "own.line") == "fired"
    assert "own.line" in run("rules", "list").stdout


def test_one_run_of_several(run, tmp_path: Path, logs: Path, ingested) -> None:
    both = tmp_path / "both.duckdb"
    ingested(both, logs / "server.log", run="before")
    ingested(both, logs / "client.jsonl", run="after")
    assert {one["run"] for one in check_json(run, "-c", both)["outcomes"]} == {"before", "after"}
    after = check_json(run, "-c", both, "--run", "after")
    assert {one["run"] for one in after["outcomes"]} == {"after"}
    text = run("check", "-c", both).stdout
    assert "What to do for run before, in this order:" in text
    assert "run before" in text


# Text from logs ---------------------------------------------------------------------------------------------------------

HOSTILE = "evil\x1b[2J\x9b31m|x\n# <img src=x>\u202e`[link](http://x)` @someone"


@pytest.mark.parametrize("kind", ["table", "md"])
def test_text_from_a_log_never_acts(run, tmp_path: Path, logs: Path, ingested, kind: str) -> None:
    rows = [json.loads(line) for line in (logs / "client.jsonl").read_text().splitlines()]
    for row in rows:
        row["request_id"] = HOSTILE
    (tmp_path / "client.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    ingested(tmp_path / "hostile.duckdb", tmp_path / "client.jsonl", run="r\x1bun")
    args = ("--set", "toy.slow_client.max_ttft_s=0", "-c", tmp_path / "hostile.duckdb", "--format", kind)
    result = run("check", *args)
    assert result.exit_code == 0, result.stderr
    assert "evil" in result.stdout
    assert not set(result.stdout) & set("\x1b\x9b\u202e\r")
    assert not any(line.startswith(("<img", "# ")) for line in result.stdout.splitlines())
    if kind == "md":
        outside = re.sub(r"(`+) ?.*?\1", "", result.stdout)
        assert "@" not in outside
        assert "http" not in outside
        assert not re.search(r"(?<!\\)[<\[]", outside)


# The checklist ----------------------------------------------------------------------------------------------------------


def test_the_checklist_answers_every_point(run) -> None:
    rows = json.loads(run("check", "--checklist", "--format", "json").stdout)
    assert [row["point"] for row in rows] == [1, 2, 3, 4, 5, 6, 7]
    answers = {row["point"]: row["answer"] for row in rows}
    assert set(answers.values()) <= {"yes", "no", "cannot tell"}
    assert (answers[1], answers[3], answers[6]) == ("yes", "yes", "yes")
    assert all(bool(row["switch_on"]) == (row["answer"] != "yes") for row in rows)
    text = run("check", "--checklist").stdout
    assert text.count("[x]") == sum(answer == "yes" for answer in answers.values())


def test_the_checklist_of_a_log_alone_says_what_to_switch_on(run, log_case: Path) -> None:
    rows = json.loads(run("check", "--checklist", "--format", "json", "-c", log_case).stdout)
    answers = {row["point"]: row for row in rows}
    assert answers[1]["answer"] == "no"
    assert "--otlp-traces-endpoint" in answers[1]["switch_on"]
    assert answers[6]["answer"] == "cannot tell"


# tracelens rules --------------------------------------------------------------------------------------------------------


def test_rules_list_and_show(run) -> None:
    rows = list(csv.DictReader(io.StringIO(run("rules", "list", "--format", "csv").stdout)))
    assert [(row["rule"], row["cause"]) for row in rows] == [
        ("toy.slow_client", "toy-slow-client"),
        ("toy.waits", "toy-waiting"),
    ]
    page = run("rules", "show", "toy.waits").stdout
    for part in (
        "Belief: The GPU is too slow.",
        "--set toy.waits.min_waiting_count=5",
        "Known limits",
        "FROM engine_sample",
    ):
        assert part in page
    missing = run("rules", "show", "toy.nothing")
    assert missing.exit_code == 2
    assert "no rule 'toy.nothing'" in missing.stderr


def test_rules_test_runs_laws_and_cases(run, tmp_path: Path) -> None:
    good = run("rules", "test", TOYS)
    assert good.exit_code == 0
    assert good.stdout.splitlines()[-1] == "2 rules, 5 cases: all right"
    shutil.copytree(TOYS, tmp_path / "more")
    waits = tmp_path / "more" / "toy" / "waits.sql"
    waits.write_text(waits.read_text().replace(">= $min_waiting_count", "> $min_waiting_count"))
    bad = run("rules", "test", tmp_path / "more")
    assert bad.exit_code == 3
    assert "FAIL  toy.waits" in bad.stdout
    assert "a short line fires where the threshold is lower" in bad.stdout
    assert run("rules", "test", tmp_path / "nowhere").exit_code == 2


def test_rules_test_without_a_folder_tests_those_of_tracelens(run, tmp_path: Path, monkeypatch) -> None:
    assert run("rules", "test").exit_code == 0
    (tmp_path / "wheel").mkdir()
    monkeypatch.setattr(resources, "rules", lambda: tmp_path / "wheel")
    assert run("rules", "test").exit_code == 2


def test_the_demo_shows_its_check_before_its_stages(run) -> None:
    lines = run("demo").stdout.splitlines()
    verdict = next(
        place for place, line in enumerate(lines) if line.endswith("requests waited; raise --max-num-seqs.")
    )
    assert lines[verdict + 1].startswith("  1 critical (high confidence): Up to")
    assert verdict < lines.index("Where the time to the first token went, over all requests:")
